"""Every example of docs/judging.md is what the judge says."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_kbrel.judges.rules import judge
from tests.judges.phrases import DECLINING, HALVES, LANGUAGES, OTHERS, counted

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs/judging.md").read_text(encoding="utf-8")
MEASURED = (ROOT / "benchmarks/judging.md").read_text(encoding="utf-8")
HEAD = "| rule | question | accepted | answer |"


def _examples():
    for table in TEXT.split(HEAD)[1:]:
        for line in table.strip().splitlines()[1:]:
            if not line.startswith("|"):
                break
            yield tuple(cell.strip() for cell in line.strip("|").split(" | "))


EXAMPLES = list(_examples())


@pytest.mark.parametrize(("rule", "question", "accepted", "answer"), EXAMPLES)
def test_an_example_of_the_document_is_true(rule, question, accepted, answer):
    assert judge(answer, [accepted], question).rule == rule.strip()


def test_every_rule_of_the_cases_has_an_example():
    from tests.judges.test_right_answers import RIGHT
    from tests.judges.test_wrong_answers import UNINFORMATIVE, WRONG

    assert {rule for *_, rule in (*RIGHT, *WRONG, *UNINFORMATIVE)} == {
        rule.strip() for rule, *_ in EXAMPLES
    }


@pytest.mark.slow
def test_the_table_against_a_human_is_printed_by_the_command_it_names(tmp_path):
    rows = [
        {
            "question": "What is the capital of Peru?",
            "answers": ["Lima"],
            "one": {"pred": "It is Lima.", "human_eval": "1"},
            "two": {"pred": "Quito", "human_eval": "1"},
        },
        {
            "question": "What is the capital of Chile?",
            "answers": ["Santiago"],
            "one": {"pred": "I do not know", "human_eval": "0"},
            "two": {"pred": "not Santiago", "human_eval": "0"},
        },
    ]
    path = tmp_path / "check.json"
    path.write_text(json.dumps(rows), encoding="utf-8")
    command = [
        sys.executable,
        str(ROOT / "benchmarks/human_check.py"),
        str(path),
        "--disagreements",
    ]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    lines = printed.splitlines()
    assert lines[0] == "one, rules"
    assert lines[2].split() == ["human:", "correct", "1", "0", "0"]
    assert lines[3].split() == ["human:", "wrong", "0", "1", "0"]
    assert (
        "agreement 1.000 (2 of 2), wrong answers called right 0.000 (0 of 1)" in printed
    )
    assert "exact match: agreement 0.500 (1 of 2)" in printed
    # Containment calls "not Santiago" right and misses nothing else of it.
    assert (
        "containment: agreement 0.000 (0 of 2), wrong answers called right 1.000 (1 of 1)"
        in printed
    )
    assert (
        lines[-1]
        == "two; human right; no rule; What is the capital of Peru?; Lima; Quito"
    )


MORE = re.findall(
    r"^\| (?:(\w\w) \| )?(.+?) \| (.+?) \| (.+?) \| (correct|wrong|uninformative), ([\w ]+?) \|$",
    TEXT,
    re.M,
)


@pytest.mark.parametrize(
    ("language", "question", "accepted", "answer", "label", "rule"), MORE
)
def test_an_example_of_a_denial_or_a_language_is_true(
    language, question, accepted, answer, label, rule
):
    golds = [] if accepted == "none" else [accepted]
    result = judge(answer, golds, question, language=language)
    assert (result.label, result.rule) == (label, rule)


def test_the_counts_of_phrases_are_those_of_the_rules():
    rows = {}
    for language in LANGUAGES:
        counts = [
            counted(language, half, groups)
            for half in HALVES
            for groups in (DECLINING, OTHERS)
        ]
        rows[language] = [" of ".join(map(str, count)) for count in counts]
    told = re.findall(r"^\| (\w\w) \|" + r" (\d+ of \d+) \|" * 6 + "$", MEASURED, re.M)
    assert {row[0]: [row[1], row[2], row[5], row[6]] for row in told} == rows
    assert len(MORE) > 20
