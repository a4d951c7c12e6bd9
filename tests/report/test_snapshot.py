"""Snapshots of live arrays, and peaks of steps, on eight virtual devices."""

from __future__ import annotations

import gc
import inspect
import json
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

import xla_stalloc as stalloc
from xla_stalloc.report import step_peaks as peaks_module
from xla_stalloc.report.snapshot import LiveArray, Snapshot


def of_shape(found: Snapshot, *shape: int) -> list[LiveArray]:
    return [array for array in found.arrays if array.shape == shape]


@pytest.fixture
def mesh() -> Mesh:
    return Mesh(np.array(jax.devices()[:8]).reshape(4, 2), ("data", "model"))


def test_an_array_with_its_origin() -> None:
    x = jax.device_put(np.ones((3, 71), np.float32))
    line = inspect.currentframe().f_lineno - 1  # type: ignore[union-attr]
    (array,) = of_shape(stalloc.snapshot(), 3, 71)
    assert array.origin == f"{__file__}:{line}"
    assert (array.dtype, array.bytes_per_device) == ("float32", {str(x.devices().pop()): 3 * 71 * 4})


def test_sharded_arrays_count_on_their_devices(mesh: Mesh) -> None:
    split = jax.device_put(np.ones((16, 74), np.float32), NamedSharding(mesh, P("data", "model")))
    half = jax.device_put(np.ones((16, 78), np.float32), NamedSharding(mesh, P("data", None)))
    found = stalloc.snapshot()
    (array,), (replicated,) = of_shape(found, 16, 74), of_shape(found, 16, 78)
    assert set(array.bytes_per_device) == {str(device) for device in mesh.devices.flat}
    assert set(array.bytes_per_device.values()) == {16 * 74 * 4 // 8} and array.bytes == split.nbytes
    assert set(replicated.bytes_per_device.values()) == {16 * 78 * 4 // 4} and replicated.bytes == 2 * half.nbytes
    assert "data" in array.sharding and "model=2" in array.sharding


def test_shards_that_are_held_apart_are_counted_once(mesh: Mesh) -> None:
    whole = jax.device_put(np.ones((16, 82), np.float32), NamedSharding(mesh, P("data", "model")))
    before = stalloc.snapshot().bytes
    shards = [shard.data for shard in whole.addressable_shards]
    found = stalloc.snapshot()
    assert len(shards) == 8 and found.bytes == before
    assert of_shape(found, 16, 82)[0].bytes == whole.nbytes


def test_deleted_and_donated_arrays_are_gone() -> None:
    x, y = jnp.ones((5, 79)), jnp.ones((5, 83))
    assert of_shape(stalloc.snapshot(), 5, 79)
    x.delete()
    z = jax.jit(lambda y: y + 1, donate_argnums=0)(y)
    found = stalloc.snapshot()
    assert not of_shape(found, 5, 79)
    assert y.is_deleted() and len(of_shape(found, 5, 83)) == 1 and z.shape == (5, 83)


def test_sums_text_and_json() -> None:
    kept = [jnp.ones((7, 89)), jnp.ones((7, 97))]
    found = stalloc.snapshot()
    assert found.bytes == sum(found.bytes_per_device.values()) == sum(array.bytes for array in found.arrays)
    assert sum(found.bytes_by_origin.values()) == found.bytes >= sum(array.nbytes for array in kept)
    assert [array.bytes for array in found.arrays] == sorted((array.bytes for array in found.arrays), reverse=True)
    text = found.to_text(top=len(found.arrays))
    assert "float32[7,89]" in text and "test_snapshot.py:" in text and "smaller ones" not in text
    assert "smaller ones" in found.to_text(top=1)
    assert json.loads(found.to_json())["bytes"] == found.bytes


def program() -> Any:
    function = jax.jit(lambda x: jnp.cumsum(jnp.sin(x))[::2] * 2)
    return function.lower(jax.ShapeDtypeStruct((100_000,), jnp.float32)).compile()


def test_peaks_from_the_programs_figures() -> None:
    compiled, x = program(), jnp.ones((100_000,))
    peaks = stalloc.step_peaks([compiled])
    gc.collect()
    device = str(x.devices().pop())
    for _ in range(2):
        alive = stalloc.snapshot().bytes_per_device[device]
        with peaks:
            y = compiled(x)
        memory = compiled.memory_analysis()
        record = peaks.records[-1]
        assert record.bytes_per_device[device] == alive + memory.temp_size_in_bytes + memory.output_size_in_bytes
        assert record.source == "programs" and record.program.startswith("jit_")
        del y
    assert [record.step for record in peaks.records] == [0, 1]
    assert str(peaks).startswith("step 0: ") and "programs: jit_" in str(peaks)


def test_a_decorated_function_records_every_call() -> None:
    @stalloc.step_peaks()
    def step(x):
        """Twice."""
        return jax.jit(lambda x: x * 2)(x)

    for _ in range(3):
        step(jnp.ones((1000,)))
    assert len(step.peaks.records) == 3 and step.__doc__ == "Twice."
    assert all(record.bytes >= 2 * 4000 for record in step.peaks.records)


def test_peaks_from_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    marks = iter([{"d": 100}, {"d": 250}, {"d": 250}, {"d": 250}])
    monkeypatch.setattr(peaks_module, "_marks", lambda: next(marks))
    peaks = stalloc.step_peaks([program()])
    with peaks:
        pass
    with peaks:  # the mark of the process did not rise, so that of the step is not known from it
        pass
    assert [record.source for record in peaks.records] == ["device", "programs"]
    assert peaks.records[0].bytes == 250


def test_steps_that_raise_or_overlap() -> None:
    peaks = stalloc.step_peaks([program()])
    with pytest.raises(ZeroDivisionError), peaks:
        1 / 0  # noqa: B018
    assert peaks.records == []
    with peaks, pytest.raises(RuntimeError, match="under way"), peaks:
        pass
    assert len(peaks.records) == 1
