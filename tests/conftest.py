"""Eight virtual CPU devices for every test, set before anything imports jax."""

import os

os.environ.setdefault("JAX_PLATFORMS", "cpu")
# The last flag of a kind wins, so what the caller has set stays in force for everything else.
os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=8".strip()
