"""The records of this process: all of them in order, and the one of each executable."""

from __future__ import annotations

import hashlib
import os
import re
import threading
import warnings
from pathlib import Path
from typing import Any

from xla_stalloc.plan.record import PlanRecord

_lock = threading.Lock()
_records: list[PlanRecord] = []
_by_executable: dict[int, PlanRecord] = {}


def records() -> list[PlanRecord]:
    """The `PlanRecord` of every program that was compiled with planning in this process, oldest first."""
    with _lock:
        return list(_records)


def add(executable: Any, record: PlanRecord, plan_dir: Path | None) -> None:
    """Enters the record of an executable that was just compiled, and writes it to ``plan_dir`` if there is one."""
    with _lock:
        _records.append(record)
        _by_executable[id(executable)] = record
    if plan_dir is not None:
        try:
            _write(record, plan_dir)
        except OSError as error:
            warnings.warn(f"xla_stalloc: cannot write the record of {record.module}: {error}", stacklevel=2)


def forget(executable: Any) -> None:
    """An executable without a record was compiled.

    Executables of jaxlib cannot be referenced weakly, so they are known by address. That is sound because every one
    that JAX compiles passes through here: whoever holds an executable reads what was entered for it, and not for one
    that lived at the same address before.
    """
    if _by_executable:
        with _lock:
            _by_executable.pop(id(executable), None)


def record_of(executable: Any) -> PlanRecord | None:
    """The record of a ``jaxlib`` executable that JAX compiled in this process, or None."""
    with _lock:
        return _by_executable.get(id(executable))


def _write(record: PlanRecord, plan_dir: Path) -> None:
    plan_dir.mkdir(parents=True, exist_ok=True)
    text = record.to_json()
    # A program that was not planned has no fingerprint; the figures then keep two programs of one name apart.
    fingerprint = record.fingerprint or hashlib.sha256(text.encode()).hexdigest()[:16]
    target = plan_dir / f"{re.sub(r'[^A-Za-z0-9._-]', '_', record.module)}-{fingerprint}.json"
    # Renaming is atomic: a reader, or another process of the job, never sees half a record.
    temporary = target.with_name(f".{target.name}.{os.getpid()}.{threading.get_ident()}")
    temporary.write_text(text + "\n")
    temporary.replace(target)
