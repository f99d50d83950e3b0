from __future__ import annotations

import random

import pytest

from pytest_kbrel.errors import SuiteError
from pytest_kbrel.facts.distractors import fewest_negatives, with_negatives
from pytest_kbrel.records import Fact


def fact(name: str, obj: str | None, *, subject: str = "", **more: object) -> Fact:
    return Fact(
        id=name,
        relation=str(more.pop("relation", "P36")),
        subject=subject or name,
        object=obj,
        **more,
    )  # type: ignore[arg-type]


POOL = tuple(fact(f"f{n}", f"Object {n % 30}") for n in range(60))


def negatives(facts: tuple[Fact, ...]) -> list[tuple[str, ...]]:
    return [item.negatives for item in facts]


def test_they_are_distinct_and_wrong() -> None:
    for item in with_negatives(POOL, POOL, 20, 0):
        assert len(set(item.negatives)) == 20
        assert item.object not in item.negatives


def test_known_draw() -> None:
    # Written down, so that no change of the rule can quietly unpair every baseline.
    assert with_negatives(POOL[:1], POOL, 3, 0)[0].negatives == (
        "Object 15",
        "Object 1",
        "Object 25",
    )


def test_neither_order_nor_company_matters() -> None:
    whole = {item.id: item for item in with_negatives(POOL, POOL, 5, 1)}
    shuffled = list(POOL)
    random.Random(5).shuffle(shuffled)
    for item in with_negatives(shuffled[:7], shuffled, 5, 1):
        assert item == whole[item.id]


def test_a_larger_count_extends() -> None:
    for small, large in zip(
        with_negatives(POOL, POOL, 3, 0), with_negatives(POOL, POOL, 9, 0), strict=True
    ):
        assert large.negatives[:3] == small.negatives


def test_seeds_differ() -> None:
    assert negatives(with_negatives(POOL, POOL, 5, 0)) != negatives(
        with_negatives(POOL, POOL, 5, 1)
    )


def test_every_right_answer_is_left_out() -> None:
    swiss = fact("de", "German", subject="Switzerland", aliases=("Deutsch",))
    pool = (
        swiss,
        fact("fr", "French", subject="SWITZERLAND"),
        fact("at", "GERMAN", subject="Austria"),
        fact("nl", "Hochdeutsch", subject="Elsewhere", aliases=("deutsch",)),
        fact("it", "Italian"),
        fact("en", "English"),
        fact("es", "ENGLISH"),
        fact("xx", "Other", relation="P50"),
        fact("no", None),
    )
    assert sorted(with_negatives([swiss], pool, 9, 0)[0].negatives) == [
        "ENGLISH",
        "Italian",
    ]
    assert fewest_negatives([swiss], pool) == 2


def test_own_negatives_are_kept_and_cut() -> None:
    own = fact("own", "a", negatives=("b", "c", "d"))
    assert negatives(with_negatives([own], POOL, 2, 0)) == [("b", "c")]
    assert negatives(with_negatives([own], POOL, 9, 0)) == [("b", "c", "d")]
    assert fewest_negatives([own, POOL[0]], POOL) == 3


def test_fewest() -> None:
    assert fewest_negatives(POOL, POOL) == 29
    assert fewest_negatives((), POOL) == 0


def test_too_few_is_an_error() -> None:
    pool = (fact("a", "x"), fact("b", "X"))
    message = r"fact 'a' needs at least 1 wrong answers, found 0 .*relation 'P36'; allowed: more facts"
    with pytest.raises(SuiteError, match=message):
        with_negatives(pool, pool, 5, 0)
    with pytest.raises(SuiteError, match=message):
        fewest_negatives(pool, pool)
    with pytest.raises(SuiteError, match="at least 30 wrong answers, found 29"):
        with_negatives(POOL, POOL, 30, 0, at_least=30)
