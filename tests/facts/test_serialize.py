from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_kbrel.facts.files import as_fact, fact_line, read_facts, read_relations, relations_text
from pytest_kbrel.records import ANSWER_TYPES, BUCKETS, Fact, Relation

TEXT = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cs"], exclude_characters="\0"), min_size=1
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
TEMPLATES = st.lists(TEXT.map(lambda text: text.replace("[", "(")), unique=True, max_size=3)
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
    assert read_facts(path) == (fact,)


@settings(
    max_examples=100,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    deadline=None,
)
@given(relations=st.lists(RELATIONS, min_size=1, max_size=3, unique_by=lambda relation: relation.id))
def test_relations_that_are_written_are_read_again(relations: list[Relation], tmp_path: Path) -> None:
    path = tmp_path / "relations.yaml"
    path.write_text(relations_text(relations), "utf-8", newline="\n")
    assert read_relations(path) == tuple(relations)


def test_a_line_says_what_there_is_to_say() -> None:
    fact = Fact(id="a", relation="P1", subject="s", object=None, question="Who?", popularity=3.0)
    assert json.loads(fact_line(fact)) == {
        "id": "a",
        "relation": "P1",
        "subject": "s",
        "object": None,
        "popularity": 3,
        "question": "Who?",
    }


@pytest.mark.parametrize("name", ["P37", "place_of_birth"])
def test_plain_names_stand_without_quotes(name: str) -> None:
    assert f"\n{name}:\n" in relations_text([Relation(id=name, label="l", domain="d", frames=())])


def test_a_range_is_written_and_read_again() -> None:
    fact = as_fact({"relation": "r", "subject": "s", "object": "120", "answer_range": [118, 122.5]})
    assert '"answer_range": [118, 122.5]}' in fact_line(fact)
    assert as_fact(json.loads(fact_line(fact))) == fact
