"""The language of a suite's facts: where it is stated, what is refused, and what the records make of it."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_kbrel.errors import SuiteError
from pytest_kbrel.probes.grading import judged_by_rules
from pytest_kbrel.records import LANGUAGES, settings_of, unsupported_languages
from pytest_kbrel.suites import load_suite

HEAD = "suite: t\nfacts: facts.jsonl\n"
Write = Callable[..., Path]


def test_a_suites_language_is_that_of_facts_that_name_none(suite_file: Write) -> None:
    path = suite_file(HEAD + "language: de\nmonitor: {slices: [P36]}\n")
    facts = path.parent / "facts.jsonl"
    lines = [json.loads(line) for line in facts.read_text("utf-8").splitlines()]
    own = next(line for line in lines if line["relation"] == "P36")
    own["language"] = "fr"
    facts.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    (case,) = load_suite(path).cases
    assert {fact.language for fact in case.facts} == {"de", "fr"}
    assert [fact.language for fact in case.facts if fact.subject == own["subject"]] == ["fr"]
    assert dict(settings_of(case))["language"] == "de, fr"


def test_nothing_stated_is_english_and_no_setting(suite_file: Write) -> None:
    for text in (HEAD, HEAD + "language: en\n", HEAD + "language: en-GB\n"):
        (case,) = load_suite(suite_file(text + "monitor: {slices: [P36]}\n")).cases
        assert "language" not in dict(settings_of(case))


@pytest.mark.parametrize("written", ["German", "de_DE", "d", "7", "'de '", "[de]", "no", "''"])
def test_what_is_no_language_tag_is_refused(suite_file: Write, written: str) -> None:
    with pytest.raises(SuiteError, match=r"t\.kb\.yaml:3: language must be .*, found"):
        load_suite(suite_file(HEAD + f"language: {written}\nmonitor: {{slices: [P36]}}\n"))


@pytest.mark.parametrize("tag", ["sw", "no", "yue-Hant"])
def test_a_language_without_rules_is_said_in_the_settings(suite_file: Write, tag: str) -> None:
    (case,) = load_suite(suite_file(HEAD + f"language: '{tag}'\nmonitor: {{slices: [P36]}}\n")).cases
    language = tag.partition("-")[0]
    assert dict(settings_of(case))["language"] == f"{language} (no rules)"
    assert unsupported_languages(settings_of(case)) == (language,)


@pytest.mark.parametrize("tag", LANGUAGES)
def test_a_known_language_is_not_called_unsupported(suite_file: Write, tag: str) -> None:
    (case,) = load_suite(suite_file(HEAD + f"language: '{tag}'\nmonitor: {{slices: [P36]}}\n")).cases
    assert unsupported_languages(settings_of(case)) == ()


def test_the_probes_judge_in_the_facts_language_beside_the_suites_own_patterns(suite_file: Write) -> None:
    path = suite_file(HEAD + "language: de\nuninformative: mine.yaml\nmonitor: {slices: [P36]}\n")
    (path.parent / "mine.yaml").write_text("unsure: ['unsicher bin ich']\n", encoding="utf-8")
    (case,) = load_suite(path).cases
    fact = dataclasses.replace(case.facts[0], object="Lima", aliases=())
    for answer in ("Das weiß ich nicht.", "unsure", "I don't know.", "Unsicher bin ich!"):
        assert judged_by_rules(case, fact, answer).label == "uninformative", answer
    assert judged_by_rules(case, fact, "Die Hauptstadt ist nicht Lima.").label == "wrong"
    english = dataclasses.replace(fact, language="en")
    assert judged_by_rules(case, english, "Die Hauptstadt ist nicht Lima.").label == "correct"
