"""Batches within a budget of tokens, and what to do when one fails."""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

from pytest_kbrel.printing import redacted
from pytest_kbrel.records import Failed

if TYPE_CHECKING:
    from pytest_kbrel.models.measurements import MeasurementFile

J = TypeVar("J")
R = TypeVar("R")

# CUDA's words, those of PyTorch on a CPU, those of C++, and what oneDNN says where it gets no memory.
_OUT_OF_MEMORY = (
    "out of memory",
    "can't allocate memory",
    "bad_alloc",
    "could not create a primitive",
    "could not execute a primitive",
)


class Budget:
    """Tokens that a batch of one checkpoint may have, padding included; all that ask it share this object.

    ``allowed`` is how many bytes a batch may take, 0 where nobody knows; ``notes`` remember under ``key`` how
    many bytes a token takes.
    """

    def __init__(
        self,
        tokens: int,
        *,
        allowed: float = 0.0,
        notes: MeasurementFile | None = None,
        key: str = "",
    ) -> None:
        self.tokens = tokens
        self._allowed, self._notes, self._key = allowed, notes, key

    def halve(self, met: int, least: int = 1) -> None:
        """Halve the budget for good: a batch of ``met`` tokens did not fit, and ``least`` are needed."""
        self.tokens = min(self.tokens, max(least, min(self.tokens, met) // 2))
        if self._notes is not None and self._allowed > 0:
            self._notes.put(self._key, self._allowed / self.tokens)


class Batcher:
    """Cuts jobs into batches, in the order given, and keeps one bad row from spoiling the others.

    ``budget`` is in tokens, padding included; given as a :class:`Budget`, others share it. It is halved for
    good when a batch does not fit into memory.
    """

    def __init__(self, budget: int | Budget) -> None:
        self._budget = budget if isinstance(budget, Budget) else Budget(budget)

    @property
    def budget(self) -> int:
        """Tokens a batch may have."""
        return self._budget.tokens

    def halve(self, met: int, least: int = 1) -> None:
        """Halve the budget, as :meth:`Budget.halve` does."""
        release_memory()
        self._budget.halve(met, least)

    def run(
        self,
        jobs: Sequence[J],
        cost: Callable[[Sequence[J]], int],
        answer: Callable[[Sequence[J]], list[R | Failed]],
    ) -> list[R | Failed]:
        """Return one answer per job, in order; otherwise as :meth:`ready`."""
        return [answer for batch in self.ready(jobs, cost, answer) for answer in batch]

    def ready(
        self,
        jobs: Sequence[J],
        cost: Callable[[Sequence[J]], int],
        answer: Callable[[Sequence[J]], list[R | Failed]],
    ) -> Iterator[list[R | Failed]]:
        """Yield the answers of each batch when it has been answered, one per job, in the jobs' order.

        ``cost`` gives a batch's size in tokens, ``answer`` its answers. A batch that raises is taken apart; a
        single job that raises becomes a :class:`Failed` with the error's text.
        """
        start = 0
        while start < len(jobs):
            end = start
            while end < len(jobs) and (
                end == start or cost(jobs[start : end + 1]) <= self.budget
            ):
                end += 1
            batch = jobs[start:end]
            failure: Exception | None = None
            answers: list[R | Failed] = []
            try:
                answers = answer(batch)
            except Exception as error:
                # Without its traceback the error no longer holds the batch's tensors in memory.
                failure = error.with_traceback(None)
            if failure is None:
                yield answers
            elif len(batch) == 1:
                yield [Failed(error=describe_error(failure))]
            elif is_out_of_memory(failure):
                self.halve(cost(batch))
                continue
            else:
                for job in batch:
                    yield from self.ready([job], cost, answer)
            start = end


def is_out_of_memory(error: Exception) -> bool:
    """Return True if ``error`` says that memory did not suffice, on any device."""
    text = str(error).lower()
    return isinstance(error, MemoryError) or any(
        words in text for words in _OUT_OF_MEMORY
    )


def describe_error(error: Exception) -> str:
    """Return an error as one line for a :class:`Failed`, without keys."""
    # Before it is cut: half a key is one too.
    lines = redacted(str(error)).strip().splitlines()
    return (
        f"{type(error).__name__}: {lines[0][:300]}" if lines else type(error).__name__
    )


def release_memory() -> None:
    """Give back what allocators keep: the GPU's, and the C library's where it can (glibc)."""
    import torch

    # What is freed stays in the process otherwise, where code that is compiled for a product finds no room.
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
