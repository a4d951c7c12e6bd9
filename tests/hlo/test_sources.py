"""Every source of the same program gives the same module."""

from __future__ import annotations

import gzip
import lzma
import pickle
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

import jax
import pytest
from jax.experimental import serialize_executable

from xla_stalloc import hlo
from xla_stalloc.hlo.schema import hlo_pb2


def names_in_order(module: hlo.Module) -> list[str]:
    return [instruction.name for instruction in module.entry.sequence]


@pytest.fixture
def expected(serialized: bytes) -> hlo.Module:
    return hlo.Module.from_bytes(serialized, "expected")


@pytest.fixture
def executable(compiled: jax.stages.Compiled) -> bytes:
    return bytes(compiled.runtime_executable().serialize())


def check_same(module: hlo.Module, expected: hlo.Module) -> None:
    assert module.name == "jit_train_step"
    assert module.is_scheduled
    assert names_in_order(module) == names_in_order(expected)
    assert module.fingerprint() == expected.fingerprint()
    assert module.platform == "cpu"
    assert module.num_partitions == 1


def test_compiled(compiled: jax.stages.Compiled, expected: hlo.Module) -> None:
    module = hlo.open(compiled)
    check_same(module, expected)
    assert module.buffer_assignment is not None
    temp = [
        a.size
        for a in module.buffer_assignment.buffer_allocations
        if not (a.is_entry_computation_parameter or a.is_constant or a.is_thread_local or a.maybe_live_out)
    ]
    assert sum(temp) == compiled.memory_analysis().temp_size_in_bytes


def test_loaded_executable_and_its_module(compiled: jax.stages.Compiled, expected: hlo.Module) -> None:
    check_same(hlo.open(compiled.runtime_executable()), expected)
    check_same(hlo.open(compiled.runtime_executable().hlo_modules()[0]), expected)


def test_lowered_is_not_scheduled(lowered: jax.stages.Lowered) -> None:
    module = hlo.open(lowered)
    assert not module.is_scheduled
    assert not any(computation.is_scheduled for computation in module.computations)
    assert module.entry.sequence == module.entry.instructions
    assert {"while", "conditional", "dot"} <= {i.opcode for i in module.instructions_by_id.values()}


def test_module_bytes(serialized: bytes, expected: hlo.Module) -> None:
    check_same(hlo.open(serialized), expected)
    check_same(hlo.open(memoryview(serialized)), expected)


def test_hlo_proto_bytes_keep_the_buffer_assignment(serialized: bytes, expected: hlo.Module) -> None:
    proto = hlo_pb2.HloProto(hlo_module=hlo_pb2.HloModuleProto.FromString(serialized))
    proto.buffer_assignment.buffer_allocations.add(index=0, size=64)
    module = hlo.open(proto.SerializeToString())
    check_same(module, expected)
    assert module.buffer_assignment == proto.buffer_assignment


def test_serialized_executable(executable: bytes, expected: hlo.Module) -> None:
    module = hlo.open(executable)
    check_same(module, expected)
    assert module.buffer_assignment is not None
    assert module.buffer_assignment.buffer_allocations


def test_pickled_executable_is_read_without_unpickling(compiled: jax.stages.Compiled, expected: hlo.Module) -> None:
    payload, _, _ = serialize_executable.serialize(compiled)
    check_same(hlo.open(payload), expected)


def test_hostile_pickle_is_not_run(tmp_path: Path) -> None:
    class Hostile:
        def __reduce__(self) -> tuple[Any, ...]:
            return Path.touch, (tmp_path / "touched",)

    with pytest.raises(hlo.HloError, match="expected HLO"):
        hlo.open(pickle.dumps(Hostile()))
    assert not (tmp_path / "touched").exists()


@pytest.mark.parametrize("compress", [zlib.compress, gzip.compress, lzma.compress, bytes])
def test_compressed_files(serialized: bytes, expected: hlo.Module, tmp_path: Path, compress: Any) -> None:
    file = tmp_path / "some_program.bin"
    file.write_bytes(compress(serialized))
    check_same(hlo.open(file), expected)
    check_same(hlo.open(str(file)), expected)


