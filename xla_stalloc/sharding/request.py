"""What is to be compiled, for which devices: plain data that another process can read."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One step on one mesh.

    Attributes:
        function: `path/of/train.py:make_step`, or `package.module:make_step`; see `program`.
        topology: as `topology.parse` reads it.
        mesh: as `mesh.parse` reads it.
        arguments: keyword arguments of the function besides the mesh.
        compiler_options: of XLA, by name; the same that `jax.jit` takes.
        compile: or else only estimate.
        mode: of planning while it is compiled, see `plan.options.MODES`; "off" is stock XLA.
    """

    function: str
    topology: str
    mesh: str
    arguments: dict[str, Any] = field(default_factory=dict)
    compiler_options: dict[str, Any] = field(default_factory=dict)
    compile: bool = True
    mode: str = "off"

    def to_json(self) -> str:
        """One line, the same for the same request."""
        return json.dumps(dataclasses.asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> Request:
        """The inverse of `to_json`."""
        return cls(**json.loads(text))
