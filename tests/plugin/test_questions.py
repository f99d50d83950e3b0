"""Suites of one's own questions: accuracy by group, without popularity and relations."""

import re
from pathlib import Path

import pytest

from tests.plugin.conftest import GATE

HEADER = "suite: mine\nfacts: mine.csv\nquestions:\n"
TABLE = """\
question;answer;question_2;group
What is the capital of Norway?;Oslo;Name the capital of Norway?;north
What is the capital of Poland?;Warsaw;Name the capital of Poland?;east of here
What is the capital of Russia?;Moscow;Name the seat of Russia?;east of here
"""


@pytest.fixture
def questions(pytester, mini_suite):
    """Write ``suites/mini.kb.yaml`` with this text below ``questions:``, and the table beside it."""

    def write(text="", table=TABLE):
        mini_suite(HEADER + text)
        (pytester.path / "suites" / "mine.csv").write_text(table, "utf-8")

    return write


def test_accuracy_by_group_and_over_all_in_one_call_a_question(
    pytester, questions, cases, responses
):
    questions("  gates: {accuracy: {min: 0.5}}\n")
    assert pytester.runpytest(*GATE).ret == 0
    figures = {
        name: (case["n"], case["metrics"]["accuracy"]["value"])
        for name, case in cases().items()
        if name.startswith("questions")
    }
    assert figures == {
        "questions[east_of_here]": (2, 1.0),
        "questions[north]": (1, 1.0),
        "questions[overall]": (3, 1.0),
    }
    assert len(responses()) == 3


def test_the_second_wording_is_asked_with_wordings(
    pytester, questions, cases, responses
):
    questions("  wordings: 2\n")
    assert pytester.runpytest(*GATE).ret == 0
    assert len(responses()) == 6
    # The model does not know the seat of Russia.
    accuracy = cases()["questions[east_of_here]"]["metrics"]["accuracy"]["value"]
    assert accuracy == 0.75


@pytest.mark.parametrize(
    ("text", "table", "message"),
    [
        ("  slices: [noth]\n", TABLE, "*mini.kb.yaml:4: unknown slice 'noth'*'north'?"),
        (" mine.csv\n", TABLE, "*questions must be a mapping*stands under 'facts'"),
        ("", TABLE.replace("north", "overall"), "*mine.csv:2:*the group 'overall'*"),
        ("", TABLE.replace("north", "北"), "*mine.csv:2:*a name needs ASCII letters*"),
        ("  wordings: 3\n", TABLE, "*found wordings: 3, and 2 of the question*"),
    ],
)
def test_what_cannot_be_asked(pytester, questions, text, table, message):
    questions(text, table)
    result = pytester.runpytest(*GATE)
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines([message])


def test_the_example_of_the_documentation_runs(pytester, mini_suite, cases):
    page = (Path(__file__).parents[2] / "docs" / "suites.md").read_text("utf-8")
    table, suite = re.findall(r"```(?:csv|yaml)\n(.*?)```", page, re.DOTALL)[:2]
    mini_suite(suite)
    (pytester.path / "suites" / "questions.csv").write_text(table, "utf-8")
    assert pytester.runpytest(*GATE, "--kb-baseline-update=mine").ret == 0
    assert pytester.runpytest(*GATE, "--kb-baseline=mine").ret == 0
    assert cases()["questions[capitals]"]["n"] == 1
    (gate,) = cases()["questions[overall]"]["gates"]
    assert (gate["metric"], gate["rule"]) == ("accuracy", "max_drop")
