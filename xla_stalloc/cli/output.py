"""Files that commands write: whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import click


def write(path: str | os.PathLike[str], content: str | bytes) -> None:
    """Writes a file; a reader sees the old one or the new one, never half of one.

    Raises:
        click.ClickException: it cannot be written; says where and why, with exit code 2.
    """
    target = Path(path)
    data = content.encode() if isinstance(content, str) else content
    try:
        with tempfile.NamedTemporaryFile(dir=target.parent, prefix=f".{target.name}.", delete=False) as file:
            try:
                file.write(data)
                file.close()
                os.chmod(file.name, _permissions(target))  # a temporary file is its owner's alone
                os.replace(file.name, target)
            except BaseException:
                os.unlink(file.name)
                raise
    except OSError as error:
        raise CannotWrite(f"{target}: cannot be written: {error.strerror or error}") from None


class CannotWrite(click.ClickException):
    """A file could not be written."""

    exit_code = 2


def _permissions(target: Path) -> int:
    """Those of the file that is there, else what the umask leaves."""
    if target.exists():
        return target.stat().st_mode & 0o777
    umask = os.umask(0)
    os.umask(umask)
    return 0o666 & ~umask
