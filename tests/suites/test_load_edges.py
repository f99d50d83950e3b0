"""Loading a suite at the edges: seeds and limits of nothing, equal popularities, two things of one name."""

from __future__ import annotations

import dataclasses
import datetime
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_kbrel.errors import SuiteError
from pytest_kbrel.probes.grading import judged_by_rules
from pytest_kbrel.records import (
    LANGUAGES,
    Case,
    Fact,
    ReliabilitySettings,
    Shot,
    settings_of,
    unsupported_languages,
)
from pytest_kbrel.suites import load_suite
from pytest_kbrel.suites.expiry import without_expired
from pytest_kbrel.suites.reliability import _majority, _other
from tests.suites.conftest import world_facts
from tests.suites.examples import HEAD

Write = Callable[..., Path]
TODAY = datetime.date(2026, 11, 20)


def loaded(path: Path, **more: Any) -> dict[str, Case]:
    return {
        case.slice: case for case in load_suite(path, **{"today": TODAY, **more}).cases
    }


def test_a_seed_of_nothing_replaces_the_suites(suite_file: Write) -> None:
    path = suite_file(HEAD + "seed: 7\nmonitor: {slices: [P36], limit: 3}\n")
    assert loaded(path)["P36"].seed == 7
    assert loaded(path, seed=0)["P36"].seed == 0
    assert loaded(path, seed=0)["P36"].facts != loaded(path)["P36"].facts
    plain = suite_file(HEAD + "seed: 0\nmonitor: {slices: [P36], limit: 3}\n")
    assert loaded(plain)["P36"].facts == loaded(path, seed=0)["P36"].facts


def test_what_a_suite_is_called_may_be_nothing(suite_file: Write) -> None:
    path = suite_file(HEAD + "monitor: {slices: [P36]}\n")
    assert load_suite(path).path == str(path)
    assert load_suite(path, nodeid_path="").path == ""
    assert load_suite(path, judge="openai/x").cases[0].judge == "openai/x"
    assert load_suite(path).cases[0].judge == "rules"


@pytest.mark.parametrize(
    ("limit", "count"), [("1", 1), ("10", 10), ("0.001", 1), ("1.0", 10)]
)
def test_a_limit_at_the_end_of_its_range(
    limit: str, count: int, suite_file: Write
) -> None:
    case = loaded(suite_file(HEAD + f"monitor: {{slices: [P36], limit: {limit}}}\n"))[
        "P36"
    ]
    assert len(case.facts) == count


@pytest.mark.parametrize("limit", ["0", "0.0", "-1", "1.001", "true", "''"])
def test_a_limit_beyond_the_end_of_its_range(limit: str, suite_file: Write) -> None:
    with pytest.raises(
        SuiteError,
        match="limit of monitor must be a whole number from 1 to 1,000,000,000, or a share above 0",
    ):
        load_suite(suite_file(HEAD + f"monitor: {{slices: [P36], limit: {limit}}}\n"))


def test_a_limit_of_a_slice_goes_before_that_of_the_probe(suite_file: Write) -> None:
    text = "reliability:\n  limit: 2\n  slices: {seen-zero-shot: {limit: 3}, unseen-zero-shot: }\n"
    text += "  unseen: {count: 6, as_of: 2026-11-01, expires: 2028-01-01}\n"
    counts = {
        name: len(case.facts) for name, case in loaded(suite_file(HEAD + text)).items()
    }
    # A probe's general limit is for seen facts.
    assert counts == {"seen-zero-shot": 3, "unseen-zero-shot": 6}


def test_examples_may_be_none_of_a_kind(suite_file: Write) -> None:
    text = (
        HEAD + "reliability: {slices: [seen-four-shot], shots: {seen: 4, unseen: 0}}\n"
    )
    shots = loaded(suite_file(text))["seen-four-shot"].repository
    assert [shot.answer is None for shot in shots] == [False] * 4
    text = HEAD + "reliability: {slices: [seen-four-shot], shots: {seen: 0}}\n"
    with pytest.raises(
        SuiteError, match="four-shot needs at least 4 examples with an answer, found 0"
    ):
        load_suite(suite_file(text))


