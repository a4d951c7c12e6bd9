"""Compiling for devices that are not here, in processes of their own."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable

from xla_stalloc.sharding.errors import FitError
from xla_stalloc.sharding.fit import Fit
from xla_stalloc.sharding.request import Request

_TAIL = 5  # lines of what a dead worker printed


def compile_step(
    request: Request,
    on_progress: Callable[[str], None] = lambda what: None,
    on_estimate: Callable[[Fit], None] = lambda fit: None,
) -> Fit:
    """Compiles a step by the real compiler of its topology, unless it was compiled before.

    Runs `worker` as a process, and ends it however this call ends, by Ctrl-C for instance.

    Args:
        on_progress: is told what happens.
        on_estimate: is given the estimate from shardings, before the compiler starts.

    Raises:
        FitError: the topology, the mesh, the user's function or the compiler does not work.
    """
    with tempfile.TemporaryFile("w+") as log, _worker(log) as process:
        assert process.stdin is not None and process.stdout is not None
        with contextlib.suppress(BrokenPipeError):  # it died at once; why is in its log
            process.stdin.write(request.to_json() + "\n")
            process.stdin.flush()
        for line in process.stdout:
            event = json.loads(line)
            if event["event"] == "progress":
                on_progress(event["what"])
            elif event["event"] == "estimate":
                on_estimate(Fit.from_dict(event["fit"]))
            elif event["event"] == "error":
                raise FitError(event["message"])
            else:
                return Fit.from_dict(event["fit"])
        code = process.wait()
        log.seek(0)
        said = " | ".join(log.read().splitlines()[-_TAIL:])
        killed = " (the machine may be out of memory)" if code == -signal.SIGKILL else ""
        raise FitError(f"the compiler's process ended with {code}{killed}: {said or 'it said nothing'}")


@contextlib.contextmanager
def _worker(log):  # type: ignore[no-untyped-def]
    # A session of its own, so that Ctrl-C reaches this process only, which then ends the worker and all it started.
    process = subprocess.Popen(
        [sys.executable, "-m", "xla_stalloc.sharding.worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=log,
        text=True,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for pipe in (process.stdin, process.stdout):
            assert pipe is not None
            with contextlib.suppress(BrokenPipeError):
                pipe.close()
