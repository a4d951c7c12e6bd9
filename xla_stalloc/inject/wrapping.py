"""The platform ``stalloc``: a vendor's PJRT plugin, wrapped by ours (``plugins/pjrt``)."""

from __future__ import annotations

import os
import re
from typing import Any

from xla_stalloc.inject import native, vendors

PLATFORM = "stalloc"


def is_asked_for() -> bool:
    """Whether JAX was told to use the platform, by ``JAX_PLATFORMS`` or ``jax.config``."""
    import jax

    platforms = jax.config.jax_platforms or os.environ.get("JAX_PLATFORMS", "")
    return PLATFORM in platforms.split(",")


def register() -> None:
    """Tells JAX about the platform. To be called while JAX looks for its plugins.

    What is in the way becomes the error of JAX's first use of the platform, which its user sees.

    Raises:
        native.NoLibraryError: The plugin was not built.
    """
    from jax._src import xla_bridge  # where JAX's documentation tells plugins to register

    library = native.library()
    try:
        vendor = vendors.find()
    except vendors.NoVendorError as error:
        library.stalloc_wrap(None, str(error).encode())
        options: dict[str, Any] = {}
    else:
        library.stalloc_wrap(os.fsencode(vendor.path), None)
        options = client_options(vendor)
    # Above every vendor's own plugin, so that it is the default wherever it is asked for.
    xla_bridge.register_plugin(PLATFORM, priority=1000, library_path=str(native.path()), options=options)


def client_options(vendor: vendors.Vendor) -> dict[str, Any]:
    """The options with which JAX itself would create the vendor's client."""
    if vendor.name == "cuda":
        from jaxlib import xla_client

        options = dict(xla_client.generate_pjrt_gpu_plugin_options())
        options["platform_name"] = "cuda"
        # The one allocator that asks the driver once per buffer, and for exact sizes; see docs/plugin.md.
        if "XLA_PYTHON_CLIENT_ALLOCATOR" not in os.environ:
            options["allocator"] = "cuda_async"
        return options
    if vendor.name == "cpu":
        return {"cpu_device_count": _cpu_devices()}
    return {}


def _cpu_devices() -> int:
    """How many CPU devices JAX's own client would have."""
    import jax

    configured = int(getattr(jax.config, "jax_num_cpu_devices", -1))
    if configured > 0:
        return configured
    flags = re.findall(r"--xla_force_host_platform_device_count=(\d+)", os.environ.get("XLA_FLAGS", ""))
    return int(flags[-1]) if flags else 1
