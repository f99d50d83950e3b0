from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_kbrel.facts.sampling import buckets, sample
from pytest_kbrel.records import Fact

FACTS = tuple(
    Fact(id=f"f{n}", relation="P36", subject=f"s{n}", object="o") for n in range(100)
)


def ids(facts: tuple[Fact, ...]) -> list[str]:
    return [fact.id for fact in facts]


def test_known_draw() -> None:
    # Written down, so that no change of the rule can quietly unpair every baseline.
    assert ids(sample(FACTS, 4, 0)) == ["f17", "f37", "f83", "f86"]


VALUES = st.lists(
    st.one_of(st.integers(0, 1000), st.floats(0, 1e9, allow_nan=False)).map(float),
    min_size=1,
    max_size=60,
)
LEVEL = {"tail": 0, "torso": 1, "head": 2}


def spell(values: list[float]) -> str:
    return "".join(
        {"head": "H", "torso": "T", "tail": "t"}[bucket] for bucket in buckets(values)
    )


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1, 1, 1], "ttt"),  # all equal: the lower bucket has them all
        (
            [5, 3, 2, 1, 1],
            "TTttt",
        ),  # sums 1 2 4 7 12 of 12: 4 reaches 1/3, and 8 falls to the 5
        (
            [1, 2, 3, 4, 5, 6, 7, 8],
            "tttttTTH",
        ),  # sums 1 3 6 10 15 21 28 36 of 36: 15 and 28 cross 12 and 24
        (
            [3, 3, 2, 2, 1, 1],
            "TTtttt",
        ),  # of 12: 1 2 4: the second 2 shares the first one's bucket
        ([10, 1, 1, 1], "tttt"),  # the top has 10 of 13: over 2/3, everything is tail
        ([5, 2, 2, 2], "Tttt"),  # the top has 5 of 11: over 1/3, no head
        ([7], "t"),
        ([0, 0], "tt"),
        ([0, 0, 1, 1, 1], "ttttt"),
        ([], ""),
    ],
)
def test_by_hand(values: list[float], expected: str) -> None:
    assert spell(values) == expected


@given(VALUES)
def test_more_popular_is_never_lower_and_ties_share(values: list[float]) -> None:
    pairs = sorted(
        (value, LEVEL[bucket])
        for value, bucket in zip(values, buckets(values), strict=True)
    )
    levels = [level for _, level in pairs]
    assert levels == sorted(levels)
    assert len(set(pairs)) == len(set(values))


@given(st.lists(st.floats(0.001, 1e9), min_size=1, max_size=60, unique=True))
def test_on_distinct_values_it_is_the_descending_rule(values: list[float]) -> None:
    total = sum(map(Fraction, values))
    upto = Fraction(0)
    expected = {}
    for value in sorted(values, reverse=True):
        upto += Fraction(value)
        expected[value] = (
            "head"
            if 3 * upto <= total
            else "torso"
            if 3 * upto <= 2 * total
            else "tail"
        )
    assert buckets(values) == tuple(expected[value] for value in values)


# Ninety facts with one object, and ten with one each.
SKEWED = tuple(
    Fact(
        id=f"f{n}",
        relation="P30",
        subject=f"s{n}",
        object="Asia" if n < 90 else f"o{n}",
    )
    for n in range(100)
)


def test_a_draw_goes_round_robin_over_the_objects() -> None:
    drawn = sample(SKEWED, 20, 0, "object")
    assert len({fact.object for fact in drawn}) == 11
    assert sum(fact.object == "Asia" for fact in drawn) == 10
    # By fact alone nearly all would have the same object.
    assert len({fact.object for fact in sample(SKEWED, 20, 0)}) < 6


@given(st.integers(1, 100), st.integers(1, 100), st.integers(0, 10**6))
def test_a_larger_draw_by_objects_keeps_a_smaller_one(
    one: int, other: int, seed: int
) -> None:
    low, high = sorted((one, other))
    large = sample(SKEWED, high, seed, "object")
    assert set(ids(sample(SKEWED, low, seed, "object"))) <= set(ids(large))
    # A draw from a draw is the same draw: --kb-limit after the suite's own limit.
    assert sample(large, low, seed, "object") == sample(SKEWED, low, seed, "object")
