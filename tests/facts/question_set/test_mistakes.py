"""What a user may get wrong when building a question set."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_kbrel.cli import main

pytest.importorskip("duckdb")

DUMP = "subject,relation,object,popularity\n" + "".join(
    f"Land {n},P36,City {n},{n}\n" for n in range(1, 9)
)
TEMPLATES = "P36: {question: 'What is the capital of [X]?'}\n"
Fails = Callable[..., str]


@pytest.fixture
def fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Fails:
    """Run the command, which must fail without a traceback and write nothing; return what it says."""

    def run(
        *options: str,
        dump: str = DUMP,
        templates: str = TEMPLATES,
        name: str = "dump.csv",
    ) -> str:
        (tmp_path / name).write_text(dump, encoding="utf-8")
        (tmp_path / "templates.yaml").write_text(templates, encoding="utf-8")
        arguments = [
            "build",
            "head-to-tail",
            str(tmp_path / name),
            "--templates",
            str(tmp_path / "templates.yaml"),
        ]
        assert main([*arguments, "--output", str(tmp_path / "set"), *options]) == 2
        assert not (tmp_path / "set").exists()
        result = capsys.readouterr().err
        assert result.startswith("kbrel: ")
        return result

    return run


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ("--popularity", "populatity"),
            "dump.csv: no column 'populatity' (--popularity); allowed: subject, ",
        ),
        (
            ("--table",),
            "no column 'P36' (a template's 'from'); allowed: subject, relation, object, popularity",
        ),
        (
            ("--table", "--relation", "x"),
            "--relation 'x' beside --table; allowed: one of them",
        ),
        (("--memory-limit", "lots"), "lots"),
        (("--format", "parquet"), "dump.csv: "),
    ],
)
def test_options(fails: Fails, options: tuple[str, ...], message: str) -> None:
    assert message in fails(*options)


@pytest.mark.parametrize(
    ("templates", "message"),
    [
        (
            "P36: {question: 'What is the capital?'}\n",
            "templates.yaml:1: question must contain [X] exactly once",
        ),
        ("P36: {qestion: '[X]?'}\n", "unknown key 'qestion' in template P36"),
        ("P36: {label: capital}\n", "template P36 lacks the key 'question'"),
        (
            "\n<P36>: {question: '[X]?'}\n",
            "templates.yaml:2: a relation's id must be ASCII letters",
        ),
        (
            "P36: {question: '[X]?', domain: 'a-b'}\n",
            "domain must be ASCII letters, digits",
        ),
        (
            "P36: {question: '[X]?', cap: 0}\n",
            "cap of P36 must be a whole number from 1 to 999,999",
        ),
        (
            "P36: {question: '[X]?'}\nP37: {question: '[X]!', from: P36}\n",
            "templates.yaml:2: P36 and P37 are both from 'P36'",
        ),
        ("[]\n", "a file of templates must be a mapping"),
    ],
)
def test_templates(fails: Fails, templates: str, message: str) -> None:
    assert message in fails(templates=templates)


def test_a_dump_whose_name_tells_nothing(fails: Fails) -> None:
    assert "dump.dat: its name tells no format; allowed: a name in .csv, .tsv" in fails(
        name="dump.dat"
    )


def test_a_dump_that_is_not_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "t.yaml").write_text(TEMPLATES, encoding="utf-8")
    arguments = [
        "build",
        "head-to-tail",
        "none.csv",
        "--templates",
        str(tmp_path / "t.yaml"),
        "--output",
        "set",
    ]
    assert main(arguments) == 2
    assert "none.csv: cannot be read: no such file" in capsys.readouterr().err


def test_a_broken_row_is_named_by_its_line(fails: Fails) -> None:
    result = fails(dump=DUMP + "Land 9,P36\n")
    assert "dump.csv:10: DuckDB says: " in result
    assert "Expected Number of Columns: 4 Found: 2" in result
    assert result.count("\n") == 1


@pytest.mark.parametrize(
    ("dump", "message"),
    [
        ("", "dump.csv:1: no line of column names"),
        (
            "subject,relation,object,popularity,object\n",
            "dump.csv:1: column 'object' stands twice",
        ),
    ],
)
def test_the_line_of_column_names(fails: Fails, dump: str, message: str) -> None:
    assert message in fails(dump=dump)


@pytest.mark.parametrize(
    ("dump", "messages"),
    [
        (
            "subject,relation,object,popularity\nA,P99,b,3\n",
            ("of 1 rows", "1 relation without a template"),
        ),
        (
            "subject,relation,object,popularity\nA,P36,xy,3\nB,P36,xy,1\nC,P36,xy,1\n",
            ("P36 has 0 head, 1 torso, 2 tail", "all three buckets"),
        ),
    ],
)
def test_no_question_at_all(fails: Fails, dump: str, messages: tuple[str, ...]) -> None:
    result = fails(dump=dump)
    assert "no question: " in result
    for message in messages:
        assert message in result


def test_items_of_wikidata_are_no_names(fails: Fails) -> None:
    message = "dump.csv: 'subject' must be a name, found 'Q18'"
    assert message in fails(dump=DUMP.replace("Land ", "Q1"))


def test_several_values_in_one_cell(fails: Fails) -> None:
    lines = (
        '{"subject": "A", "relation": "P36", "object": ["a", "b"], "popularity": 3}\n'
    )
    result = fails(dump=lines, name="dump.jsonl")
    assert (
        "column 'object' (--object) holds VARCHAR[]; allowed: one value a row" in result
    )


def test_an_output_that_is_there_already(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "d.csv").write_text(DUMP, encoding="utf-8")
    (tmp_path / "t.yaml").write_text(TEMPLATES, encoding="utf-8")
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "mine.txt").write_text("kept", encoding="utf-8")
    arguments = [
        "build",
        "head-to-tail",
        str(tmp_path / "d.csv"),
        "--templates",
        str(tmp_path / "t.yaml"),
    ]
    assert main([*arguments, "--output", str(tmp_path / "set")]) == 2
    assert "exists already" in capsys.readouterr().err
    assert [path.name for path in (tmp_path / "set").iterdir()] == ["mine.txt"]


def test_without_duckdb(fails: Fails, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    assert 'needs duckdb: pip install "pytest-kbrel[data]"' in fails()


def test_a_relation_that_no_row_has_is_said_even_where_others_give_questions(
    fails: Fails,
) -> None:
    more = TEMPLATES + "P37: {question: 'Which language has [X]?', from: langs}\n"
    dump = DUMP + "".join(f"Land {n},P37,Tongue {n},{n}\n" for n in range(1, 9))
    result = fails(dump=dump, templates=more)
    assert (
        "no row is of the relation 'langs', which the template P37 is from; allowed:"
        in result
    )
