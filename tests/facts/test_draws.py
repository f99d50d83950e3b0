"""Draws by digests: what a digest is made of, and what it tells apart."""

from __future__ import annotations

import dataclasses

from pytest_kbrel.facts.sampling import in_domain_examples
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


def shown(
    facts: tuple[Fact, ...], pool: tuple[Fact, ...], seed: int = 0
) -> dict[str, str]:
    result = in_domain_examples(facts, {"P36": pool}, RELATIONS, seed)
    return {name: one.question for name, some in result for one in some}


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
