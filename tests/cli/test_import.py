"""``kbrel import`` from end to end: a public file, the pair it becomes, and the suite that loads it."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_kbrel.cli import main
from pytest_kbrel.facts.readers import FORMATS

DATA = Path(__file__).parents[1] / "data"
FKTC, QUESTIONS = DATA / "P36-subclass.json", DATA / "questions.jsonl"


def run(*arguments: object) -> int:
    return main(["import", *map(str, arguments)])


def test_collecting_an_imported_suite(pytester):
    assert run("fktc", FKTC, "--output", pytester.path / "facts.jsonl") == 0
    (pytester.path / "t.kb.yaml").write_text("suite: t\nfacts: facts.jsonl\nmonitor:\n")
    result = pytester.runpytest(
        "--collect-only", "-q", "--kb-model=reference", "t.kb.yaml"
    )
    result.stdout.fnmatch_lines(["*t.kb.yaml::monitor?P36?"])
    assert result.ret == 0


def test_only_the_first_of_many_broken_rows_are_named(tmp_path, capsys):
    source = tmp_path / "q.jsonl"
    source.write_text('{"question": "Who?", "answer": "x"}\n' + "nothing\n" * 7)
    assert run("qa", source, "--output", tmp_path / "facts.jsonl", "--skip-broken") == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(": ")[1] for line in lines[1:4]] == [
        f"{source}:{n}" for n in (2, 3, 4)
    ]
    assert lines[4:] == ["skipped: 4 more"]


def test_rows_without_an_answer_are_counted(tmp_path, capsys):
    source = tmp_path / "q.jsonl"
    row = '{"question": "Who?", "answers": {"text": []}}\n'
    source.write_text('{"question": "Where?", "answer": "x"}\n' + row)
    assert run("qa", source, "--output", tmp_path / "facts.jsonl") == 0
    assert ", without an answer: 1, rows skipped: 0" in capsys.readouterr().out


def test_a_file_with_nothing_but_broken_rows(tmp_path, capsys):
    source = tmp_path / "q.jsonl"
    source.write_text("a\nb\n")
    assert run("qa", source, "--output", tmp_path / "facts.jsonl", "--skip-broken") == 2
    assert (
        f"none of 2 rows could be read; the first: {source}:1: not JSON"
        in capsys.readouterr().err
    )
    assert [path.name for path in tmp_path.iterdir()] == ["q.jsonl"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("fktk", FKTC), "unknown format 'fktk'; allowed: fktc, head-to-tail"),
        (("fktc", DATA / "P1.json"), "P1.json: cannot be read: No such file"),
        (("fktc", DATA / "none.json"), "name must begin with its relation"),
        (("qa", DATA), "is a folder; allowed: a file of the format qa"),
    ],
)
def test_what_cannot_be_read(arguments, message, tmp_path, capsys):
    assert run(*arguments, "--output", tmp_path / "facts.jsonl") == 2
    assert message in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_the_transcript_in_the_documentation_is_what_is_printed(
    tmp_path, monkeypatch, capsys
):
    docs = Path(__file__).parents[2] / "docs" / "datasets.md"
    lines = [
        line.removeprefix("    ")
        for line in docs.read_text(encoding="utf-8").splitlines()
    ]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "data").symlink_to(DATA)
    shown = [
        line.removeprefix("$ kbrel ").split()
        for line in lines
        if line.startswith("$ kbrel import ")
    ]
    assert [main(arguments) for arguments in shown] == [0, 2]
    output = capsys.readouterr()
    written = [
        (tmp_path / "mine" / name).read_text("utf-8")
        for name in ("facts.jsonl", "relations.yaml")
    ]
    expected = [output.out, output.err, written[0].splitlines()[-1], written[1]]
    for line in "\n".join(expected).splitlines():
        assert line in lines
    assert {form for form in FORMATS if f"| `{form}` |" in "\n".join(lines)} == set(
        FORMATS
    )


@pytest.mark.parametrize("name", ["relations.yaml", "folder"])
def test_an_output_that_cannot_be_is_refused(tmp_path, capsys, name):
    (tmp_path / "folder").mkdir()
    assert (
        main(["import", "fktc", str(FKTC), "--output", str(tmp_path / name), "--force"])
        == 2
    )
    assert str(tmp_path / name) in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder"]
