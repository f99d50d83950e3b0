"""Files that a command or a run writes: whole or not at all, and never over one that is there unasked."""

from __future__ import annotations

import errno
import os
import secrets
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

# Seconds until a pipe must have a reader.
_PATIENCE = 3.0


def check_free(path: Path, *, force: bool) -> None:
    """Raise ``OSError`` where ``path`` is a folder or, without ``force``, a file or a link that leads nowhere."""
    if path.is_dir():
        raise IsADirectoryError(
            f"{path}: is a folder; allowed: the name of a file in it"
        )
    if os.path.lexists(path) and not (force or _is_special(path)):
        raise FileExistsError(
            f"{path}: exists already; name another file or give --force"
        )


def why_unwritable(folder: Path) -> str:
    """Return why no file can be written below a folder that need not be there, else nothing."""
    above = next(path for path in (folder, *folder.parents) if path.exists())
    if not above.is_dir():
        return f"{above} is a file"
    return "" if os.access(above, os.W_OK | os.X_OK) else f"{above} may not be written"


@contextmanager
def naming(path: Path, scratch: Path | None = None) -> Iterator[None]:
    """Name ``path`` in an ``OSError`` of the block that names no file, as of a full disk, or ``scratch``."""
    try:
        yield
    except OSError as error:
        if error.errno and error.filename in (None, str(scratch)):
            raise OSError(error.errno, error.strerror, str(path)) from None
        raise


@contextmanager
def new_file(path: Path, *, force: bool) -> Iterator[TextIO]:
    """Open a file that takes the place of ``path`` when the block ends well, and vanishes otherwise.

    It is UTF-8, and what has no such form becomes a question mark; bytes go to its ``buffer``. Folders are
    made, and vanish as well. A pipe, a device and standard output are written to instead. Raises what :func:`check_free` does;
    any ``OSError``, as of a full disk, names ``path``.
    """
    check_free(path, force=force)
    # Not tempfile's: nobody else could read its files.
    scratch = path.with_name(f".kbrel-{secrets.token_hex(8)}")
    made = [folder for folder in path.parents if not folder.exists()]
    try:
        with naming(path, scratch):
            if _is_special(path):
                with _text(_opened(path)) as stream:
                    yield stream
                return
            path.parent.mkdir(parents=True, exist_ok=True)
            with _text(scratch) as stream:
                yield stream
                stream.flush()
                os.fsync(stream.fileno())
            os.replace(scratch, path)
    finally:
        scratch.unlink(missing_ok=True)
        # Of those with a file in them this is no more than tried.
        with suppress(OSError):
            for folder in made:
                folder.rmdir()


def write_text(path: Path, text: str, *, force: bool) -> None:
    """Write ``text`` as :func:`new_file` does."""
    with new_file(path, force=force) as stream:
        stream.write(text)


def is_stdout(path: Path) -> bool:
    """Return True if standard output goes there: ``/dev/stdout``, a link to it, or a file of the shell's."""
    try:
        return os.path.samestat(path.stat(), os.fstat(1))
    except OSError:
        return False


def _is_special(path: Path) -> bool:
    return is_stdout(path) or (path.exists() and not path.is_file())


def _text(file: Path | int) -> TextIO:
    return open(file, "x", encoding="utf-8", errors="replace", newline="\n")


def _opened(path: Path) -> int:
    """Open standard output again, a device, or a pipe once somebody reads it."""
    if is_stdout(path):
        sys.stdout.flush()
        return os.dup(1)
    end = time.monotonic() + _PATIENCE
    while True:
        try:
            file = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
        except OSError as error:
            # Nobody reads the pipe: opened to wait for that, it might never be.
            if error.errno != errno.ENXIO or time.monotonic() > end:
                raise
            time.sleep(0.05)
        else:
            os.set_blocking(file, True)
            return file
