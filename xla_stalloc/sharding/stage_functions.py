"""A stage's function as the programs that a pipeline runs: forward, backward, and the two halves of the backward.

What the forward hands to the backward becomes an output of the one program and an argument of the other, so that it can
be counted, kept, and freed. The backward is split as in zero-bubble pipelines (Qi et al., 2023, arXiv:2401.10241): what
the gradient of the input needs comes first, and what only the weights' gradients need is left for later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import jax
from jax.extend import core

_Arrays = list[Any]


@dataclass(frozen=True)
class StageFunctions:
    """Functions to be compiled; parameters, inputs, outputs and gradients are pytrees, residuals lists of arrays.

    Attributes:
      forward: (parameters, input) -> (output, residuals).
      backward: (parameters, residuals, gradient of the output) -> (gradients of the parameters, of the input).
      input_gradient: (parameters, residuals, gradient of the output) -> (gradient of the input, deferred).
      kept: (residuals, gradient of the output) -> those of these arrays that the weight gradient still needs.
      weight_gradient: (parameters, kept, deferred) -> gradients of the parameters.
    """

    forward: Callable[[Any, Any], tuple[Any, _Arrays]]
    backward: Callable[[Any, _Arrays, Any], tuple[Any, Any]]
    input_gradient: Callable[[Any, _Arrays, Any], tuple[Any, _Arrays]]
    kept: Callable[[_Arrays, Any], _Arrays]
    weight_gradient: Callable[[Any, _Arrays, _Arrays], Any]


def stage_functions(function: Callable[[Any, Any], Any], parameters: Any, inputs: Any) -> StageFunctions:
    """The programs of a stage.

    Residuals are what the backward needs beside the parameters: a parameter is never among them, since the backward
    gets the parameters anyway. The input may be.

    Args:
      function: (parameters, input) -> output.
      parameters: arrays or their shapes.
      inputs: arrays or their shapes; integers get no gradient.
    """
    has_gradient = all(jax.numpy.issubdtype(leaf.dtype, jax.numpy.floating) for leaf in jax.tree.leaves(inputs))
    places: list[int | None] = []  # of the pullback's arrays: which parameter each is; None: a residual
    structure: Any = None

    def forward(parameters: Any, inputs: Any) -> tuple[Any, _Arrays]:
        nonlocal structure
        if has_gradient:
            output, pullback = jax.vjp(function, parameters, inputs)
        else:
            output, pullback = jax.vjp(lambda parameters: function(parameters, inputs), parameters)
        leaves, structure = jax.tree.flatten(pullback)
        own = {id(leaf): number for number, leaf in enumerate(jax.tree.leaves(parameters))}
        places[:] = [own.get(id(leaf)) for leaf in leaves]
        return output, [leaf for leaf, place in zip(leaves, places, strict=True) if place is None]

    def backward(parameters: Any, residuals: _Arrays, gradient: Any) -> tuple[Any, Any]:
        own, rest = jax.tree.leaves(parameters), iter(residuals)
        pullback = jax.tree.unflatten(structure, [next(rest) if p is None else own[p] for p in places])
        gradients = pullback(gradient)
        return gradients if has_gradient else (*gradients, None)

    output, residuals = jax.eval_shape(forward, parameters, inputs)
    return StageFunctions(forward, backward, *_split(backward, parameters, residuals, output))


def _split(
    backward: Callable[..., Any], parameters: Any, residuals: _Arrays, gradient: Any
) -> tuple[Callable[..., Any], Callable[..., Any], Callable[..., Any]]:
    """The backward in two: what the gradient of the input needs, and the rest; between them, what is kept."""
    closed, shapes = jax.make_jaxpr(backward, return_shape=True)(parameters, residuals, gradient)
    jaxpr = closed.jaxpr
    count = len(jax.tree.leaves(shapes[0]))
    weight_structure, input_structure = map(jax.tree.structure, shapes)
    weights, inputs = jaxpr.outvars[:count], jaxpr.outvars[count:]
    first = _needed(jaxpr.eqns, inputs)
    done = set(map(id, first))
    second = _needed((equation for equation in jaxpr.eqns if id(equation) not in done), weights)
    read = _variables([*(v for equation in second for v in equation.invars), *weights])
    own, incoming = _halves(jaxpr.invars, len(jax.tree.leaves(parameters)))
    made = _variables(v for equation in first for v in equation.outvars)
    deferred = [variable for variable in made if variable in read]
    kept = [number for number, variable in enumerate(incoming) if variable in read]

    unknown = jaxpr.debug_info.with_unknown_names()

    def run(equations: _Arrays, arguments: _Arrays, results: _Arrays, values: Any) -> _Arrays:
        part = core.Jaxpr(jaxpr.constvars, arguments, results, equations, jaxpr.effects, unknown)
        return list(core.jaxpr_as_fun(closed.replace(jaxpr=part))(*jax.tree.leaves(values)))

    def input_gradient(parameters: Any, residuals: _Arrays, gradient: Any) -> tuple[Any, _Arrays]:
        found = run(first, jaxpr.invars, [*inputs, *deferred], (parameters, residuals, gradient))
        gradients, rest = _halves(found, len(inputs))
        return jax.tree.unflatten(input_structure, gradients), rest

    def keep(residuals: _Arrays, gradient: Any) -> _Arrays:
        arrays = jax.tree.leaves((residuals, gradient))
        return [arrays[number] for number in kept]

    def weight_gradient(parameters: Any, kept_arrays: _Arrays, deferred_arrays: _Arrays) -> Any:
        arguments = [*own, *(incoming[number] for number in kept), *deferred]
        found = run(second, arguments, weights, (parameters, kept_arrays, deferred_arrays))
        return jax.tree.unflatten(weight_structure, found)

    return input_gradient, keep, weight_gradient


def _needed(equations: Iterable[Any], results: Iterable[Any]) -> _Arrays:
    """The equations, in order, that lead to the results."""
    needed, found = _variables(results), []
    for equation in reversed(list(equations)):
        if any(variable in needed for variable in equation.outvars):
            found.append(equation)
            needed |= _variables(equation.invars)
    return found[::-1]


def _variables(atoms: Iterable[Any]) -> dict[Any, None]:
    """Those that are no literals, each once, in order."""
    return dict.fromkeys(atom for atom in atoms if isinstance(atom, core.Var))


def _halves(items: _Arrays, count: int) -> tuple[_Arrays, _Arrays]:
    return items[:count], items[count:]
