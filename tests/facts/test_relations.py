from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_kbrel.errors import SuiteError
from pytest_kbrel.facts.files import (
    as_fact,
    fact_line,
    read_relations,
    relations_text,
)
from pytest_kbrel.facts.readers import read_own_facts
from pytest_kbrel.records import ANSWER_TYPES, BUCKETS, Fact, Relation

TOP = "P36:\n  label: capital\n  domain: geography\n"


def write(folder: Path, text: str) -> Path:
    path = folder / "relations.yaml"
    path.write_text(text, "utf-8")
    return path


@pytest.mark.parametrize(
    ("text", "line", "parts"),
    [
        ("- P36\n", 1, ("a relations file must be a mapping", "found a list")),
        ("{}\n", 1, ("at least one relation", "found an empty mapping")),
        ("P36: capital\n", 1, ("relation P36 must be a mapping", "found 'capital'")),
        (
            "P36:\n  label: x\n",
            1,
            (
                "relation P36 lacks the key 'domain'",
                "found: label",
                "needed: label, domain",
            ),
        ),
        (
            TOP + "  frame: [a]\n",
            4,
            ("unknown key 'frame' in relation P36", "did you mean 'frames'?"),
        ),
        (
            TOP.replace("geography", "a-b"),
            3,
            ("domain must be ASCII letters", "found 'a-b'"),
        ),
        (TOP.replace("P36", '"Zü"'), 1, ("ASCII letters", "found 'Zü'")),
        (TOP + TOP, 4, ("key 'P36' stands twice", "line 1")),
        ("1: {label: x, domain: y}\n", 1, ("a key must be text, found 1", "quotes")),
        (
            TOP + "  frames: What of [X]?\n",
            4,
            ("must be a list", "found 'What of [X]?'"),
        ),
        (
            TOP + "  frames:\n    - a [X]\n    - b\n",
            6,
            ("must contain [X] exactly once, found 0 times in 'b'",),
        ),
        (
            TOP + "  frames:\n    - a [X]\n    - a [X]\n",
            6,
            ("must differ", "found 'a [X]' again from line 5"),
        ),
        (TOP + "  statements:\n    - a [X]\n", 5, ("[Y] exactly once, found 0 times",)),
        (TOP + "  frames:\n    - 5\n", 5, ("text", "found 5")),
    ],
)
def test_errors(text: str, line: int, parts: tuple[str, ...], tmp_path: Path) -> None:
    path = write(tmp_path, text)
    with pytest.raises(SuiteError) as caught:
        read_relations(path)
    assert str(caught.value).startswith(f"{path}:{line}: ")
    for part in parts:
        assert part in str(caught.value)


TEXT = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cs"], exclude_characters="\0"),
    min_size=1,
).map(lambda text: " ".join(text.split()) or "x")
NAME = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_.]*", fullmatch=True) | st.sampled_from(
    ["1e5", "12", "true", "No", "null", "P37", "0x1f", "1.5", "2026.01", "y"]
)
FACTS = st.builds(
    Fact,
    id=TEXT,
    relation=NAME,
    subject=TEXT,
    object=TEXT,
    aliases=st.lists(TEXT, max_size=2).map(tuple),
    popularity=st.none() | st.floats(0, 1e300),
    question=st.none() | TEXT,
    source=TEXT,
    answer_type=st.sampled_from(["", *ANSWER_TYPES]),
    bucket=st.sampled_from(["", *BUCKETS]),
    duplicate_of=st.just("") | TEXT,
)
TEMPLATES = st.lists(
    TEXT.map(lambda text: text.replace("[", "(")), unique=True, max_size=3
)
RELATIONS = st.builds(
    Relation,
    id=NAME,
    label=TEXT,
    domain=NAME,
    frames=TEMPLATES.map(lambda texts: tuple(f"{text} [X]" for text in texts)),
    statements=TEMPLATES.map(lambda texts: tuple(f"[Y] {text} [X]" for text in texts)),
    answer_type=st.sampled_from(["", *ANSWER_TYPES]),
    popularity=st.none() | st.floats(0, 1e300),
)


@settings(
    max_examples=100,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    deadline=None,
)
@given(fact=FACTS)
def test_a_fact_that_is_written_is_read_again(fact: Fact, tmp_path: Path) -> None:
    path = tmp_path / "facts.jsonl"
    path.write_text(fact_line(fact), "utf-8", newline="\n")
    assert read_own_facts(path) == (fact,)


@settings(
    max_examples=100,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    deadline=None,
)
@given(
    relations=st.lists(
        RELATIONS, min_size=1, max_size=3, unique_by=lambda relation: relation.id
    )
)
def test_relations_that_are_written_are_read_again(
    relations: list[Relation], tmp_path: Path
) -> None:
    path = tmp_path / "relations.yaml"
    path.write_text(relations_text(relations), "utf-8", newline="\n")
    assert read_relations(path) == tuple(relations)


def test_a_range_is_written_and_read_again() -> None:
    fact = as_fact(
        {"relation": "r", "subject": "s", "object": "120", "answer_range": [118, 122.5]}
    )
    assert '"answer_range": [118, 122.5]}' in fact_line(fact)
    assert as_fact(json.loads(fact_line(fact))) == fact
