"""Makes executables that run with our offsets serializable.

XLA:CPU leaves the object code out when it serializes an executable that was itself loaded, and what is loaded from that
fails when it runs. So the bytes that were loaded are kept, and given out where jaxlib is asked for them, by
``jax.experimental.serialize_executable`` say. They are known by what the executable says of itself, its HLO and the
size of its temporaries: an address may be that of another executable by then.
"""

from __future__ import annotations

import functools
import hashlib
import threading
from typing import Any

from xla_stalloc.hlo.schema import hlo_pb2
from xla_stalloc.inject.program import Size, size_of

_lock = threading.Lock()
_kept: dict[Size | None, dict[bytes, bytes]] = {}  # by size, which is known at once, and by the digest of the HLO
_taught: set[tuple[type, str]] = set()


def keep(executable: Any, serialized: bytes) -> None:
    """Remembers what an executable was loaded from.

    Raises:
        TypeError, AttributeError: This jaxlib's executables cannot be taught to give it out.
    """
    with _lock:
        # jaxlib has two names for it.
        _teach(type(executable), "serialize")
        _teach(type(executable.client), "serialize_executable")
        _kept.setdefault(size_of(executable), {})[_digest(executable)] = serialized


def _teach(kind: type, name: str) -> None:
    """Lets a method of which the last argument is an executable give out what was kept of it."""
    if (kind, name) in _taught:
        return
    original = getattr(kind, name)

    @functools.wraps(original)
    def serialize(*arguments: Any) -> bytes:
        executable = arguments[-1]
        alike = _kept.get(size_of(executable)) if _kept else None
        kept = alike.get(_digest(executable)) if alike else None
        if kept is not None:
            return kept
        fresh: bytes = original(*arguments)
        return fresh

    setattr(kind, name, serialize)
    _taught.add((kind, name))


def _digest(executable: Any) -> bytes:
    module = executable.hlo_modules()[0].as_serialized_hlo_module_proto()
    # Maps have no order of their own.
    canonical = hlo_pb2.HloModuleProto.FromString(module).SerializeToString(deterministic=True)
    return hashlib.sha256(canonical).digest()
