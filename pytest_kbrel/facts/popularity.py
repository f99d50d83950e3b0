"""Head, torso and tail: the popularity buckets of Head-to-Tail (Sun et al. 2023, arXiv 2308.10168)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate
from typing import Literal

from pytest_kbrel.records import Fact

Bucket = Literal["head", "torso", "tail"]
BUCKETS: tuple[Bucket, ...] = ("head", "torso", "tail")


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
    ratios = [value.as_integer_ratio() for value in popularity]
    # The denominators of floats are powers of two: the largest is a common one.
    common = max(bottom for _, bottom in ratios)
    exact = [top * (common // bottom) for top, bottom in ratios]
    ordered = sorted(exact)
    total = sum(ordered)
    sums = list(accumulate(ordered))
    tail_end = next(value for value, upto in zip(ordered, sums, strict=True) if 3 * upto >= total)
    torso_end = next(value for value, upto in zip(ordered, sums, strict=True) if 3 * upto >= 2 * total)
    return tuple("tail" if v <= tail_end else "torso" if v <= torso_end else "head" for v in exact)


def fact_buckets(facts: Sequence[Fact]) -> dict[str, Bucket]:
    """Return the bucket of each fact's subject, by fact id; every fact must have a popularity.

    A bucket is the subject's, so a subject with several facts counts once. Subjects of one name but different
    popularity are different subjects.
    """
    subjects = [(fact.subject, fact.popularity or 0.0) for fact in facts]
    distinct = list(dict.fromkeys(subjects))
    place = dict(zip(distinct, buckets([popularity for _, popularity in distinct]), strict=True))
    return {fact.id: place[subject] for fact, subject in zip(facts, subjects, strict=True)}
