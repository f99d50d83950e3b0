"""Files that a command or a run writes: whole or not at all, and never over one that is there unasked."""

from __future__ import annotations

import os
import secrets
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

# Seconds until a pipe must have a reader.
_PATIENCE = 3.0


def check_free(path: Path, *, force: bool) -> None:
    """Raise ``OSError`` where ``path`` is a folder or, without ``force``, a file."""
    if path.is_dir():
        raise IsADirectoryError(
            f"{path}: is a folder; allowed: the name of a file in it"
        )
    if path.is_file() and not (force or _is_stdout(path)):
        raise FileExistsError(
            f"{path}: exists already; name another file or give --force"
        )


@contextmanager
def new_file(path: Path, *, force: bool) -> Iterator[TextIO]:
    """Open a file that takes the place of ``path`` when the block ends well, and vanishes otherwise.

    It is UTF-8, and what has no such form becomes a question mark; bytes go to its ``buffer``. A link stays
    one. A pipe, a device and standard output are written to instead. Folders are made. Raises what
    :func:`check_free` does; any ``OSError``, as of a full disk, names ``path``.
    """
    check_free(path, force=force)
    target = os.path.realpath(path)
    scratch = Path(target).with_name(f".kbrel-{secrets.token_hex(8)}")
    try:
        if not path.exists() or (path.is_file() and not _is_stdout(path)):
            scratch.parent.mkdir(parents=True, exist_ok=True)
            with _text(scratch) as stream:
                yield stream
                stream.flush()
                os.fsync(stream.fileno())
            os.replace(scratch, target)
        else:
            with _text(_special(path)) as stream:
                yield stream
    except OSError as error:
        # A full disk names no file, the folder that may not be written the one that would be renamed.
        if error.errno and error.filename in (None, os.fspath(scratch)):
            raise OSError(error.errno, error.strerror, os.fspath(path)) from None
        raise
    finally:
        scratch.unlink(missing_ok=True)


def write_text(path: Path, text: str, *, force: bool) -> None:
    """Write ``text`` as :func:`new_file` does."""
    with new_file(path, force=force) as stream:
        stream.write(text)


def _text(file: Path | int) -> TextIO:
    return open(file, "x", encoding="utf-8", errors="replace", newline="\n")


def _is_stdout(path: Path) -> bool:
    """Return True if standard output goes there: ``/dev/stdout``, a link to it, or a file of the shell's."""
    try:
        return os.path.samestat(path.stat(), os.fstat(1))
    except OSError:
        return False


def _special(path: Path) -> int:
    """Open standard output again, a device, or a pipe once somebody reads it."""
    if _is_stdout(path):
        sys.stdout.flush()
        return os.dup(1)
    end = time.monotonic() + _PATIENCE
    while True:
        try:
            file = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:
            # Opened to wait, a pipe that nobody reads would be waited for without end.
            if not path.is_fifo() or time.monotonic() > end:
                raise
            time.sleep(0.05)
        else:
            os.set_blocking(file, True)
            return file
