"""How much work questions are for a model: how many steps it takes, and over how many tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from pytest_kbrel.models.base import Model
from pytest_kbrel.models.counting import Counter
from pytest_kbrel.records import Request, ScoreRequest, record

if TYPE_CHECKING:
    from pytest_kbrel.models.hf_ladder import Rung

# Which part of the texts in a loop is under way on average: a quarter may have ended before others come in.
_UNDER_WAY = 0.875


@runtime_checkable
class Shares(Protocol):
    """A model that says which way of sharing holds for it."""

    @property
    def rungs(self) -> tuple[Rung, Rung]:
        """The way when it scores, and the one when it writes."""
        ...


@record
class Work:
    """``steps`` of batches, and the ``tokens`` that go through the model in them, padding included."""

    steps: float
    tokens: float


@record
class Pace:
    """What one kind of question costs: seconds a step of a batch, and seconds a token.

    ``written`` are the lengths, in tokens, of the answers seen.
    """

    a_step: float
    a_token: float
    written: tuple[int, ...] = ()

    @property
    def mean(self) -> float:
        """How many tokens an answer has."""
        return sum(self.written) / len(self.written) if self.written else 0.0

    def seconds(self, work: Work) -> float:
        """Return how long a work takes."""
        return self.a_step * work.steps + self.a_token * work.tokens


class Works:
    """Tells the work of requests for one model: as its engine feeds them, where it has one of ours."""

    def __init__(self, counter: Counter, model: Model) -> None:
        self._counter = counter
        self.rungs = model.rungs if isinstance(model, Shares) and counter.feeder is not None else None

    def of(self, requests: Sequence[Request], written: Sequence[int]) -> Work:
        """Return the work of requests of one kind; ``written`` are lengths of answers like theirs."""
        feeder = self._counter.feeder
        scored = isinstance(requests[0], ScoreRequest)
        if self.rungs is None or feeder is None:
            tokens = float(sum(map(self._counter.prompt, requests)))
            if scored:
                return Work(steps=1.0, tokens=tokens)
            # Of equal length go through the model together.
            lengths = [self._counter.prompt(request) for request in requests]
            loops = [(lengths.count(length), len(lengths)) for length in dict.fromkeys(lengths)]
        else:
            fed = feeder.fed(requests, self.rungs[0] if scored else self.rungs[1])
            tokens = float(fed.tokens + fed.padding)
            if scored:
                return Work(steps=float(fed.batches), tokens=tokens)
            loops = list(feeder.loops(requests, self.rungs[1]))
        mean = sum(written) / len(written) if written else 0.0
        steps = sum(_steps(texts, at_once, written) for texts, at_once in loops)
        return Work(steps=steps, tokens=tokens + mean * sum(texts for texts, _ in loops))


def _steps(texts: int, at_once: int, written: Sequence[int]) -> float:
    """Return how many steps a loop over so many texts takes, ``at_once`` of them at a time."""
    together = longest(written, min(texts, at_once))
    if texts <= at_once:
        return together
    mean = sum(written) / len(written)
    return texts * mean / (_UNDER_WAY * at_once) + together - mean


def longest(written: Sequence[int], texts: int) -> float:
    """Return the expected length of the longest of so many texts; their lengths are as in ``written``."""
    if not written:
        return 1.0
    n = len(written)
    return sum(1 - (sum(length <= k for length in written) / n) ** texts for k in range(max(written)))