def test_examples_come_in_the_order_of_the_digests_of_seed_and_id(
    suite_file: Write,
) -> None:
    for seed in (0, 3):
        text = (
            HEAD
            + f"seed: {seed}\nreliability: {{slices: [seen-four-shot], relations: [P36], limit: 1}}\n"
        )
        case = loaded(suite_file(text))["seen-four-shot"]
        ids = {fact.id for fact in case.facts}
        order = sorted(
            (fact for fact in world_facts() if fact["relation"] == "P36"),
            key=lambda fact: (
                fact["id"] in ids,
                hashlib.sha256(f"{seed}\0shots\0{fact['id']}".encode()).digest(),
            ),
        )
        seen = [shot for shot in case.repository if shot.answer is not None]
        assert [shot.subject for shot in seen] == [fact["subject"] for fact in order]


def test_a_duplicate_and_a_question_twice_are_no_examples(suite_file: Write) -> None:
    facts = world_facts()[:10]
    facts[0]["duplicate_of"] = "c9"
    for number in (1, 2):
        facts[number]["question"] = "The same?"
    text = HEAD + "reliability: {slices: [seen-four-shot], limit: 1, distractors: 4}\n"
    shots = loaded(suite_file(text, facts))["seen-four-shot"].repository
    seen = [shot for shot in shots if shot.answer is not None]
    assert len(seen) == 8
    assert "Land 0" not in {shot.subject for shot in seen}


def test_a_popularity_of_nothing_is_one(suite_file: Write) -> None:
    facts = [{**fact, "popularity": 0} for fact in world_facts()]
    cases = loaded(suite_file(HEAD + "head_to_tail:\n", facts))
    assert set(cases) == {"geography-tail", "culture-tail"}
    relations = (
        "P36: {label: l, domain: d, frames: ['[X]?'], popularity: 0}\n"
        "P50: {label: l, domain: d, frames: ['[X]?'], popularity: 0}\n"
    )
    cases = loaded(
        suite_file(HEAD + "head_to_tail: {bucket_by: predicate}\n", facts, relations)
    )
    assert {name: len(case.facts) for name, case in cases.items()} == {"d-tail": 16}
    assert set(dict(cases["d-tail"].buckets).values()) == {"tail"}


def test_a_fact_and_a_slice_of_one_name_may_both_be_waived(suite_file: Write) -> None:
    facts = world_facts()
    facts[0]["id"] = "monitor[P36]"
    text = HEAD + "monitor: {slices: [P36, P50]}\nwaivers:\n"
    for kind in ("fact", "slice"):
        text += f"  - {{{kind}: 'monitor[P36]', owner: Ann, reason: known, expires: 2030-12-31}}\n"
    suite = load_suite(suite_file(text, facts))
    assert [(of.fact, of.case) for of in suite.cases[0].waivers] == [
        ("monitor[P36]", ""),
        ("", "monitor[P36]"),
    ]
    assert suite.cases[1].waivers == ()


@pytest.mark.parametrize("key", ["owner", "reason", "expires"])
def test_a_waiver_says_who_why_and_until_when(key: str, suite_file: Write) -> None:
    keys = {"fact": "c3", "owner": "Ann", "reason": "known", "expires": "2030-12-31"}
    stated = ", ".join(f"{name}: {text}" for name, text in keys.items() if name != key)
    with pytest.raises(SuiteError, match=f"a waiver lacks the key '{key}'"):
        load_suite(suite_file(HEAD + f"monitor:\nwaivers:\n  - {{{stated}}}\n"))


