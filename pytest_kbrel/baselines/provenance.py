"""Where a blessed run comes from, as far as version control knows."""

from __future__ import annotations

import subprocess
from pathlib import Path

_SECONDS = 10.0
CHANGED = "with changes"


def commit_of(folder: Path) -> str:
    """Return the commit that is checked out in ``folder``, with a note where tracked files were changed.

    Empty where there is no repository, or no git.
    """
    head = _git(folder, "rev-parse", "HEAD")
    if not head:
        return ""
    return f"{head} {CHANGED}" if _git(folder, "status", "--porcelain", "--untracked-files=no") else head


def _git(folder: Path, *arguments: str) -> str:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments],
            capture_output=True,
            check=True,
            text=True,
            timeout=_SECONDS,
        )
    except (OSError, subprocess.SubprocessError, ValueError):
        return ""
    return done.stdout.strip()
