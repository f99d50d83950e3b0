"""The reliability probe's slices: prompt settings, groups, examples, controls and what has come to pass."""

from __future__ import annotations

import datetime
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_kbrel.errors import SuiteError
from pytest_kbrel.records import Case, ReliabilitySettings, Suite
from pytest_kbrel.suites import load_suite
from tests.suites.conftest import RELATIONS, world_facts

HEAD = "suite: t\nfacts: facts.jsonl\n"
UNSEEN = "  unseen: {count: 40, as_of: 2026-11-01, expires: 2028-01-01}\n"
Write = Callable[..., Path]
TODAY = datetime.date(2026, 11, 20)


def by_slice(suite: Suite) -> dict[str, Case]:
    return {case.slice: case for case in suite.cases}


def loaded(path: Path, **more: Any) -> dict[str, Case]:
    return by_slice(load_suite(path, **{"today": TODAY, **more}))


def settings_of(case: Case) -> ReliabilitySettings:
    assert isinstance(case.settings, ReliabilitySettings)
    return case.settings


def test_an_empty_group_is_answered_with_those_that_have_facts(
    suite_file: Write,
) -> None:
    relations = RELATIONS.replace(
        "label: capital\n", "label: capital\n  answer_type: location\n"
    )
    text = (
        HEAD
        + "reliability:\n  slice_by: answer_type\n  slices: [known-person-zero-shot]\n"
    )
    with pytest.raises(
        SuiteError,
        match=r"empty slice.*at least 1 fact; known-location, .* have some",
    ):
        loaded(suite_file(text, relations=relations))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "slices: [known-person-zero-shot]",
            ("unknown slice 'known-person-zero-shot' in reliability",),
        ),
        (
            "{slice_by: answer_type, slices: [known-persn-zero-shot]}",
            ("did you mean 'known-person-zero-shot'?",),
        ),
        (
            "{slice_by: answer_type, slices: [known-zero-shot]}",
            ("allowed: known-number, ",),
        ),
        (
            "{slice_by: dataset, slices: [known-popqq-zero-shot]}",
            ("did you mean 'known-popqa-zero-shot'?",),
        ),
        ("{slice_by: dataset, slices: [popqa]}", ("unknown slice 'popqa'",)),
        (
            "{slice_by: type}",
            ("slice_by of reliability must be one of none, answer_type, dataset",),
        ),
        (
            "{retrieval: tf-idf}",
            ("retrieval of reliability must be tfidf, openai/NAME", "mean 'tfidf'?"),
        ),
        (
            "{distractors_from: fact}",
            ("must be facts, openai/NAME", "did you mean 'facts'?"),
        ),
        ("{controls: all}", ("must be one of counted, asked",)),
        ("{shots: {knwn: 4}}", ("unknown key 'knwn'", "did you mean 'known'?")),
        (
            "{shots: {known: -1}}",
            ("known of shots must be a whole number from 0 to 10,000",),
        ),
        ("{shots: none.jsonl}", ("shots of reliability must be a file",)),
        ("{shots: 5}", ("a file of examples or {known: 280, unseen: 40}",)),
        (
            "{slices: [known-four-shot-2], shots: {unseen: 1}}",
            ("four-shot-2 needs at least 2 examples without an answer, found 1",),
        ),
        (
            "{slices: [known-four-shot], shots: {known: 3}}",
            ("at least 4 examples with an answer, found 3",),
        ),
    ],
)
def test_wrong_settings(suite_file: Write, text: str, words: tuple[str, ...]) -> None:
    facts = [{**fact, "dataset": "popqa"} for fact in world_facts()]
    path = suite_file(HEAD + f"reliability:\n  {text}\n", facts)
    with pytest.raises(SuiteError) as caught:
        load_suite(path)
    message = str(caught.value)
    assert message.startswith(f"{path}:")
    assert [word for word in words if word not in message] == []


def test_a_dataset_must_be_a_name(suite_file: Write) -> None:
    facts = [{**fact, "dataset": "pop qa"} for fact in world_facts()]
    with pytest.raises(
        SuiteError, match=r"facts.jsonl:1: fact 'c0' has the dataset 'pop qa'; allowed"
    ):
        load_suite(suite_file(HEAD + "reliability: {slice_by: dataset}\n", facts))


def test_a_question_without_its_subject_cannot_be_shuffled(suite_file: Write) -> None:
    facts = [
        {**fact, "question": f"Number {n}?"} for n, fact in enumerate(world_facts())
    ]
    with pytest.raises(
        SuiteError,
        match=r"'c0' cannot be asked about another subject.*controls: counted",
    ):
        load_suite(suite_file(HEAD + "reliability: {controls: asked}\n", facts))


