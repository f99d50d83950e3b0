from __future__ import annotations

import json
import sqlite3
import time

import pytest

from pytest_kbrel.cli import main
from pytest_kbrel.models.cache.caching_model import CachingModel
from pytest_kbrel.models.cache.store import FILE, Store, digest_of
from pytest_kbrel.records import GenerateRequest
from tests.function_model import FunctionModel

DAY = 24 * 3600


@pytest.fixture
def folder(tmp_path):
    """Hold 30 answers of one model, half of them 40 days old, and 5 of another."""
    # Before the answers are made, or a second could pass between the two.
    old = int(time.time()) - 40 * DAY
    store = Store(tmp_path / "kept")
    for name, count in (("one", 30), ("two\x1b[31m", 5)):
        model = CachingModel(
            FunctionModel(answers=lambda prompt: "said " * 50, name=name), store
        )
        model.generate(
            [
                GenerateRequest(prompt=f"question {n}", max_new_tokens=60)
                for n in range(count)
            ]
        )
    store.query("UPDATE answers SET created = ? WHERE rowid <= 15", old)
    store.close()
    return tmp_path / "kept"


def short(name):
    return digest_of(FunctionModel(name=name).describe())[:12]


def test_info_says_what_is_kept_of_whom_and_since_when(folder, capsys):
    assert main(["cache", "info", str(folder)]) == 0
    head, _, first, second = capsys.readouterr().out.splitlines()
    assert head.startswith(f"{folder / FILE}: 35 answers of 2 models, 0.")
    store = Store(folder)
    (ends,) = store.query(
        "SELECT min(created), max(created) FROM answers WHERE rowid <= 30"
    )
    store.close()
    old, today = (time.strftime("%Y-%m-%d", time.gmtime(end)) for end in ends)
    assert ends[1] - ends[0] >= 40 * DAY
    words = first.split()
    assert words[:4] == [short("one"), "30", "scripted", "float32"]
    assert (words[4], words[6], words[8:]) == (old, today, ["one"])
    assert second.split()[:2] == [short("two\x1b[31m"), "5"]
    assert "\x1b" not in second


def stored_counts(folder):
    connection = sqlite3.connect(folder / FILE)
    counts = connection.execute(
        "SELECT count(*), (SELECT count(*) FROM models) FROM answers"
    ).fetchone()
    connection.close()
    return counts


@pytest.mark.parametrize(
    ("flags", "remaining"),
    [
        (("--older-than", "30d"), (20, 2)),
        (("--model", short("one")), (5, 1)),
        (("--all",), (0, 0)),
    ],
)
def test_prune_forgets_what_it_was_told_and_nothing_else(
    folder, capsys, flags, remaining
):
    size = (folder / FILE).stat().st_size
    assert main(["cache", "prune", str(folder), *flags]) == 0
    assert stored_counts(folder) == remaining
    expected = (
        f"{folder / FILE}: {35 - remaining[0]} answers forgotten, {remaining[0]} left, "
    )
    assert capsys.readouterr().out.startswith(expected)
    assert ((folder / FILE).stat().st_size < size) == (remaining[0] < 30)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (
            ["prune"],
            "found none of what to forget; allowed: --older-than AGE, --model DIGEST",
        ),
        (["prune", "--all", "--older-than", "1d"], "found both of what to forget"),
        (["prune", "--model", "xyz"], "found 'xyz', and no model begins so; allowed: "),
        (["export", "--model", "xyz", "--output", "x.jsonl"], "no model begins so"),
    ],
)
def test_what_cannot_be_meant_is_refused_and_forgets_nothing(
    folder, capsys, monkeypatch, tmp_path, arguments, expected
):
    monkeypatch.chdir(tmp_path)
    assert main(["cache", arguments[0], str(folder), *arguments[1:]]) == 2
    assert expected in capsys.readouterr().err
    assert stored_counts(folder) == (35, 2)
    assert not (tmp_path / "x.jsonl").exists()


def test_export_writes_every_answer_on_a_line(folder, capsys, tmp_path):
    output = tmp_path / "answers.jsonl"
    assert main(["cache", "export", str(folder), "--output", str(output)]) == 0
    rows = [json.loads(line) for line in output.read_text().splitlines()]
    assert len({row["key"] for row in rows}) == len(rows) == 35
    assert {row["answer"]["text"] for row in rows} == {("said " * 50).strip()}
    assert sorted(rows[0]) == ["answer", "created", "key", "model"]
    assert capsys.readouterr().out == f"35 answers written to {output}\n"
    assert main(["cache", "export", str(folder), "--output", str(output)]) == 2
    assert "exists already" in capsys.readouterr().err
    flags = ["--force", "--model", short("one")]
    assert main(["cache", "export", str(folder), "--output", str(output), *flags]) == 0
    assert len(output.read_text().splitlines()) == 30


def test_a_broken_answer_is_not_exported(folder, capsys, tmp_path):
    store = Store(folder)
    store.query(
        "UPDATE answers SET response = replace(response, 'said', 'sold') WHERE rowid = 9"
    )
    store.close()
    output = tmp_path / "answers.jsonl"
    assert main(["cache", "export", str(folder), "--output", str(output)]) == 2
    assert "its checksum is wrong" in capsys.readouterr().err
    assert not output.exists()


def test_where_nothing_is_kept_nothing_is_made(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("KB_USE_CACHE", raising=False)
    assert main(["cache", "info"]) == 2
    assert ".kbrel-cache: no answers are kept here" in capsys.readouterr().err
    monkeypatch.setenv("KB_USE_CACHE", "named")
    assert main(["cache", "info"]) == 2
    assert "kbrel: named: no answers are kept here" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_description_of_a_model_that_cannot_be_read_is_an_error(folder, capsys):
    store = Store(folder)
    store.query("UPDATE models SET described = '{}'")
    store.close()
    assert main(["cache", "info", str(folder)]) == 2
    assert "cannot be read" in capsys.readouterr().err
