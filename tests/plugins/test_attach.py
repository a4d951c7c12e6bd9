"""jaxlib's own CPU client, its memory taken over in process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

SETUP = """
import functools, json, os, sys
import jax, jax.numpy as jnp, numpy as np
from xla_stalloc.inject import native
from xla_stalloc.inject.attach import attach, keyed

def step(w, x):
    value, gradient = jax.value_and_grad(lambda w: jnp.mean((jnp.tanh(x @ w) @ w) ** 2))(w)
    return w - 0.1 * gradient, value

x = w = jnp.ones((256, 256)) / 256
"""


@pytest.fixture
def jaxlib(run: Callable[..., Any], wrapper: Path) -> Callable[..., Any]:
    return lambda program, **environment: run(SETUP + program, JAX_PLATFORMS="cpu", **environment)


def test_training_is_the_same_and_its_memory_is_counted(jaxlib: Callable[..., Any]) -> None:
    program = """
f, values = jax.jit(step), []
for _ in range(20):
    w, value = f(w, x)
    values.append(value)
print(json.dumps([[float(v).hex() for v in values], native.memory(-1)]))
"""
    stock, nothing = jaxlib(program)
    attached, memory = jaxlib("attach()\n" + program)
    assert attached == stock
    assert nothing["num_allocs"] == 0
    assert memory["num_allocs"] >= 40
    assert memory["peak_bytes_in_use"] >= 256 * 256 * 4
    assert memory["bytes_in_use"] < memory["peak_bytes_in_use"]


def test_attaching_again_changes_nothing(jaxlib: Callable[..., Any]) -> None:
    assert jaxlib("attach(); attach(); print(json.dumps([native.memory_problem(), float(step(w, x)[1])]))")[0] == ""


def test_two_copies_of_the_library_do_not_patch_twice(jaxlib: Callable[..., Any], tmp_path: Path) -> None:
    acting, problem, uses = jaxlib(f"""
import ctypes, shutil
shutil.copy(native.path(), {str(tmp_path / "copy_of_stalloc.so")!r})
other = native._declare(ctypes.CDLL({str(tmp_path / "copy_of_stalloc.so")!r}))  # loaded first, by hand
attach()
value = jax.jit(step)(w, x)[1].block_until_ready()
print(json.dumps([other.stalloc_acting_path().decode(), native.memory_problem(), native.library()._name]))
""")
    assert acting.endswith("copy_of_stalloc.so")
    assert uses == acting, "the second copy hands everything to the first"
    assert problem == ""


def test_announced_executions_have_keys(jaxlib: Callable[..., Any]) -> None:
    asked = jaxlib("""
attach()
f = keyed(jax.jit(step).lower(w, x).compile())
w, value = f(w, x)
with native.recording() as events:
    for _ in range(50):
        w, value = f(w, x)
    value.block_until_ready()
print(json.dumps([(e["program"], e["execution"], e["allocation"]) for e in events if e["bytes"]]))
""")
    count = len(asked) // 50
    assert count >= 2
    assert len({program for program, _, _ in asked}) == 1
    assert [tuple(rest) for _, *rest in asked] == [(e, a) for e in range(1, 51) for a in range(count)]


def test_a_program_that_calls_back_is_not_announced(jaxlib: Callable[..., Any]) -> None:
    said = jaxlib("""
attach()
compiled = jax.jit(lambda v: jax.pure_callback(lambda a: a, v, v * 2) + 1).lower(jnp.ones(1000)).compile()
try:
    keyed(compiled)
except RuntimeError as error:
    print(json.dumps(str(error)))
""")
    assert "calls back into Python" in said


def test_an_exception_in_a_callback_leaves_everything_in_order(jaxlib: Callable[..., Any]) -> None:
    before, after, message, value = jaxlib("""
attach()
def fails(value):
    raise ValueError("on purpose")

f = jax.jit(lambda v: jax.pure_callback(fails, v, v * 2) + 1)
v = jnp.ones(1000).block_until_ready()
before = native.figures()["live_blocks"]
try:
    f(v).block_until_ready()
except Exception as error:
    message = str(error)
import gc, time
gc.collect()
deadline = time.time() + 5
while native.figures()["live_blocks"] > before and time.time() < deadline:
    time.sleep(0.01)
after = native.figures()["live_blocks"]
print(json.dumps([before, after, "on purpose" in message, float(jax.jit(lambda v: v.sum())(v))]))
""")
    assert after <= before
    assert message
    assert value == 1000.0


def test_a_child_process_goes_on(jaxlib: Callable[..., Any]) -> None:
    # While other threads allocate, so that one of them might hold a lock at the fork.
    assert (
        jaxlib("""
import threading
attach()
f, stop = jax.jit(step), False
def busy():
    while not stop:
        jax.block_until_ready(f(w, x))
threads = [threading.Thread(target=busy) for _ in range(3)]
for thread in threads:
    thread.start()
codes = []
import warnings
warnings.simplefilter("ignore")
for _ in range(20):
    child = os.fork()
    if child == 0:
        a = [bytearray(1 << 20) for _ in range(10)]
        native.figures(), native.memory(-1)
        os._exit(7)
    codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
stop = True
for thread in threads:
    thread.join()
print(json.dumps(codes))
""")
        == [7] * 20
    )


@pytest.mark.parametrize("end", ["sys.exit(0)", "os.kill(os.getpid(), __import__('signal').SIGTERM)", "pass"])
def test_a_process_may_end_while_it_executes(end: str, run: Callable[..., Any], wrapper: Path) -> None:
    code = -15 if "SIGTERM" in end else 0
    run(
        SETUP
        + f"""
attach()
f = jax.jit(step)
big = jnp.ones((1500, 1500))
f(big, big)
for _ in range(8):
    big, _ = f(big, big)
{end}
""",
        code=code,
        JAX_PLATFORMS="cpu",
    )


def test_clear_backends_and_a_second_client(jaxlib: Callable[..., Any]) -> None:
    first, second, live = jaxlib("""
from jax.extend.backend import clear_backends
attach()
first = float(jax.jit(step)(w, x)[1])
del w, x
clear_backends()
attach()
x = w = jnp.ones((256, 256)) / 256
second = float(jax.jit(step)(w, x)[1])
print(json.dumps([first, second, native.memory(-1)["bytes_in_use"]]))
""")
    assert first == second
    assert live >= 256 * 256 * 4
