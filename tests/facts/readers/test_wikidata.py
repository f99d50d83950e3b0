from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_kbrel.errors import SuiteError
from pytest_kbrel.facts.readers.relations import read_patterns
from tests.facts.readers.conftest import Read, found_in, lines

HEADER = {"relations": ["Who sings in [X]?", "Which voice is heard in [X]?"]}


def row(subject: str, obj: str, *negatives: str) -> dict[str, object]:
    return {"subject": subject, "object": obj, "taxonomy": list(negatives)}


def test_an_id_that_looks_like_that_of_a_duplicate(read_text: Read) -> None:
    text = lines(HEADER, row("a", "b", "c"), row("a", "b#2", "c"), row("a", "b", "c"))
    facts = read_text("fktc", "P2-subclass.json", text).facts
    assert [(fact.id, fact.duplicate_of) for fact in facts] == [
        ("P2:a:b", ""),
        ("P2:a:b#2", ""),
        ("P2:a:b#3", "P2:a:b"),
    ]


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        ("{", "not JSON: Expecting property name"),
        ("[1]", "not a JSON object: found a list"),
        (
            {"subject": "a", "object": "b"},
            "the key 'taxonomy' is missing; found: subject, object",
        ),
        (
            {"subject": "a", "object": "b", "taxonomy": "c"},
            "'taxonomy' must be a list of texts, found 'c'",
        ),
        (row("a", "  ", "c"), "'object' must be text or a number, found '  '"),
        (row("a", "b", "B"), "'negatives' must be wrong answers, found 'B'"),
    ],
)
def test_a_broken_line_says_where_and_does_not_end_the_file(
    broken: object, message: str, read_text: Read, tmp_path: Path
) -> None:
    result = read_text(
        "fktc",
        "P1-subclass.json",
        lines(HEADER, row("x", "y", "z"), broken, row("u", "v", "w")),
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
        (
            {"relations": ["Who?"]},
            r":1: each of 'relations' must contain \[X\] exactly once, found 'Who\?'",
        ),
        (
            {"relations": [7, 8]},
            r":1: each of 'relations' must contain \[X\] exactly once, found '7'",
        ),
        ("nothing", ":1: not JSON: Expecting value in column 1, found 'nothing'"),
    ],
)
def test_a_wrong_header_is_the_end(
    header: object, message: str, read_text: Read
) -> None:
    with pytest.raises(SuiteError, match=message):
        read_text("fktc", "P1-subclass.json", lines(header, row("a", "b", "c")))


def test_nothing_to_read(tmp_path: Path, read_text: Read) -> None:
    with pytest.raises(
        SuiteError, match=r"P1\.json:1: the file is empty; an FKTC file has"
    ):
        read_text("fktc", "P1.json", "")
    with pytest.raises(SuiteError, match="no facts found"):
        read_text("fktc", "P1.json", lines(HEADER))
    with pytest.raises(SuiteError, match="cannot be read: No such file"):
        found_in("fktc", tmp_path / "P9.json")
    (tmp_path / "empty").mkdir()
    with pytest.raises(SuiteError, match=r"found no file called \*-subclass"):
        found_in("fktc", tmp_path / "empty")
    with pytest.raises(
        SuiteError, match="is a folder; allowed: a file of the format nq-open"
    ):
        found_in("nq-open", tmp_path / "empty")


PATTERNS = lines(
    {"pattern": "[X] flows into [Y] .", "lemma": "flow"},
    {"pattern": "[X] flows into [Y].", "tense": "present"},
    {"pattern": "The mouth of [X] , as we know , is [Y].."},
)
FACTS = lines(
    {"sub_label": "Isar", "obj_label": "Danube", "uuid": "1"},
    {"sub_label": "Isar", "obj_label": "Danube", "uuid": "2"},
    {"sub_label": "Inn", "obj_label": "Danube", "uuid": "3"},
)


def pararel(folder: Path) -> Path:
    for name in ("graphs_json", "trex_lms_vocab"):
        (folder / name).mkdir()
    for name in ("P403", "P17"):
        (folder / "graphs_json" / f"{name}.jsonl").write_text(PATTERNS)
    (folder / "trex_lms_vocab" / "P403.jsonl").write_text(FACTS)
    return folder


def test_pararel_patterns_are_statements_each_once(tmp_path: Path) -> None:
    folder = pararel(tmp_path)
    assert read_patterns(folder / "graphs_json" / "P17.jsonl") == (
        "[X] flows into [Y].",
        "[X] flows into [Y].",
        "The mouth of [X], as we know, is [Y].",
    )
    result = found_in("pararel", folder)
    assert list(result.relations) == ["P403"]
    assert result.relations["P403"].statements == (
        "[X] flows into [Y].",
        "The mouth of [X], as we know, is [Y].",
    )
    assert result.relations["P403"].frames == ()
    assert [(fact.id, fact.duplicate_of) for fact in result.facts] == [
        ("P403:Isar:Danube", ""),
        ("P403:Isar:Danube#2", "P403:Isar:Danube"),
        ("P403:Inn:Danube", ""),
    ]


