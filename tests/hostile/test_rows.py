"""Each row of the tables does what its row says, and none does harm."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import openai  # noqa: F401  (in-process sessions forget new modules, and this one takes a second to load)
import pytest
import torch  # noqa: F401  (the same, and it cannot be loaded twice)

from pytest_kbrel.cli import main
from pytest_kbrel.facts.readers import FORMATS
from tests.hostile import TABLES, facts, servers
from tests.hostile.flags import untyped
from tests.hostile.row import PASSED, RUN, Row, project, put

ROWS = [
    pytest.param(row, id=f"{table}: {row.what}")
    for table, rows in TABLES.items()
    for row in rows
]


@contextmanager
def deadline(seconds: int) -> Iterator[None]:
    """End what is done within with a failed test after some seconds of waiting or work."""

    def end(number: int, frame: object) -> None:
        pytest.fail(f"not over within {seconds} seconds")

    before = signal.signal(signal.SIGALRM, end)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@pytest.fixture(scope="session")
def sound(tmp_path_factory):
    """A folder with what an earlier run left: a baseline, a recorded run and kept answers."""
    folder = tmp_path_factory.mktemp("sound")
    project(folder)
    subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            *RUN,
            "--kb-baseline-update=prod",
            "-p",
            "no:cacheprovider",
            "-q",
        ],
        cwd=folder,
        check=True,
        capture_output=True,
    )
    shutil.move(folder / "baselines" / "prod", folder / "blessed")
    shutil.move(folder / "kbrel-report", folder / "recorded")
    return folder


@pytest.fixture
def hostile_folder(pytester, monkeypatch) -> Path:
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p no:hypothesispytest -p no:anyio")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-hostile-0123456789")
    project(pytester.path)
    return pytester.path


def nothing_bad(folder: Path, printed: str, exit: int) -> None:
    for sign in ("Traceback", "INTERNALERROR", "KbrelError", "plugin.py"):
        assert sign not in printed, printed
    assert not list(folder.rglob("canary*"))
    for path in folder.glob("kbrel-report/report.json"):
        assert (
            exit == PASSED
            or json.loads(path.read_text())["summary"]["verdict"] != "pass"
        )


@pytest.mark.slow
@pytest.mark.parametrize("row", ROWS)
def test_a_row(pytester, monkeypatch, capsys, hostile_folder, sound, row: Row):
    for name, value in row.env.items():
        monkeypatch.setenv(name, value)
    put(row, hostile_folder, sound)
    with deadline(30):
        if row.command:
            try:
                code = main(row.args)
            except SystemExit as end:
                code = end.code
            printed = "".join(capsys.readouterr())
        else:
            result = pytester.runpytest(*row.args)
            code, printed = int(result.ret), result.stdout.str() + result.stderr.str()
    assert code == row.exit, printed
    assert row.printed in printed
    nothing_bad(hostile_folder, printed, row.exit)


@pytest.mark.parametrize(
    "served", [pytest.param(row, id=row.what) for row in servers.ROWS]
)
def test_a_server(pytester, hostile_folder, openai_server, served: servers.Served):
    served.set_up(openai_server)
    with deadline(30):
        result = pytester.runpytest(*servers.arguments(openai_server))
    printed = result.stdout.str() + result.stderr.str()
    assert result.ret == served.exit, printed
    assert served.printed in printed
    nothing_bad(hostile_folder, printed, served.exit)


def test_each_flag_has_a_row():
    assert untyped() == []


def test_each_format_of_facts_has_its_rows():
    assert set(facts.FORMATS) == set(FORMATS)
