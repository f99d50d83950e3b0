"""How many tokens a second a model reads, measured in a run and kept beside its answers for later plans."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from pytest_kbrel.models.cache.store import digest_of
from pytest_kbrel.models.memory.measured import Notes
from pytest_kbrel.records import Failed, Fingerprint, Generated, Scored

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
