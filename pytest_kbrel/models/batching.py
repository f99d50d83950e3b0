"""Batches within a budget of tokens, and what to do when one fails."""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from pytest_kbrel.printing import redacted
from pytest_kbrel.records import Failed

J = TypeVar("J")
R = TypeVar("R")
Batches = Iterator[list[tuple[int, R | Failed]]]
"""Answers with their questions' indices, some at a time and in any order."""

# CUDA's words, those of PyTorch on a CPU, those of C++, and what oneDNN says where it gets no memory.
_OUT_OF_MEMORY = (
    "out of memory",
    "can't allocate memory",
    "bad_alloc",
    "could not create a primitive",
    "could not execute a primitive",
)


class Batcher:
    """Cuts jobs into batches and keeps one bad row from spoiling the others.

    ``budget`` is in tokens, padding included. It is halved for good when a batch does not fit into memory, so
    that all who ask one checkpoint share this object.
    """

    def __init__(self, budget: int) -> None:
        self.budget = budget

    def halve(self, met: int, least: int = 1) -> None:
        """Halve the budget for good: a batch of ``met`` tokens did not fit, and ``least`` are needed."""
        release_memory()
        self.budget = min(self.budget, max(least, min(self.budget, met) // 2))

    def ready(
        self,
        jobs: Sequence[J],
        cost: Callable[[Sequence[J]], int],
        answer: Callable[[Sequence[J]], list[R | Failed]],
        order: Iterable[int] | None = None,
    ) -> Batches[R]:
        """Yield the answers of each batch when it has been answered, each with its job's index.

        ``cost`` gives a batch's size in tokens, ``answer`` its answers. ``order`` has the indices of the jobs
        to be answered; by default they are all, as they stand. A batch that raises is taken apart; a single
        job that raises becomes a :class:`Failed` with the error's text.
        """
        indices = list(range(len(jobs)) if order is None else order)
        ordered = [jobs[index] for index in indices]
        start = 0
        while start < len(ordered):
            end = start + 1
            while end < len(ordered) and cost(ordered[start : end + 1]) <= self.budget:
                end += 1
            batch = ordered[start:end]
            failure = None
            answers = []
            try:
                answers = answer(batch)
            except Exception as error:
                # Without its traceback the error no longer holds the batch's tensors in memory.
                failure = error.with_traceback(None)
            if failure is None:
                yield list(zip(indices[start:end], answers, strict=True))
            elif len(batch) == 1:
                yield [(indices[start], Failed(error=describe_error(failure)))]
            elif is_out_of_memory(failure):
                self.halve(cost(batch))
                continue
            else:
                for index in indices[start:end]:
                    yield from self.ready(jobs, cost, answer, [index])
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
