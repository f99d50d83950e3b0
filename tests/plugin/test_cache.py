"""The response cache: a second run asks nothing, and a killed run continues."""

import contextlib
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import openai  # noqa: F401  (in-process sessions forget new modules, and this one takes a second to load)
import pytest

from benchmarks import kill_runs
from tests.plugin.conftest import GATE, ONE, SCRIPTS, start, wait_until
from tests.reported import comparable


def counts(report, folder="kbrel-report"):
    environment = report(folder)["environment"]
    return tuple(int(environment[name]) for name in ("answers_asked", "answers_reused"))


def responses(pytester, folder="kbrel-report"):
    return (pytester.path / folder / "responses.jsonl").read_bytes()


def test_a_second_run_asks_nothing_and_reports_the_same(pytester, mini_suite, report):
    mini_suite()
    first = pytester.runpytest(*GATE)
    before, first_responses = report(), responses(pytester)
    assert "answers reused" not in first.stdout.str()
    assert counts(report)[1] == 0
    result = pytester.runpytest(*GATE)
    requests, reused = counts(report)
    assert requests == reused > 100
    result.stdout.fnmatch_lines(
        [f"{requests} of {requests} answers reused from .kbrel-cache"]
    )
    assert (result.ret, comparable(report()), responses(pytester)) == (
        first.ret,
        comparable(before),
        first_responses,
    )


@pytest.mark.slow
def test_the_same_contents_under_another_path_are_known_and_others_under_the_same_are_not(
    pytester, mini_suite, report
):
    from pytest_kbrel.reference import checkpoints

    mini_suite(ONE)
    pytester.runpytest("--kb-model=reference", "suites")
    actual = Path(checkpoints.__path__[0])
    here = pytester.path / "checkpoint"
    shutil.copytree(actual / "base", here)
    gate = ("--kb-model=./checkpoint", "suites")
    pytester.runpytest(*gate)
    requests, reused = counts(report)
    assert requests == reused > 0
    shutil.rmtree(here)
    shutil.copytree(actual / "gullible", here)
    pytester.runpytest(*gate)
    assert counts(report) == (requests, 0)


def test_a_store_can_be_named_and_switched_off(pytester, mini_suite, report):
    mini_suite(ONE)
    for _ in range(2):
        result = pytester.runpytest(*GATE, "--kb-use-cache=off")
        assert counts(report)[1] == 0
        assert "kept" not in result.stdout.str()
    assert report()["environment"]["answers_store"] == "off"
    assert not (pytester.path / ".kbrel-cache").exists()
    assert not (pytester.path / "off").exists()
    for _ in range(2):
        result = pytester.runpytest(*GATE, "--kb-use-cache=elsewhere/kept")
    result.stdout.fnmatch_lines(["* answers reused from elsewhere/kept"])
    assert (pytester.path / "elsewhere/kept/.gitignore").read_text() == "*\n"


def kept(pytester):
    """Return how many answers are kept."""
    path = pytester.path / ".kbrel-cache" / "answers.sqlite"
    if not path.exists():
        return 0
    # It may just be being made.
    made = contextlib.suppress(sqlite3.OperationalError)
    with made, contextlib.closing(sqlite3.connect(path)) as connection:
        return connection.execute("SELECT count(*) FROM answers").fetchone()[0]
    return 0


def _flipped(path):
    with sqlite3.connect(path) as connection:
        connection.execute(
            "UPDATE answers SET response = replace(response, 'generated', 'degenerate')"
        )
    connection.close()


def test_a_broken_cache_is_reported_once_and_never_used(pytester, mini_suite, report):
    mini_suite(ONE)
    pytester.runpytest(*GATE)
    before, path = report(), pytester.path / ".kbrel-cache" / "answers.sqlite"
    _flipped(path)
    result = pytester.runpytest(*GATE)
    assert (result.ret, comparable(report())) == (0, comparable(before))
    assert counts(report)[1] == 0
    problem = report()["environment"]["answers_not_kept"]
    assert "is broken: its checksum is wrong" in problem
    assert f"delete {path}" in problem
    assert result.stdout.str().count("answers are not kept: ") == 1


def test_a_folder_that_cannot_be_written_costs_the_run_nothing(
    pytester, mini_suite, report
):
    mini_suite(ONE)
    result = pytester.runpytest(*GATE, "--kb-use-cache=/proc/kbrel")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["answers are not kept: /proc/kbrel/answers.sqlite: *"])


@pytest.mark.slow
def test_a_killed_run_continues_where_it_stopped(pytester, mini_suite, report):
    mini_suite(ONE)
    waits = json.dumps({"contains": "capital of", "delay": 0.3}) + "\n"
    (pytester.path / "knows.jsonl").write_text(waits + SCRIPTS["knows"])
    stored = 0
    for workers in ((), ("-n2",)):
        killed = start(pytester, *GATE, *workers)
        assert wait_until(lambda before=stored: kept(pytester) > before)
        os.killpg(killed.pid, signal.SIGKILL)
        killed.wait()
        assert stored < kept(pytester) < 12
        stored = kept(pytester)
    assert pytester.runpytest(*GATE).ret == 0
    assert counts(report) == (12, stored)


SMALL = "mount -t tmpfs -o size=60k none kept"


@pytest.mark.slow
def test_a_real_disk_that_takes_no_more_costs_the_run_nothing(
    pytester, mini_suite, report
):
    unshare = shutil.which("unshare")
    if (
        unshare is None
        or subprocess.run([unshare, "-rm", "true"], capture_output=True).returncode
    ):
        pytest.skip("this system lets nobody mount a disk of his own")
    mini_suite(ONE)
    pytester.runpytest(*GATE, "--kb-use-cache=off")
    before = report()
    (pytester.path / "kept").mkdir()
    line = [
        sys.executable,
        "-m",
        "pytest",
        *GATE,
        "--kb-use-cache=kept",
        "-p",
        "no:cacheprovider",
    ]
    done = subprocess.run(
        [unshare, "-rm", "sh", "-ec", f'{SMALL}; exec "$@"', "sh", *line],
        cwd=pytester.path,
        capture_output=True,
        text=True,
    )
    if done.returncode == 32:
        pytest.skip(f"cannot mount: {done.stderr}")
    assert done.returncode == 0
    assert kill_runs.first_difference(comparable(report()), comparable(before)) == ""
    problem = report()["environment"]["answers_not_kept"]
    assert "database or disk is full" in problem
    assert done.stdout.count("answers are not kept: ") == 1