def test_what_has_come_to_pass_is_left_out_with_a_warning(suite_file: Write) -> None:
    text = (
        HEAD + "reliability:\n  slices: [unseen-zero-shot, unseen-four-shot]\n" + UNSEEN
    )
    path = suite_file(text)
    before = load_suite(path, today=datetime.date(2028, 12, 31))
    after = load_suite(path, today=datetime.date(2029, 1, 1))
    gone = {fact.id for fact in before.cases[0].facts} - {
        fact.id for fact in after.cases[0].facts
    }
    remaining = [fact for fact in before.cases[0].facts if fact.id not in gone]
    # Nothing comes in place of what is left out, and nothing else changes.
    assert list(after.cases[0].facts) == remaining
    assert after.cases[1].facts == after.cases[0].facts
    assert after.cases[0].repository == before.cases[0].repository
    assert {f.valid_until for f in before.cases[0].facts if f.id in gone} == {
        "2029-01-01"
    }
    expected = {
        f"{path}:4: left out {n} question{'s' * (n > 1)} of the kind {kind}: since 2029-01-01 "
        f"{'they' if n > 1 else 'it'} may have an answer"
        for kind, n in Counter(
            f.relation for f in before.cases[0].facts if f.id in gone
        ).items()
    }
    assert expected
    assert set(after.warnings) - set(before.warnings) == expected


def test_examples_that_have_come_to_have_an_answer_are_left_out_with_a_warning(
    suite_file: Write,
) -> None:
    path = suite_file(
        HEAD + "reliability:\n  slices: [known-four-shot-2, known-four-shot]\n" + UNSEEN
    )
    first = min(
        shot.valid_until
        for shot in loaded(path)["known-four-shot-2"].repository
        if shot.valid_until
    )
    day = datetime.date.fromisoformat(first)
    before = load_suite(path, today=day - datetime.timedelta(days=1))
    after = load_suite(path, today=day)
    two_shot, other = (
        by_slice(after)["known-four-shot-2"],
        by_slice(after)["known-four-shot"],
    )
    shots = by_slice(before)["known-four-shot-2"].repository
    gone = [shot for shot in shots if shot.valid_until == first]
    assert {shot.answer for shot in gone} == {None}
    assert two_shot.repository == tuple(shot for shot in shots if shot not in gone)
    (warning,) = set(after.warnings) - set(before.warnings)
    assert warning.startswith(f"{path}:4: left out {len(gone)} example")
    assert warning.endswith(
        f"since {first} {'they' if len(gone) > 1 else 'it'} may have an answer"
    )
    # Examples that are never shown concern nobody.
    assert other.repository == shots


def test_too_few_examples_without_an_answer_left_is_an_error(suite_file: Write) -> None:
    path = suite_file(
        HEAD + "reliability:\n  slices: [known-four-shot-2]\n  shots: mine.jsonl\n"
    )
    rows: list[dict[str, Any]] = [
        {"question": f"Who is {n}?", "answer": str(n)} for n in range(4)
    ]
    rows += [
        {"question": f"Who won {n}?", "answer": None, "valid_until": "2027-01-01"}
        for n in range(2)
    ]
    (path.parent / "mine.jsonl").write_text(
        "\n".join(map(json.dumps, rows)), encoding="utf-8"
    )
    assert len(loaded(path)["known-four-shot-2"].repository) == 6
    with pytest.raises(
        SuiteError,
        match=r't.kb.yaml:\d: .*shows 2 examples answered "unsure", and 0 of',
    ):
        load_suite(path, today=datetime.date(2027, 1, 1))


def test_when_all_has_come_to_pass_it_is_an_error(suite_file: Write) -> None:
    by_type = (
        HEAD
        + "reliability:\n  slice_by: answer_type\n  slices: [unseen-number-zero-shot]\n"
    )
    path = suite_file(by_type + UNSEEN)
    seed = next(
        seed
        for seed in range(99)
        if load_suite(path, seed=seed, today=TODAY, limit=1)
        .cases[0]
        .facts[0]
        .valid_until
    )
    with pytest.raises(
        SuiteError, match=r"t\.kb\.yaml:5: all 1 questions of rel.*may have an answer"
    ):
        load_suite(path, seed=seed, limit=1, today=datetime.date(2400, 1, 1))
