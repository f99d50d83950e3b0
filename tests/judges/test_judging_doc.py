"""Every example of docs/judging.md is what the judge says."""

from __future__ import annotations

import re
from pathlib import Path

from pytest_kbrel.judges.rules import judge
from tests.judges.test_answers import ANSWERS

TEXT = (Path(__file__).resolve().parents[2] / "docs/judging.md").read_text("utf-8")


def rows(columns):
    """Return the rows of the tables that have some columns."""
    head = f"| {' | '.join(columns)} |\n"
    for table in TEXT.split(head)[1:]:
        body = re.match(r"\|[-|]+\|\n((?:\|.*\|\n)+)", table)[1]
        yield from (
            [cell.strip() for cell in line[1:-1].split(" | ")]
            for line in body.splitlines()
        )


def test_its_examples_are_true_and_every_rule_has_one():
    examples = list(rows(("rule", "question", "accepted", "answer")))
    assert [
        (answer, judge(answer, [accepted], question).rule)
        for rule, question, accepted, answer in examples
        if judge(answer, [accepted], question).rule != rule
    ] == []
    assert {row[0] for row in examples} == {
        rule for label in ANSWERS.values() for rule in label
    }


def test_what_it_says_not_to_state_an_answer_does_not():
    for answer in re.findall(r'"([^"]+)"', TEXT[TEXT.index('"It is Quito') :])[:5]:
        question = "Where is Lima?" if "largest" in answer else "Which city is it?"
        assert judge(answer, ["Lima"], question).label == "wrong", answer
