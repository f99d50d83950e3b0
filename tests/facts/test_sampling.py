from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_kbrel.facts.sampling import sample
from pytest_kbrel.records import Fact

FACTS = tuple(Fact(id=f"f{n}", relation="P36", subject=f"s{n}", object="o") for n in range(100))


def ids(facts: tuple[Fact, ...]) -> list[str]:
    return [fact.id for fact in facts]


def test_known_draw() -> None:
    # Written down, so that no change of the rule can quietly unpair every baseline.
    assert ids(sample(FACTS, 4, 0)) == ["f17", "f37", "f83", "f86"]


@pytest.mark.parametrize(
    ("limit", "count"),
    [(None, 100), (1, 1), (7, 7), (500, 100), (0.07, 7), (0.29, 29), (0.001, 1), (1.0, 100)],
)
def test_size(limit: int | float | None, count: int) -> None:
    assert len(sample(FACTS, limit, 3)) == count


@pytest.mark.parametrize("limit", [0, -1, 0.0, 1.5, True, float("nan")])
def test_impossible_limit(limit: int | float) -> None:
    with pytest.raises(ValueError, match="a limit is a whole number from 1 or a share"):
        sample(FACTS, limit, 0)


def test_nothing_of_nothing() -> None:
    assert sample((), 0.5, 0) == ()


@given(st.integers(1, 100), st.integers(1, 100), st.integers(0, 10**6))
def test_larger_is_superset_and_order_is_kept(one: int, other: int, seed: int) -> None:
    small, large = sample(FACTS, min(one, other), seed), sample(FACTS, max(one, other), seed)
    assert set(ids(small)) <= set(ids(large))
    assert [fact for fact in FACTS if fact in large] == list(large)


@given(st.permutations(range(20)), st.integers(0, 1000))
def test_order_of_the_facts_does_not_matter(order: list[int], seed: int) -> None:
    assert set(ids(sample([FACTS[n] for n in order], 6, seed))) == set(ids(sample(FACTS[:20], 6, seed)))


def test_seeds_differ() -> None:
    assert ids(sample(FACTS, 10, 0)) != ids(sample(FACTS, 10, 1))
