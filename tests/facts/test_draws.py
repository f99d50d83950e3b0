"""Draws by digests: what a digest is made of, and what it tells apart."""

from __future__ import annotations

import dataclasses
import hashlib

import pytest

from pytest_kbrel.errors import SuiteError
from pytest_kbrel.facts.distractors import fewest_negatives, with_negatives
from pytest_kbrel.facts.sampling import in_domain_examples, sample
from pytest_kbrel.records import Fact, Relation

RELATION = Relation(
    id="P36",
    label="l",
    domain="d",
    frames=("Capital of [X]?", "Name the capital of [X]."),
)
RELATIONS = {"P36": RELATION}


def fact(number: int, **more: object) -> Fact:
    values = {
        "relation": "P36",
        "subject": f"Land {number}",
        "object": f"City {number}",
        **more,
    }
    return Fact(id=f"c{number}", **values)  # type: ignore[arg-type]


FACTS = tuple(fact(number) for number in range(40))


def digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


def test_a_sample_has_the_facts_of_the_least_digests_of_seed_and_id() -> None:
    for seed in (0, 7):
        least = sorted(FACTS, key=lambda one: digest(f"{seed}\0{one.id}"))[:9]
        assert set(sample(FACTS, 9, seed)) == set(least)


def test_negatives_come_in_the_order_of_the_digests_of_seed_id_and_text() -> None:
    for seed in (0, 7):
        for one in with_negatives(FACTS[:3], FACTS, 9, seed):
            wrong = [other.object or "" for other in FACTS if other.id != one.id]
            assert (
                list(one.negatives)
                == sorted(wrong, key=lambda text: digest(f"{seed}\0{one.id}\0{text}"))[
                    :9
                ]
            )


def test_the_least_spelling_of_an_object_counts_in_whatever_order() -> None:
    pool = [
        fact(1, object="Lima"),
        fact(2, object="quito"),
        fact(3, object="QUITO"),
        fact(4, object="Quito"),
    ]
    for turned in (pool, pool[::-1], [pool[0], pool[3], pool[2], pool[1]]):
        assert with_negatives(pool[:1], turned, 9, 0)[0].negatives == ("QUITO",)


def test_own_negatives_must_be_enough_too() -> None:
    own = fact(0, negatives=("a", "b"))
    assert with_negatives([own], FACTS, 9, 0, at_least=2) == (own,)
    with pytest.raises(SuiteError, match=r"needs at least 3 wrong answers, found 2"):
        with_negatives([own], FACTS, 9, 0, at_least=3)
    # Where none are needed there may be none.
    assert with_negatives(FACTS[:1], FACTS[:1], 9, 0, at_least=0)[0].negatives == ()
    assert len(with_negatives(FACTS[:5], FACTS[:5], 9, 0, at_least=4)[0].negatives) == 4


def test_a_fact_that_is_not_in_the_pool_has_its_own_answers_left_out_in_any_capitals() -> (
    None
):
    own = fact(99, subject="Elsewhere", object="CITY 3", aliases=("CITY 4",))
    wrong = {f"City {number}" for number in range(40) if number not in (3, 4)}
    assert set(with_negatives([own], FACTS, 99, 0)[0].negatives) == wrong


def test_one_wrong_answer_is_enough_unless_more_are_asked_for() -> None:
    assert with_negatives(FACTS[:1], FACTS[:2], 9, 0)[0].negatives == ("City 1",)


def test_the_poorest_fact_counts_in_whatever_order() -> None:
    own = fact(50, negatives=("a", "b", "c"))
    for facts in ([own, FACTS[0]], [FACTS[0], own]):
        assert fewest_negatives(facts, FACTS) == 3


def shown(
    facts: tuple[Fact, ...], pool: tuple[Fact, ...], seed: int = 0
) -> dict[str, str]:
    result = in_domain_examples(facts, {"P36": pool}, RELATIONS, seed)
    return {name: one.question for name, some in result for one in some}


def test_an_example_is_the_next_on_the_ring_of_digests() -> None:
    for seed in (0, 7):
        ring = sorted(FACTS, key=lambda one: digest(f"{seed}\0\0{one.id}"))
        places = [digest(f"{seed}\0\0{one.id}") for one in ring]
        for one in FACTS[:12]:
            start = digest(f"{seed}\0example\0{one.id}")
            turned = [
                *(
                    other
                    for other, place in zip(ring, places, strict=True)
                    if place > start
                ),
                *(
                    other
                    for other, place in zip(ring, places, strict=True)
                    if place <= start
                ),
            ]
            other = next(other for other in turned if other != one)
            assert shown((one,), FACTS, seed) == {
                one.id: f"Capital of {other.subject}?"
            }


def test_an_example_has_another_subject_another_answer_and_is_not_the_fact_turned_round() -> (
    None
):
    one = fact(1, aliases=("Town 1",))
    refused = [
        fact(2, subject="LAND 1"),
        fact(3, object="CITY 1"),
        fact(4, object="town 1"),
        fact(5, aliases=("City 1",)),
        fact(6, aliases=("TOWN 1",)),
        # The fact the other way round: its answer as the subject, or its subject as an answer.
        fact(7, subject="CITY 1"),
        fact(8, subject="town 1"),
        fact(9, object="LAND 1"),
        fact(10, aliases=("land 1",)),
    ]
    for other in refused:
        assert shown((one,), (one, other)) == {}
        assert shown((one,), (one, other, fact(11))) == {"c1": "Capital of Land 11?"}


def test_an_example_follows_the_facts_own_template() -> None:
    target = fact(1, question="What is the seat of Land 1?")
    other = fact(2, question="What is the seat of Land 2?")
    pool = (
        target,
        other,
        fact(3),
        fact(4, object=None, question="What is the seat of Land 4?"),
    )
    assert shown((target,), pool) == {"c1": "What is the seat of Land 2?"}
    assert shown((dataclasses.replace(target, question=None),), (*pool, fact(5))) != {
        "c1": "What is the seat of Land 2?"
    }
    assert shown((target,), (target, fact(3))) == {}
    # Also where there is none, each fact is named.
    assert in_domain_examples((target,), {"P36": (target,)}, RELATIONS, 0) == (
        ("c1", ()),
    )


def test_an_example_answers_with_the_object() -> None:
    ((_, (one,)),) = in_domain_examples(FACTS[:1], {"P36": FACTS[:2]}, RELATIONS, 0)
    assert (one.question, one.answer, one.valid_until) == (
        "Capital of Land 1?",
        "City 1",
        "",
    )
