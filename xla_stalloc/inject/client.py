"""JAX's client of a platform, with a memory for what it loads."""

from __future__ import annotations

from typing import Any


class Client:
    """Everything is passed on; of executables that come out of the persistent cache, the bytes are kept.

    XLA:CPU leaves the object code out when it serializes an executable that was itself loaded, so the bytes that it was
    loaded from are the only whole ones.
    """

    def __init__(self, backend: Any) -> None:
        """Stands in for the given client."""
        self._backend = backend
        self._loaded: list[tuple[Any, bytes]] = []

    def __getattr__(self, name: str) -> Any:
        """Whatever else the client has."""
        return getattr(self._backend, name)

    def deserialize_executable(self, serialized: bytes, *args: Any, **kwargs: Any) -> Any:
        """Loads an executable, as the client itself does, and keeps its bytes."""
        executable = self._backend.deserialize_executable(serialized, *args, **kwargs)
        self._loaded.append((executable, serialized))
        return executable

    def serialize(self, executable: Any) -> bytes:
        """The bytes of an executable that came from this client and has not run yet."""
        for known, serialized in self._loaded:
            if known is executable:
                return serialized
        fresh: bytes = executable.serialize()
        return fresh
