"""``--json`` of every ``kbrel`` command: standard output is one JSON document."""

import argparse
import json
from pathlib import Path

import pytest

from pytest_kbrel.cli import command_parser, main
from pytest_kbrel.cli.arguments import is_json_only
from tests.plugin.conftest import GATE, ONE

TEMPLATES = "P36:\n  question: What is the capital of [X]?\n  domain: lands\n"
DUMP = "subject,relation,object,popularity\n" + "".join(
    f"land {at},P36,city {at},{1000 // (at + 1)}\n" for at in range(60)
)
PREDICTION = {
    "id": 1,
    "question": "Capital of Peru?",
    "answers": ["Lima"],
    "prediction": "Lima",
    "human": 1,
}
# Arguments of each command that end well in the folder of the test, and a key of its document.
WORK = {
    "init": ("made", "commands"),
    "schema": ("report", "$defs"),
    "check": ("reference", "findings"),
    "import": ("jsonl suites/facts.jsonl --output=own.jsonl", "facts"),
    "build head-to-tail": (
        "dump.csv --templates=templates.yaml --output=set",
        "manifest",
    ),
    "build languages": ("--output=languages", "facts"),
    "judge": ("predictions.jsonl --output=judged.jsonl --human=human", "verdicts"),
    "labels": ("run --output=labels.jsonl --number=2", "drawn"),
    "export": ("run --format=csv --output=run.csv", "files"),
    "merge": ("1 2 --output=merged", "summary"),
    "compare": ("run merged --html=page.html", "paired"),
    "trend": ("run merged --html=trend.html", "runs"),
    "pack": ("run --output=run.kbrel", "sha256"),
    "report": ("run", "output"),
    "comment": ("run --output=comment.md", "output"),
}
# Commands that tests of their own run: one runs sessions, one needs packages that are not installed.
ELSEWHERE = {"bisect", "build world"}
# What each command refuses; tests/cli has what argparse refuses.
REFUSED = {
    "init": "suites/facts.jsonl",
    "check": "nowhere/at/all",
    "import": "nosuch suites/facts.jsonl --output=x.jsonl",
    "build head-to-tail": "nowhere.csv --templates=t.yaml --output=x",
    "build languages": "--output=suites",
    "build world": "--output=suites",
    "bisect": "nowhere --suite=suites",
    "judge": "nowhere --output=x.jsonl",
    "labels": "nowhere --output=x.jsonl",
    "export": "nowhere --format=csv --output=x.csv",
    "merge": "nowhere --output=x",
    "compare": "nowhere",
    "trend": "nowhere",
    "pack": "nowhere --output=x.kbrel",
    "report": "nowhere",
    "comment": "nowhere",
}


def commands(parser, name=""):
    """Yield the names of all commands and their parsers."""
    inner = [
        action
        for action in parser._actions
        if isinstance(action, argparse._SubParsersAction)
    ]
    if not inner:
        yield name, parser
    for action in inner:
        for word, below in action.choices.items():
            yield from commands(below, f"{name} {word}".strip())


def test_the_table_names_every_command():
    names = {name for name, _ in commands(command_parser())}
    assert WORK.keys() | ELSEWHERE == names
    assert REFUSED.keys() == names - {"schema"}


def files(folder):
    return filter(Path.is_file, folder.rglob("*"))


@pytest.mark.slow
def test_every_command_prints_one_document_and_replaces_nothing(
    pytester, mini_suite, capsys, monkeypatch
):
    pytest.importorskip("duckdb")
    monkeypatch.delenv("KB_USE_CACHE", raising=False)
    mini_suite(ONE)
    (pytester.path / "dump.csv").write_text(DUMP)
    (pytester.path / "templates.yaml").write_text(TEMPLATES)
    (pytester.path / "predictions.jsonl").write_text(json.dumps(PREDICTION) + "\n")
    pytester.runpytest(*GATE, "--kb-output-path=run")
    for index in "12":
        pytester.runpytest(*GATE, f"--kb-shard={index}/2", f"--kb-output-path={index}")
    capsys.readouterr()
    for name, (arguments, key) in WORK.items():
        assert main(f"{name} {arguments} --json".split()) == 0, name
        out, err = capsys.readouterr()
        assert json.loads(out)[key], (name, out)
        assert err == "", name
    for name, (arguments, _) in WORK.items():
        # What is there is the user's own.
        written = {path: path.read_bytes() for path in files(pytester.path)}
        assert main(f"{name} {arguments}".split()) == (2 if "=" in arguments else 0)
        assert "exists already" in capsys.readouterr().err or "=" not in arguments
        assert {path: path.read_bytes() for path in files(pytester.path)} == written
    for name, arguments in REFUSED.items():
        assert main(f"{name} {arguments} --json".split()) == 2, name
        out, err = capsys.readouterr()
        assert list(json.loads(out)) == ["error"], name
        assert err.startswith("kbrel: "), name


def test_a_document_in_a_file_leaves_the_error_to_standard_error(capsys):
    assert main(["compare", "nowhere", "--json", "out.json"]) == 2
    assert capsys.readouterr().out == ""
    assert not is_json_only(argparse.Namespace())
