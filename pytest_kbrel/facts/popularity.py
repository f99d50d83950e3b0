"""Head, torso and tail: the popularity buckets of Head-to-Tail (Sun et al. 2023, arXiv 2308.10168)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from pytest_kbrel.records import Bucket, Fact


def buckets(popularity: Sequence[float]) -> tuple[Bucket, ...]:
    """Return the bucket of each item by the cumulative share of its popularity (section 2.1 of the paper).

    As the authors' five scripts do it: sort ascending and sum up; the first item whose sum reaches 1/3 of the
    total closes the tail, the first that reaches 2/3 closes the torso, and what is more popular is head. So
    an item that crosses a line goes to the lower bucket, and equal values always share one bucket. A top
    item with more than 1/3 of the total leaves the head empty; with more than 2/3 everything is tail.

    The sums are exact, so the answer depends on no order of addition. Raises ``ValueError`` on a value that
    is negative or not finite.
    """
    if not popularity:
        return ()
    for value in popularity:
        if not math.isfinite(value) or value < 0:
            raise ValueError(f"popularity must be finite and not negative, found {value}")
    counted = sorted(Counter(popularity).items())
    tail, torso = bucket_lines(lambda: counted)
    return tuple("tail" if v <= tail else "torso" if v <= torso else "head" for v in popularity)


def bucket_lines(counted: Callable[[], Iterable[tuple[float, int]]]) -> tuple[float, float]:
    """Return the highest popularity that is tail and the highest that is torso or tail.

    ``counted`` yields each popularity once, ascending, with the number of items that have it. It is called
    twice, so that no more than one value need be held at a time; there must be one.
    """
    total = _Sum()
    for value, items in counted():
        total.add(value, items)
    tail: float | None = None
    upto = _Sum()
    for value, items in counted():
        upto.add(value, items)
        if tail is None and upto.reaches(1, total):
            tail = value
        if tail is not None and upto.reaches(2, total):
            return tail, value
    raise ValueError("no popularity to bucket by")


class _Sum:
    """An exact sum of floats: they are fractions whose denominators are powers of two."""

    def __init__(self) -> None:
        self.top, self.bottom = 0, 1

    def add(self, value: float, times: int) -> None:
        top, bottom = value.as_integer_ratio()
        if bottom > self.bottom:
            self.top, self.bottom = self.top * (bottom // self.bottom), bottom
        self.top += top * (self.bottom // bottom) * times

    def reaches(self, thirds: int, total: _Sum) -> bool:
        return 3 * self.top * total.bottom >= thirds * total.top * self.bottom


def fact_buckets(facts: Sequence[Fact]) -> dict[str, Bucket]:
    """Return the bucket of each fact's subject, by fact id; every fact must have a popularity.

    A bucket is the subject's, so a subject with several facts counts once. Subjects of one name but different
    popularity are different subjects.
    """
    subjects = [(fact.subject, fact.popularity or 0.0) for fact in facts]
    distinct = list(dict.fromkeys(subjects))
    place = dict(zip(distinct, buckets([popularity for _, popularity in distinct]), strict=True))
    return {fact.id: place[subject] for fact, subject in zip(facts, subjects, strict=True)}
