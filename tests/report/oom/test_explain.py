"""Out-of-memory errors explained: the program, its peak from a dump, and what to change."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from xla_stalloc.cli.main import main
from xla_stalloc.report.analyze import analyze
from xla_stalloc.report.oom.explain import NotUnderstood, explain

MODULE = Path(__file__).parents[2] / "cli" / "golden" / "analyze.hlo.txt"
GPU = "RESOURCE_EXHAUSTED: Out of memory while trying to allocate {} bytes."
STATS = "bfc_allocator.cc:1 Stats:\nLimit:  {}\nInUse:  {}\nLargestFreeBlock:  {}\n"


def advice(text: str) -> str:
    return "\n".join(explain(text).changes)


def test_each_cause_has_its_advice() -> None:
    assert "larger than all there is" in advice(STATS.format(1000, 10, 0) + GPU.format(2000))
    fragmented = advice(STATS.format(10_000, 2000, 3000) + GPU.format(5000))
    assert "Fragmentation: 8.0 kB are free, the largest piece has 3.0 kB" in fragmented
    assert "1.0 kB are missing" in advice(STATS.format(10_000, 8000, 0) + GPU.format(3000))
    assert "Temporaries are most of it" in advice(
        "Ran out of memory in memory space hbm. Used 9G of 8G hbm.\n    program  8G\n    arguments  1G\n"
    )
    assert "Arguments are most of it" in advice(
        "Ran out of memory in memory space hbm. Used 9G of 8G hbm.\n    program  1G\n    arguments  8G\n"
    )
    assert "block sizes" in advice("Ran out of memory in memory space vmem while allocating on stack for %k = f32[2]")
    assert "load it before" in advice(
        "Error loading program 'jit_f': Attempting to reserve 6G at the bottom of memory. That was not possible. "
        "There are 1G free, 0B reserved, and 1G reservable."
    )
    padded = "Ran out of memory in memory space hbm. Used 9G of 8G hbm.\n"
    padded += "  1. Size: 4G\n  Unpadded size: 1G\n  XLA label: %c = f"
    assert "Padding: %c takes 4.3 GB for 1.1 GB of data" in advice(padded)
    held = "gpu_async_0 cuMemAllocAsync failed to allocate 500 bytes:\n Free memory/Total memory: 100/10000\n"
    assert "of the card are held outside" in advice(held + "Stats: Limit: 8000\nInUse:  6000\n")


def test_the_dump_gives_peak_and_advice() -> None:
    modules = analyze(MODULE).modules
    named = explain(GPU.format(77) + " module: jit_train_step", modules)
    assert named.module is modules[0]
    by_size = explain(GPU.format(modules[0].temp_bytes), modules)
    assert by_size.module is modules[0]
    text = by_size.to_text()
    assert text.startswith("jit_train_step ran out of memory on GPU")
    assert "train.py:21" in text and "avoidable copy of a donated argument" in text and "Planning" in text
    other = explain(GPU.format(77) + " module: jit_other", modules)
    assert other.module is None and "jit_other" in other.to_text()


def test_not_understood() -> None:
    with pytest.raises(NotUnderstood, match="RESOURCE_EXHAUSTED"):
        explain("Segmentation fault")


def run(*arguments: str, text: str | None = None) -> tuple[int, str]:
    result = CliRunner().invoke(main, ["explain", *arguments], input=text)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.output


def test_command(tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    log.write_bytes(b"\xff\xfe noise\n" + GPU.format(4096).encode())
    code, output = run(str(log))
    assert code == 0 and "asked for" in output and "4.1 kB" in output
    code, output = run("--json", "--dump", str(MODULE), text=GPU.format(4096))
    told = json.loads(output)
    assert code == 0 and told["schema"] == 1 and told["error"]["requested_bytes"] == 4096
    assert told["module"]["name"] == "jit_train_step"  # the only program there is


def test_bad_input(tmp_path: Path) -> None:
    assert run(str(tmp_path / "missing"))[0] == 2
    code, output = run(text="all is well")
    assert code == 2 and "no out-of-memory error" in output
    code, output = run("--dump", str(tmp_path / "missing"), text=GPU.format(1))
    assert code == 2 and "cannot be read" in output


def test_nothing_is_claimed_that_the_text_does_not_tell() -> None:
    assert "does not tell" in advice("Ran out of memory in memory space hbm. Used 9G of 8G hbm.")
    named = "total memory required for HLO temporaries (20.52G) exceeds available HBM (15.75G)"
    assert "Temporaries are most of it" in advice(named)
