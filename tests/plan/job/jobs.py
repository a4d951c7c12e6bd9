"""Traces of jobs as a training script makes them, with as many steps in flight as dispatch allows."""

from __future__ import annotations

from xla_stalloc.plan.job import Trace, TraceBuilder

STATE = (1000, 200_000, 64, 5000)  # elements of float32


def training(steps: int, *, in_flight: int = 2, eval_every: int = 0, keep_losses: bool = True) -> Trace:
    """Uploads of parameters and batches, a step with a temp block, a loss and a new state, now and then an eval."""
    job = TraceBuilder()
    for elements in STATE:
        job.begin(f"upload f32[{elements}]")
        job.request(4 * elements)
    job.begin("init")
    job.release(job.request(10**6))
    running: list[list[int]] = []
    for step in range(1, steps + 1):
        job.begin("upload f32[8,1024]")
        blocks = [job.request(33_333)]
        job.begin("train_step")
        blocks.append(job.request(3 * 10**6))
        loss = job.request(4)
        blocks.append(job.request(100_000))
        if not keep_losses:
            blocks.append(loss)
        running.append(blocks)
        while len(running) >= in_flight:
            for block in running.pop(0):
                job.release(block)
        if eval_every and step % eval_every == 0:
            job.begin("eval_step")
            job.release(job.request(10**6))
    return job.build()
