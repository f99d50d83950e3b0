"""Rates of models: measured in a run, and stored in a small file beside the cache for a later plan."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections import Counter
from pathlib import Path
from typing import Any, TypeVar

from pytest_kbrel.models.batching import Batches
from pytest_kbrel.models.cache.store import make_folder
from pytest_kbrel.records import Fingerprint, Generated, Scored
from pytest_kbrel.untrusted import read_json

A = TypeVar("A", Scored, Generated)
# With fewer answers than this a rate says little.
LEAST = 64
_FILE, _FIELD = "kbrel-rates.json", "rates_by_spec"
# Specs in the file, the latest ones.
_MOST = 200
# No model reads so many tokens a second.
_NONSENSE = 1e12


class RateMeter:
    """Meter of a model's tokens a second, by method: tokens of prompts and of scored answers.

    Generated tokens take time and are not counted. The first batch of a method warms the model up and is left
    out.
    """

    def __init__(self) -> None:
        self._warm: set[str] = set()
        self._responses, self._tokens = Counter[str](), Counter[str]()
        self._seconds: dict[str, float] = {}

    def timed(self, method: str, batches: Batches[A]) -> Batches[A]:
        """Yield ``batches`` and time each. ``method``: ``score`` or ``generate``."""
        started = time.perf_counter()
        for batch in batches:
            seconds = time.perf_counter() - started
            if method in self._warm:
                self._responses[method] += len(batch)
                self._tokens[method] += sum(_tokens_of(one) for _, one in batch)
                self._seconds[method] = self._seconds.get(method, 0.0) + seconds
            self._warm.add(method)
            yield batch
            started = time.perf_counter()

    def rates(self) -> dict[str, float]:
        """Return the tokens a second by method, for methods with at least :data:`LEAST` responses."""
        return {
            method: self._tokens[method] / seconds
            for method, seconds in self._seconds.items()
            if self._responses[method] >= LEAST and seconds > 0
        }


def _tokens_of(response: object) -> int:
    """Return the number of tokens read for a response, 0 for a failure."""
    if isinstance(response, Scored):
        return response.prompt_tokens + len(response.token_ids)
    return response.prompt_tokens if isinstance(response, Generated) else 0


def store_rates(folder: Path, model: Fingerprint, rates: dict[str, float]) -> None:
    """Store the rates of a run in one process; those of workers, which share a machine, are not stored.

    A failure to write is ignored. The file is replaced in one step.
    """
    if not (rates and model.weights_digest) or "PYTEST_XDIST_WORKER" in os.environ:
        return
    stored = _stored(folder)
    stored.pop(model.spec, None)
    latest = dict([*stored.items(), (model.spec, rates)][-_MOST:])
    written = folder / f"{_FILE}.{os.getpid()}"
    with contextlib.suppress(OSError):
        make_folder(folder)
        written.write_text(json.dumps({_FIELD: latest}, indent=1), encoding="utf-8")
        written.replace(folder / _FILE)


def last_rates(folder: Path, text: str) -> dict[str, float]:
    """Return the rates, by method, of the checkpoint that was last run as ``text``, if any is stored.

    Only its name is looked at, so that nothing is loaded: the checkpoint may have changed since.
    """
    rates = _stored(folder).get(text)
    return {
        method: float(rate)
        for method, rate in (rates.items() if isinstance(rates, dict) else ())
        if isinstance(rate, int | float) and 0 < rate < _NONSENSE
    }


def _stored(folder: Path) -> dict[str, Any]:
    try:
        rates = read_json(folder / _FILE)[_FIELD]
    except (OSError, ValueError, LookupError, TypeError):
        return {}
    return rates if isinstance(rates, dict) else {}
