"""How many tokens a second a model reads, measured in a run and kept beside its answers for later plans."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from pytest_kbrel.models.cache.store import digest_of, make_folder
from pytest_kbrel.records import Failed, Fingerprint, Generated, Scored
from pytest_kbrel.untrusted import read_json

A = TypeVar("A", Scored, Generated)
# With fewer answers than this a rate says little.
LEAST = 64


class RateMeter:
    """Measures a model's tokens a second while it answers: of prompts and scored answers, by method.

    Writing is in the seconds and not in the tokens. The first batch of a method warms the model up, and does
    not count.
    """

    def __init__(self) -> None:
        self._tokens: dict[str, int] = {}
        self._seconds: dict[str, float] = {}
        self._answers: dict[str, int] = {}

    def timed(
        self, method: str, batches: Iterator[list[tuple[int, A | Failed]]]
    ) -> Iterator[list[tuple[int, A | Failed]]]:
        """Yield ``batches``, and measure how long each took to come. ``method``: ``score``, ``generate``."""
        while True:
            started = time.perf_counter()
            batch = next(batches, None)
            seconds = time.perf_counter() - started
            if batch is None:
                return
            if method in self._answers:
                self._answers[method] += len(batch)
                self._tokens[method] += sum(tokens_of([answer for _, answer in batch]))
                self._seconds[method] += seconds
            else:
                self._answers[method] = self._tokens[method] = 0
                self._seconds[method] = 0.0
            yield batch

    def rates(self) -> dict[str, float]:
        """Return the tokens a second by method, where there were enough answers to tell."""
        return {
            method: self._tokens[method] / self._seconds[method]
            for method, answers in self._answers.items()
            if answers >= LEAST and self._seconds[method] > 0
        }


def tokens_of(answers: Sequence[object]) -> Iterator[int]:
    """Yield how many tokens of a prompt, and of a scored answer, were read for each sound answer."""
    for answer in answers:
        if isinstance(answer, Scored):
            yield answer.prompt_tokens + len(answer.token_ids)
        elif isinstance(answer, Generated):
            yield answer.prompt_tokens


def keep_rates(folder: Path, model: Fingerprint, rates: dict[str, float]) -> None:
    """Keep the rates of a run in one process, which a plan is of: workers share the machine."""
    if model.weights_digest and "PYTEST_XDIST_WORKER" not in os.environ:
        for method, rate in rates.items():
            _notes(folder).keep(_key(model, method), rate)


def known_rate(folder: Path, model: Fingerprint, method: str) -> float | None:
    """Return the rate of the last run of this model on this kind of device, ``None`` where none is known."""
    return _notes(folder).find(_key(model, method))


def _notes(folder: Path) -> Notes:
    return Notes(folder, file="rates.json", field="tokens_a_second")


def _key(model: Fingerprint, method: str) -> str:
    return f"{digest_of(model)} {model.device} {method}"


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
