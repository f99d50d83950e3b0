"""What an outcome says about how its fact was asked: comparability and truncation."""

from __future__ import annotations

import dataclasses

import pytest

from pytest_kbrel.probes import run_case
from pytest_kbrel.records import (
    Case,
    Generated,
    GenerateRequest,
    HeadToTailSettings,
    MonitorSettings,
    Outcome,
    ReliabilitySettings,
    Step,
)
from tests.probes.conftest import FRANCE, Oracle, make_case
from tests.probes.monitor.test_monitor import generated

POOL = ("Rome", "Oslo", "Bern", "Lima")
FACT = dataclasses.replace(FRANCE, negatives=POOL)
H2T = make_case(HeadToTailSettings(), FACT)
MONITOR = make_case(MonitorSettings(negatives=2), FACT)
PUBLISHED = make_case(MonitorSettings(negatives=2, variant="published"), FACT)
RELIABILITY = make_case(ReliabilitySettings(choices=2), FACT)
ALL = [H2T, MONITOR, PUBLISHED, RELIABILITY]


def asked(case: Case, answer: str = "Paris", finish: str = "stop") -> Outcome:
    def say(request):
        return Generated(
            text=answer,
            token_ids=(),
            finish=finish,  # type: ignore[arg-type]
            prompt_tokens=3,
            prompt_digest=str(hash(request.prompt)),
            steps=(Step(token_id=1, token=answer, probability=0.5, watched=0.5),),
        )

    oracle = Oracle(say=say)
    (row,) = run_case(case, oracle, oracle.keep).table.rows
    return row


def with_fact(case: Case, **changes: object) -> Case:
    return dataclasses.replace(case, facts=(dataclasses.replace(FACT, **changes),))  # type: ignore[arg-type]


def same(one: Case, other: Case, answer: str = "Paris") -> bool:
    return asked(one, answer).prompt_digest == asked(other, answer).prompt_digest


@pytest.mark.parametrize("case", ALL, ids=lambda case: case.probe)
def test_settings_and_accepted_answers_decide_what_is_comparable(case):
    longer = dataclasses.replace(case.settings, max_new_tokens=99)
    assert not same(case, dataclasses.replace(case, settings=longer))
    assert not same(case, with_fact(case, aliases=("Lutetia",)))
    assert not same(case, with_fact(case, question="Which town rules France?"))


@pytest.mark.parametrize("case", ALL, ids=lambda case: case.probe)
def test_neither_answer_nor_order_of_aliases_does(case):
    assert asked(case, "Paris").prompt_digest == asked(case, "Lyon").prompt_digest
    assert same(with_fact(case, aliases=("a", "b")), with_fact(case, aliases=("b", "a")))


@pytest.mark.parametrize("case", ALL, ids=lambda case: case.probe)
def test_every_answer_may_be_as_long_as_the_settings_say(case):
    relation = dataclasses.replace(case.relations[0], statements=("[X] is ruled from [Y].",))
    more = {"study": "full", "formats": "all"} if case.probe == "monitor" else {}
    settings = dataclasses.replace(case.settings, max_new_tokens=7, **more)
    oracle = Oracle(say=lambda request: generated("Paris", ("P", 0.5, 0.5)))
    run_case(dataclasses.replace(case, settings=settings, relations=(relation,)), oracle, oracle.keep)
    asked = [request for requests in oracle.rounds for request in requests]
    lengths = [request.max_new_tokens for request in asked if isinstance(request, GenerateRequest)]
    assert set(lengths) == {7}


def test_seed_and_pool_decide_where_options_are_drawn():
    assert not same(RELIABILITY, dataclasses.replace(RELIABILITY, seed=1))
    assert not same(RELIABILITY, with_fact(RELIABILITY, negatives=(*POOL[:3], "Kyiv")))
    assert same(H2T, dataclasses.replace(H2T, seed=1))
    assert same(H2T, with_fact(H2T, negatives=()))


# The published script drops the fact after another answer than the gold one.
@pytest.mark.parametrize("answer", ["Paris", "Lyon"])
@pytest.mark.parametrize("case", [MONITOR, PUBLISHED], ids=["definition", "published"])
def test_wrong_contexts_and_frames_decide_even_for_facts_that_are_dropped(case, answer):
    assert not same(case, with_fact(case, negatives=("Rome", "Kyiv")), answer)
    (relation,) = case.relations
    other = dataclasses.replace(relation, frames=(*relation.frames[:2], "Where is [X] ruled from?"))
    assert not same(case, dataclasses.replace(case, relations=(other,)), answer)


@pytest.mark.parametrize("case", [H2T, RELIABILITY], ids=lambda case: case.probe)
def test_an_answer_that_was_cut_short_says_so(case):
    assert asked(case, finish="length").truncated
    assert not asked(case).truncated


@pytest.mark.parametrize("case", [MONITOR, PUBLISHED], ids=["definition", "published"])
def test_monitor_cuts_by_design(case):
    assert not asked(case, finish="length").truncated