def test_compilation_cache_entry(executable: bytes, expected: hlo.Module) -> None:
    check_same(hlo.open(zlib.compress((1234).to_bytes(4, "big") + executable)), expected)


def test_text(compiled: jax.stages.Compiled, sharded: jax.stages.Compiled, tmp_path: Path) -> None:
    module, text = hlo.open(compiled), compiled.as_text()
    (tmp_path / "program.hlo").write_text(text)
    for source in (text, text.encode(), tmp_path / "program.hlo"):
        read = hlo.open(source)
        assert read.is_scheduled
        assert [str(i.shape) for i in read.entry.sequence] == [str(i.shape) for i in module.entry.sequence]
        assert [i.opcode for i in read.entry.sequence] == [i.opcode for i in module.entry.sequence]
        assert read.input_output_alias == module.input_output_alias
        assert read.platform == "cpu"
    assert hlo.open(sharded.as_text()).num_partitions == 8


_DUMPING = """
import jax, jax.numpy as jnp
@jax.jit
def step(x): return jnp.tanh(x @ x) @ x
@jax.jit
def small(x): return x + 1
step(small(jnp.ones((8, 8)))).block_until_ready()
"""


@pytest.fixture(scope="module")
def dump_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dump")
    flags = f"--xla_dump_to={folder} --xla_dump_hlo_as_proto --xla_dump_hlo_as_text"
    environment = {"XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu", "JAX_ENABLE_COMPILATION_CACHE": "false"}
    subprocess.run([sys.executable, "-c", _DUMPING], check=True, env=environment, timeout=120)
    return folder


def test_dump_folder(dump_folder: Path) -> None:
    modules = hlo.open_all(dump_folder)
    assert {"jit_step", "jit_small"} <= {module.name for module in modules}
    assert all(module.source.endswith(".cpu_after_optimizations.hlo.pb") for module in modules)
    assert all(module.buffer_assignment is not None for module in modules)
    biggest = hlo.open(dump_folder)
    assert len(biggest.instructions_by_id) == max(len(module.instructions_by_id) for module in modules)
    small = hlo.open(dump_folder, name="jit_small")
    assert small.name == "jit_small"
    assert small.platform == "cpu"
    with pytest.raises(hlo.HloError, match=r"no module named 'jit_absent'.*jit_small"):
        hlo.open(dump_folder, name="jit_absent")


def test_dump_folder_with_text_only(dump_folder: Path, tmp_path: Path) -> None:
    for file in dump_folder.glob("*after_optimizations.txt"):
        (tmp_path / file.name).write_text(file.read_text())
    from_text, from_proto = hlo.open_all(tmp_path), hlo.open_all(dump_folder)
    assert [m.name for m in from_text] == [m.name for m in from_proto]
    assert [names_in_order(m) for m in from_text] == [names_in_order(m) for m in from_proto]


def test_sharded_program(sharded: jax.stages.Compiled) -> None:
    module = hlo.open(sharded)
    assert module.num_partitions == 8
    collectives = [i for i in module.instructions_by_id.values() if i.opcode.startswith(("all-", "reduce-scatter"))]
    assert collectives
    assert all(collective.channel_id > 0 for collective in collectives)


def test_gpu_program(gpu_program: Path) -> None:
    module = hlo.open(gpu_program)
    assert (module.name, module.platform, module.num_partitions) == ("jit_step", "cuda", 8)
    assert module.is_scheduled
    assert module.buffer_assignment is not None


def test_tpu_program(tpu_program: Path) -> None:
    module = hlo.open(tpu_program)
    assert (module.name, module.platform) == ("jit_step", "tpu")
    assert module.num_partitions == (8 if "tiny" in tpu_program.name else 64)
    assert module.is_scheduled
    assert any(shape.tiles for i in module.entry.instructions for _, shape in i.shape.subshapes())
