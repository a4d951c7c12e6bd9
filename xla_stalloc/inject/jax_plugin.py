"""``XLA_STALLOC=<mode>``: planning with no change of code; ``JAX_PLATFORMS=stalloc``: the wrapped plugin.

JAX imports the modules of the entry point group ``jax_plugins`` when it looks for backends, and calls their
`initialize`. It does so in every process where this package is installed, so nothing is imported here before it is
known that somebody asks for planning.
"""

import os
import sys
import warnings


def initialize() -> None:
    """Enables what the environment asks for. Called by JAX; never raises."""
    _enable_planning()
    _register_platform()


def _register_platform() -> None:
    jax = sys.modules.get("jax")
    if "stalloc" not in f"{jax and jax.config.jax_platforms} {os.environ.get('JAX_PLATFORMS', '')}":
        return
    from xla_stalloc.inject import native, wrapping

    if not wrapping.is_asked_for():
        return
    try:
        wrapping.register()
    except native.NoLibraryError as error:
        warnings.warn(f"no platform {wrapping.PLATFORM!r}: {error}", RuntimeWarning, stacklevel=2)


def _enable_planning() -> None:
    if not os.environ.get("XLA_STALLOC"):
        return
    from xla_stalloc.inject import settings, switch

    try:
        wanted = settings.Settings.from_environment()
    except ValueError as error:
        warnings.warn(f"xla_stalloc plans nothing: {error}", RuntimeWarning, stacklevel=2)
        return
    # An enable() by the program itself comes later or has come already, and counts more than the environment.
    if wanted is None or settings.process_wide() is not None:
        return
    if wanted.mode != "off":
        switch.warn_if_unavailable()
    # JAX has compiled nothing yet, so there are no caches to clear.
    settings.set_process_wide(wanted)
