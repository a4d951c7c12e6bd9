"""Concurrent compiles: each gets its own plan, and those that asked for none stay stock."""

from __future__ import annotations

import itertools
import threading
from concurrent.futures import ThreadPoolExecutor

import jax
import planner_doubles as doubles
from small_programs import arguments, assert_same_bits, branches, stock_temp_bytes

import xla_stalloc as stalloc
from xla_stalloc.inject import hook

WORKERS = 3


def variant(scale):
    """Programs of one name and different content: the hardest to tell apart."""

    def fun(x, w):
        return branches(x, w) * scale

    return fun


def together(tasks):
    """Runs the tasks on threads that all start at once."""
    barrier = threading.Barrier(len(tasks))

    def run(task):
        barrier.wait(timeout=60)
        return task()

    with ThreadPoolExecutor(len(tasks)) as pool:
        return [f.result(timeout=120) for f in [pool.submit(run, task) for task in tasks]]


def test_planned_and_stock_compiles_side_by_side():
    stock = stock_temp_bytes(variant(0.5), *arguments())
    expected = [jax.jit(variant(float(i)))(*arguments()) for i in range(WORKERS)]

    def planned(i):
        compiled = stalloc.jit(variant(float(i))).lower(*arguments()).compile()
        return compiled.stalloc, compiled.memory_analysis().temp_size_in_bytes, compiled(*arguments())

    def plain(i):
        compiled = jax.jit(variant(float(i))).lower(*arguments()).compile()
        return None, compiled.memory_analysis().temp_size_in_bytes, compiled(*arguments())

    with hook.using(doubles.reordering()):
        results = together([lambda i=i, kind=kind: kind(i) for i in range(WORKERS) for kind in (planned, plain)])
    for index, (record, temp, output) in enumerate(results):
        assert_same_bits(output, expected[index // 2])
        if record is None:
            assert temp == stock
        else:
            assert record.temp_bytes == temp < stock / 2 and record.levers[:1] == ("temporal",)


def test_decisions_against_injecting_find_their_compile():
    before = len(stalloc.records())
    with hook.using(doubles.content):
        together(
            [
                lambda i=i: stalloc.jit(variant(10.0 + i), mode="schedule").lower(*arguments()).compile()
                for i in range(WORKERS)
            ]
        )
    records = stalloc.records()[before:]
    assert len(records) == WORKERS
    assert {r.reason for r in records} == {"stock is best"}
    assert all(r.levers == () and r.stock_exact for r in records)


def test_compiles_while_the_planner_is_slow():
    """The planner holds one compile up for as long as it takes others to finish: nobody waits for anybody."""
    others_done = threading.Event()

    def slow(serialized, options):
        if options.budget_seconds == 2.0:
            assert others_done.wait(60)
        return doubles.reordering()(serialized, options)

    def others():
        try:
            compiled = [jax.jit(variant(20.0)), stalloc.jit(variant(21.0), budget_seconds=1.0)]
            return [fun.lower(*arguments()).compile() for fun in compiled]
        finally:
            others_done.set()

    with hook.using(slow):
        held, _ = together(
            [lambda: stalloc.jit(variant(22.0), budget_seconds=2.0).lower(*arguments()).compile(), others]
        )
    assert held.stalloc.levers[:1] == ("temporal",)


def test_one_function_called_from_many_threads():
    fun = stalloc.jit(variant(30.0))
    with hook.using(doubles.reordering()):
        results = together([lambda: fun(*arguments()) for _ in range(WORKERS)])
    for result in results[1:]:
        assert_same_bits(result, results[0])


def test_toggling_while_compiling():
    stop = threading.Event()

    def toggle():
        for i in range(6):
            stalloc.enable(mode="schedule" if i % 2 else "report")
            stalloc.disable()
        stop.set()

    def compile_():
        outputs = []
        while not stop.is_set() or not outputs:
            outputs.append(jax.jit(variant(40.0))(*arguments()))
        return outputs

    with hook.using(doubles.reordering()):
        _, *outputs = together([toggle, compile_, compile_])
    expected = jax.jit(variant(40.0))(*arguments())
    for output in itertools.chain.from_iterable(outputs):
        assert_same_bits(output, expected)
