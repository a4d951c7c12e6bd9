"""The two streams as they are defined, word by word; and orders that hide communication within a limit of memory."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xla_stalloc import _core
from xla_stalloc.scheduling import Buffer, Graph, verify_order
from xla_stalloc.scheduling.overlap import Comparison, Times, hiding_orders


def chain_of_layers(layers: int) -> tuple[Graph, Times]:
    """Per layer: gather weights (a start, a wait), use them. The stock order starts all transfers first."""
    predecessors: list[list[int]] = []
    buffers: list[Buffer] = []
    starts = range(layers)
    for _ in starts:
        predecessors.append([])
    for layer in starts:
        wait, use = layers + 2 * layer, layers + 2 * layer + 1
        predecessors += [[layer], [wait] + ([use - 2] if layer else [])]
        buffers.append(Buffer(100, touches=[layer, wait, use], defs=[layer]))
        if layer:
            buffers.append(Buffer(10, touches=[use - 2, use], defs=[use - 2]))
    compute = [0] * layers + [0, 50_000] * layers
    communication = [40_000] * layers + [0, 0] * layers
    waits_for = [-1] * layers + [n for layer in starts for n in (layer, -1)]
    arrays = (np.array(values, np.int64) for values in (compute, communication, waits_for))
    return Graph(predecessors, [0] * len(predecessors), buffers), Times(*arrays)


def simulated(known: Times, order: list[int]) -> tuple[int, int]:
    """Total and exposed time, as _core/streams.h defines them."""
    clock = link = exposed = 0
    finish: dict[int, int] = {}
    for node in order:
        if known.communication[node]:
            finish[node] = link = max(clock, link) + int(known.communication[node])
        if known.waits_for[node] >= 0:
            done = finish[int(known.waits_for[node])]
            exposed += max(0, done - clock)
            clock = max(clock, done)
        clock += int(known.compute[node])
    return max(clock, link), exposed + max(0, link - clock)


@st.composite
def problems(draw) -> tuple[Graph, Times, list[int]]:
    """Random transfers among random kernels, and a random valid order."""
    nodes = draw(st.integers(2, 14))
    waits_for = np.full(nodes, -1, np.int64)
    communication = np.zeros(nodes, np.int64)
    predecessors: list[set[int]] = [
        draw(st.sets(st.integers(0, n - 1), max_size=2)) if n else set() for n in range(nodes)
    ]
    for node in range(1, nodes):
        start = draw(st.integers(0, node - 1))
        if waits_for[start] < 0 and not communication[start] and draw(st.booleans()):
            communication[start] = draw(st.integers(1, 9))
            waits_for[node] = start
            predecessors[node].add(start)
    compute = np.array(draw(st.lists(st.integers(0, 9), min_size=nodes, max_size=nodes)), np.int64)
    graph = Graph([sorted(p) for p in predecessors], [0] * nodes, [Buffer(8, [n], [n]) for n in range(nodes)])
    rng, waiting, order = random.Random(draw(st.integers(0, 999))), dict(enumerate(predecessors)), []
    while waiting:
        order.append(rng.choice([n for n, before in waiting.items() if before.isdisjoint(waiting)]))
        del waiting[order[-1]]
    return graph, Times(compute, communication, waits_for), order


@given(problems())
@settings(max_examples=200, derandomize=True, deadline=None)
def test_the_simulator_follows_the_definition(problem):
    graph, known, order = problem
    assert _core.simulate(graph.kernel, known.streams(), np.array(order)) == simulated(known, order)


@given(problems(), st.integers(0, 3))
@settings(max_examples=100, derandomize=True, deadline=None)
def test_the_search_never_loses(problem, seed):
    """Its simulations of many moves, one upon the other, end where one of the whole order does."""
    graph, known, order = problem
    limit = verify_order(graph, order)
    arguments = dict(order=np.array(order), limit=limit, moves=300, window=10, seed=seed)
    found = _core.overlap_search(graph.kernel, [(known.streams(), 1)], **arguments)
    assert verify_order(graph, found) <= limit
    assert simulated(known, [int(n) for n in found])[1] <= simulated(known, order)[1]
    assert (found == _core.overlap_search(graph.kernel, [(known.streams(), 1)], **arguments)).all()


def test_transfers_are_hidden_one_ahead_instead_of_all_at_once():
    graph, known = chain_of_layers(12)
    stock = verify_order(graph, graph.incumbent)
    found = hiding_orders(graph, known, moves=200_000)
    assert found
    compared = Comparison(graph, known)
    for order in found:
        assert compared.holds(order)
        assert verify_order(graph, order) < stock / 3
        assert simulated(known, [int(n) for n in order])[1] <= compared.stock[0]


def test_an_order_that_hides_less_does_not_hold():
    graph, known = chain_of_layers(6)
    one_by_one = [n for layer in range(6) for n in (layer, 6 + 2 * layer, 7 + 2 * layer)]
    verify_order(graph, one_by_one)
    compared = Comparison(graph, known)
    assert not compared.holds(np.array(one_by_one))
    assert compared.wins(np.array(one_by_one))[0] is False


@pytest.mark.parametrize("noise", [False, True])
def test_cases_are_the_same_everywhere(noise):
    _, known = chain_of_layers(4)
    order = np.arange(len(known.compute))
    graph, _ = chain_of_layers(4)
    once, again = (_core.simulate(graph.kernel, known.streams(noise=noise), order) for _ in range(2))
    assert once == again
