"""The kinds of unanswerable questions one by one: what each is about, and which years it asks of."""

from __future__ import annotations

import datetime

import pytest

from pytest_kbrel.facts.unseen import (
    make_unseen,
    unseen_examples,
)
from pytest_kbrel.records import Fact

AS_OF = datetime.date(2026, 11, 20)
EXPIRES = datetime.date(2027, 12, 31)
# slug, answer type, what it is about, where its wrong options come from, words of its question
EXPECTED = [
    line.split(" | ")
    for line in """\
person-siblings | number | person | small numbers | siblings
person-teacher | person | person | persons | Who taught
person-birth-year | time | person | years | In which year
person-birthplace | location | person | cities | In which city
person-instrument | other | person | instruments | Which instrument
place-bridges | number | place | small numbers | bridges
place-founder | person | place | persons | Who founded
place-charter | time | place | years | In what year
place-country | location | place | countries | Which country
place-language | other | place | languages | Which language
work-chapters | number | work | small numbers | chapters
work-author | person | work | persons | Who wrote
work-publication | time | work | years | In which year
work-setting | location | work | cities | In which city
product-maker | other | product | companies | Which company
future-medals | number | country | small numbers | gold medals
future-leader | person | country | persons | Who led
future-election-date | time | country | dates | On which day
future-match-city | location | country | cities | In which city
future-opponent | other | country | countries | Which team
""".splitlines()
]


def test_one_question_may_expire_on_the_day_it_is_made() -> None:
    (fact,) = make_unseen((), count=1, seed=0, as_of=AS_OF, expires=AS_OF)
    assert fact.relation == "unseen-person-siblings"


@pytest.mark.parametrize("role", ["subject", "object", "alias"])
def test_no_name_that_the_facts_know_is_invented(role: str) -> None:
    made = make_unseen((), count=15, seed=0, as_of=AS_OF, expires=EXPIRES)
    names = [fact.subject.upper() for fact in made]
    facts = [
        Fact(
            id=name,
            relation="P1",
            subject=name if role == "subject" else "s",
            object=name if role == "object" else "o",
            aliases=(name,) if role == "alias" else (),
        )
        for name in names
    ]
    again = make_unseen(facts, count=15, seed=0, as_of=AS_OF, expires=EXPIRES)
    assert not {fact.subject.upper() for fact in again} & set(names)
    assert {fact.relation for fact in again} == {fact.relation for fact in made}


def test_known_draws() -> None:
    # Written down, so that no change of the rule can quietly ask other questions.
    made = make_unseen((), count=20, seed=0, as_of=AS_OF, expires=EXPIRES)
    assert [made[n].subject for n in (0, 5, 10, 14)] == [
        "Quororiel Bracklock",
        "Great Ostrodale",
        "The Orchards before Tarvestad",
        "Astrel 338",
    ]
    assert (
        made[15].question
        == "How many gold medals did Iran win at the 2040 Summer Olympics?"
    )
    assert made[0].negatives[:3] == ("35", "14", "21")
    examples = unseen_examples((), count=2, seed=0, after=2027)
    assert [fact.subject for fact in examples] == [
        "Aevyvind Amberlock",
        "Elvuvane Duskmantle",
    ]


def test_examples_lie_behind_the_year_and_avoid_what_is_asked() -> None:
    examples = unseen_examples((), count=40, seed=0, after=2028)
    days = [fact.valid_until for fact in examples if fact.valid_until]
    assert min(days) >= "2029-01-01"
    assert {fact.negatives for fact in examples} == {()}
    types = {f"unseen-{slug}": kind for slug, kind, *_ in EXPECTED}
    assert [(f.relation, f.answer_type) for f in examples] == list(types.items()) * 2
    first = [fact.question or "" for fact in examples[:5]]
    again = unseen_examples((), count=40, seed=0, after=2028, avoid=first)
    assert not {fact.question for fact in again} & set(first)
    assert unseen_examples((), count=0, seed=0, after=2028) == ()
    assert unseen_examples((), count=40, seed=1, after=2028) != examples
