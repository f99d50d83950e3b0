"""Figures that earlier runs measured, such as the memory a token takes: small files beside the kept answers.

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
# So many figures are remembered, the latest ones.
_MOST = 200
# No token takes so many bytes, and no model reads so many tokens a second.
_NONSENSE = 1e12


class Notes:
    """One kind of figure by key (checkpoint, number format, device): ``field`` of ``file`` in ``folder``."""

    def __init__(self, folder: Path, *, file: str = FILE, field: str = "bytes_a_token") -> None:
        self._folder, self._file, self._field = folder, file, field

    def find(self, key: str) -> float | None:
        """Return what is known, ``None`` where nothing is, or the file cannot be read."""
        return self._read().get(key)

    def keep(self, key: str, figure: float) -> None:
        """Keep what was learned; where that fails, the next run learns it again.

        The file takes its place in one step. Of two workers that write at once one may be forgotten.
        """
        if not 0 < figure < _NONSENSE:
            return
        known = self._read()
        known.pop(key, None)
        kept = dict([*known.items(), (key, figure)][-_MOST:])
        written = ""
        try:
            make_folder(self._folder)
            handle, written = tempfile.mkstemp(dir=self._folder, prefix=f"{self._file}.")
            with os.fdopen(handle, "w", encoding="utf-8") as stream:
                json.dump({"version": _VERSION, self._field: kept}, stream, indent=1)
            os.replace(written, self._folder / self._file)
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(written)

    def _read(self) -> dict[str, float]:
        try:
            found = read_json(self._folder / self._file)
        except (OSError, ValueError):
            return {}
        if not isinstance(found, dict) or found.get("version") != _VERSION:
            return {}
        kept = found.get(self._field)
        return {
            key: float(value)
            for key, value in (kept.items() if isinstance(kept, dict) else ())
            if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < _NONSENSE
        }
