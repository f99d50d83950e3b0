from __future__ import annotations

import dataclasses
import datetime
import random
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_kbrel.facts.unseen import (
    invent_name,
    make_unseen,
    option_pools,
    with_options,
)
from pytest_kbrel.records import Fact

TODAY = datetime.date(2026, 11, 20)
EXPIRES = datetime.date(2027, 12, 31)
FACTS = tuple(
    Fact(
        id=f"P36-{number}",
        relation="P36",
        subject=f"Country {number}",
        object=f"Town {number}",
    )
    for number in range(40)
)
ABOUTS = ("person", "place", "work", "product")


@settings(max_examples=25, deadline=None)
@given(
    count=st.integers(1, 120),
    seed=st.integers(0, 2**32),
    days=st.integers(0, 4000),
    facts=st.sampled_from([(), FACTS[:3], FACTS]),
)
def test_every_question_is_distinct_unanswerable_and_has_twenty_options(
    count, seed, days, facts
):
    expires = TODAY + datetime.timedelta(days=days)
    made = make_unseen(facts, count=count, seed=seed, as_of=TODAY, expires=expires)
    assert (
        len(made)
        == len({f.id for f in made})
        == len({f.question for f in made})
        == count
    )
    for fact in made:
        assert fact.object is None
        assert fact.accepted == ()
        assert fact.subject in (fact.question or "")
        assert "[" not in (fact.question or "")
        assert (
            len({option.casefold() for option in fact.negatives})
            == len(fact.negatives)
            == 20
        )
        assert fact.subject not in fact.negatives
        if fact.relation.startswith("unseen-future-"):
            years = [
                int(year) for year in re.findall(r"\b2\d{3}\b", fact.question or "")
            ]
            assert years
            assert min(years) > expires.year


@pytest.mark.parametrize("about", ABOUTS)
def test_training_and_test_names_never_meet(about):
    rng = random.Random(0)
    training = {invent_name(about, rng, training=True) for _ in range(500)}
    assert not training & {invent_name(about, rng) for _ in range(500)}


DAY = datetime.date(2026, 11, 20)


def test_a_fact_without_an_answer_gives_its_subject_only() -> None:
    facts = [
        Fact(id="f", relation="P17", subject="Nowhere", object=None, question="Where?")
    ]
    pools = option_pools(facts, DAY.year)
    assert "Nowhere" in pools["cities"]
    assert pools["countries"] == option_pools((), DAY.year)["countries"]


UNSEEN = Fact(id="u", relation="R", subject="s", object=None, question="Who?")


def test_a_question_keeps_its_own_options_and_those_that_its_relation_has() -> None:
    own = dataclasses.replace(UNSEEN, negatives=("x", "y"))
    served = dataclasses.replace(UNSEEN, id="v", relation="P36")
    facts = [Fact(id="f", relation="P36", subject="Peru", object="Lima")]
    assert with_options([own, served], facts, 0) == (own, served)
    first, same, filled = with_options([own, served, UNSEEN], facts, 0)
    assert (first, same) == (own, served)
    assert len(filled.negatives) == 20
