"""Batches within a budget of tokens, and what to do when one fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from pytest_kbrel.records import Failed

J = TypeVar("J")
R = TypeVar("R")


class Batcher:
    """Cuts jobs into batches, in the order given, and keeps one bad row from spoiling the others.

    ``budget`` is in tokens, padding included. It is halved for good when a batch does not fit into memory.
    """

    def __init__(self, budget: int) -> None:
        self.budget = budget

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
            while end < len(jobs) and (end == start or cost(jobs[start : end + 1]) <= self.budget):
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
                release_memory()
                self.budget = max(1, min(self.budget, cost(batch)) // 2)
                continue
            else:
                for job in batch:
                    yield from self.ready([job], cost, answer)
            start = end


def is_out_of_memory(error: Exception) -> bool:
    """Whether ``error`` says that memory did not suffice, on any device."""
    text = str(error).lower()
    return isinstance(error, MemoryError) or "out of memory" in text or "can't allocate memory" in text


def describe_error(error: Exception) -> str:
    """Return an error as one line for a :class:`Failed`."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0][:300]}" if lines else type(error).__name__


def release_memory() -> None:
    """Give back what the device's allocator keeps."""
    import torch

    if torch.cuda.is_available():
        torch.cuda.empty_cache()