@pytest.mark.parametrize("key", ["count", "as_of", "expires"])
def test_unseen_questions_need_all_three_keys(key: str, suite_file: Write) -> None:
    keys = {"count": "5", "as_of": "2026-11-01", "expires": "2028-01-01"}
    stated = ", ".join(f"{name}: {text}" for name, text in keys.items() if name != key)
    with pytest.raises(SuiteError, match=f"unseen lacks the key '{key}'"):
        load_suite(suite_file(HEAD + f"reliability:\n  unseen: {{{stated}}}\n"))
    same = {**keys, "expires": "2026-11-01"}
    stated = ", ".join(f"{name}: {text}" for name, text in same.items())
    with pytest.raises(SuiteError, match="expires must be later than as_of"):
        load_suite(suite_file(HEAD + f"reliability:\n  unseen: {{{stated}}}\n"))


def test_unseen_questions_are_for_a_later_day_until_that_day(suite_file: Write) -> None:
    path = suite_file(
        HEAD
        + "reliability:\n  unseen: {count: 5, as_of: 2026-11-01, expires: 2028-01-01}\n"
    )
    days = [
        datetime.date(2026, 10, 31),
        datetime.date(2026, 11, 1),
        datetime.date(2028, 1, 1),
    ]
    assert [len(load_suite(path, today=day).warnings) for day in days] == [1, 0, 0]
    assert (
        "expired on 2028-01-01"
        in load_suite(path, today=datetime.date(2028, 1, 2)).warnings[0]
    )


def fact(name: str, **more: Any) -> Fact:
    return Fact(
        **{
            "id": name,
            "relation": "R",
            "subject": f"s-{name}",
            "object": f"o-{name}",
            **more,
        }
    )


def test_the_majority_is_the_most_frequent_object_and_of_several_the_least() -> None:
    objects = ("rome", "Oslo", "ROME", "oslo", None, "Bern")
    facts = [fact(str(n), object=name, question="q") for n, name in enumerate(objects)]
    for turned in (facts, facts[::-1]):
        # Case apart, and in the least of its spellings.
        assert _majority(turned) == "Oslo"
    assert _majority([*facts, fact("x", object="Rome")]) == "ROME"
    assert _majority(facts[4:5]) == _majority([]) == ""
    assert _majority([fact("y", object="!!!"), fact("z", object="\U0001f3c8")]) == ""


def test_a_shuffled_question_is_drawn_by_seed_and_fact() -> None:
    others = {
        "R": [fact(str(n)) for n in range(40)],
        "S": [fact(f"t{n}") for n in range(40)],
    }
    drawn = {
        (seed, name): _other(fact(name), others, seed)
        for seed in (0, 1)
        for name in ("a", "b", "c", "d")
    }
    assert drawn[0, "a"] == _other(fact("a"), others, 0)
    assert len({one.id for one in drawn.values() if one}) > 4
    for name in "abcd":
        assert drawn[0, name] in others["R"]
    assert any(drawn[0, name] != drawn[1, name] for name in "abcd")


def test_a_shuffled_question_has_another_subject_and_another_answer() -> None:
    one = fact("a", aliases=("alias",))
    refused = [
        fact("b", subject="S-A"),
        fact("c", object="O-A"),
        fact("d", object="ALIAS"),
        fact("e", aliases=("o-a",)),
        fact("f", aliases=("Alias",)),
    ]
    assert _other(one, {"R": refused}, 0) is None
    assert _other(one, {"R": [*refused, fact("g")]}, 0) == fact("g")
    # Of another relation only where its own has none, and there in the order of their names.
    assert _other(one, {"R": refused, "T": [fact("t")], "S": [fact("s")]}, 0) == fact(
        "s"
    )
    assert _other(one, {"R": [fact("r")], "A": [fact("s")]}, 0) == fact("r")
    assert _other(one, {}, 0) is None


SETTINGS = ReliabilitySettings(prompt="four-shot-2")
SHOTS = tuple(
    Shot(question=f"q{n}", answer=None, valid_until="2027-01-01" if n else "")
    for n in range(4)
)


