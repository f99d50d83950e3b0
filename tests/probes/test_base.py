"""The parts that all probes share, one by one: whom a round asks, what a digest is of, what an error says."""

from __future__ import annotations

import dataclasses
from dataclasses import replace

import pytest

from pytest_kbrel.errors import ResponseError
from pytest_kbrel.probes import (
    run_case,
)
from pytest_kbrel.probes.base import (
    digest_of,
    is_judged,
    judged,
    question_of,
    relation_of,
)
from pytest_kbrel.records import (
    Ask,
    Case,
    Failed,
    Generated,
    GenerateRequest,
    HeadToTailSettings,
    MonitorSettings,
    Outcome,
    ReliabilitySettings,
    Step,
    read_digest,
)
from tests.probes.conftest import CAPITAL, FRANCE, NORWAY, Oracle, make_case

OTHER = replace(
    CAPITAL,
    id="P17",
    frames=("In which country is [X]?", "Where is [X]?"),
    answer_type="location",
)
UNSEEN = replace(NORWAY, object=None, aliases=())


def text(answer="Paris", digest="0" * 16, **more):
    fields = {
        "text": answer,
        "token_ids": (1,),
        "finish": "stop",
        "prompt_tokens": 1,
        "prompt_digest": digest,
    }
    return Generated(**(fields | {"prompt_digest": digest} | more))


def ask(fact, to=""):
    return Ask(
        fact_id=fact.id,
        role="answer",
        to=to,
        request=GenerateRequest(prompt=fact.id, max_new_tokens=4),
    )


@pytest.mark.parametrize(
    ("fact", "frame", "question"),
    [
        (FRANCE, 0, "What is the capital of France?"),
        (FRANCE, 2, "Where does France have its seat?"),
        (replace(FRANCE, question="Own?"), 0, "Own?"),
        # An own question takes the place of the base frame alone.
        (replace(FRANCE, question="Own?"), 1, "Which city governs France?"),
        (replace(FRANCE, relation="P17"), 0, "In which country is France?"),
    ],
)
def test_the_question_about_a_fact(fact, frame, question):
    case = replace(make_case(HeadToTailSettings(), fact), relations=(CAPITAL, OTHER))
    assert question_of(case, fact, frame) == question
    assert relation_of(case, fact).id == fact.relation


def parts(fact=FRANCE, responses=None, draws=(), relations=(OTHER, CAPITAL), **changes):
    case = replace(
        make_case(HeadToTailSettings(), fact), relations=relations, **changes
    )
    return read_digest(
        digest_of(case, fact, [text()] if responses is None else responses, draws)
    )


PARTS = ("prompts", "bos", "count", "settings", "accepted", "draws")


@pytest.mark.parametrize(
    ("changed", "differing"),
    [
        ({}, ()),
        ({"responses": [text("other", finish="length", token_ids=(2,))]}, ()),
        ({"fact": replace(FRANCE, negatives=(), popularity=3.0, question="?")}, ()),
        ({"fact": replace(FRANCE, object="City of Paris", aliases=("Paris",))}, ()),
        ({"seed": 1}, ()),
        ({"judge": "openai/j"}, ()),
        ({"responses": [text(digest="1" * 16)]}, ("prompts",)),
        ({"responses": [text(), text()]}, ("prompts", "count")),
        ({"responses": [text(digest="0" * 16 + "b")]}, ("bos",)),
        # Only the place behind the digits says that BOS leads.
        ({"responses": [text(digest="0" * 15 + "b")]}, ("prompts",)),
        ({"settings": HeadToTailSettings(max_new_tokens=33)}, ("settings",)),
        ({"settings": HeadToTailSettings(prompt="zero-shot")}, ("settings",)),
        ({"uninformative": (("unsure", "x"),)}, ("settings",)),
        ({"fact": replace(FRANCE, object="Lutetia")}, ("accepted",)),
        ({"fact": replace(FRANCE, aliases=())}, ("accepted",)),
        ({"fact": replace(FRANCE, answer_type="location")}, ("accepted",)),
        (
            {"relations": (OTHER, replace(CAPITAL, answer_type="location"))},
            ("accepted",),
        ),
        ({"draws": ("x",)}, ("draws",)),
        ({"draws": ("",)}, ("draws",)),
    ],
)
def test_each_part_of_a_digest_tells_its_own_differences(changed, differing):
    one, other = parts(), parts(**changed)
    assert (
        tuple(name for name in PARTS if getattr(one, name) != getattr(other, name))
        == differing
    )


@pytest.mark.parametrize(
    ("settings", "facts", "result"),
    [
        (HeadToTailSettings(), (FRANCE, NORWAY), True),
        (ReliabilitySettings(), (FRANCE,), True),
        (ReliabilitySettings(), (UNSEEN, FRANCE), True),
        (ReliabilitySettings(), (UNSEEN,), False),
        (MonitorSettings(), (FRANCE,), False),
    ],
)
def test_whose_verdicts_may_depend_on_a_judge(settings, facts, result):
    assert is_judged(make_case(settings, *facts)) is result


def test_a_judge_is_asked_for_one_word_with_room_for_a_few():
    case = replace(make_case(HeadToTailSettings(), FRANCE), judge="openai/j")
    asking = judged(case, {FRANCE.id: "Lutetia"})
    (ask,) = next(asking)
    assert (ask.to, ask.role, ask.request.max_new_tokens) == ("openai/j", "judge", 16)
    with pytest.raises(StopIteration) as stop:
        asking.send((Failed(error="429"),))
    with pytest.raises(ResponseError, match=r"^P36-FR \(judge\): 429$"):
        stop.value.value[FRANCE.id]


def test_head_to_tail_of_a_fact_without_answer_expects_nothing():
    oracle = Oracle(say=lambda request: "Oslo")
    (row,) = run_case(
        make_case(HeadToTailSettings(), UNSEEN), oracle, oracle.keep
    ).table.rows
    assert (row.expected, row.answer) == ("", "Oslo")


POOL = ("Rome", "Oslo", "Bern", "Lima")
FACT = dataclasses.replace(FRANCE, negatives=POOL)


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


def same(one: Case, other: Case, answer: str = "Paris") -> bool:
    return asked(one, answer).prompt_digest == asked(other, answer).prompt_digest
