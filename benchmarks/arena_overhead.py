"""What the wrapped plugin costs: microseconds per step, wrapped and plain taken in turns.

    python benchmarks/arena_overhead.py [--rounds 6] [--json]

Each turn is a process of its own, since a vendor that is wrapped once is wrapped for its whole process. A turn runs two
programs many times: one that XLA:CPU runs at once on the caller's thread, where a step is mostly dispatch, and a
training step of about a millisecond that it runs on a thread of its own. Of both there is the processor's time of the
calling thread, which other processes on the machine hardly disturb, and of the second also the time on the clock. The
figure of a turn is the least of its batches, and that of a program the median over the turns; the noise is the spread
of the plain turns (their interquartile range).

Needs a CPU plugin: pip install --no-deps lammps-jax-pjrt-cpu.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys

WORKER = """
import json, time
import jax, jax.numpy as jnp

def seconds(step, state, steps, batches):
    calling, clock = [], []
    for _ in range(batches):
        jax.block_until_ready(state)
        started = time.perf_counter(), time.thread_time()
        for _ in range(steps):
            state = step(state)
        calling.append((time.thread_time() - started[1]) / steps)
        jax.block_until_ready(state)
        clock.append((time.perf_counter() - started[0]) / steps)
    return state, min(calling), min(clock)

def loss(w):
    return jnp.mean((jnp.tanh(w @ w) @ w - w) ** 2)

tiny = jax.jit(lambda v: v + 1)
train = jax.jit(lambda w: w - 0.1 * jax.grad(loss)(w), donate_argnums=0)
v, w = jnp.ones(8), jnp.ones((192, 192)) / 192
for _ in range(20):
    v, w = tiny(v), train(w)
v, tiny_call, _ = seconds(tiny, v, 2000, 30)
w, train_call, train_clock = seconds(train, w, 50, 20)
print(json.dumps({"tiny, calling": tiny_call, "train, calling": train_call, "train, clock": train_clock}))
"""


def turn(wrapped: bool, vendor: str) -> dict[str, float]:
    """Seconds per step of both programs, in a fresh process."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("XLA_STALLOC")}
    if wrapped:
        environment |= {"JAX_PLATFORMS": "stalloc", "XLA_STALLOC_WRAPS": vendor}
    else:
        environment |= {"JAX_PLATFORMS": "vendor", "PJRT_NAMES_AND_LIBRARY_PATHS": f"vendor:{vendor}"}
    done = subprocess.run([sys.executable, "-c", WORKER], env=environment, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"a turn failed:\n{done.stderr}")
    read: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return read


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=6, help="Turns of each kind.")
    parser.add_argument("--json", action="store_true", help="Print one line of JSON.")
    arguments = parser.parse_args()
    from xla_stalloc.inject import vendors

    vendor = str(vendors.find("cpu").path)
    turns: dict[bool, list[dict[str, float]]] = {False: [], True: []}
    for round_ in range(arguments.rounds):
        for wrapped in (False, True) if round_ % 2 == 0 else (True, False):
            turns[wrapped].append(turn(wrapped, vendor))
    result = {}
    for program in turns[False][0]:
        plain, ours = ([1e6 * turn[program] for turn in turns[wrapped]] for wrapped in (False, True))
        quartiles = statistics.quantiles(plain, n=4)
        result[program] = {
            "plain_us": statistics.median(plain),
            "wrapped_us": statistics.median(ours),
            "overhead_us": statistics.median(ours) - statistics.median(plain),
            "noise_us": quartiles[2] - quartiles[0],
        }
    if arguments.json:
        print(json.dumps({"schema": 1, "rounds": arguments.rounds, "programs": result}))
        return
    print(f"| program | plain µs | wrapped µs | overhead µs | noise µs |\n|{'---|' * 5}")
    for program, row in result.items():
        print(f"| {program} | " + " | ".join(f"{value:.2f}" for value in row.values()) + " |")


if __name__ == "__main__":
    main()
