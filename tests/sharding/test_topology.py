"""Topologies and meshes by name, and what the compilers are told about cards."""

from __future__ import annotations

import pytest

from xla_stalloc.sharding import mesh, topology
from xla_stalloc.sharding.chips import GPUS, TPUS
from xla_stalloc.sharding.errors import FitError


@pytest.mark.parametrize(
    ("name", "platform", "shape", "devices"),
    [
        ("v5p:4x4x4", "tpu", (4, 4, 4), 64),
        ("v5e:16x16*2", "tpu", (16, 16), 512),
        ("tpu7x:2x2x1", "tpu", (2, 2, 1), 8),  # two devices per chip
        ("H100:8x8", "cuda", (8, 8), 64),
        ("b200:8", "cuda", (1, 8), 8),
        ("cpu:8", "cpu", (8,), 8),
    ],
)
def test_names(name: str, platform: str, shape: tuple[int, ...], devices: int) -> None:
    found = topology.parse(name)
    assert (found.platform, found.shape, found.device_count) == (platform, shape, devices)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("h100", "such as v5p:4x4x4"),
        ("v5e:0x4", "such as v5p:4x4x4"),
        ("h10:8", "did you mean 'h100'"),
        ("v5e:4", "chips, such as 4x4"),
        ("cpu:2x2", "a number, such as 8"),
        ("h100:8*2", "only TPUs come in slices"),
    ],
)
def test_bad_names_say_what_to_write(name: str, message: str) -> None:
    with pytest.raises(FitError, match=message.replace("*", r"\*")):
        topology.parse(name)


def test_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XLA_PYTHON_CLIENT_MEM_FRACTION", raising=False)
    assert topology.parse("h100:8").memory_limit == 60 * 10**9
    monkeypatch.setenv("XLA_PYTHON_CLIENT_MEM_FRACTION", "0.9")
    assert topology.parse("h100:8").memory_limit == 72 * 10**9
    assert topology.parse("v5e:2x2").memory_limit == 63 * 2**28  # 15.75 GiB
    assert topology.parse("cpu:8").memory_limit is None
    monkeypatch.setenv("XLA_PYTHON_CLIENT_MEM_FRACTION", "most")
    with pytest.raises(FitError, match="is not a number"):
        _ = topology.parse("h100:8").memory_limit


def test_target_configs_are_of_the_card() -> None:
    assert set(GPUS) >= {"v100", "a100", "h100", "h200", "b200", "gb200"} and not set(GPUS) & set(TPUS)
    for card in GPUS.values():
        config = card.target_config()
        assert config.count("{") == config.count("}")
        assert f"device_memory_size: {card.memory_bytes}" in config
        assert f"core_count: {card.multiprocessors}" in config


def test_meshes() -> None:
    assert mesh.parse("fsdp=16,tp=4", 64) == {"fsdp": 16, "tp": 4}
    assert mesh.parse("fsdp=*, tp=4", 64) == {"fsdp": 16, "tp": 4}
    assert mesh.text({"fsdp": 16, "tp": 4}) == "fsdp=16,tp=4"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is no mesh"),
        ("fsdp=4,fsdp=2", "is no mesh"),
        ("a=*,b=*", "is no mesh"),
        ("fsdp=4", "is of 4 devices, and the topology has 8"),
        ("fsdp=*,tp=3", "is of 3 devices"),
    ],
)
def test_bad_meshes(text: str, message: str) -> None:
    with pytest.raises(FitError, match=message):
        mesh.parse(text, 8)
