"""Models by name."""

from __future__ import annotations

import difflib
import functools
from collections.abc import Callable
from typing import Any

from . import gpt, resnet
from .errors import ModelError
from .spec import ModelSpec


def _variants() -> dict[str, tuple[type, Callable[..., ModelSpec]]]:
    models: dict[str, tuple[type, Callable[..., ModelSpec]]] = {}
    for nnx_api in (False, True):
        for scan in (False, True):
            for remat in (False, True):
                name = "gpt" + "-nnx" * nnx_api + "-scan" * scan + "-remat" * remat
                models[name] = gpt.Sizes, functools.partial(gpt.gpt, nnx_api=nnx_api, scan=scan, remat=remat)
    models["resnet"] = resnet.Sizes, resnet.resnet
    return models


_MODELS = _variants()


def names() -> tuple[str, ...]:
    """Every name that `get` takes."""
    return tuple(_MODELS)


def get(name: str, **sizes: int | None) -> ModelSpec:
    """Builds the model `name`; sizes that are absent or None keep the model's default.

    Raises:
        ModelError: no such model, a size that it does not have, or sizes that do not fit together.
    """
    if name not in _MODELS:
        near = difflib.get_close_matches(name, _MODELS, n=1, cutoff=0.0)[0]
        raise ModelError(f"no model '{name}'; did you mean '{near}'? The models are {', '.join(_MODELS)}")
    make_sizes, build = _MODELS[name]
    given: dict[str, Any] = {key: value for key, value in sizes.items() if value is not None}
    known = make_sizes.__dataclass_fields__  # type: ignore[attr-defined]
    for key, value in given.items():
        if key not in known:
            raise ModelError(f"{name} has no size '{key}'; it has {', '.join(known)}")
        if value < 1:
            raise ModelError(f"{name}: {key}={value} must be at least 1")
    return build(name, make_sizes(**given))
