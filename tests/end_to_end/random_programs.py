"""Random JAX programs as plain data, so that hypothesis can draw, print and shrink them.

A program maps a donated state and an undonated batch to the next state and further results. It is a list of steps over
a growing pool of arrays of four kinds; steps with a block inside (loops, branches, gradients, checkpoints) run a list
of steps of its own over square float32 matrices.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import strategies as st
from jax import lax
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

N = 48
"""Side of the square matrices. XLA gives everything at least 64 bytes; these are big enough to tell orders apart."""

KINDS = {
    "matrix": ((N, N), "float32"),
    "half": ((N, N), "bfloat16"),
    "ints": ((N, N), "int32"),
    "row": ((N,), "float32"),
}

_SCALE = 1.0 / N**0.5


def _dot(x: Any, y: Any) -> Any:
    return jnp.tanh(x @ y * _SCALE)


# name -> (kinds of operands, kind of the result, function)
STEPS: dict[str, tuple[tuple[str, ...], str, Callable[..., Any]]] = {
    "dot": (("matrix", "matrix"), "matrix", _dot),
    "dot_transposed": (("matrix", "matrix"), "matrix", lambda x, y: _dot(x.T, y)),
    "add": (("matrix", "matrix"), "matrix", lambda x, y: x + y),
    "multiply": (("matrix", "matrix"), "matrix", lambda x, y: x * y),
    "sine": (("matrix",), "matrix", jnp.sin),
    "unchanged": (("matrix",), "matrix", lambda x: x * 1.0),
    "transpose": (("matrix",), "matrix", lambda x: x.T),
    "sort": (("matrix",), "matrix", lambda x: jnp.sort(x, 0)),
    "sort_pairs": (("matrix", "matrix"), "matrix", lambda x, y: lax.sort((x, y), dimension=1, num_keys=1)[1]),
    "softmax": (("matrix",), "matrix", lambda x: jax.nn.softmax(x, -1)),
    "cumulative": (("matrix",), "matrix", lambda x: jnp.cumsum(x, 1)),
    "set_element": (("matrix", "row"), "matrix", lambda x, r: x.at[3, 5].set(r[0])),
    "set_row": (("matrix", "row"), "matrix", lambda x, r: lax.dynamic_update_slice(x, r[None] + x[2:3], (7, 0))),
    "add_rows": (("matrix", "ints"), "matrix", lambda x, i: x.at[i[0] % N].add(x[i[1] % N] * 0.5)),
    "gather": (("matrix", "ints"), "matrix", lambda x, i: x[i[:, 0] % N]),
    "barrier": (("matrix", "matrix"), "matrix", lambda x, y: lax.optimization_barrier((x, y))[0]),
    "tensor": (("matrix", "row"), "matrix", lambda x, r: jnp.sum(jnp.sin(x[:, :, None] * r[None, None, :8]), 2)),
    "outer": (("row", "row"), "matrix", jnp.outer),
    "to_half": (("matrix",), "half", lambda x: x.astype(jnp.bfloat16)),
    "half_dot": (("half", "half"), "half", _dot),
    "half_set": (("half",), "half", lambda x: x.at[0].set(x[1])),
    "from_half": (("half",), "matrix", lambda x: x.astype(jnp.float32)),
    "to_ints": (("matrix",), "ints", lambda x: (jnp.abs(jnp.nan_to_num(x)) * 100 % 1000).astype(jnp.int32)),
    "order": (("matrix",), "ints", lambda x: jnp.argsort(x, 1).astype(jnp.int32)),
    "int_sum": (("ints", "ints"), "ints", lambda x, y: jnp.cumsum(x ^ y, 0)),
    "column_sums": (("matrix",), "row", lambda x: jnp.sum(x, 0)),
    "row_maxima": (("matrix",), "row", lambda x: jnp.max(x, 1)),
    "product": (("matrix", "row"), "row", lambda x, r: jnp.tanh(x @ r * _SCALE)),
}
_SQUARE = sorted(name for name, (kinds, result, _) in STEPS.items() if {*kinds, result} == {"matrix"})
_SMOOTH = sorted(set(_SQUARE) - {"sort_pairs"})  # the gradient of a sort with ties is no better than its ties


@dataclass(frozen=True)
class Step:
    """One step: what it does, which of the arrays so far it takes (counted from the newest), a block, a number."""

    name: str
    operands: tuple[int, ...] = ()
    block: tuple[Step, ...] = ()
    number: int = 0


@dataclass(frozen=True)
class Program:
    """A whole program.

    Attributes:
      state: kinds of the arrays that are donated and come back.
      steps: what it does.
      following: per array of the state, which array of its kind takes its place (counted from the newest).
      results: further results, (kind, which).
    """

    state: tuple[str, ...]
    steps: tuple[Step, ...]
    following: tuple[int, ...]
    results: tuple[tuple[str, int], ...] = field(default=())

    def __call__(self, state: Sequence[Any], batch: dict[str, Any]) -> tuple[Any, Any]:
        """Runs, or is traced."""
        pools: dict[str, list[Any]] = {kind: [batch[kind]] for kind in KINDS}
        for kind, array in zip(self.state, state, strict=True):
            pools[kind].append(array)
        for step in self.steps:
            if step.name in STEPS:
                kinds, result, function = STEPS[step.name]
                pools[result].append(function(*(_pick(pools[k], i) for k, i in zip(kinds, step.operands, strict=True))))
            else:
                pools["matrix"] += _BLOCKS[step.name](step, [_pick(pools["matrix"], i) for i in step.operands])
        following = tuple(_pick(pools[kind], i) for kind, i in zip(self.state, self.following, strict=True))
        named = {f"{place}": _pick(pools[kind], i) for place, (kind, i) in enumerate(self.results)}
        return following, (named, sum(jnp.sum(x.astype(jnp.float32)) for pool in pools.values() for x in pool[-2:]))


def _pick(pool: Sequence[Any], back: int) -> Any:
    return pool[-1 - back % len(pool)]


def _run(block: Sequence[Step], *arrays: Any) -> list[Any]:
    """Runs a block; the last two arrays are its results."""
    pool = list(arrays)
    for step in block:
        operands = [_pick(pool, i) for i in step.operands]
        pool += [STEPS[step.name][2](*operands)] if step.name in STEPS else _BLOCKS[step.name](step, operands)
    return pool[-2:]


# ---- Steps with a block: each takes two matrices, and gives some


def _scan(step: Step, xs: list[Any]) -> list[Any]:
    def body(carry: Any, row: Any) -> Any:
        a, b = _run(step.block, carry[0], carry[1] + row)
        return (a, b), jnp.sum(b, 0)

    (a, b), rows = lax.scan(body, (xs[0], xs[1]), xs[1][: 2 + step.number])
    return [a, b, jnp.zeros_like(xs[0]).at[: rows.shape[0]].set(rows)]


def _while(step: Step, xs: list[Any]) -> list[Any]:
    def body(carry: Any) -> Any:
        i, a, b = carry
        c, d = _run(step.block, a, b)
        return (i + 1, d, c) if step.number % 2 else (i + 1, c, b)  # the carry changes places, or is handed through

    return list(lax.while_loop(lambda c: (c[0] < 3) & (c[2][0, 0] < 1e30), body, (0, xs[0], xs[1]))[1:])


def _fori(step: Step, xs: list[Any]) -> list[Any]:
    def body(i: Any, a: Any) -> Any:
        c, d = _run(step.block, a, xs[1])
        return c.at[i].set(d[i + 1])

    return [lax.fori_loop(0, 2 + step.number, body, xs[0])]


def _cond(step: Step, xs: list[Any]) -> list[Any]:
    others = {0: lambda a, b: [b, a], 1: lambda a, b: [a, a.at[0].set(b[0])], 2: lambda a, b: [a @ b, b]}
    return list(lax.cond(xs[0][0, 0] > 0, lambda a, b: _run(step.block, a, b), others[step.number % 3], xs[0], xs[1]))


def _switch(step: Step, xs: list[Any]) -> list[Any]:
    branches = [
        lambda a, b: _run(step.block, a, b),
        lambda a, b: _run(step.block[::-1], b, a),
        lambda a, b: [a, b],
        lambda a, b: [a.at[1, 1].add(1.0), b.at[2].set(a[3])],
    ]
    return list(lax.switch(jnp.sum(xs[0] > 0) % 4, branches, xs[0], xs[1]))


def _checkpoint(step: Step, xs: list[Any]) -> list[Any]:
    return jax.checkpoint(lambda a, b: _run(step.block, a, b))(xs[0], xs[1])


def _grad(step: Step, xs: list[Any]) -> list[Any]:
    block = [s for s in step.block if s.name in _SMOOTH or s.name in ("scan", "cond", "checkpoint")]

    def loss(a: Any, b: Any) -> Any:
        for _ in range(1 + step.number):
            a, b = jax.checkpoint(lambda a, b: _run(block, a, b))(a, b) if step.number else _run(block, a, b)
        return jnp.sum(a * b)

    return list(jax.grad(loss, (0, 1))(xs[0], xs[1]))


def _mesh() -> Mesh:
    return Mesh(np.array(jax.devices()[:8]).reshape(4, 2), ("x", "y"))


def _mapped(step: Step, xs: list[Any]) -> list[Any]:
    """Devices work on rows of the matrices, and talk to each other."""
    axes = ("x", "y")

    def body(a: Any, b: Any) -> Any:
        for inner in step.block:
            talk = inner.number % 5
            a, b = jnp.tanh(b * 2 + 1), jnp.sin(a)
            if talk == 0:
                a = lax.psum(b, axes) * 0.1 + a
            elif talk == 1:
                a = lax.ppermute(a, axes, [(i, (i + 1) % 8) for i in range(8)])
            elif talk == 2:
                b = (lax.all_gather(b, axes, tiled=True).T @ jnp.concatenate([a] * 8))[: a.shape[0]] * _SCALE
            elif talk == 3:
                b = lax.all_to_all(a, axes, 1, 0, tiled=True).reshape(a.shape)
            else:
                a = lax.psum_scatter(jnp.concatenate([b] * 8), axes, tiled=True) * 0.1
        return a, b

    return list(
        jax.shard_map(body, mesh=_mesh(), in_specs=(P(axes), P(axes)), out_specs=(P(axes), P(axes)))(xs[0], xs[1])
    )


def _constrained(step: Step, xs: list[Any]) -> list[Any]:
    """Work that XLA splits over the devices by itself."""
    specs = [P("x", "y"), P(None, "y"), P("x", None), P("y", "x")]
    a, b = (
        lax.with_sharding_constraint(x, NamedSharding(_mesh(), specs[(step.number + i) % 4])) for i, x in enumerate(xs)
    )
    return _run(step.block, a, b)


_BLOCKS: dict[str, Callable[[Step, list[Any]], list[Any]]] = {
    "scan": _scan,
    "while": _while,
    "fori": _fori,
    "cond": _cond,
    "switch": _switch,
    "checkpoint": _checkpoint,
    "grad": _grad,
    "mapped": _mapped,
    "constrained": _constrained,
}
_ON_MESHES = ("mapped", "constrained")

_back = st.integers(0, 7)


def _simple(names: Sequence[str]) -> st.SearchStrategy[Step]:
    return st.sampled_from(names).flatmap(
        lambda name: st.builds(Step, st.just(name), st.tuples(*[_back] * len(STEPS[name][0])))
    )


def _with_block(names: Sequence[str], inner: st.SearchStrategy[Step]) -> st.SearchStrategy[Step]:
    block = st.lists(inner, min_size=1, max_size=4).map(tuple)
    return st.builds(Step, st.sampled_from(names), st.tuples(_back, _back), block, st.integers(0, 5))


@st.composite
def programs(draw: Any, on_mesh: bool) -> Program:
    """Programs of some 10 to 25 steps. Those on a mesh run on eight devices."""
    nested = [name for name in _BLOCKS if name not in _ON_MESHES]
    square = _simple(_SQUARE)
    blocks = _with_block(nested, square | _with_block(nested, square))
    if on_mesh:
        blocks = _with_block(_ON_MESHES, square.map(lambda s: Step(s.name, s.operands, number=len(s.name))))
    simple = _simple(sorted(STEPS))
    steps = draw(st.lists(simple | simple | simple | blocks, min_size=6, max_size=22))
    state = draw(st.lists(st.sampled_from(["matrix", "matrix", "matrix", *KINDS]), min_size=1, max_size=4))
    following = draw(st.lists(st.integers(0, 12), min_size=len(state), max_size=len(state)))
    results = draw(st.lists(st.tuples(st.sampled_from(sorted(KINDS)), st.integers(0, 12)), max_size=3))
    return Program(tuple(state), tuple(steps), tuple(following), tuple(results))


def arguments(program: Program) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """A state and a batch, the same ones for every program with the same kinds of state."""
    rng = np.random.default_rng(0)

    def array(kind: str) -> Any:
        shape, dtype = KINDS[kind]
        return (rng.normal(size=shape) * (50 if dtype == "int32" else 1)).astype(jnp.dtype(dtype))

    batch = {kind: array(kind) for kind in KINDS}
    return tuple(array(kind) for kind in program.state), batch