def test_pararel_without_its_patterns(tmp_path: Path) -> None:
    folder = pararel(tmp_path)
    (folder / "graphs_json" / "P403.jsonl").unlink()
    for path in (folder, folder / "trex_lms_vocab" / "P403.jsonl"):
        with pytest.raises(
            SuiteError,
            match=r"found no patterns for it: .*graphs_json/P403\.jsonl is no file",
        ):
            found_in("pararel", path)
    with pytest.raises(
        SuiteError, match=r"found no file called trex_lms_vocab/\*\.jsonl"
    ):
        found_in("pararel", folder / "graphs_json")
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "P1.jsonl").write_text(FACTS)
    with pytest.raises(
        SuiteError, match=r"found no patterns for it: .*P1\.jsonl is no file"
    ):
        found_in("pararel", tmp_path / "a" / "b" / "P1.jsonl")


QUIZ = {
    "P403": {
        "templates": ["The [X] ends in the [Y].", "[X] ends in [Y] ."],
        "answer_space": ["Danube", "Rhine"],
    },
    "P50": {
        "templates": ["[X] was written by [Y]."],
        "answer_space_labels": ["Jo", "Flo"],
    },
}


def test_lm_pub_quiz(tmp_path: Path) -> None:
    (tmp_path / "metadata_relations.json").write_text(json.dumps(QUIZ))
    (tmp_path / "P403.jsonl").write_text(
        lines(
            {
                "sub_id": "Q1",
                "sub_label": "Isar",
                "sub_aliases": [],
                "obj_label": "Danube",
                "obj_id": "Q2",
            }
        )
    )
    (tmp_path / "P50.jsonl").write_text(
        lines(
            {"sub_label": "Ash", "answer_idx": 1},
            {"sub_label": "Oak", "obj_label": "Jo", "obj_aliases": ["Joe", "JO"]},
            {"sub_label": "Elm", "answer_idx": 2},
        )
    )
    result = found_in("lama", tmp_path)
    assert [(fact.id, fact.aliases) for fact in result.facts] == [
        ("P403:Isar:Danube", ()),
        ("P50:Ash:Flo", ()),
        ("P50:Oak:Jo", ("Joe",)),
    ]
    assert result.errors == [
        f"{tmp_path / 'P50.jsonl'}:3: 'answer_idx' must be 0 to 1, found 2"
    ]
    assert result.relations["P403"].statements == (
        "The [X] ends in the [Y].",
        "[X] ends in [Y].",
    )
    assert result.relations["P50"].label == "author"


def test_lama_with_its_relations_file_above(tmp_path: Path) -> None:
    (tmp_path / "relations.jsonl").write_text(
        lines(
            {
                "relation": "P9",
                "template": "[X] likes [Y] .",
                "label": "likes",
                "type": "N-M",
            }
        )
    )
    (tmp_path / "TREx").mkdir()
    path = tmp_path / "TREx" / "any.jsonl"
    path.write_text(
        lines(
            {
                "predicate_id": "P9",
                "sub_label": "Ann",
                "obj_label": 3,
                "evidences": [{}],
            }
        )
    )
    for place in (path, path.parent):
        result = found_in("lama", place)
        assert (result.relation.id, result.relation.label) == ("P9", "likes")
        assert result.relation.statements == ("[X] likes [Y].",)
        assert [(fact.object, fact.answer_type) for fact in result.facts] == [
            ("3", "number")
        ]
    with pytest.raises(SuiteError, match="there are some in TREx"):
        found_in("lama", tmp_path)


def test_lama_without_templates(tmp_path: Path) -> None:
    path = tmp_path / "P17.jsonl"
    path.write_text(
        lines({"sub_label": "Ulm", "obj_label": "Germany"}, {"sub_label": "Ulm"}, "x")
    )
    result = found_in("lama", path)
    assert result.relation.statements == ()
    assert [error.removeprefix(f"{path}:") for error in result.errors] == [
        "2: the key 'obj_label' is missing; found: sub_label; needed: sub_label, obj_label",
        "3: not JSON: Expecting value in column 1, found 'x'; a file of LAMA's kind has one "
        '{"sub_label": ..., "obj_label": ...} a line',
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "found an empty list; metadata_relations.json is"),
        ('{"P1": {"template": []}}', "relation 'P1' must have a list 'templates'"),
        (
            '{"P1": {"templates": ["[X] of [X] [Y]"]}}',
            r"'a template of P1' must contain \[X\] exactly once",
        ),
    ],
)
def test_a_wrong_metadata_file(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "metadata_relations.json").write_text(text)
    (tmp_path / "P1.jsonl").write_text(FACTS)
    with pytest.raises(SuiteError, match=r"metadata_relations\.json: " + message):
        found_in("lama", tmp_path)
