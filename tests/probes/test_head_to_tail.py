from __future__ import annotations

import dataclasses

import pytest

from pytest_kbrel.errors import SuiteError
from pytest_kbrel.judges.rules import Judged
from pytest_kbrel.probes import head_to_tail, run_case
from pytest_kbrel.records import HeadToTailSettings, Shot
from tests.probes.conftest import FRANCE, Oracle, make_case


@pytest.mark.parametrize(
    ("answer", "label", "values"),
    [
        ("Paris", "correct", (1, 0, 1, 1, 1, 1, 0)),
        ("the City of Paris", "correct", (1, 0, 1, 1, 1, 1, 0)),
        ("Answer: Paris", "correct", (1, 0, 1, 1, 1, 1, 0)),
        ("Paris or Lyon", "wrong", (0, 0, 0.5, 0.5, 0, 0, 0)),
        ("Lyon", "wrong", (0, 0, 0, 0, 0, 0, 0)),
        ("Unsure.", "uninformative", (0, 1, 0, 0, 0, 0, 0)),
        ("", "uninformative", (0, 1, 0, 0, 0, 0, 0)),
        # A soft score for a missing answer would break A + H + M = 1.
        ("I am not sure, but it may be Paris", "uninformative", (0, 1, 0, 0, 0, 0, 0)),
    ],
)
def test_an_answer_is_right_wrong_or_missing(answer, label, values):
    oracle = Oracle(say=lambda request: answer)
    table = run_case(make_case(HeadToTailSettings(), FRANCE), oracle, oracle.keep).table
    columns = (
        "correct",
        "missing",
        "f1",
        "rouge_l",
        "em",
        "rules",
        "unparsable",
        "answered",
    )
    assert table.columns == columns
    assert table.rows[0].label == label
    assert table.rows[0].values == pytest.approx(
        (*values, float(label != "uninformative"))
    )


def test_in_domain_shows_the_facts_own_example_after_the_unanswerable_one():
    shots = (
        (
            "P36-FR",
            (Shot(question="What is the capital of Chile?", answer="Santiago"),),
        ),
    )
    case = dataclasses.replace(
        make_case(HeadToTailSettings(prompt="in-domain"), FRANCE), shots=shots
    )
    oracle = Oracle()
    run_case(case, oracle, oracle.keep)
    prompt = oracle.rounds[0][0].prompt
    assert prompt.count("Answer:") == 3
    assert "Mercury" not in prompt
    assert prompt.index("\nAnswer: unsure\n") < prompt.index(
        "capital of Chile?\nAnswer: Santiago\n"
    )
    assert prompt.endswith("Question: What is the capital of France?\nAnswer:")


def test_in_domain_without_an_example_is_refused_before_anything_is_asked():
    oracle = Oracle()
    with pytest.raises(SuiteError, match=r"in-domain.*found none for 'P36-FR'"):
        run_case(
            make_case(HeadToTailSettings(prompt="in-domain"), FRANCE),
            oracle,
            oracle.keep,
        )
    assert oracle.rounds == []


def test_in_domain_shows_the_fixed_examples_where_there_is_none_of_the_facts_own():
    own, fixed = Oracle(), Oracle()
    case = make_case(HeadToTailSettings(prompt="in-domain"), FRANCE)
    run_case(dataclasses.replace(case, shots=(("P36-FR", ()),)), own, own.keep)
    run_case(make_case(HeadToTailSettings(), FRANCE), fixed, fixed.keep)
    assert own.rounds[0][0].prompt == fixed.rounds[0][0].prompt


@pytest.mark.parametrize(
    ("judgement", "answer", "values"),
    [
        (
            Judged(label="correct", rule="judge"),
            "Lutetia Parisiorum",
            (1, 0, 0, 0, 0, 0, 0),
        ),
        (
            Judged(label="wrong", rule="judge"),
            "Paris or Lyon",
            (0, 0, 0.5, 0.5, 0, 0, 0),
        ),
        (
            Judged(label="wrong", rule="unparsable"),
            "Paris or Lyon",
            (0, 0, 0.5, 0.5, 0, 0, 1),
        ),
        # What nobody could read the verdict on is in its own class, whatever label came with it.
        (
            Judged(label="uninformative", rule="unparsable"),
            "Lyon",
            (0, 0, 0, 0, 0, 0, 1),
        ),
    ],
)
def test_the_judge_in_force_decides_what_is_correct_and_the_rules_stand_beside_it(
    monkeypatch, judgement, answer, values
):
    def judging(case, answers):
        yield from ()
        return dict.fromkeys(answers, judgement)

    monkeypatch.setattr(head_to_tail, "judged", judging)
    oracle = Oracle(say=lambda request: answer)
    row = run_case(
        make_case(HeadToTailSettings(), FRANCE), oracle, oracle.keep
    ).table.rows[0]
    assert row.values == pytest.approx((*values, float(not (values[1] or values[6]))))
    assert (row.label, row.rule) == (judgement.label, judgement.rule)


@pytest.mark.parametrize(
    ("gold", "answer", "scores"),
    [
        ("William Shakespeare", "W. Shakespeare", (1, 1)),
        ("William Shakespeare", "It was W. Shakespeare", (2 / 6, 2 / 6)),
        ("William Shakespeare", "Roma Shakespeare", (0.5, 0.5)),
        ("4 July 1776", "July 4, 1776", (1, 1)),
        ("5 July 1776", "July 4, 1776", (2 / 3, 2 / 3)),
        ("7", "seven", (1, 1)),
        ("17", "seven", (0, 0)),
        ("São Paulo", "Sao Paulo", (1, 1)),
        ("Beatles", "The Beatles", (1, 1)),
        ("Paris", "It is Paris.", (2 / 4, 2 / 4)),
        ("Paris", "The answer is Paris.", (2 / 4, 2 / 5)),
        ("Spanish language", "It is Spanish", (2 / 5, 2 / 5)),
    ],
)
def test_soft_scores_take_an_answer_in_another_writing_for_the_gold(
    gold, answer, scores
):
    fact = dataclasses.replace(FRANCE, object=gold, aliases=(), question="What is it?")
    oracle = Oracle(say=lambda request: answer)
    row = run_case(
        make_case(HeadToTailSettings(), fact), oracle, oracle.keep
    ).table.rows[0]
    assert row.values[2:4] == pytest.approx(scores)
