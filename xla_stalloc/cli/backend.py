"""Readies the JAX backend of this process; call it before anything makes JAX look for devices."""

from __future__ import annotations

import os

from xla_stalloc.inject.settings import ENV_MODE


def prepare(devices: int = 1) -> None:
    """Gives the CPU backend `devices` virtual devices, and leaves planning to the command's own options.

    Raising the number has no effect on GPUs and TPUs, nor once JAX has found its devices.
    """
    # XLA lets the last flag of a kind win, so the other flags of the caller stay in force.
    flags = (os.environ.get("XLA_FLAGS", ""), f"--xla_force_host_platform_device_count={devices}")
    os.environ["XLA_FLAGS"] = " ".join(filter(None, flags))
    # Stock has to be stock: with XLA_STALLOC set, every jax.jit of this process would be planned.
    os.environ.pop(ENV_MODE, None)
