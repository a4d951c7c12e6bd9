"""What to paste into a program so that it offloads what a report chose."""

from __future__ import annotations

from collections.abc import Iterator

from xla_stalloc.plan.explain import size
from xla_stalloc.report.offload import Candidate, OffloadReport

_RESIDUALS = """
policy = jax.checkpoint_policies.save_and_offload_only_these_names(
    names_which_can_be_saved=[],
    names_which_can_be_offloaded={names},
    offload_src="device",
    offload_dst="pinned_host",
)
loss = jax.checkpoint(loss, policy=policy)  # what has no name is computed again
"""
_STATE = """
def to_host(sharding):
    return sharding.with_memory_kind("pinned_host")

# In jit(in_shardings=..., out_shardings=...): to_host(sharding) for the arguments above. In the step, before use:
value = jax.device_put(value, sharding.with_memory_kind("device"))
"""


def code(report: OffloadReport) -> str:
    """Python with comments; residuals of one line of the program share a name. Empty if nothing was chosen."""
    return "\n".join([*_of_residuals(report), *_of_state(report)])


def _of_residuals(report: OffloadReport) -> Iterator[str]:
    by_source: dict[str, list[Candidate]] = {}
    for candidate in report.chosen:
        if candidate.kind == "residual":
            by_source.setdefault(candidate.source or candidate.name, []).append(candidate)
    if not by_source:
        return
    yield "import jax\nfrom jax.ad_checkpoint import checkpoint_name\n"
    names = [f"offload_{number}" for number in range(len(by_source))]
    for name, (source, group) in zip(names, by_source.items(), strict=True):
        total = size(sum(candidate.bytes for candidate in group))
        yield f"# {source}: {len(group)} residuals, {total}, at least {_slack(group)} to spare:"
        yield f'#     x = checkpoint_name(x, "{name}")'
    yield _RESIDUALS.format(names=names)


def _of_state(report: OffloadReport) -> Iterator[str]:
    state = [candidate for candidate in report.chosen if candidate.kind == "state"]
    for candidate in state:
        yield f"# {candidate.source}: {candidate.shape}, {size(candidate.bytes)}, {_slack([candidate])} to spare"
    if state:
        yield _STATE


def _slack(candidates: list[Candidate]) -> str:
    return f"{1e3 * min(candidate.slack_seconds for candidate in candidates):.2f} ms"
