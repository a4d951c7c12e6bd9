"""Whose a request for device memory is: the traps that a plan by sizes fell into, one test each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

SETUP = """
import collections, functools, json, sys
import jax, jax.numpy as jnp, numpy as np
from jax.sharding import NamedSharding, PartitionSpec
from xla_stalloc.inject import native

jax.config.update("jax_num_cpu_devices", DEVICES)
mesh = jax.make_mesh((DEVICES,), ("data",))
rows, everywhere = NamedSharding(mesh, PartitionSpec("data")), NamedSharding(mesh, PartitionSpec())
x = jax.device_put(np.ones((256, 256), np.float32), rows)
w = jax.device_put(np.ones((256, 256), np.float32), everywhere)

@functools.partial(jax.jit, donate_argnums=0)
def step(w, x):
    value, gradient = jax.value_and_grad(lambda w: jnp.mean((jnp.tanh(x @ w) @ w) ** 2))(w)
    return w - 0.1 * gradient, value

def requests(events):
    return [e for e in events if e["bytes"]]
"""


@pytest.mark.parametrize("devices", [1, 4])
def test_every_request_of_a_pipelined_loop_is_known(devices: int, stalloc: Callable[..., Any]) -> None:
    asked, lost = stalloc(f"""DEVICES = {devices}
{SETUP}
w, value = step(w, x)
with native.recording() as events:
    for i in range(200):
        w, value = step(w, x)
        if DEVICES > 1 and i % 5 == 4:  # the plugin itself, unwrapped too, can deadlock with more collectives under way
            value.block_until_ready()
    value.block_until_ready()
asked = [(e["program"], e["execution"], e["device"], e["allocation"], e["bytes"]) for e in requests(events)]
print(json.dumps([asked, native.figures()["lost_launches"]]))
""")
    assert lost == 0
    assert len({program for program, *_ in asked}) == 1
    assert asked[0][0] != 0
    by_execution: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for _, execution, device, allocation, size in asked:
        by_execution.setdefault((execution, device), []).append((allocation, size))
    assert set(by_execution) == {(execution, device) for execution in range(1, 201) for device in range(devices)}
    first, *others = by_execution.values()
    assert [allocation for allocation, _ in first] == list(range(len(first)))
    assert all(other == first for other in others), "the same program asks for the same, in the same order"


def test_an_upload_is_never_taken_for_a_temporary_of_its_size(stalloc: Callable[..., Any]) -> None:
    # The plan by sizes gave parameters the memory of temporaries, and training went on with a loss of 0.
    uploads, temporaries = stalloc(f"""DEVICES = 1
{SETUP}
w, value = step(w, x)
with native.recording() as events:
    w, value = step(w, x)
    value.block_until_ready()
bytes_ = max(e["bytes"] for e in requests(events))
like = np.zeros(bytes_, np.uint8)
with native.recording() as events:
    for _ in range(20):
        w, value = step(w, x)
        jax.device_put(like, may_alias=False).block_until_ready()
    value.block_until_ready()
same = [e for e in requests(events) if e["bytes"] == bytes_]
print(json.dumps([[e for e in same if not e["program"]], [e for e in same if e["program"]]]))
""")
    # How many uploads allocate depends on where numpy's memory happens to lie.
    assert all(e["execution"] == 0 for e in uploads)
    assert len(temporaries) == 20
    assert [e["execution"] for e in temporaries] == list(range(2, 22))


def test_a_copy_for_an_argument_that_cannot_be_donated_is_no_part_of_the_program(stalloc: Callable[..., Any]) -> None:
    # numpy's memory, of whatever alignment, is the vendor's to read and not to write.
    keys = stalloc(f"""DEVICES = 1
{SETUP}
aligned = np.zeros(256 * 256 + 16, np.float32)
start = (-aligned.ctypes.data % 64) // 4
borrowed = jax.device_put(aligned[start : start + 256 * 256].reshape(256, 256), everywhere, may_alias=True)
w, value = step(borrowed, x)
with native.recording() as events:
    for _ in range(30):
        w, value = step(w, x)
    value.block_until_ready()
counts = collections.Counter((e["program"] != 0, e["execution"]) for e in requests(events))
print(json.dumps(sorted([known, execution, n] for (known, execution), n in counts.items())))
""")
    assert [execution for known, execution, _ in keys if known] == list(range(1, 31))
    assert {count for known, _, count in keys if known} == {3}


def test_programs_that_take_turns_keep_their_keys(stalloc: Callable[..., Any]) -> None:
    # Both ask for the same size first, and neither waits for the other.
    counted = stalloc(f"""DEVICES = 1
{SETUP}
first = jax.jit(lambda a: (jnp.tanh(a @ a), (a @ a @ a).sum()))
second = jax.jit(lambda a: (jnp.tanh(a @ a), jnp.exp(a @ a - a)))
for f in (first, second) * 2:
    jax.block_until_ready(f(w))
with native.recording() as events:
    for _ in range(30):
        a, b = first(w), second(w)
    jax.block_until_ready((a, b))
keys = collections.Counter((e["program"], e["allocation"], e["bytes"]) for e in requests(events))
print(json.dumps(sorted([program, allocation, size, n] for (program, allocation, size), n in keys.items())))
""")
    assert len({program for program, *_ in counted}) == 2
    assert all(program != 0 and count == 30 for program, _, _, count in counted)


def test_a_program_that_allocates_nothing_takes_no_key_of_others(stalloc: Callable[..., Any]) -> None:
    counted = stalloc(f"""DEVICES = 1
{SETUP}
scale = jax.jit(lambda a: a * 2, donate_argnums=0)
nothing = scale(jax.device_put(np.ones((256, 256), np.float32), may_alias=False))
w, value = step(w, x)
w, value = step(w, x)
with native.recording() as events:
    for _ in range(30):
        nothing = scale(nothing)
        w, value = step(w, x)
    jax.block_until_ready((nothing, value))
keys = collections.Counter((e["program"], e["execution"]) for e in requests(events))
print(json.dumps(sorted([program, execution, n] for (program, execution), n in keys.items())))
""")
    assert len({(program, count) for program, _, count in counted}) == 1
    assert [execution for _, execution, _ in counted] == list(range(2, 32))


def test_executions_in_flight_overlap_and_their_blocks_do_not(stalloc: Callable[..., Any]) -> None:
    deepest, overlaps = stalloc(f"""DEVICES = 1
{SETUP}
w, value = step(w, x)
with native.recording() as events:
    for _ in range(100):
        w, value = step(w, x)
    value.block_until_ready()
live, deepest, overlaps = {{}}, 0, 0
for e in events:
    if not e["bytes"]:
        live.pop(e["address"], None)
        continue
    end = e["address"] + e["bytes"]
    overlaps += any(a < end and e["address"] < a + b["bytes"] for a, b in live.items())
    live[e["address"]] = e
    deepest = max(deepest, len({{b["execution"] for b in live.values()}}))
print(json.dumps([deepest, overlaps]))
""")
    assert overlaps == 0
    assert deepest >= 2, "outputs of one step live while the next one asks"
