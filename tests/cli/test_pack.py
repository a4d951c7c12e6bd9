"""`xla-stalloc pack`: packings in and out of files, and what it says of files that hold none."""

from __future__ import annotations

import csv
import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from xla_stalloc.cli.main import main

# Two tall buffers and two flat ones, which fit into 4 bytes only if the flat ones lie on the same side.
TIGHT = "id,lower,upper,size\na,0,4,2\nb,4,8,2\nc,0,6,1\nd,2,8,1\n"


def run(tmp_path: Path, text: str | bytes, *options: str) -> tuple[int, str, Path]:
    source, output = tmp_path / "in.csv", tmp_path / "out.csv"
    source.write_bytes(text.encode() if isinstance(text, str) else text)
    result = CliRunner().invoke(main, ["pack", str(source), "-o", str(output), *options])
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result.exit_code, result.output, output


def check(output: Path, height: int) -> None:
    """No two buffers share a byte and a time."""
    with output.open() as file:
        rows = [{k: v if k == "id" else int(v) for k, v in row.items()} for row in csv.DictReader(file)]
    assert max(row["offset"] + row["size"] for row in rows) == height
    for a in rows:
        assert a["offset"] % a.get("alignment", 1) == 0
        for b in rows:
            apart = a["offset"] + a["size"] <= b["offset"] or b["offset"] + b["size"] <= a["offset"]
            assert a is b or apart or a["upper"] <= b["lower"] or b["upper"] <= a["lower"]


@pytest.mark.parametrize("packed", [str.encode, lambda text: gzip.compress(text.encode())])
def test_finds_the_lowest(tmp_path, packed):
    code, output, file = run(tmp_path, packed(TIGHT))
    assert code == 0 and output.startswith("height 4 bytes, lower bound 4, found by ")
    check(file, 4)


def test_columns_may_come_in_any_order_and_buffers_may_be_aligned(tmp_path):
    text = "size,id,upper,alignment,lower\n3,x,5,8,0\n3,y,5,8,1\n3,z,9,4,5\n"
    code, output, file = run(tmp_path, text, "--json")
    figures = json.loads(output)
    assert code == 0 and figures["height"] == 11 and figures["met"] and figures["buffers"] == 3
    check(file, 11)


def test_a_capacity_that_cannot_be_met(tmp_path):
    code, output, file = run(tmp_path, TIGHT, "--capacity", "3")
    assert code == 1 and "the capacity of 3 bytes is not met: no packing fits" in output
    check(file, 4)


def test_no_buffers(tmp_path):
    code, output, file = run(tmp_path, "id,lower,upper,size\n")
    assert code == 0 and output.startswith("height 0 bytes")
    assert file.read_text() == "id,lower,upper,size,offset\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "in.csv: is empty"),
        ("id,lower,upper\n", "in.csv:1: the header has no column size"),
        ("id,lower,upper,size\na,0,1\n", "in.csv:2: has 3 columns, the header 4"),
        ("id,lower,upper,size\na,0,1,1\n\na,1,2,1\n", "in.csv:4: id 'a' was on line 2 already"),
        ("id,lower,upper,size\na,1,1,1\n", "in.csv:2: lives from 1 to 1"),
        ("id,lower,upper,size\na,0,1,-4\n", "in.csv:2: size is -4"),
        ("id,lower,upper,size\na,0,1,nan\n", "in.csv:2: size is 'nan', which is no whole number"),
        ("id,lower,upper,size\na,0,1,1.5\n", "in.csv:2: size is '1.5'"),
        (f"id,lower,upper,size\na,0,{1 << 63},1\n", "in.csv:2: upper is 9223372036854775808"),
        (f"id,lower,upper,size\na,0,1,{1 << 61}\nb,0,1,{1 << 61}\n", "more than 2^62 bytes together"),
        ("id,lower,upper,size,alignment\na,0,1,1,0\n", "in.csv:2: has an alignment of 0"),
        (b"\xff\xfe\x00", "in.csv: is no text"),
        (b"\x1f\x8b\x08", "in.csv: is no text"),
    ],
)
def test_bad_input_is_named_with_its_line(tmp_path, text, message):
    code, output, file = run(tmp_path, text)
    assert code == 2 and message in output and output.startswith("Error: ")
    assert not file.exists()


def test_files_that_cannot_be_read_or_written(tmp_path):
    source = tmp_path / "in.csv"
    source.write_text(TIGHT)
    nowhere = str(tmp_path / "no" / "out.csv")
    for arguments in ([str(tmp_path / "none.csv"), "-o", nowhere], [str(source), "-o", nowhere]):
        result = CliRunner().invoke(main, ["pack", *arguments])
        assert result.exit_code == 2 and result.output.startswith("Error: ")


def test_starts_without_the_heavy_packages():
    code = "import sys; from xla_stalloc.cli.main import main; print([m for m in sys.modules if m in ('jax', 'numpy')])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"
