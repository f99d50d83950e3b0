"""Facts asked in several wordings of their question."""

from __future__ import annotations

import dataclasses

import pytest

from pytest_kbrel.errors import SuiteError
from pytest_kbrel.metrics import metrics_for
from pytest_kbrel.probes import run_case, wording_of
from pytest_kbrel.records import (
    Failed,
    Generated,
    HeadToTailSettings,
    Reply,
    read_digest,
)
from tests.metrics import value_of
from tests.probes.conftest import CAPITAL, FRANCE, NORWAY, Oracle, make_case

TOWNS = ("Rome", "Madrid", "Berlin", "Vienna", "Lisbon")
ZERO = HeadToTailSettings(prompt="zero-shot")
THREE = dataclasses.replace(ZERO, wordings=3)


def knows_by_capital(request):
    """Answer the first wording, be wrong at the second and unsure at the third."""
    right = "Paris" if "France" in request.prompt else "Oslo"
    return (
        right
        if "capital" in request.prompt
        else "Lyon"
        if "governs" in request.prompt
        else "unsure"
    )


def test_a_fact_is_the_mean_over_its_wordings(columns_of):
    oracle = Oracle(say=knows_by_capital)
    table = run_case(make_case(THREE, FRANCE, NORWAY), oracle, oracle.keep).table
    (asked,) = oracle.rounds
    assert [request.prompt.rpartition("Question: ")[2] for request in asked] == [
        f"{frame.replace('[X]', fact.subject)}\nAnswer:"
        for frame in CAPITAL.frames
        for fact in (FRANCE, NORWAY)
    ]
    assert [row.fact_id for row in table.rows] == ["P36-FR", "P36-NO"]
    values = columns_of(table)
    assert (values["correct"], values["missing"], values["answered"]) == pytest.approx(
        (1 / 3, 1 / 3, 2 / 3)
    )
    # The first answer stands for the fact, the others are kept beside it.
    row = table.rows[0]
    assert (row.question, row.answer, row.label) == (
        "What is the capital of France?",
        "Paris",
        "correct",
    )
    assert row.others == (
        Reply(
            answer="Lyon",
            label="wrong",
            question="Which city governs France?",
            rule="no rule",
        ),
        Reply(
            answer="unsure",
            label="uninformative",
            question="Where does France have its seat?",
            rule="unsure",
        ),
    )
    figures = {
        metric.name: metric
        for metric in metrics_for("head_to_tail", "P36", table.columns)
    }
    accuracy = figures["accuracy"]
    rows = [[values[name] for name in accuracy.columns]] * 2
    assert value_of(accuracy, rows) == pytest.approx(1 / 3)


def test_roles_tell_the_wordings_apart_and_the_first_is_as_ever():
    oracle, single = Oracle(say=knows_by_capital), Oracle(say=knows_by_capital)
    table = run_case(make_case(THREE, FRANCE), oracle, oracle.keep).table
    alone = run_case(make_case(ZERO, FRANCE), single, single.keep).table
    assert [exchange.ask.role for exchange in oracle.kept] == [
        "answer",
        "wording2/answer",
        "wording3/answer",
    ]
    assert [wording_of(one.ask.role) for one in oracle.kept] == [
        (n, "answer") for n in range(3)
    ]
    assert wording_of("shuffled/choice:3") == (0, "shuffled/choice:3")
    assert [exchange.ask.role for exchange in single.kept] == ["answer"]
    assert oracle.kept[0].ask == single.kept[0].ask
    assert alone.rows[0].others == ()
    ours, theirs = (read_digest(of.rows[0].prompt_digest) for of in (table, alone))
    assert ours.count == 3 * theirs.count
    assert ours.settings != theirs.settings
    assert (ours.accepted, ours.draws) == (theirs.accepted, theirs.draws)


def test_too_few_wordings_are_refused_before_anything_is_asked():
    oracle = Oracle()
    many = dataclasses.replace(THREE, wordings=4)
    with pytest.raises(
        SuiteError, match=r"found 4, and 3 of the question of 'P36-FR'; allowed: 1 to 3"
    ):
        run_case(make_case(many, FRANCE), oracle, oracle.keep)
    with pytest.raises(SuiteError, match="wordings: found 0; allowed: 1 and more"):
        run_case(
            make_case(dataclasses.replace(THREE, wordings=0), FRANCE),
            oracle,
            oracle.keep,
        )
    assert oracle.rounds == []


def test_a_fact_that_lacks_an_answer_to_a_wording_is_one_error():
    def say(request):
        failing = "France" in request.prompt and "capital" not in request.prompt
        return Failed(error="no reply") if failing else knows_by_capital(request)

    oracle = Oracle(say=say)
    result = run_case(make_case(THREE, FRANCE, NORWAY), oracle, oracle.keep)
    assert [row.fact_id for row in result.table.rows] == ["P36-NO"]
    assert result.errors == ("P36-FR (answer): no reply",)


def test_a_judge_is_asked_about_each_wording_by_its_own_question():
    case = dataclasses.replace(make_case(THREE, FRANCE), judge="openai/judge")
    oracle = Oracle(
        say=lambda request: "correct" if "Verdict" in request.prompt else "Lutetia"
    )
    table = run_case(case, oracle, oracle.keep).table
    judged = [
        request.prompt.rpartition("Question: ")[2].partition("\n")[0]
        for request in oracle.rounds[1]
    ]
    assert judged == [f'"{frame.replace("[X]", "France")}"' for frame in CAPITAL.frames]
    assert [reply.label for reply in table.rows[0].replies] == ["correct"] * 3


def test_probabilities_of_answers_are_in_the_brier_score_alone():
    def say(request):
        return Generated(
            text=knows_by_capital(request), token_ids=(), finish="stop", prompt_tokens=1,
            prompt_digest="0" * 16, probability=0.8, first_probability=0.7,
        )  # fmt: skip

    oracle = Oracle(say=say)
    table = run_case(make_case(THREE, FRANCE, NORWAY), oracle, oracle.keep).table
    metrics = {
        metric.name: metric
        for metric in metrics_for("head_to_tail", "P36", table.columns)
    }
    assert metrics.keys().isdisjoint(
        {"auroc", "ece", "accuracy_at_80", "accuracy_at_50"}
    )
    brier = metrics["brier"]
    rows = [
        [row.values[table.columns.index(name)] for name in brier.columns]
        for row in table.rows
    ]
    # Of each fact one right answer and one wrong one; "unsure" does not count.
    assert value_of(brier, rows) == pytest.approx((0.2**2 + 0.8**2) / 2)
