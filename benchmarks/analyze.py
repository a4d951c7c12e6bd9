"""Time and memory of `analyze` on a very large module: a GPT training step of unrolled layers.

    python benchmarks/analyze.py [--layers N] [--megabytes N] [--plan] [--json]

The module is compiled in one process, padded with metadata to the size asked for, and analyzed from its file in
another, as on the command line. Exit code 1 if that takes more than 10 seconds or 2 GB.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import click

SECONDS, BYTES = 10.0, 2 * 10**9

# What a process says of itself: what its parent learns from the system counts the parent's own memory before exec.
_ANALYZE = """
from pathlib import Path
import sys
from xla_stalloc.cli.main import main
try:
    main()
finally:
    print(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0], file=sys.stderr)
"""


def write_module(path: Path, layers: int, megabytes: int) -> int:
    """Compiles the step and writes it; returns its number of instructions."""
    from xla_stalloc import hlo, models

    spec = models.get("gpt", layers=layers, width=64, heads=2, batch=2, seq=32)
    mesh = models.make_mesh(1, 1)
    module = hlo.open(spec.jit(mesh).lower(*spec.arguments(mesh)).compile())
    proto = type(module.proto).FromString(module.serialized)
    # Arguments have names, not paths.
    instructions = [i for c in proto.computations for i in c.instructions if i.opcode != "parameter"]
    missing = megabytes * 2**20 - proto.ByteSize()
    if missing > 0:  # long names of operations are what makes real modules large
        scope = "/".join(["model_scope_of_some_length"] * (missing // len(instructions) // 27))
        for instruction in instructions:
            instruction.metadata.op_name = f"{scope}/{instruction.metadata.op_name}"
    path.write_bytes(proto.SerializeToString())
    return len(module.instructions_by_id)


@click.command()
@click.option("--layers", type=click.IntRange(min=1), default=155, show_default=True)
@click.option("--megabytes", type=click.IntRange(min=0), default=100, show_default=True, help="Least size of the file.")
@click.option("--plan/--no-plan", default=False, show_default=True, help="Also plan the module.")
@click.option("--json", "as_json", is_flag=True, help="One line of JSON.")
def main(layers: int, megabytes: int, plan: bool, as_json: bool) -> None:
    """Compile a large step and analyze its file."""
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "large.hlo.pb"
        instructions = write_module(path, layers, megabytes)
        command = [sys.executable, "-c", _ANALYZE, "analyze", str(path), "--plan" if plan else "--no-plan"]
        started = time.perf_counter()
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        seconds = time.perf_counter() - started
        size = path.stat().st_size
    most = int(done.stderr.split()[-1]) * 1024
    result = {"instructions": instructions, "file_bytes": size, "seconds": round(seconds, 2), "memory_bytes": most}
    click.echo(json.dumps(result) if as_json else "\n".join(f"{key:13} {value:>15,}" for key, value in result.items()))
    sys.exit(0 if seconds < SECONDS and most < BYTES else 1)


if __name__ == "__main__":
    main()
