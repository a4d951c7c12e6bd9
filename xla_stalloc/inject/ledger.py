"""The records of this process: all of them in order, and the one of each executable."""

from __future__ import annotations

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
    if plan_dir is not None and not record.fingerprint:
        record = record.replace(fingerprint=_fingerprint(executable))
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


def _fingerprint(executable: Any) -> str:
    """Names the program that was compiled. Takes as long as reading it does, so only files ask for it."""
    from xla_stalloc import hlo

    try:
        serialized = executable.hlo_modules()[0].as_serialized_hlo_module_proto()
        return hlo.Module.from_bytes(serialized, "executable").fingerprint()
    except Exception:
        # Not every runtime shows its modules. A name must do; a compile must not fail for the sake of a file.
        return "unknown"


def _write(record: PlanRecord, plan_dir: Path) -> None:
    plan_dir.mkdir(parents=True, exist_ok=True)
    target = plan_dir / f"{re.sub(r'[^A-Za-z0-9._-]', '_', record.module)}-{record.fingerprint}.json"
    # Renaming is atomic: a reader, or another process of the job, never sees half a record.
    temporary = target.with_name(f".{target.name}.{os.getpid()}.{threading.get_ident()}")
    temporary.write_text(record.to_json() + "\n")
    temporary.replace(target)
