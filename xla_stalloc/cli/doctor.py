"""`xla-stalloc doctor`: what works on this machine, found out by trying."""

from __future__ import annotations

import json
import sys
import tempfile
from typing import Any

import click

from xla_stalloc.cli import backend, terminal
from xla_stalloc.cli.versions import versions

LATER = "not in this version"


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one line of JSON instead of tables.")
def doctor(as_json: bool) -> None:
    """Report versions, backends, and which levers work here and why not.

    Every answer comes from a trial: a small program is compiled with stock XLA and with planning. Exit code 1 means
    that a lever of this release does not work on the default backend.
    """
    backend.prepare()
    result = examine()
    if as_json:
        click.echo(json.dumps(result))
    else:
        show(result)
    sys.exit(0 if all(check["works"] or check["why"] == LATER for check in result["checks"]) else 1)


def examine() -> dict[str, Any]:
    """Tries everything; returns what `doctor --json` prints."""
    import jax
    import jax.extend.backend

    result: dict[str, Any] = {"schema": 1, "versions": versions(), "default_backend": None, "backends": []}
    try:
        result["default_backend"] = jax.default_backend()
        result["backends"] = [
            {"platform": device.platform, "kind": device.device_kind, "devices": jax.device_count(device.platform)}
            for device in (client.devices()[0] for client in jax.extend.backend.backends().values())
        ]
    except RuntimeError as error:
        checks = [_check("backend", str(error).splitlines()[0])]
    else:
        with terminal.progress() as bar, tempfile.TemporaryDirectory() as cache:
            bar.add_task("compiling a small program, stock and planned", total=None)
            checks = [*_try_temporal(cache), _try_spatial()]
    return result | {"checks": [*checks, _check("arena lever", LATER)]}


def _check(name: str, why: str) -> dict[str, Any]:
    """A check that failed because of `why`, or passed if `why` is empty."""
    return {"name": name, "works": not why, "why": why}


def _try_temporal(cache: str) -> list[dict[str, Any]]:
    """Compiles a program that XLA orders badly, in both ways, over a fresh persistent cache in the folder `cache`."""
    import jax

    import xla_stalloc as stalloc

    # If the two ever shared an entry of this cache, the second to compile would get the executable of the first.
    jax.config.update("jax_compilation_cache_dir", cache)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    argument = jax.ShapeDtypeStruct((512, 512), "float32")

    def compile_with(jit: Any, **options: Any) -> Any:
        jax.clear_caches()
        return jit(_independent_reductions, **options).lower(argument).compile()

    def temp(compiled: Any) -> int:
        return int(compiled.memory_analysis().temp_size_in_bytes)

    stock = temp(compile_with(jax.jit))
    planned = compile_with(stalloc.jit, mode="schedule")
    again = temp(compile_with(jax.jit))
    record = planned.stalloc

    hook = "" if "temporal" in record.levers else record.reason or "the compiler did not call the hook"
    order = hook
    if not hook and temp(planned) >= stock:
        order = f"an order was injected, yet temp stayed at {temp(planned)} bytes (stock: {stock})"
    separate = ""
    if again != stock:
        separate = f"stock XLA took {stock} bytes of temp with an empty cache and {again} after a planned compile"
    return [_check("compiler hook", hook), _check("temporal lever", order), _check("persistent cache apart", separate)]


def _try_spatial() -> dict[str, Any]:
    """Compiles a program in whose temporaries XLA leaves a hole."""
    import jax

    import xla_stalloc as stalloc

    planned: Any = (
        stalloc.jit(_prefix_products, mode="full").lower(jax.ShapeDtypeStruct((128, 128), "float32")).compile()
    )
    record = planned.stalloc
    if "spatial" not in record.levers:
        return _check("spatial lever", record.reason)
    found = planned.memory_analysis().temp_size_in_bytes
    planned_bytes = record.temp_bytes
    wrong = "" if found == planned_bytes else f"{planned_bytes} bytes of temp were planned, and {found} are there"
    return _check("spatial lever", wrong)


def _prefix_products(x: Any) -> Any:
    """Products of 1, 2, 3 and 4 matrices, of which parts are shared."""
    import jax
    import jax.numpy as jnp

    return jax.lax.associative_scan(jnp.matmul, jnp.stack([x, x + 1, x + 2, x + 3]))


def _independent_reductions(x: Any) -> Any:
    """Eight large products, each needed for one small row only: breadth first, all of them are live at once."""
    import jax.numpy as jnp

    return jnp.stack([jnp.sort((x + i) @ x, axis=0)[0] for i in range(8)])


def show(result: dict[str, Any]) -> None:
    """Prints a result of `examine` as tables."""
    console = terminal.stdout()
    table = terminal.table("versions", "", "")
    for name, version in result["versions"].items():
        table.add_row(name, version)
    console.print(table)
    table = terminal.table("backends", "backend", "device", ">count")
    for found in result["backends"]:
        default = " (default)" if found["platform"] == result["default_backend"] else ""
        table.add_row(found["platform"] + default, found["kind"], str(found["devices"]))
    console.print(table)
    table = terminal.table("what works here", "check", "works", "why not")
    for check in result["checks"]:
        table.add_row(check["name"], "yes" if check["works"] else "no", check["why"])
    console.print(table)
