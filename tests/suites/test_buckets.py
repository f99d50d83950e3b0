"""The slices of head_to_tail, and the examples its in-domain prompt shows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_kbrel.errors import SuiteError
from pytest_kbrel.facts.sampling import buckets
from pytest_kbrel.suites import load_suite
from tests.suites.examples import HEAD

RELATIONS = """\
P36:
  label: capital
  domain: world
  frames: ["What is the capital of [X]?"]
P50:
  label: author
  domain: world
  frames: ["Who wrote [X]?"]
P57:
  label: director
  domain: films
  frames: ["Who directed [X]?"]
"""
Write = Callable[..., Path]


def lands(count: int, **more: Any) -> list[dict[str, Any]]:
    """Facts c0, c1, ... of one relation, the higher the more popular."""
    given = {"relation": "P36", "popularity": None, **more}
    return [
        {
            **given,
            "id": f"c{n:03}",
            "subject": f"Land {n}",
            "object": f"City {n}",
            "popularity": 1000 + n
            if given["popularity"] is None
            else given["popularity"],
        }
        for n in range(count)
    ]


def slices(path: Path, **more: Any) -> dict[str, list[str]]:
    return {
        case.slice: [fact.id for fact in case.facts]
        for case in load_suite(path, **more).cases
    }


TOP = HEAD + "head_to_tail: {slices: [world-head, world-top10]}\n"


def test_the_top_tenth_is_the_most_popular_tenth_of_the_head_rounded_up(
    suite_file: Write,
) -> None:
    facts = lands(100)
    by_slice = slices(suite_file(TOP, facts, RELATIONS))
    head = [
        f["id"]
        for f, b in zip(facts, buckets([f["popularity"] for f in facts]), strict=True)
        if b == "head"
    ]
    assert by_slice["world-head"] == head
    assert len(head) == 32
    assert by_slice["world-top10"] == head[-4:]


def test_what_the_source_has_bucketed_stays(suite_file: Write) -> None:
    facts = lands(9)
    for fact, bucket in zip(facts, ["head", "torso", "tail"] * 3, strict=True):
        fact["bucket"] = bucket
        del fact["popularity"]
    by_slice = slices(suite_file(HEAD + "head_to_tail:\n", facts, RELATIONS))
    assert by_slice == {
        "world-head": ["c000", "c003", "c006"],
        "world-torso": ["c001", "c004", "c007"],
        "world-tail": ["c002", "c005", "c008"],
    }
    with pytest.raises(
        SuiteError,
        match=r"facts\.jsonl:1: fact 'c000' has no 'popularity'.*top10 needs",
    ):
        load_suite(suite_file(TOP, facts, RELATIONS))


def test_a_proxy_of_popularity_is_named_and_a_weak_one_has_no_gap(
    suite_file: Write,
) -> None:
    proxy = "  domain: world\n  proxy: {name: length of the name, worth: weak}\n"
    relations = RELATIONS.replace("  domain: world\n", proxy, 1)
    facts = lands(9)
    # Its popularity is not known: it is in no bucket.
    del facts[4]["popularity"]
    text = HEAD + "head_to_tail:\n"
    suite = load_suite(suite_file(text, facts, relations))
    asked = {fact.id for case in suite.cases for fact in case.facts}
    assert asked == {fact["id"] for fact in facts} - {"c004"}
    assert {case.notes for case in suite.cases} == {
        ("buckets by proxies of popularity: length of the name (weak): P36",)
    }
    gap = text + "  overall: {gates: {gap: 0.1}}\n"
    with pytest.raises(SuiteError, match=r"weak proxies, found: P36; allowed: slices"):
        load_suite(suite_file(gap, facts, relations))
    load_suite(suite_file(gap, facts, relations.replace("weak", "fair")))


def predicates(
    *counts: int, stated: tuple[str, ...] = ()
) -> tuple[list[dict[str, Any]], str]:
    """As many facts of each of several relations as said, and the relations."""
    facts = [
        {"relation": f"R{r}", "subject": f"S{n}", "object": f"O{n}"}
        for r, count in enumerate(counts)
        for n in range(count)
    ]
    lines = [
        f'R{r}: {{label: r, domain: world, frames: ["What of [X]?"]{more}}}\n'
        for r, more in enumerate(stated or [""] * len(counts))
    ]
    return facts, "".join(lines)


def test_predicates_are_bucketed_by_their_number_of_facts(suite_file: Write) -> None:
    counts = (8, 7, 6, 5, 4, 3, 2, 1)
    facts, relations = predicates(*counts)
    by_slice = slices(
        suite_file(HEAD + "head_to_tail: {bucket_by: predicate}\n", facts, relations)
    )
    # Of 36: 1 3 6 10 15 21 28 36, so the 5 crosses 12 and the 7 crosses 24.
    assert {
        name: sorted({f.partition(":")[0] for f in ids})
        for name, ids in by_slice.items()
    } == {
        "world-head": ["R0"],
        "world-torso": ["R1", "R2"],
        "world-tail": ["R3", "R4", "R5", "R6", "R7"],
    }
    assert {name: len(ids) for name, ids in by_slice.items()} == {
        "world-head": 8,
        "world-torso": 13,
        "world-tail": 15,
    }


@pytest.mark.parametrize(
    ("gates", "message"),
    [
        (
            "accuracy: 0.1",
            r"t\.kb\.yaml:4: accuracy needs a slice head, torso, tail, found: world-top10",
        ),
        ("accuracy_head: 0.1", r"accuracy_head needs a slice head, found: world-top10"),
    ],
)
def test_figures_over_all_facts_need_more_than_the_top_tenth(
    suite_file: Write, gates: str, message: str
) -> None:
    text = (
        f"head_to_tail:\n  slices: [world-top10]\n  overall: {{gates: {{{gates}}}}}\n"
    )
    with pytest.raises(SuiteError, match=message.replace(":4:", ":5:")):
        load_suite(suite_file(HEAD + text, lands(100), RELATIONS))


IN_DOMAIN = HEAD + "head_to_tail: {prompt: in-domain}\n"


def examples(path: Path, **more: Any) -> dict[str, tuple[str, str | None]]:
    """Return question and answer of the example that each fact is shown."""
    cases = load_suite(path, **more).cases
    assert all(
        [name for name, _ in case.shots] == [fact.id for fact in case.facts]
        for case in cases
    )
    return {
        name: (shot.question, shot.answer)
        for case in cases
        for name, (shot,) in case.shots
    }


def test_an_example_shares_neither_subject_nor_answer(suite_file: Write) -> None:
    facts = lands(30)
    for fact in facts[:27]:
        fact["object"], fact["aliases"] = "Paris", ["City of Light"]
    facts[27] |= {"object": "PARIS"}
    facts[28] |= {"object": "city of light"}
    facts[29] |= {"object": "Rome", "subject": "Elsewhere"}
    chosen = examples(suite_file(IN_DOMAIN, facts, RELATIONS))
    assert {answer for name, (_, answer) in chosen.items() if name < "c027"} == {"Rome"}
    assert chosen["c029"][1] != "Rome"
    facts[29]["subject"] = "LAND 3"
    suite = load_suite(suite_file(IN_DOMAIN, facts, RELATIONS))
    bare = [name for case in suite.cases for name, shown in case.shots if not shown]
    assert bare == ["c003"]


def test_a_fact_without_an_in_domain_example_is_counted_and_said(
    suite_file: Write,
) -> None:
    alone = {
        "id": "b1",
        "relation": "P50",
        "subject": "Book",
        "object": "Author",
        "popularity": 1,
    }
    cases = {
        case.slice: case
        for case in load_suite(
            suite_file(IN_DOMAIN, [*lands(9), alone], RELATIONS)
        ).cases
    }
    (case,) = (case for case in cases.values() if case.notes)
    assert dict(case.shots)["b1"] == ()
    assert case.notes == (
        "1 of 5 facts: no other fact of the relation can be an in-domain example, so that the examples of "
        "'few-shot' are shown",
    )
