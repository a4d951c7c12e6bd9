"""Compiling for devices that are not here, in processes of their own."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from typing import IO

from xla_stalloc.sharding.errors import FitError
from xla_stalloc.sharding.fit import Fit
from xla_stalloc.sharding.request import Request

_TAIL = 5  # lines of what a dead worker printed


class Cancellation:
    """Ends workers that other threads wait for."""

    def __init__(self) -> None:
        """Nothing runs yet."""
        self._lock = threading.Lock()
        self._running: list[subprocess.Popen[str]] = []
        self._cancelled = False

    def cancel(self) -> None:
        """Kills all workers; from now on none is started."""
        with self._lock:
            self._cancelled = True
            for process in self._running:
                _kill(process)

    def start(self, log: IO[str]) -> subprocess.Popen[str]:
        """Starts a worker that writes what libraries print to `log`.

        Raises:
            FitError: it is too late.
        """
        with self._lock:
            if self._cancelled:
                raise FitError("cancelled")
            # A session of its own: Ctrl-C reaches this process only, which then ends the worker and all it started.
            process = subprocess.Popen(
                [sys.executable, "-m", "xla_stalloc.sharding.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,
            )
            self._running.append(process)
            return process

    def end(self, process: subprocess.Popen[str]) -> None:
        """Kills a worker, if it still runs, and frees what it held."""
        with self._lock:
            self._running.remove(process)
        _kill(process)
        process.wait()
        for pipe in (process.stdin, process.stdout):
            with contextlib.suppress(BrokenPipeError):
                pipe.close()  # type: ignore[union-attr]


def _kill(process: subprocess.Popen[str]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def compile_step(
    request: Request,
    on_progress: Callable[[str], None] = lambda what: None,
    on_estimate: Callable[[Fit], None] = lambda fit: None,
    cancellation: Cancellation | None = None,
) -> Fit:
    """Compiles a step by the real compiler of its topology, unless it was compiled before.

    Runs `worker` as a process, and ends it however this call ends, by Ctrl-C for instance.

    Args:
        on_progress: is told what happens.
        on_estimate: is given the estimate from shardings, before the compiler starts.
        cancellation: through which another thread may end the worker.

    Raises:
        FitError: the topology, the mesh, the user's function or the compiler does not work.
    """
    cancellation = cancellation or Cancellation()
    with tempfile.TemporaryFile("w+") as log:
        process = cancellation.start(log)
        try:
            return _converse(process, request, on_progress, on_estimate, log)
        finally:
            cancellation.end(process)


def _converse(
    process: subprocess.Popen[str],
    request: Request,
    on_progress: Callable[[str], None],
    on_estimate: Callable[[Fit], None],
    log: IO[str],
) -> Fit:
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
