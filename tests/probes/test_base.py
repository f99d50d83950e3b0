"""The parts that all probes share, one by one: whom a round asks, what a digest is of, what an error says."""

from __future__ import annotations

import dataclasses
from dataclasses import replace

import pytest

from pytest_kbrel.errors import ResponseError, SuiteError
from pytest_kbrel.probes import (
    IMPLEMENTATIONS,
    Implementation,
    head_to_tail,
    open_case,
    run_case,
)
from pytest_kbrel.probes.base import (
    Answers,
    ProbeResult,
    collect,
    digest_of,
    draws_for,
    question_of,
    relation_of,
)
from pytest_kbrel.probes.grading import is_judged, judged
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
    Scored,
    Shot,
    Step,
    Table,
    read_digest,
)
from tests.probes.conftest import CAPITAL, FRANCE, NORWAY, Oracle, make_case
from tests.probes.monitor.test_monitor import generated

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


def test_a_round_that_asks_several_asks_each_its_own_and_joins_the_answers_in_order(
    monkeypatch,
):
    asks = (ask(FRANCE), ask(NORWAY, "openai/j"), ask(replace(FRANCE, id="x")))
    seen = []

    def probe(case):
        seen.extend((yield asks))
        return ProbeResult(table=Table(columns=(), rows=()))

    monkeypatch.setitem(IMPLEMENTATIONS, "head_to_tail", Implementation(run=probe))
    rounds, exchanges = [], []

    def answer(requests, to):
        rounds.append((to, [request.prompt for request in requests]))
        return [text(f"{to}:{request.prompt}") for request in requests]

    run_case(make_case(HeadToTailSettings(), FRANCE), answer, exchanges.extend)
    assert rounds == [("", ["P36-FR", "x"]), ("openai/j", ["P36-NO"])]
    assert [response.text for response in seen] == [":P36-FR", "openai/j:P36-NO", ":x"]
    assert [(one.case, one.ask, one.response.text) for one in exchanges] == [
        ("s.kb.yaml::head_to_tail[P36]", asked_of, response.text)
        for asked_of, response in zip(asks, seen, strict=True)
    ]


@pytest.mark.parametrize(
    ("case", "message"),
    [
        (
            replace(
                make_case(HeadToTailSettings(), FRANCE), settings=MonitorSettings()
            ),
            "HeadToTailSettings; found Mon",
        ),
        (
            replace(
                make_case(MonitorSettings(), FRANCE), settings=HeadToTailSettings()
            ),
            "MonitorSettings; found Head",
        ),
        (
            replace(
                make_case(ReliabilitySettings(), FRANCE), settings=MonitorSettings()
            ),
            "ReliabilitySettings; found",
        ),
        (make_case(HeadToTailSettings()), "it has no facts"),
    ],
)
def test_a_case_has_facts_and_the_settings_of_its_probe(case, message):
    with pytest.raises(SuiteError, match=message):
        open_case(case)


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


def test_a_fact_draws_by_its_id_and_the_seed_alone():
    case = make_case(ReliabilitySettings(), FRANCE, NORWAY)

    def drawn(case, fact):
        return draws_for(case, fact).random()

    assert drawn(case, FRANCE) == drawn(
        make_case(MonitorSettings(), NORWAY, FRANCE), replace(FRANCE, object="x")
    )
    assert (
        len(
            {
                drawn(case, FRANCE),
                drawn(case, NORWAY),
                drawn(replace(case, seed=1), FRANCE),
            }
        )
        == 3
    )


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


def test_a_facts_own_type_goes_before_that_of_its_relation():
    typed = (OTHER, replace(CAPITAL, answer_type="location"))
    fact = replace(FRANCE, answer_type="person")
    assert (
        parts(fact).accepted
        == parts(fact, relations=typed).accepted
        != parts(relations=typed).accepted
    )
    assert (
        parts(replace(FRANCE, answer_type="location")).accepted
        == parts(relations=typed).accepted
    )
    # A relation that is not there has no type.
    assert parts(relations=()).accepted == parts().accepted


def test_the_order_of_prompts_and_draws_tells():
    one, other = text(digest="1" * 16), text(digest="2" * 16)
    assert (
        parts(responses=[one, other]).prompts != parts(responses=[other, one]).prompts
    )
    assert parts(draws=("a", "b")).draws != parts(draws=("b", "a")).draws
    bos = [text(digest="1" * 16 + "b"), other]
    assert (parts(responses=bos).bos, parts(responses=[one, other]).bos) == (1, 0)


