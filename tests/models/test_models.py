"""The models learn, split as they say, and refuse what cannot work."""

from __future__ import annotations

import functools
from typing import Any

import jax
import numpy as np
import pytest
from jax.sharding import PartitionSpec as P

from xla_stalloc import models

SMALL_GPT = {"layers": 2, "width": 32, "heads": 2, "batch": 8, "seq": 32, "vocab": 32}
SMALL_RESNET = {"layers": 1, "width": 16, "batch": 32, "image": 8}


def small(name: str, **sizes: int) -> models.ModelSpec:
    return models.get(name, **{**(SMALL_RESNET if name == "resnet" else SMALL_GPT), **sizes})


@functools.cache
def trained(name: str, data: int = 4, model: int = 2) -> tuple[list[float], Any]:
    """The losses of the first steps and the state after them; kept, since several tests look at one training."""
    spec, mesh = small(name), models.make_mesh(data, model)
    step, state = spec.jit(mesh), spec.start(mesh)
    losses = []
    for i in range(15):
        state, loss = step(state, jax.device_put(spec.batch(i), spec.batch_shardings(mesh)))
        losses.append(float(loss))
    return losses, state


@pytest.mark.parametrize("name", models.names())
def test_loss_falls_on_a_mesh(name: str) -> None:
    losses, _ = trained(name)
    assert np.isfinite(losses).all()
    assert np.mean(losses[-3:]) < 0.8 * np.mean(losses[:3])


@pytest.mark.parametrize("name", ["gpt", "gpt-scan", "gpt-nnx", "gpt-nnx-scan"])
def test_remat_does_not_change_what_is_learned(name: str) -> None:
    np.testing.assert_allclose(trained(f"{name}-remat")[0][:5], trained(name)[0][:5], rtol=1e-4)


def test_a_mesh_does_not_change_what_is_learned() -> None:
    np.testing.assert_allclose(trained("gpt-nnx")[0][:5], trained("gpt-nnx", 1, 1)[0][:5], rtol=1e-4)


@pytest.mark.parametrize(("name", "depth"), [("gpt", 0), ("gpt-nnx", 0), ("gpt-scan", 1), ("gpt-nnx-scan", 1)])
def test_big_matrices_are_really_split_in_the_megatron_way(name: str, depth: int) -> None:
    leaves = jax.tree_util.tree_leaves_with_path(trained(name)[1])
    stacked = (None,) * depth
    expected = {
        "qkv": P(*stacked, None, None, "model", None),
        "out": P(*stacked, "model", None, None),
        "up": P(*stacked, None, "model"),
        "down": P(*stacked, "model", None),
    }
    for part, partition_spec in expected.items():
        kernels = [leaf for path, leaf in leaves if f"'{part}'" in jax.tree_util.keystr(path)]
        # The parameter and AdamW's two moments, once per unrolled layer.
        assert len(kernels) == 3 * (1 if depth else SMALL_GPT["layers"])
        for kernel in kernels:
            assert kernel.sharding.spec == partition_spec
            assert kernel.addressable_shards[0].data.nbytes * 2 == kernel.nbytes


def test_convolutions_are_split_in_pairs() -> None:
    spec = small("resnet")
    shardings = jax.tree_util.tree_leaves_with_path(spec.state_shardings(models.make_mesh(2, 2)))
    found = {
        part: {sharding.spec for path, sharding in shardings if f"'{part}'" in jax.tree_util.keystr(path)}
        for part in ("expand", "contract", "stem")
    }
    assert found["expand"] == {P(None, None, None, "model")}
    assert found["contract"] == {P(None, None, "model", None)}
    assert found["stem"] == {P()}


def test_data_are_split_over_data_and_repeatable() -> None:
    spec = small("gpt")
    tokens, following = jax.device_put(spec.batch(3), spec.batch_shardings(models.make_mesh(4, 2)))
    assert tokens.addressable_shards[0].data.shape == (SMALL_GPT["batch"] // 4, SMALL_GPT["seq"])
    assert (np.asarray(following) == (5 * np.asarray(tokens) + 17) % SMALL_GPT["vocab"]).all()
    assert (spec.batch(3)[0] == np.asarray(tokens)).all()
    assert (spec.batch(4)[0] != np.asarray(tokens)).any()


def test_remat_in_a_scan_needs_less_memory() -> None:
    def temp_bytes(name: str) -> int:
        spec, mesh = small(name, layers=6), models.make_mesh(1, 1)
        return int(spec.jit(mesh).lower(*spec.arguments(mesh)).compile().memory_analysis().temp_size_in_bytes)

    assert temp_bytes("gpt-nnx-scan-remat") < 0.6 * temp_bytes("gpt-nnx-scan")


@pytest.mark.parametrize(
    ("name", "sizes", "message"),
    [
        ("gtp", {}, "did you mean 'gpt'"),
        ("resnt", {}, "did you mean 'resnet'"),
        ("resnet", {"seq": 8}, "resnet has no size 'seq'; it has layers, width, batch, image"),
        ("gpt", {"width": 30, "heads": 4}, "heads=4 does not divide width=30"),
        ("gpt", {"layers": 0}, "layers=0 must be at least 1"),
        ("resnet", {"width": 12}, "width=12 is not a multiple of 8"),
        ("resnet", {"image": 2}, "image=2 is too small"),
    ],
)
def test_bad_names_and_sizes_are_refused(name: str, sizes: dict[str, int], message: str) -> None:
    with pytest.raises(models.ModelError, match=message):
        models.get(name, **sizes)


@pytest.mark.parametrize(
    ("mesh", "message"),
    [
        ({"data": 3, "model": 1}, "axis 'data' of 3 does not divide batch=8"),
        ({"data": 1, "model": 3}, "axis 'model' of 3 does not divide heads=2"),
    ],
)
def test_meshes_that_do_not_divide_are_refused(mesh: dict[str, int], message: str) -> None:
    with pytest.raises(models.ModelError, match=message):
        small("gpt").check_mesh(mesh)


def test_too_many_devices_are_refused() -> None:
    with pytest.raises(models.ModelError, match="wants 64 devices and the cpu backend has 8"):
        models.make_mesh(8, 8)
