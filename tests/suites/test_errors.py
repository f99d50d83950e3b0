from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_kbrel.errors import SuiteError
from pytest_kbrel.suites import load_suite
from tests.suites.conftest import RELATIONS, world_facts
from tests.suites.examples import HEAD
from tests.suites.meaning_errors import MEANING_ERRORS
from tests.suites.shape_errors import SHAPE_ERRORS

ERRORS = {**SHAPE_ERRORS, **MEANING_ERRORS}

# What the schema cannot say: how the parts of a tolerance stand to each other.
UNORDERED: dict[str, tuple[str, tuple[str, ...]]] = {
    "{max_drop: {within: 0.02, beyond: 0.05}}": (
        "beyond",
        ("must be below 'within' (0.02)", "found 0.05"),
    ),
    "{max_drop: {within: 0.02, beyond: 0.02}}": (
        "beyond",
        ("must be below 'within' (0.02)", "found 0.02"),
    ),
    "{recovery: {within: 0.9, beyond: 0.8}}": (
        "beyond",
        ("must be above 'within' (0.9)", "found 0.8"),
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_wrong_suite_says_where_what_was_found_and_what_is_allowed(
    name: str, suite_file: Callable[..., Path]
) -> None:
    text, line, parts = ERRORS[name]
    path = suite_file(text)
    with pytest.raises(SuiteError) as caught:
        load_suite(path)
    assert str(caught.value).startswith(f"{path}:{line}: ")
    assert (caught.value.path, caught.value.line) == (path, line)
    for part in parts:
        assert part in str(caught.value)


@pytest.mark.parametrize("gate", UNORDERED)
def test_the_parts_of_a_tolerance_stand_in_order(
    gate: str, suite_file: Callable[..., Path]
) -> None:
    part, words = UNORDERED[gate]
    with pytest.raises(SuiteError) as caught:
        load_suite(
            suite_file(
                HEAD + f"monitor:\n  gates:\n    accuracy:\n      {gate[1:-1]}\n"
            )
        )
    assert repr(part) in str(caught.value)
    for word in words:
        assert word in str(caught.value)


def test_suite_that_is_not_utf8(suite_file: Callable[..., Path]) -> None:
    path = suite_file("")
    path.write_bytes(b"suite: t\nfacts: \xff\n")
    with pytest.raises(SuiteError, match=r"t\.kb\.yaml:2: not UTF-8: found byte 0xff"):
        load_suite(path)


def test_suite_with_control_characters(suite_file: Callable[..., Path]) -> None:
    with pytest.raises(SuiteError, match=r"t\.kb\.yaml:\d+: not valid YAML: .*"):
        load_suite(suite_file("suite: t\nfacts: a\x00b\n"))


@pytest.mark.parametrize(
    "opening",
    [
        "[",
        "{a: ",
    ],
)
def test_deep_nesting_is_an_error_and_no_crash(
    opening: str, suite_file: Callable[..., Path]
) -> None:
    with pytest.raises(SuiteError, match="levels deep"):
        load_suite(suite_file(opening * 50_000))


def test_no_relations_file_beside_the_facts(suite_file: Callable[..., Path]) -> None:
    path = suite_file(HEAD + "monitor:\n")
    (path.parent / "relations.yaml").unlink()
    with pytest.raises(
        SuiteError,
        match=r":2: no relations\.yaml beside the facts file.*not found; allowed",
    ):
        load_suite(path)


def test_fact_without_popularity(suite_file: Callable[..., Path]) -> None:
    facts = world_facts()
    del facts[2]["popularity"]
    path = suite_file(HEAD + "head_to_tail:\n", facts)
    with pytest.raises(
        SuiteError,
        match=r"facts\.jsonl:3: fact 'c2' has no 'popularity'.*allowed: a number",
    ):
        load_suite(path)
    path.write_text(HEAD + "head_to_tail: {slices: [culture-head]}\n", "utf-8")
    assert [case.slice for case in load_suite(path).cases] == ["culture-head"]


@pytest.mark.parametrize(
    ("probe", "message"),
    [
        (
            "monitor: {slices: [P50]}",
            r"facts\.jsonl:11: fact 'b0' .*relation 'P50' has no frames; allowed: ",
        ),
        (
            "head_to_tail: {slices: [culture-tail]}",
            r"facts\.jsonl:11: fact 'b0' has no question.*allowed: either",
        ),
        (
            "reliability: {relations: [P50]}",
            r"facts\.jsonl:11: fact 'b0' has no question.*allowed: either",
        ),
    ],
)
def test_relation_without_frames(
    probe: str, message: str, suite_file: Callable[..., Path]
) -> None:
    relations = RELATIONS.replace('  frames: ["Who wrote [X]?"]\n', "")
    with pytest.raises(SuiteError, match=message):
        load_suite(suite_file(HEAD + probe + "\n", relations=relations))


def test_one_object_leaves_monitor_without_contexts(
    suite_file: Callable[..., Path],
) -> None:
    facts = [fact | {"object": "Lima"} for fact in world_facts()[:10]]
    with pytest.raises(
        SuiteError,
        match=r"t\.kb\.yaml:3: slice 'P36': fact 'c0' .*at least 1 .*found 0.*allowed",
    ):
        load_suite(suite_file(HEAD + "monitor:\n", facts))


def test_four_distractors_are_the_least(suite_file: Callable[..., Path]) -> None:
    path = suite_file(HEAD + "reliability:\n", world_facts()[:5])
    assert len(load_suite(path).cases[0].facts[0].negatives) == 4
    with pytest.raises(
        SuiteError,
        match=r":3: slice 'known': fact 'c0' .*least 4 .*found 3.*allowed",
    ):
        load_suite(suite_file(HEAD + "reliability:\n", world_facts()[:4]))
