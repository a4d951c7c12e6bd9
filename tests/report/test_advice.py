"""Every waste that a program could do something about is explained, with its line; what is fine is left alone."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

import xla_stalloc as stalloc
from xla_stalloc.report.model import Advice, ModuleReport

S, f32 = jax.ShapeDtypeStruct, jnp.float32
HERE = Path(__file__).read_text().splitlines()


def line(marker: str) -> str:
    """The place of the line of this file that ends with the comment `marker`."""
    (number,) = (n for n, text in enumerate(HERE, 1) if text.endswith(f"# {marker}"))
    return f"{__file__}:{number}"


def report(function: Any, *arguments: Any) -> ModuleReport:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # jax's own, of donation in vain
        compiled = function.lower(*arguments).compile()
    (found,) = stalloc.analyze(compiled, plan=True).modules
    return found


def the(kind: str, found: ModuleReport) -> Advice:
    (advice,) = [item for item in found.advice if item.kind == kind]
    return advice


def test_copy_of_a_donated_argument() -> None:
    def update(x: Any) -> Any:
        y = x[0, 0]  # the early read
        return x.at[0, 0].add(1), y

    found = report(jax.jit(update, donate_argnums=0), S((512, 512), f32))
    advice = the("avoidable-copy", found)
    assert advice.bytes == 512 * 512 * 4
    assert advice.source == line("the early read")
    assert "avoidable copy of a donated argument: argument 'x'" in advice.text
    assert found.planned is not None
    assert (found.temp_bytes, found.planned.temp_bytes) == (512 * 512 * 4, 0)
    assert found.lower_bound_bytes == 0


def test_donation_that_no_output_can_use() -> None:
    found = report(jax.jit(lambda x: x.astype(jnp.bfloat16), donate_argnums=0), S((256, 256), f32))
    advice = the("unusable-donation", found)
    assert (advice.bytes, advice.source) == (256 * 256 * 4, "x")
    assert "no output of that size" in advice.text


def test_donation_that_the_module_does_not_tell_of() -> None:
    # XLA drops these donations without a trace: only jax knows of them.
    found = report(jax.jit(lambda x, y: (x - y).sum(), donate_argnums=(0,)), S((256,), f32), S((256,), f32))
    assert the("unusable-donation", found).source == "x"
    found = report(jax.jit(lambda unused, x, y: x + y, donate_argnums=(0, 1, 2)), *[S((256,), f32)] * 3)
    assert the("unusable-donation", found).source in ("x", "y")


def test_arguments_and_outputs_that_live_together() -> None:
    split = jax.jit(lambda x: [x[k * 1024 : (k + 1) * 1024] for k in range(8)])  # the slices
    found = report(split, S((8 * 1024,), f32))
    advice = the("live-together", found)
    assert "arguments of 32,768 bytes and outputs of 32,768 bytes live together, 65,536 in all" in advice.text
    assert "donation cannot help" in advice.text
    assert [b.bytes for b in found.live_at_peak if b.kind in ("argument", "output")] == [32768] + [4096] * 8
    assert {b.source for b in found.live_at_peak if b.kind == "output"} == {line("the slices")}


def test_donation_that_would_help_is_counted() -> None:
    found = report(jax.jit(lambda x, y: (x + 1, y.sum())), S((1024,), f32), S((1024,), f32))
    assert "could save up to 4,096 bytes" in the("live-together", found).text


def test_a_gradient_shows_its_lines_at_the_peak() -> None:
    def loss(table: Any, index: Any, w: Any) -> Any:
        return (table[index] * w).sum()  # the gather

    found = report(jax.jit(jax.grad(loss)), S((8192,), f32), S((8192, 3), jnp.int32), S((8192, 3), f32))
    temps = [b for b in found.live_at_peak if b.kind == "temp"]
    assert temps
    assert {b.source for b in temps} == {line("the gather")}
    assert {b.source for b in found.live_at_peak if b.kind == "argument"} == {"index", "w"}


def test_a_good_program_gets_no_advice() -> None:
    def step(state: Any, x: Any) -> Any:
        return [w * 0.9 + x.sum() for w in state]

    assert report(jax.jit(step, donate_argnums=0), [S((64, 64), f32)] * 3, S((8,), f32)).advice == ()
