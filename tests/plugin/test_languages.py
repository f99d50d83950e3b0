"""Sessions over a suite that states its language."""

from __future__ import annotations

import json

import pytest

from tests.plugin.conftest import one_line

ONE = """\
suite: mini
facts: facts.jsonl
head_to_tail:
  prompt: zero-shot
  slices: [places-tail]
  bucket_by: domain
  gates: {accuracy: {max_drop: 0.1}}
"""
FACTS = "".join(
    json.dumps({"relation": "P36", "subject": name, "object": city, "popularity": 1, "bucket": "tail"}) + "\n"
    for name, city in (("Peru", "Lima"), ("Chile", "Santiago"), ("Norwegen", "Oslo"), ("Polen", "Warschau"))
)
SCRIPT = """\
rules:
  - {contains: 'capital of Peru?', text: Die Hauptstadt ist nicht Lima.}
  - {contains: 'capital of Chile?', text: Die Hauptstadt ist nicht Santiago.}
  - {contains: 'capital of Norwegen?', text: 'Soweit ich weiß, Oslo.'}
default: {text: Keine Ahnung.}
"""


@pytest.fixture
def run(pytester, mini_suite, report):
    (pytester.path / "answers.yaml").write_text(SCRIPT, encoding="utf-8")

    def start(language, *flags):
        mini_suite(ONE + language, FACTS)
        result = pytester.runpytest("--kb-model=scripted/answers.yaml", "suites", *flags)
        (case,) = [case for case in report()["cases"] if not case["aggregate"]]
        return result, case, {name: round(case["metrics"][name]["value"], 2) for name in RATES}

    return start


RATES = ("accuracy", "hallucination", "missing")


def test_a_suite_is_judged_in_its_language(run):
    # An abstention is one in any language; what else is said is read in the suite's.
    assert run("")[2] == {"accuracy": 0.5, "hallucination": 0.25, "missing": 0.25}
    _, case, rates = run("language: de\n")
    assert rates == {"accuracy": 0.25, "hallucination": 0.5, "missing": 0.25}
    assert case["settings"]["language"] == "de"


def test_a_language_without_rules_is_said_and_judged_as_english(run):
    result, case, rates = run("language: sw\n")
    assert rates == {"accuracy": 0.5, "hallucination": 0.25, "missing": 0.25}
    assert case["settings"]["language"] == "sw (no rules)"
    said = one_line(result)
    assert (
        "the judge has no rules for the language 'sw' (head_to_tail[places-tail]): its answers were" in said
    )


def test_runs_in_two_languages_are_not_compared(run):
    run("language: de\n", "--kb-baseline-update=old")
    assert run("language: de\n", "--kb-baseline=old")[1]["verdict"] != "not comparable"
    assert run("", "--kb-baseline=old")[1]["verdict"] == "not comparable"
