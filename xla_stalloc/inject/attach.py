"""Device memory of jaxlib's own CPU client, taken over in this process: what the plugin does, without a plugin.

jaxlib allocates device buffers at one place in ``libjax_common.so``. `attach` leads its calls of ``posix_memalign`` and
``free`` through ``libpjrt_stalloc.so``, and finds that place by uploading an array of an odd size. Linux, on x86-64 and
aarch64. Executions are not seen from there; `keyed` announces them.
"""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

from xla_stalloc.inject import native


class AttachError(RuntimeError):
    """The memory of this process's CPU client cannot be taken over; everything stays as it is."""


def attach() -> None:
    """Takes over the memory of jaxlib's CPU client, which is created for it. Doing it again changes nothing.

    From then on `native.memory` and `native.recording` know of it. Buffers that live already go back to where they came
    from.

    Raises:
        AttachError: Says what is in the way.
        native.NoLibraryError: This installation has no ``libpjrt_stalloc.so``.
    """
    import jax

    device = jax.local_devices(backend="cpu")[0]
    if problem := native.library().stalloc_attach(str(_jaxlib()).encode()).decode():
        raise AttachError(problem)
    if native.memory_problem():
        _calibrate(device)
    if problem := native.memory_problem():
        raise AttachError(problem)


def keyed(compiled: Any) -> Callable[..., Any]:
    """Announces every call of a compiled program, so that what it asks for can be told from anything else.

    The first call waits for its results: what the program asks for is learnt from it.

    Args:
        compiled: A ``jax.stages.Compiled`` for this process's own devices.

    Raises:
        AttachError: The program calls back into Python; what Python uploads then looks like the program's own.
    """
    import jax

    library = native.library()
    executable = compiled.runtime_executable()
    devices = len(executable.local_devices())
    text = executable.hlo_modules()[0].as_serialized_hlo_module_proto()
    if b"python_cpu_callback" in text:
        raise AttachError(
            "the program calls back into Python: its own memory cannot be told from that of uploads there"
        )
    program = int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little") or 1

    def call(*args: Any, **kwargs: Any) -> Any:
        first = not library.stalloc_program_is_known(program)
        if first:  # nothing else may be allocating meanwhile
            jax.block_until_ready((args, kwargs))
        execution = library.stalloc_execution_begin(program, devices)
        try:
            results = compiled(*args, **kwargs)
            if first:
                jax.block_until_ready(results)
        except BaseException:
            library.stalloc_execution_end(execution, 0)
            raise
        library.stalloc_execution_end(execution, int(first))
        return results

    return call


def _jaxlib() -> Path:
    spec = importlib.util.find_spec("jaxlib")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        if (found := Path(folder) / "libjax_common.so").is_file():
            return found
    raise AttachError("this jaxlib has no libjax_common.so")


def _calibrate(device: Any) -> None:
    """Uploads an array that the client cannot share with us, since it begins at an odd address."""
    import jax
    import numpy as np

    library = native.library()
    array = np.zeros(int(library.stalloc_calibration_bytes()) + 1, np.uint8)[1:]
    library.stalloc_calibration_begin()
    try:
        jax.device_put(array, device).block_until_ready()
    finally:
        library.stalloc_calibration_end()
