"""How the two files of a blessed run take the place of an older one: at no moment is there none.

The outcomes get a name of their own contents and are written first. The readable file names them and is
replaced in one step. Whoever is killed in between leaves the older run whole, and so do two who bless at the
same time: the one that comes last stands.
"""

from __future__ import annotations

import os
import re
import secrets
import time
from pathlib import Path

from pytest_kbrel.baselines.format import META, OLDER, read_meta
from pytest_kbrel.errors import BaselineError

_OURS = re.compile(r"outcomes-[0-9a-f]{12}\.jsonl\.xz|\.baseline-[0-9a-f]+")
# In seconds. What another process wrote more recently may be about to be named.
_FORGOTTEN = 10.0


def outcomes_name(digest: str) -> str:
    """Return the name of the outcomes with this digest."""
    return f"outcomes-{digest[:12]}.jsonl.xz"


def is_ours(name: str) -> bool:
    """Tell whether a file is part of a blessed run, or was to become one."""
    return bool(_OURS.fullmatch(name)) or name in (META, *OLDER)


def place(directory: Path, meta: bytes, outcomes: str, data: bytes) -> None:
    """Put the readable file ``meta`` and the ``data`` of ``outcomes`` into ``directory``.

    Other people's files stay. Raises ``OSError`` where they cannot be written; the older run is then whole.
    """
    directory.mkdir(parents=True, exist_ok=True)
    _write(directory / outcomes, data)
    _write(directory / META, meta)
    _clear(directory)


def _write(target: Path, data: bytes) -> None:
    # Not tempfile's: its files can be read by nobody else, and these are to be committed.
    scratch = target.with_name(f".baseline-{secrets.token_hex(8)}")
    try:
        with scratch.open("xb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(scratch, target)
    finally:
        scratch.unlink(missing_ok=True)


def _clear(directory: Path) -> None:
    """Take away what older runs and killed processes left."""
    try:
        named = str(read_meta(directory)["outcomes"]["file"])
    except (BaselineError, KeyError, TypeError):
        return
    for path in directory.iterdir():
        try:
            age = time.time() - path.stat().st_mtime
            if age > _FORGOTTEN and is_ours(path.name) and path.name not in (META, named):
                path.unlink()
        except FileNotFoundError:
            continue
