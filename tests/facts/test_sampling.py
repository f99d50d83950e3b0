from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_kbrel.facts.sampling import buckets, fact_buckets, sample
from pytest_kbrel.records import Fact

FACTS = tuple(
    Fact(id=f"f{n}", relation="P36", subject=f"s{n}", object="o") for n in range(100)
)


def ids(facts: tuple[Fact, ...]) -> list[str]:
    return [fact.id for fact in facts]


def test_known_draw() -> None:
    # Written down, so that no change of the rule can quietly unpair every baseline.
    assert ids(sample(FACTS, 4, 0)) == ["f17", "f37", "f83", "f86"]


@pytest.mark.parametrize(
    ("limit", "count"),
    [
        (None, 100),
        (1, 1),
        (7, 7),
        (500, 100),
        (0.07, 7),
        (0.29, 29),
        (0.001, 1),
        (1.0, 100),
    ],
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
    small, large = (
        sample(FACTS, min(one, other), seed),
        sample(FACTS, max(one, other), seed),
    )
    assert set(ids(small)) <= set(ids(large))
    assert [fact for fact in FACTS if fact in large] == list(large)


@given(st.permutations(range(20)), st.integers(0, 1000))
def test_order_of_the_facts_does_not_matter(order: list[int], seed: int) -> None:
    assert set(ids(sample([FACTS[n] for n in order], 6, seed))) == set(
        ids(sample(FACTS[:20], 6, seed))
    )


def test_seeds_differ() -> None:
    assert ids(sample(FACTS, 10, 0)) != ids(sample(FACTS, 10, 1))


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


def test_the_item_on_the_line_goes_to_the_lower_bucket() -> None:
    assert (
        spell([6, 2, 1]) == "Ttt"
    )  # 1 + 2 is exactly a third of 9, and the 6 crosses the second line
    assert (
        spell([105, 104, 103, 102, 101, 100]) == "HTTttt"
    )  # 102 crosses 205 of 615, 104 crosses 410
    assert (
        spell([1, 2, 3, 3.5, 4.5, 4]) == "tttTHT"
    )  # sums 1 3 6 9.5 13.5 18: 6 is exactly a third


@pytest.mark.parametrize("wrong", [-1.0, float("nan"), float("inf")])
def test_impossible_popularity(wrong: float) -> None:
    with pytest.raises(ValueError, match="finite and not negative"):
        buckets([1.0, wrong])


@given(VALUES, st.randoms())
def test_order_does_not_matter(values: list[float], rng: object) -> None:
    expected = dict(zip(values, buckets(values), strict=True))
    shuffled = list(values)
    rng.shuffle(shuffled)  # type: ignore[attr-defined]
    assert buckets(shuffled) == tuple(expected[value] for value in shuffled)


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


def test_a_subject_counts_once_and_keeps_its_facts_together() -> None:
    def fact(name: str, subject: str, popularity: float) -> Fact:
        return Fact(
            id=name, relation="P37", subject=subject, object=name, popularity=popularity
        )

    facts = [fact(f"s{n}", "Switzerland", 8) for n in range(4)]
    facts += [fact(f"x{n}", f"X{n}", n) for n in range(1, 8)]
    result = fact_buckets(facts)
    assert [result[f"s{n}"] for n in range(4)] == ["head"] * 4
    assert result == fact_buckets(facts[3:]) | {f"s{n}": "head" for n in range(3)}


def test_namesakes_are_different_subjects() -> None:
    facts = [
        Fact(id=str(n), relation="P17", subject="Springfield", object="x", popularity=n)
        for n in range(1, 9)
    ]
    assert list(fact_buckets(facts).values()) == list(buckets(range(1, 9)))


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


@pytest.mark.parametrize(
    ("by", "name"),
    [
        *(
            ("object", "object:lima"),
            ("subject", "subject:peru"),
            ("fact", ""),
            ("relation", "relation:p36"),
        ),
        *(("group", "group:andes"), ("dataset", "")),
    ],
)
def test_the_cluster_of_a_fact(by: str, name: str) -> None:
    fact = Fact(id="a", relation="P36", subject="Peru", object="Lima", group="Andes")
    assert fact.cluster(by) == name
    unseen = Fact(id="b", relation="P36", subject="Nowhere", object=None)
    assert unseen.cluster("object") == ""