def test_an_answer_of_the_wrong_kind_is_none():
    answers = Answers()
    scored = Scored(
        probabilities=(0.5,), token_ids=(1,), prompt_tokens=1, prompt_digest="d"
    )
    asks = [replace(ask(FRANCE), role=role) for role in ("text", "score", "failed")]
    answers.add(asks, [text("x"), scored, Failed(error="no")])
    assert answers.generated(FRANCE.id, "text").text == "x"
    assert answers.scored(FRANCE.id, "score") is scored
    assert [
        answers.failed(FRANCE.id, role) for role in ("text", "score", "failed")
    ] == [False, False, True]
    for read, role, message in [
        (
            answers.generated,
            "score",
            r"P36-FR \(score\): Generated expected, found Scored",
        ),
        (answers.scored, "text", r"P36-FR \(text\): Scored expected, found Generated"),
        (answers.generated, "failed", r"^P36-FR \(failed\): no$"),
    ]:
        with pytest.raises(ResponseError, match=message):
            read(FRANCE.id, role)


def test_facts_without_usable_responses_become_errors_and_the_others_rows():
    def outcome(fact):
        if fact is FRANCE:
            raise ResponseError("no")
        return fact

    assert collect([FRANCE, NORWAY], outcome) == ((NORWAY,), ("no",))


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
    scored = Scored(
        probabilities=(0.5,), token_ids=(1,), prompt_tokens=1, prompt_digest="d"
    )
    with pytest.raises(StopIteration) as stop:
        asking.send((scored,))
    with pytest.raises(ResponseError, match=r"^P36-FR \(judge\): no text but Scored$"):
        stop.value.value[FRANCE.id]


def test_head_to_tail_of_a_fact_without_answer_expects_nothing():
    oracle = Oracle(say=lambda request: "Oslo")
    (row,) = run_case(
        make_case(HeadToTailSettings(), UNSEEN), oracle, oracle.keep
    ).table.rows
    assert (row.expected, row.answer) == ("", "Oslo")
    assert head_to_tail.COLUMNS[:7] == (
        "correct",
        "missing",
        "f1",
        "rouge_l",
        "em",
        "rules",
        "unparsable",
    )
    assert head_to_tail.COLUMNS[7:] == (
        "answered",
        "answer_prob",
        "first_prob",
        "squared_error",
    )


def test_an_unanswerable_example_in_domain_is_answered_unsure():
    case = make_case(HeadToTailSettings(prompt="in-domain"), FRANCE)
    shot = Shot(question="What is the capital of Nowhere?", answer=None)
    oracle = Oracle()
    run_case(replace(case, shots=((FRANCE.id, (shot,)),)), oracle, oracle.keep)
    assert (
        "Question: What is the capital of Nowhere?\nAnswer: unsure\n"
        in oracle.rounds[0][0].prompt
    )


@pytest.mark.parametrize(
    "settings",
    [HeadToTailSettings(), MonitorSettings(), ReliabilitySettings(choices=1)],
)
def test_an_outcome_says_what_was_asked_expected_and_said(settings):
    fact = replace(FRANCE, negatives=("Rome", "Oslo", "Bern", "Lima"))
    oracle = Oracle(say=lambda request: "It is Paris.")
    (row,) = run_case(make_case(settings, fact), oracle, oracle.keep).table.rows
    assert (row.fact_id, row.question) == ("P36-FR", "What is the capital of France?")
    assert (row.expected, row.answer, row.label) == ("Paris", "It is Paris.", "correct")


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
    assert same(
        with_fact(case, aliases=("a", "b")), with_fact(case, aliases=("b", "a"))
    )


@pytest.mark.parametrize("case", ALL, ids=lambda case: case.probe)
def test_every_answer_may_be_as_long_as_the_settings_say(case):
    relation = dataclasses.replace(
        case.relations[0], statements=("[X] is ruled from [Y].",)
    )
    more = {"study": "full", "formats": "all"} if case.probe == "monitor" else {}
    settings = dataclasses.replace(case.settings, max_new_tokens=7, **more)
    oracle = Oracle(say=lambda request: generated("Paris", ("P", 0.5, 0.5)))
    run_case(
        dataclasses.replace(case, settings=settings, relations=(relation,)),
        oracle,
        oracle.keep,
    )
    asked = [request for requests in oracle.rounds for request in requests]
    lengths = [
        request.max_new_tokens
        for request in asked
        if isinstance(request, GenerateRequest)
    ]
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
    other = dataclasses.replace(
        relation, frames=(*relation.frames[:2], "Where is [X] ruled from?")
    )
    assert not same(case, dataclasses.replace(case, relations=(other,)), answer)


@pytest.mark.parametrize("case", [H2T, RELIABILITY], ids=lambda case: case.probe)
def test_an_answer_that_was_cut_short_says_so(case):
    assert asked(case, finish="length").truncated
    assert not asked(case).truncated


@pytest.mark.parametrize("case", [MONITOR, PUBLISHED], ids=["definition", "published"])
def test_monitor_cuts_by_design(case):
    assert not asked(case, finish="length").truncated
