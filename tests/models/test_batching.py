"""Batches and budgets: which errors mean too little memory, and what is left of an error in one line."""

from __future__ import annotations

from pytest_kbrel.models.batching import Batcher
from pytest_kbrel.records import Failed


class Rows:
    """Rows of one token each; more than ``room`` at once do not fit, and ``bad`` ones raise."""

    def __init__(self, room=10, bad=()):
        self.room, self.bad, self.sizes = room, bad, []

    def __call__(self, rows):
        self.sizes.append(len(rows))
        if len(rows) > self.room:
            raise RuntimeError("CUDA out of memory. Tried to allocate 2 GiB")
        if set(rows) & set(self.bad):
            raise KeyError("a bad row")
        return [row * 2 for row in rows]


def test_a_row_that_never_fits_fails_alone():
    batches = Batcher(10).ready(range(3), len, Rows(room=0))
    answers = dict(one for batch in batches for one in batch)
    assert [*answers] == [0, 1, 2]
    assert all(
        isinstance(answer, Failed) and "out of memory" in answer.error
        for answer in answers.values()
    )
