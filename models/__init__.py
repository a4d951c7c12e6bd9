"""Real training steps, small by default, that lay themselves out on a `data` x `model` mesh.

spec = models.get("gpt-remat", layers=2)
mesh = models.make_mesh(4, 2)
step, state = spec.jit(mesh), spec.start(mesh)
state, loss = step(state, spec.batch(0))
"""

from .errors import ModelError
from .partition import make_mesh
from .registry import get, names
from .spec import Batch, ModelSpec, State

__all__ = ["Batch", "ModelError", "ModelSpec", "State", "get", "make_mesh", "names"]
