"""Figures measured in earlier runs, in small files beside the cache: tokens a second, bytes a token.

Without such a file, or with a broken one, no answer changes.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from pytest_kbrel.errors import StoreError
from pytest_kbrel.models.cache.store import FILE as STORE
from pytest_kbrel.models.cache.store import Store, digest_of, make_folder
from pytest_kbrel.records import Failed, Fingerprint, Generated, Scored
from pytest_kbrel.serialization import from_wire
from pytest_kbrel.untrusted import parse, read_json

A = TypeVar("A", Scored, Generated)
# With fewer answers than this a rate says little.
LEAST = 64


class RateMeter:
    """Meter of a model's tokens a second, by method: tokens of prompts and of scored answers.

    Generated tokens take time and are not counted. The first batch of a method warms the model up and is left
    out.
    """

    def __init__(self) -> None:
        self._warm: set[str] = set()
        self._responses, self._tokens = Counter[str](), Counter[str]()
        self._seconds: dict[str, float] = {}

    def timed(
        self, method: str, batches: Iterator[list[tuple[int, A | Failed]]]
    ) -> Iterator[list[tuple[int, A | Failed]]]:
        """Yield ``batches`` and time each. ``method``: ``score`` or ``generate``."""
        while True:
            started = time.perf_counter()
            batch = next(batches, None)
            seconds = time.perf_counter() - started
            if batch is None:
                return
            if method in self._warm:
                self._responses[method] += len(batch)
                self._tokens[method] += sum(
                    _tokens_of([response for _, response in batch])
                )
                self._seconds[method] = self._seconds.get(method, 0.0) + seconds
            self._warm.add(method)
            yield batch

    def rates(self) -> dict[str, float]:
        """Return the tokens a second by method, for methods with at least :data:`LEAST` responses."""
        return {
            method: self._tokens[method] / seconds
            for method, seconds in self._seconds.items()
            if self._responses[method] >= LEAST and seconds > 0
        }


def _tokens_of(responses: Sequence[object]) -> Iterator[int]:
    """Yield the number of tokens read for each response that is no failure."""
    for response in responses:
        if isinstance(response, Scored):
            yield response.prompt_tokens + len(response.token_ids)
        elif isinstance(response, Generated):
            yield response.prompt_tokens


def store_rates(folder: Path, model: Fingerprint, rates: dict[str, float]) -> None:
    """Store the rates of a run in one process; those of workers, which share a machine, are not stored."""
    if model.weights_digest and "PYTEST_XDIST_WORKER" not in os.environ:
        for method, rate in rates.items():
            _notes(folder).put(_key(model, method), rate)


def last_rates(folder: Path, text: str) -> dict[str, float]:
    """Return the rates, by method, of the checkpoint that was last run as ``text``, if any is stored.

    Only its name is looked at, so that nothing is loaded: the checkpoint may have changed since.
    """
    if not (folder / STORE).is_file():
        return {}
    try:
        with contextlib.closing(Store(folder)) as store:
            rows = store.query("SELECT described FROM models ORDER BY id DESC")
        for (described,) in rows:
            model = from_wire(Fingerprint, parse(described))
            if model.spec == text:
                rates = {
                    method: rate
                    for method in ("score", "generate")
                    if (rate := _notes(folder).get(_key(model, method))) is not None
                }
                if rates:
                    return rates
    except (StoreError, ValueError, TypeError, KeyError):
        # A store that cannot be read has no rate; a run itself says what is wrong with it.
        pass
    return {}


def _notes(folder: Path) -> MeasurementFile:
    return MeasurementFile(folder, file="rates.json", field="tokens_a_second")


def _key(model: Fingerprint, method: str) -> str:
    return f"{digest_of(model)} {model.device} {method}"


FILE = "budgets.json"
_VERSION = 1
# Figures in a file, the latest ones.
_MOST = 200
# No token takes so many bytes, and no model reads so many tokens a second.
_NONSENSE = 1e12


class MeasurementFile:
    """JSON file of figures by key (checkpoint, number format, device); ``field`` names the figure."""

    def __init__(
        self, folder: Path, *, file: str = FILE, field: str = "bytes_a_token"
    ) -> None:
        self._folder, self._file, self._field = folder, file, field

    def get(self, key: str) -> float | None:
        """Return the figure of ``key``; ``None`` if there is none or the file cannot be read."""
        return self._read().get(key)

    def put(self, key: str, figure: float) -> None:
        """Store a figure; a failure to write is ignored.

        The file is replaced in one step. Of two workers that write at once one figure may be lost.
        """
        if not 0 < figure < _NONSENSE:
            return
        figures = self._read()
        figures.pop(key, None)
        figures = dict([*figures.items(), (key, figure)][-_MOST:])
        written = ""
        try:
            make_folder(self._folder)
            handle, written = tempfile.mkstemp(
                dir=self._folder, prefix=f"{self._file}."
            )
            with os.fdopen(handle, "w", encoding="utf-8") as stream:
                json.dump({"version": _VERSION, self._field: figures}, stream, indent=1)
            os.replace(written, self._folder / self._file)
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(written)

    def _read(self) -> dict[str, float]:
        try:
            data = read_json(self._folder / self._file)
        except (OSError, ValueError):
            return {}
        if not isinstance(data, dict) or data.get("version") != _VERSION:
            return {}
        figures = data.get(self._field)
        return {
            key: float(value)
            for key, value in (figures.items() if isinstance(figures, dict) else ())
            if isinstance(value, int | float)
            and not isinstance(value, bool)
            and 0 < value < _NONSENSE
        }
