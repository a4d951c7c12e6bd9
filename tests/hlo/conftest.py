"""Programs that XLA compiles in this process, and the folder with those of real GPU and TPU compilers."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding, PartitionSpec

FEATURES = 16


def train_step(params: dict[str, jax.Array], batch: jax.Array) -> tuple[dict[str, jax.Array], jax.Array]:
    """A training step with a scan, a while loop, a conditional and a state that is worth donating."""

    def layer(hidden: jax.Array, weight: jax.Array) -> tuple[jax.Array, None]:
        return jnp.tanh(hidden @ weight), None

    def loss_of(params: dict[str, jax.Array]) -> jax.Array:
        hidden, _ = jax.lax.scan(layer, batch, params["layers"])
        return jnp.mean((hidden @ params["head"]) ** 2)

    loss, gradients = jax.value_and_grad(loss_of)(params)
    rate = jax.lax.while_loop(lambda r: r * loss > 1.0, lambda r: r * 0.5, jnp.float32(0.1))
    largest = jax.lax.cond(loss > 1.0, lambda x: jnp.sort(x)[-1], lambda x: jnp.sum(x), gradients["head"][:, 0])
    return jax.tree.map(lambda p, g: p - rate * g, params, gradients), loss + 0 * largest


def lower(step: Any = train_step, features: int = FEATURES) -> jax.stages.Lowered:
    """The step lowered for one device, its parameters donated."""
    params = {
        "layers": jax.ShapeDtypeStruct((3, features, features), jnp.float32),
        "head": jax.ShapeDtypeStruct((features, 4), jnp.float32),
    }
    batch = jax.ShapeDtypeStruct((8, features), jnp.float32)
    return jax.jit(step, donate_argnums=0).lower(params, batch)


@pytest.fixture(scope="session")
def lowered() -> jax.stages.Lowered:
    return lower()


@pytest.fixture(scope="session")
def compiled(lowered: jax.stages.Lowered) -> jax.stages.Compiled:
    return lowered.compile()


@pytest.fixture(scope="session")
def serialized(compiled: jax.stages.Compiled) -> bytes:
    """The training step's HloModuleProto, as XLA writes it."""
    return compiled.runtime_executable().hlo_modules()[0].as_serialized_hlo_module_proto()


@pytest.fixture(scope="session")
def sharded() -> jax.stages.Compiled:
    """A matrix product and a sum over eight devices: collectives with channels."""
    mesh = Mesh(np.array(jax.devices()).reshape(4, 2), ("data", "model"))
    rows = NamedSharding(mesh, PartitionSpec("data", "model"))
    product = jax.jit(lambda x: (x @ x.T, x.sum()), in_shardings=rows)
    return product.lower(jax.ShapeDtypeStruct((64, 32), jnp.float32)).compile()


def _programs_folder() -> Path:
    default = Path(__file__).resolve().parents[3] / "shared" / "programs"
    return Path(os.environ.get("XLA_STALLOC_PROGRAMS", default))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """`gpu_program` and `tpu_program`: each file of the folder in turn, or one skipped test."""
    for fixture in {"gpu_program", "tpu_program"} & set(metafunc.fixturenames):
        files = sorted(_programs_folder().glob(f"{fixture[:3]}_*.hlo.pb.xz"))
        reason = f"no compiled {fixture[:3]} programs in {_programs_folder()} (XLA_STALLOC_PROGRAMS names the folder)"
        missing = pytest.param(None, marks=pytest.mark.skip(reason=reason))
        metafunc.parametrize(fixture, files or [missing], ids=lambda file: file and file.name.partition(".")[0])
