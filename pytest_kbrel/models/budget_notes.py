"""What earlier runs learned about the memory a token takes: a small file beside the store of answers.

It is where a run begins to measure, and nothing more: without it, or with a broken one, no answer changes.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from pathlib import Path

from pytest_kbrel.models.cache.location import make_folder
from pytest_kbrel.untrusted import read_json

FILE = "budgets.json"
_VERSION = 1
# So many checkpoints are remembered, the latest ones.
_MOST = 200
# In bytes. No token takes that much.
_NONSENSE = 1e12


class Notes:
    """Bytes a token by checkpoint, number format and device, in ``folder``."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def find(self, key: str) -> float | None:
        """Return what is known, ``None`` where nothing is, or the file cannot be read."""
        return self._read().get(key)

    def keep(self, key: str, per_token: float) -> None:
        """Keep what was learned; where that fails, the next run learns it again.

        The file takes its place in one step. Of two workers that write at once one may be forgotten.
        """
        if not 0 < per_token < _NONSENSE:
            return
        known = self._read()
        known.pop(key, None)
        kept = dict([*known.items(), (key, per_token)][-_MOST:])
        written = ""
        try:
            make_folder(self._folder)
            handle, written = tempfile.mkstemp(dir=self._folder, prefix=f"{FILE}.")
            with os.fdopen(handle, "w", encoding="utf-8") as stream:
                json.dump({"version": _VERSION, "bytes_a_token": kept}, stream, indent=1)
            os.replace(written, self._folder / FILE)
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(written)

    def _read(self) -> dict[str, float]:
        try:
            found = read_json(self._folder / FILE)
        except (OSError, ValueError):
            return {}
        if not isinstance(found, dict) or found.get("version") != _VERSION:
            return {}
        kept = found.get("bytes_a_token")
        return {
            key: float(value)
            for key, value in (kept.items() if isinstance(kept, dict) else ())
            if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < _NONSENSE
        }
