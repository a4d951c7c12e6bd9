"""Generate the `_pb2.py` and `_pb2.pyi` of every `.proto` of the project, or check that the committed ones still fit.

    python -m xla_stalloc.hlo.schema.generate [--check]

The compiler's version is pinned, because the generated code carries it and asks for a runtime at least as new: the
pinned one is the oldest that every supported protobuf runtime (6.31 and later, 7.x) accepts. It is installed into a
temporary folder, so the result does not depend on the environment that runs this.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

COMPILER = "grpcio-tools==1.73.1"
PACKAGE_ROOT = Path(__file__).resolve().parents[3]
HERE = Path(__file__).resolve().parent.relative_to(PACKAGE_ROOT)
EXPORTS = HERE.parents[1] / "report" / "exports" / "schema"
PROTOS = (
    HERE / "cpu_executable.proto",
    HERE / "hlo.proto",
    EXPORTS / "perfetto.proto",
    EXPORTS / "pprof.proto",
)
GENERATED = [proto.with_name(f"{proto.stem}_pb2{suffix}") for proto in PROTOS for suffix in (".py", ".pyi")]


def compile_schema(out: Path) -> None:
    """Run the pinned protoc on the schemas; the generated files appear under `out` at their package's path.

    Raises:
        subprocess.CalledProcessError: the compiler cannot be installed, or a schema does not compile.
    """
    with tempfile.TemporaryDirectory() as tools:
        subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--target", tools, COMPILER], check=True)
        protoc = [sys.executable, "-m", "grpc_tools.protoc", "-I.", f"--python_out={out}", f"--pyi_out={out}"]
        protos = [proto.as_posix() for proto in PROTOS]
        subprocess.run([*protoc, *protos], check=True, cwd=PACKAGE_ROOT, env={**os.environ, "PYTHONPATH": tools})


def main() -> int:
    """Write the generated files; with --check only compare, and return 1 if they differ."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare instead of writing; exit 1 on a difference")
    check: bool = parser.parse_args().check
    with tempfile.TemporaryDirectory() as folder:
        compile_schema(Path(folder))
        stale = []
        for file in GENERATED:
            fresh = (Path(folder) / file).read_bytes()
            committed = PACKAGE_ROOT / file
            if committed.exists() and committed.read_bytes() == fresh:
                continue
            stale.append(file.as_posix())
            if not check:
                committed.write_bytes(fresh)
    if check and stale:
        print(f"{', '.join(stale)}: not what the .proto files generate; run python -m xla_stalloc.hlo.schema.generate")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
