"""A GPT cut into stages: compiled, simulated, and run micro-batch by micro-batch on devices of their own."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from xla_stalloc.models import gpt_nnx
from xla_stalloc.models.training import cross_entropy

from xla_stalloc.scheduling.cost import CARDS
from xla_stalloc.sharding.schedules import generate
from xla_stalloc.sharding.simulate import simulate
from xla_stalloc.sharding.stage import Device, Phase, Pipeline, PipelineError, Program, Stage
from xla_stalloc.sharding.stage_functions import StageFunctions, stage_functions
from xla_stalloc.sharding.stage_programs import compile_stage, roofline_seconds, stage_of_programs

BATCH, SEQ, WIDTH, HEADS, VOCAB = 2, 16, 32, 2, 64
STAGES, MICRO_BATCHES = 3, 5


class Part(NamedTuple):
    """A stage of the model on its device."""

    function: Callable[[Any, Any], Any]
    parameters: Any
    functions: StageFunctions
    programs: dict[Phase, Any]
    figures: Stage
    residuals_kept: int


def nbytes(tree: Any) -> int:
    return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(tree))


def tokens(number: int) -> np.ndarray:
    return np.random.default_rng(number).integers(VOCAB, size=(BATCH, SEQ)).astype(np.int32)


@pytest.fixture(scope="module")
def parts() -> list[Part]:
    model = gpt_nnx.GPT(3, WIDTH, HEADS, VOCAB, scan=False, remat=False, rngs=nnx.Rngs(0))
    blocks = list(model.blocks)
    labels = tokens(99)

    def first(layers: Any, x: Any) -> Any:
        return functools.reduce(lambda x, block: block(x), layers[1:], layers[0](x))

    def middle(layers: Any, x: Any) -> Any:
        return functools.reduce(lambda x, block: block(x), layers, x)

    def last(layers: Any, x: Any) -> Any:
        block, norm, head = layers
        return cross_entropy(head(norm(block(x))), labels)

    cut = [
        (first, [model.embed, blocks[0]]),
        (middle, [blocks[1]]),
        (last, [blocks[2], model.norm, model.head]),
    ]
    found = []
    inputs: Any = jax.device_put(tokens(0), jax.devices()[0])
    for number, (run, layers) in enumerate(cut):
        graph, parameters = nnx.split(nnx.List(layers))
        parameters, inputs = jax.device_put((parameters, inputs), jax.devices()[number])

        def function(parameters: Any, x: Any, graph: Any = graph, run: Any = run) -> Any:
            return run(list(nnx.merge(graph, parameters)), x)

        functions = stage_functions(function, parameters, inputs)
        programs = compile_stage(functions, parameters, inputs)
        output, residuals = programs[Phase.FORWARD](parameters, inputs)
        figures = stage_of_programs(
            f"stage {number}",
            programs,
            roofline_seconds(CARDS["h100"]),
            input_bytes=nbytes(inputs) if number else 0,
            output_bytes=nbytes(output),
            state_bytes=nbytes(parameters),
            kept_bytes=nbytes(functions.kept(residuals, output)),
        )
        still = [a for a in functions.kept(residuals, output) if any(a is residual for residual in residuals)]
        found.append(Part(function, parameters, functions, programs, figures, nbytes(still)))
        inputs = output
    return found


def test_figures_are_those_of_the_arrays(parts: list[Part]) -> None:
    inputs: Any = jax.device_put(tokens(0), jax.devices()[0])
    for part, device in zip(parts, jax.devices(), strict=False):
        inputs = jax.device_put(inputs, device)
        output, residuals = part.programs[Phase.FORWARD](part.parameters, inputs)
        assert part.figures.activation_bytes == nbytes(residuals)
        assert part.figures.gradient_bytes == nbytes(part.parameters)
        gradient, deferred = part.programs[Phase.INPUT_GRADIENT](part.parameters, residuals, output)
        assert part.figures.deferred_bytes == nbytes(deferred)
        assert nbytes(gradient) == (nbytes(inputs) if part is not parts[0] else 0)
        for phase, compiled in part.programs.items():
            figures = part.figures.program(phase)
            assert figures is not None
            xla = compiled.memory_analysis()
            returned = part.figures.gradient_bytes if phase in (Phase.BACKWARD, Phase.WEIGHT_GRADIENT) else 0
            outputs = nbytes(compiled.out_info)
            assert figures.temp_bytes == xla.temp_size_in_bytes + xla.output_size_in_bytes - outputs + returned
        inputs = output


@pytest.mark.parametrize("name", ["gpipe", "1f1b", "zero-bubble"])
def test_what_is_live_in_the_loop_is_what_was_simulated(
    parts: list[Part], whole_gradients: list[Any], name: str
) -> None:
    # Of what the loop has in its hands, residuals and what is deferred are the subject here.
    programs = ("forward", "backward", "input_gradient", "weight_gradient")
    stages = [
        dataclasses.replace(
            part.figures,
            # Temps are gone when a program has returned.
            **{field: Program(getattr(part.figures, field).seconds) for field in programs},
            state_bytes=0,
            gradient_bytes=0,
            output_bytes=0,
            kept_bytes=part.residuals_kept,
        )
        for part in parts
    ]
    pipeline = Pipeline(stages, [Device(f"cpu {d}") for d in range(STAGES)])
    schedule = generate(name, pipeline, MICRO_BATCHES)
    simulation = simulate(pipeline, schedule)
    order = sorted(
        (start, device, task)
        for device, tasks in enumerate(schedule)
        for start, task in zip(simulation.starts[device], tasks, strict=True)
    )
    before = set(map(id, jax.live_arrays()))
    loop = Loop(parts)
    peaks = [0] * STAGES
    for start, device, task in order:
        loop.run(task)
        live = jax.live_arrays()
        others = before | {id(leaf) for leaf in jax.tree.leaves(loop.in_hand())}
        counted = [a for a in live if id(a) not in others and a.devices() == {jax.devices()[device]}]
        times, bytes = simulation.memory(device)
        expected = bytes[np.searchsorted(times, start, side="right") - 1]
        assert sum(array.nbytes for array in counted) == expected, task
        peaks[device] = max(peaks[device], int(expected))
        del live, counted
        loop.free(task)
    assert peaks == [simulation.peak_bytes(device) for device in range(STAGES)]
    assert not loop.kept
    for found, gradients in zip(loop.gradients, whole_gradients, strict=True):
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=2e-4, atol=1e-5), found, gradients)


@pytest.fixture(scope="module")
def whole_gradients(parts: list[Part]) -> list[Any]:
    """The gradients without a pipeline, on one device."""

    def loss(parameters: list[Any], x: Any) -> Any:
        for part, own in zip(parts, parameters, strict=True):
            x = part.function(own, x)
        return x

    parameters = jax.device_put([part.parameters for part in parts], jax.devices()[0])
    gradient = jax.jit(jax.grad(loss))
    each = [jax.device_get(gradient(parameters, tokens(m))) for m in range(MICRO_BATCHES)]
    return jax.tree.map(lambda *leaves: np.sum(leaves, axis=0), *each)


@jax.jit
def _add(some: Any, more: Any) -> Any:
    return jax.tree.map(jnp.add, some, more)


class Loop:
    """Runs tasks; what a task has read is held until it is freed."""

    def __init__(self, parts: list[Part]) -> None:
        self.parts = parts
        self.inbox: dict[tuple[bool, int, int], Any] = {}  # (is a gradient, stage, micro-batch)
        self.kept: dict[tuple[int, int], Any] = {}
        self.gradients: list[Any] = [None] * len(parts)
        self.incoming: dict[tuple[int, int], Any] = {}  # gradients that a weight gradient may still need
        self.reading: Any = None  # from the inbox
        self.old: Any = None  # kept until now

    def in_hand(self) -> Any:
        """What is no residual and not deferred."""
        return self.inbox, self.gradients, self.reading, self.incoming

    def run(self, task: Any) -> None:
        phase, stage, m = task
        part = self.parts[stage]
        run = part.programs[phase]
        if phase is Phase.FORWARD:
            self.reading = self.inbox.pop((False, stage, m)) if stage else self._put(tokens(m), 0)
            output, self.kept[stage, m] = run(part.parameters, self.reading)
            last = stage == len(self.parts) - 1
            self.inbox[(True, stage, m) if last else (False, stage + 1, m)] = (
                self._put(np.ones((), np.float32), stage) if last else self._put(output, stage + 1)
            )
            return
        self.old = self.kept.pop((stage, m))
        if phase is Phase.WEIGHT_GRADIENT:
            self._add(stage, run(part.parameters, *self.old))
            return
        self.reading = self.inbox.pop((True, stage, m))
        first, second = run(part.parameters, self.old, self.reading)
        if phase is Phase.BACKWARD:
            self._add(stage, first)
            gradient = second
        else:
            gradient = first
            self.incoming[stage, m] = self.reading
            self.kept[stage, m] = part.functions.kept(self.old, self.reading), second
        if stage:
            self.inbox[True, stage - 1, m] = self._put(gradient, stage - 1)

    def free(self, task: Any) -> None:
        self.reading = self.old = None
        if task.phase is Phase.WEIGHT_GRADIENT:
            del self.incoming[task.stage, task.micro_batch]

    def _put(self, array: Any, stage: int) -> Any:
        return jax.device_put(array, jax.devices()[stage])

    def _add(self, stage: int, gradients: Any) -> None:
        known = self.gradients[stage]
        self.gradients[stage] = gradients if known is None else _add(known, gradients)


def test_the_halves_of_a_backward_share_its_work(parts: list[Part]) -> None:
    for part in parts:
        flops = {phase: compiled.cost_analysis().get("flops", 0) for phase, compiled in part.programs.items()}
        halves = flops[Phase.INPUT_GRADIENT] + flops[Phase.WEIGHT_GRADIENT]
        assert halves == pytest.approx(flops[Phase.BACKWARD], rel=0.05)
        # The first stage has no input that gets a gradient.
        assert (flops[Phase.WEIGHT_GRADIENT] < flops[Phase.BACKWARD]) == (part is not parts[0])


def test_a_program_that_returns_too_little(parts: list[Part]) -> None:
    sizes = {"input_bytes": 0, "output_bytes": 10**9, "state_bytes": 0}
    with pytest.raises(PipelineError, match=r"its forward returns \d+ bytes, but sends on 1000000000"):
        stage_of_programs("s", parts[0].programs, roofline_seconds(CARDS["h100"]), **sizes)
    with pytest.raises(PipelineError, match="its backward is missing"):
        stage_of_programs(
            "s", {Phase.FORWARD: parts[0].programs[Phase.FORWARD]}, roofline_seconds(CARDS["h100"]), **sizes
        )