def remaining(
    today: datetime.date, *facts: Fact, shots: tuple[Shot, ...] = ()
) -> tuple[list[str], int, list[str]]:
    case = Case(
        id="c", suite="s", probe="reliability", slice="unseen-four-shot-2", facts=facts, relations=(),
        settings=SETTINGS, gates=(), repository=shots,
    )  # fmt: skip
    (case_after,), warnings = without_expired([case], Path("t.kb.yaml"), today)
    return (
        [one.id for one in case_after.facts],
        len(case_after.repository),
        list(warnings),
    )


def test_a_question_is_left_out_from_its_day_on_and_only_one_without_an_answer() -> (
    None
):
    day = datetime.date(2027, 1, 1)
    unseen = fact("u", object=None, question="q", valid_until="2027-01-01")
    others = (
        fact("never", object=None, question="q"),
        fact("seen", valid_until="2027-01-01"),
    )
    assert remaining(day - datetime.timedelta(1), unseen, *others) == (
        ["u", "never", "seen"],
        0,
        [],
    )
    assert remaining(day, unseen, *others) == (
        ["never", "seen"],
        0,
        [
            "t.kb.yaml:0: left out 1 question of the kind R: since 2027-01-01 it may have an answer"
        ],
    )
    later = fact("later", object=None, question="q", valid_until="2027-01-02")
    with pytest.raises(
        SuiteError,
        match=r"all 2 questions of c may have an answer by now \(the first since 2027-01-01",
    ):
        remaining(datetime.date(2028, 1, 1), later, unseen)


def test_questions_are_counted_by_kind_and_by_day() -> None:
    days = ("2027-01-01", "2027-01-01", "2027-01-02")
    gone = [
        fact(f"{kind}{n}", relation=kind, object=None, question="q", valid_until=day)
        for kind in ("R", "S")
        for n, day in enumerate(days)
    ]
    _, _, warnings = remaining(datetime.date(2028, 1, 1), fact("stays"), *gone[::-1])
    assert warnings == [
        f"t.kb.yaml:0: left out {count} of the kind {kind}: since {day} {they} may have an answer"
        for kind in ("R", "S")
        for count, day, they in (
            ("2 questions", "2027-01-01", "they"),
            ("1 question", "2027-01-02", "it"),
        )
    ]


def test_examples_are_left_out_while_enough_are_left() -> None:
    day, answered = (
        datetime.date(2027, 1, 1),
        Shot(question="a", answer="b", valid_until=""),
    )
    enough = (*SHOTS[:1], Shot(question="z", answer=None), *SHOTS[1:], answered)
    assert remaining(day - datetime.timedelta(1), fact("f"), shots=enough)[1:] == (
        6,
        [],
    )
    assert remaining(day, fact("f"), shots=enough)[1:] == (
        3,
        [
            't.kb.yaml:0: left out 3 examples answered "unsure": since 2027-01-01 they may have an answer'
        ],
    )
    early = Shot(question="e", answer=None, valid_until="2026-12-31")
    assert [
        told[told.index("since") :]
        for told in remaining(day, fact("f"), shots=(*enough, early))[2]
    ] == [
        "since 2026-12-31 it may have an answer",
        "since 2027-01-01 they may have an answer",
    ]
    with pytest.raises(
        SuiteError, match='c shows 2 examples answered "unsure", and 1 of those'
    ):
        remaining(day, fact("f"), shots=(*SHOTS, answered))


