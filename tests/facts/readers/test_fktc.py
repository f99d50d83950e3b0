from __future__ import annotations

from pathlib import Path

import pytest

from pytest_kbrel.errors import SuiteError
from tests.facts.readers.conftest import Read, found_in, lines

HEADER = {"relations": ["Who sings in [X]?", "Which voice is heard in [X]?"]}


def row(subject: str, obj: str, *negatives: str) -> dict[str, object]:
    return {"subject": subject, "object": obj, "taxonomy": list(negatives)}


def test_header_facts_and_negatives(read_text: Read) -> None:
    text = lines(HEADER, row("Blue  Hour", "Ana", "Bo", "Cy"), "", row("Red Hour.", "Bo", "Ana"))
    result = read_text("fktc", "P175-subclass.json", text)
    assert result.relation.frames == ("Who sings in [X]?", "Which voice is heard in [X]?")
    assert (result.relation.id, result.relation.label) == ("P175", "performer")
    assert result.lines == [2, 4]
    first, second = result.facts
    assert (first.id, first.relation, first.dataset) == ("P175:Blue Hour:Ana", "P175", "fktc")
    assert (first.subject, first.object, first.negatives) == ("Blue Hour", "Ana", ("Bo", "Cy"))
    assert second.subject == "Red Hour."


@pytest.mark.parametrize("name", ["P175-subclass..json", "P175.json", "P175-subclass.json"])
def test_the_relation_is_in_the_file_name(name: str, read_text: Read) -> None:
    assert read_text("fktc", name, lines(HEADER, row("a", "b", "c"))).relation.id == "P175"


def test_as_many_frames_as_the_data_has_and_none_twice(read_text: Read) -> None:
    prompts = [f"Question {n} about [X]?" for n in range(5)]
    header = {"relations": [*prompts, prompts[0], "One more on [X]?"]}
    relation = read_text("fktc", "P1-subclass.json", lines(header, row("a", "b", "c"))).relation
    assert relation.frames == (*prompts, "One more on [X]?")
    assert (relation.id, relation.label) == ("P1", "P1")


def test_a_duplicate_is_kept_and_names_the_first(read_text: Read) -> None:
    text = lines(HEADER, row("a", "b", "c"), row("a", "b", "d"), row("a", "e", "c"), row("a", "b", "f"))
    facts = read_text("fktc", "P2-subclass.json", text).facts
    assert [(fact.id, fact.duplicate_of) for fact in facts] == [
        ("P2:a:b", ""),
        ("P2:a:b#2", "P2:a:b"),
        ("P2:a:e", ""),
        ("P2:a:b#3", "P2:a:b"),
    ]


def test_an_id_that_looks_like_that_of_a_duplicate(read_text: Read) -> None:
    text = lines(HEADER, row("a", "b", "c"), row("a", "b#2", "c"), row("a", "b", "c"))
    facts = read_text("fktc", "P2-subclass.json", text).facts
    assert [(fact.id, fact.duplicate_of) for fact in facts] == [
        ("P2:a:b", ""),
        ("P2:a:b#2", ""),
        ("P2:a:b#3", "P2:a:b"),
    ]


def test_a_folder_is_all_its_files(tmp_path: Path) -> None:
    for name in ("P1", "P2"):
        text = lines(HEADER, row("a", "b", "c"))
        (tmp_path / f"{name}-subclass.json").write_text(text, "utf-8")
    (tmp_path / "other.json").write_text("{}")
    result = found_in("fktc", tmp_path)
    assert [fact.id for fact in result.facts] == ["P1:a:b", "P2:a:b"]
    assert list(result.relations) == ["P1", "P2"]


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        ("{", "not JSON: Expecting property name"),
        ("[1]", "not a JSON object: found a list"),
        ({"subject": "a", "object": "b"}, "the key 'taxonomy' is missing; found: subject, object"),
        ({"subject": "a", "object": "b", "taxonomy": "c"}, "'taxonomy' must be a list of texts, found 'c'"),
        (row("a", "  ", "c"), "'object' must be text or a number, found '  '"),
        (row("a", "b", "B"), "'negatives' must be wrong answers, found 'B'"),
        (row("a", "b", "c", "C"), "found 'c' twice"),
    ],
)
def test_a_broken_line_says_where_and_does_not_end_the_file(
    broken: object, message: str, read_text: Read, tmp_path: Path
) -> None:
    result = read_text(
        "fktc", "P1-subclass.json", lines(HEADER, row("x", "y", "z"), broken, row("u", "v", "w"))
    )
    (error,) = result.errors
    assert error.startswith(f"{tmp_path / 'P1-subclass.json'}:3: ")
    assert message in error
    assert [fact.subject for fact in result.facts] == ["x", "u"]


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (
            row("a", "b", "c"),
            ":1: no 'relations' with the prompts; found: subject, object, taxonomy; an FKTC",
        ),
        ({"relations": []}, ":1: no 'relations' with the prompts"),
        ({"relations": ["Who?"]}, r":1: each of 'relations' must contain \[X\] exactly once, found 'Who\?'"),
        ({"relations": [7, 8]}, r":1: each of 'relations' must contain \[X\] exactly once, found '7'"),
        ("nothing", ":1: not JSON: found 'nothing'"),
    ],
)
def test_a_wrong_header_is_the_end(header: object, message: str, read_text: Read) -> None:
    with pytest.raises(SuiteError, match=message):
        read_text("fktc", "P1-subclass.json", lines(header, row("a", "b", "c")))


@pytest.mark.parametrize("name", ["capitals.json", "P37x.json", "data-P37.json", "-subclass.json"])
def test_a_file_whose_name_says_no_relation(name: str, read_text: Read) -> None:
    with pytest.raises(SuiteError, match="name must begin with its relation, which stands"):
        read_text("fktc", name, lines(HEADER, row("a", "b", "c")))


def test_a_relation_of_ones_own_stands_before_subclass(read_text: Read) -> None:
    text = lines(HEADER, row("a", "b", "c"))
    assert read_text("fktc", "capitals-subclass.json", text).relation.id == "capitals"


def test_nothing_to_read(tmp_path: Path, read_text: Read) -> None:
    with pytest.raises(SuiteError, match=r"P1\.json:1: the file is empty; an FKTC file has"):
        read_text("fktc", "P1.json", "")
    with pytest.raises(SuiteError, match="no facts found"):
        read_text("fktc", "P1.json", lines(HEADER))
    with pytest.raises(SuiteError, match="cannot be read: No such file"):
        found_in("fktc", tmp_path / "P9.json")
    (tmp_path / "empty").mkdir()
    with pytest.raises(SuiteError, match=r"found no file called \*-subclass"):
        found_in("fktc", tmp_path / "empty")
    with pytest.raises(SuiteError, match="is a folder; allowed: a file of the format nq-open"):
        found_in("nq-open", tmp_path / "empty")
