"""The user's step: a function that is given a mesh and says what is to be compiled for it.

    def make_step(mesh, *, batch=64):
        ...
        return step, (state, batch)

`mesh` is a `jax.sharding.Mesh` over devices that need not be here: nothing may be computed on them, so shapes come from
`jax.eval_shape`. `step` is a function, or better one that `jax.jit` made with its donation and output shardings.
The tuple holds its arguments: pytrees of `jax.ShapeDtypeStruct` with a `NamedSharding` over the mesh; what has no
sharding is replicated. Keyword arguments get the values that are set, or swept over, on the command line.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xla_stalloc.sharding.errors import FitError

if TYPE_CHECKING:
    import jax
    from jax.sharding import Mesh

_PROTOCOL = "it has to return (step, arguments): a function, and the tuple of its abstract arguments"


def load(name: str) -> Callable[..., Any]:
    """The function of `train.py:make_step` or `package.module:make_step`.

    Raises:
        FitError: there is no such file, module or function, or importing it fails.
    """
    where, _, attribute = name.rpartition(":")
    if not where or not attribute.isidentifier():
        raise FitError(f"'{name}' names no function; write train.py:make_step or package.module:make_step")
    try:
        module = _file(Path(where)) if where.endswith(".py") else importlib.import_module(where)
    except FileNotFoundError as error:
        raise FitError(f"there is no file {error.filename or where}") from error
    # Whatever a user's module raises while it is imported, the message is about the module.
    except Exception as error:
        raise FitError(f"{where} cannot be imported: {type(error).__name__}: {error}") from error
    function: Any = getattr(module, attribute, None)
    if not callable(function):
        names = [
            key
            for key, value in vars(module).items()
            if inspect.isfunction(value) and value.__module__ == module.__name__
        ]
        raise FitError(f"{where} has no function '{attribute}'; it has {', '.join(names) or 'none'}")
    made: Callable[..., Any] = function
    return made


def lower(function: Callable[..., Any], mesh: Mesh, keywords: dict[str, Any]) -> jax.stages.Lowered:
    """Calls the user's function, and traces and lowers the step that it returns.

    Raises:
        FitError: the function does not take the keywords, breaks the protocol, or raises an error.
    """
    import jax
    from jax.sharding import NamedSharding, PartitionSpec

    try:
        inspect.signature(function).bind(mesh, **keywords)
    except TypeError as error:
        takes = ", ".join(list(inspect.signature(function).parameters)[1:]) or "nothing"
        raise FitError(
            f"the function cannot be called with what is set: {error}; besides the mesh it takes {takes}"
        ) from error
    try:
        made = function(mesh, **keywords)
    except Exception as error:
        raise FitError(f"making the step failed: {_of(error)}") from error
    if not (isinstance(made, tuple) and len(made) == 2 and callable(made[0]) and isinstance(made[1], tuple)):
        raise FitError(f"the function returned {type(made).__name__}; {_PROTOCOL}")
    step, arguments = made
    replicated = NamedSharding(mesh, PartitionSpec())

    def abstract(x: Any) -> jax.ShapeDtypeStruct:
        sharding = None if isinstance(x, jax.Array) else getattr(x, "sharding", None)
        return jax.ShapeDtypeStruct(jax.numpy.shape(x), jax.dtypes.result_type(x), sharding=sharding or replicated)

    try:
        arguments = jax.tree.map(abstract, arguments)
        return (step if hasattr(step, "lower") else jax.jit(step)).lower(*arguments)
    except Exception as error:
        raise FitError(f"tracing the step failed: {_of(error)}") from error


def _of(error: Exception) -> str:
    if type(error).__name__ == "ModelError":
        return str(error)
    return f"{type(error).__name__}: {error}"


def _file(path: Path) -> Any:
    if not path.is_file():
        raise FileNotFoundError(2, "no such file", str(path))
    sys.path.insert(0, str(path.resolve().parent))  # as for `python train.py`
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module
