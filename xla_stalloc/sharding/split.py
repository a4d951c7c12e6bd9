"""Which layers go to which stage: the split in which the slowest stage is as fast as it can be.

The stages are consecutive layers, so this is the linear partition problem, solved exactly by dynamic programming with
the memory of each stage as a condition (as in PipeDream, Narayanan et al., 2019, which has the same recurrence).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

Bounds = tuple[int, ...]
"""Where stages begin: stage `s` has the layers from `bounds[s]` up to `bounds[s + 1]`."""


def fastest_split(
    seconds: Sequence[float], stages: int, fits: Callable[[int, int, int], bool] = lambda stage, begin, end: True
) -> Bounds | None:
    """The split whose slowest stage takes the least time; among equals, the one with later layers in earlier stages.

    Args:
      seconds: of each layer.
      stages: how many; each gets at least one layer.
      fits: whether a stage may have the layers from begin up to end.

    Returns:
      The bounds, `stages + 1` of them; None if no split fits.
    """
    layers = len(seconds)
    until = [0.0]
    for layer in seconds:
        until.append(until[-1] + layer)
    best: list[float | None] = [0.0, *[None] * layers]  # of the stages so far, by the end of the last one
    cuts: list[list[int]] = []
    for stage in range(stages):
        last = stage == stages - 1
        reached: list[float | None] = [None] * (layers + 1)
        cut = [0] * (layers + 1)
        for end in range(layers if last else stage + 1, layers - (stages - 1 - stage) + 1):
            for begin in range(end - 1, stage - 1, -1):
                before = best[begin]
                slowest = until[end] - until[begin]
                known = reached[end]
                if known is not None and slowest >= known:
                    break  # longer stages only take longer
                if before is None or (known is not None and before >= known) or not fits(stage, begin, end):
                    continue
                reached[end] = max(before, slowest)
                cut[end] = begin
        best = reached
        cuts.append(cut)
    if best[layers] is None:
        return None
    bounds = [layers]
    for cut in reversed(cuts):
        bounds.append(cut[bounds[-1]])
    return tuple(reversed(bounds))