def test_a_fact_alone_cannot_be_asked_about_another_subject(suite_file: Write) -> None:
    text = HEAD + "reliability: {controls: asked, relations: [P50], distractors: 4}\n"
    facts = [{**one, "negatives": ["w", "x", "y", "z"]} for one in world_facts()[15:]]
    with pytest.raises(
        SuiteError,
        match=r"fact 'b5' cannot be asked about another subject: found no other",
    ):
        load_suite(suite_file(text, facts))
    both = [{**one, "negatives": ["w", "x", "y", "z"]} for one in world_facts()[14:]]
    case = loaded(suite_file(text, both))["seen-zero-shot"]
    assert [control.shuffled for control in case.controls] == [
        "Who wrote Book 5?",
        "Who wrote Book 4?",
    ]


def test_a_suites_language_is_that_of_facts_that_name_none(suite_file: Write) -> None:
    path = suite_file(HEAD + "language: de\nmonitor: {slices: [P36]}\n")
    facts = path.parent / "facts.jsonl"
    lines = [json.loads(line) for line in facts.read_text("utf-8").splitlines()]
    own = next(line for line in lines if line["relation"] == "P36")
    own["language"] = "fr"
    facts.write_text(
        "".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8"
    )
    (case,) = load_suite(path).cases
    assert {fact.language for fact in case.facts} == {"de", "fr"}
    assert [fact.language for fact in case.facts if fact.subject == own["subject"]] == [
        "fr"
    ]
    assert dict(settings_of(case))["language"] == "de, fr"


def test_nothing_stated_is_english_and_no_setting(suite_file: Write) -> None:
    for text in (HEAD, HEAD + "language: en\n", HEAD + "language: en-GB\n"):
        (case,) = load_suite(suite_file(text + "monitor: {slices: [P36]}\n")).cases
        assert "language" not in dict(settings_of(case))


@pytest.mark.parametrize(
    "written", ["German", "de_DE", "d", "7", "'de '", "[de]", "no", "''"]
)
def test_what_is_no_language_tag_is_refused(suite_file: Write, written: str) -> None:
    with pytest.raises(SuiteError, match=r"t\.kb\.yaml:3: language must be .*, found"):
        load_suite(
            suite_file(HEAD + f"language: {written}\nmonitor: {{slices: [P36]}}\n")
        )


@pytest.mark.parametrize("tag", ["sw", "no", "yue-Hant"])
def test_a_language_without_rules_is_said_in_the_settings(
    suite_file: Write, tag: str
) -> None:
    (case,) = load_suite(
        suite_file(HEAD + f"language: '{tag}'\nmonitor: {{slices: [P36]}}\n")
    ).cases
    language = tag.partition("-")[0]
    assert dict(settings_of(case))["language"] == f"{language} (no rules)"
    assert unsupported_languages(settings_of(case)) == (language,)


@pytest.mark.parametrize("tag", LANGUAGES)
def test_a_known_language_is_not_called_unsupported(
    suite_file: Write, tag: str
) -> None:
    (case,) = load_suite(
        suite_file(HEAD + f"language: '{tag}'\nmonitor: {{slices: [P36]}}\n")
    ).cases
    assert unsupported_languages(settings_of(case)) == ()


def test_the_probes_judge_in_the_facts_language_beside_the_suites_own_patterns(
    suite_file: Write,
) -> None:
    path = suite_file(
        HEAD + "language: de\nuninformative: mine.yaml\nmonitor: {slices: [P36]}\n"
    )
    (path.parent / "mine.yaml").write_text(
        "unsure: ['unsicher bin ich']\n", encoding="utf-8"
    )
    (case,) = load_suite(path).cases
    fact = dataclasses.replace(case.facts[0], object="Lima", aliases=())
    for answer in (
        "Das weiß ich nicht.",
        "unsure",
        "I don't know.",
        "Unsicher bin ich!",
    ):
        assert judged_by_rules(case, fact, answer).label == "uninformative", answer
    assert (
        judged_by_rules(case, fact, "Die Hauptstadt ist nicht Lima.").label == "wrong"
    )
    english = dataclasses.replace(fact, language="en")
    assert (
        judged_by_rules(case, english, "Die Hauptstadt ist nicht Lima.").label
        == "correct"
    )
