"""The folder of the reports: earlier reports, spooled responses, and several runs in one folder."""

import os
import signal
import subprocess
import threading
import time

import openai  # noqa: F401  (in-process sessions forget new modules, and this one takes a second to load)
import pytest

from pytest_kbrel.plugin.output_folder import RunFolder, move_aside
from pytest_kbrel.reports import REPORT_FILES
from pytest_kbrel.store.run_store import RunStore
from tests.plugin.conftest import GATE, ONE, start, wait_until

LOSES = """
import shutil

def pytest_runtest_teardown(item):
    if item.name == "head_to_tail[places-head]":
        shutil.rmtree("kbrel-report/.parts")
"""


@pytest.fixture
def gate(openai_server):
    openai_server.say = lambda text: f"city {len(text)}"
    return (
        "--kb-model=openai/judge",
        f"--kb-model-args=base_url={openai_server.base_url},max_concurrent=1,max_retries=0",
        "--kb-use-cache=off",
        "suites",
    )


def recorded(pytester):
    """Return how many responses the report's file has."""
    return len(
        (pytester.path / "kbrel-report" / "responses.jsonl").read_text().splitlines()
    )


def test_a_run_takes_nothing_from_a_living_one(
    pytester, mini_suite, report, openai_server, gate
):
    mini_suite(ONE)
    let_go = pytester.path / "go"

    def say(text):
        # The first run waits before its last question.
        while (
            len(openai_server.calls_to("chat/completions")) == 12
            and not let_go.exists()
        ):
            time.sleep(0.01)
        return f"city {len(text)}"

    openai_server.say = say
    first = start(pytester, *gate, stdout=subprocess.PIPE)
    wait_until(lambda: len(openai_server.calls_to("chat/completions")) >= 12)
    assert first.poll() is None
    assert pytester.runpytest(*gate).ret == 0
    assert (recorded(pytester), report()["complete"]) == (12, True)
    let_go.touch()
    output, _ = first.communicate(timeout=300)
    assert first.returncode == 0, output.decode()
    assert (recorded(pytester), report()["complete"]) == (12, True)
    assert not (pytester.path / "kbrel-report" / ".parts").exists()


def test_a_killed_runs_parts_are_cleared_away(
    pytester, mini_suite, report, openai_server, gate
):
    mini_suite(ONE)
    calls_to, ended = openai_server.calls_to, threading.Event()

    def say(text):
        if len(calls_to("chat/completions")) >= 10:
            ended.wait(300)
        return f"city {len(text)}"

    openai_server.say = say
    killed = start(pytester, *gate, "-n2")
    parts = pytester.path / "kbrel-report" / ".parts"
    wait_until(lambda: any(parts.glob("*/run.sqlite")))
    os.killpg(killed.pid, signal.SIGKILL)
    killed.wait()
    ended.set()
    openai_server.say = lambda text: f"city {len(text)}"
    assert pytester.runpytest(*gate).ret == 0
    assert recorded(pytester) == 12
    assert not (pytester.path / "kbrel-report" / ".parts").exists()


def test_lost_responses_are_no_pass_and_are_not_blessed(
    pytester, mini_suite, report, gate
):
    mini_suite(ONE)
    pytester.makeconftest(LOSES)
    result = pytester.runpytest(*gate, "--kb-baseline-update=lost")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    actual = report()
    assert actual["summary"]["verdict"] == "invalid"
    assert (actual["complete"], actual["exit_status"]) == (False, 1)
    errors = [error for case in actual["cases"] for error in case["errors"]]
    assert any("responses cannot be kept: " in error for error in errors)
    assert not (pytester.path / "baselines" / "lost").exists()


def test_half_a_surrogate_pair_from_a_server_ends_no_run(
    pytester, mini_suite, report, openai_server, gate
):
    mini_suite(ONE)
    openai_server.say = lambda text: "city \ud83d x"
    result = pytester.runpytest(*gate, "-n2")
    assert result.ret == 0
    assert "INTERNALERROR" not in result.stdout.str()
    assert report()["complete"]
    answers = (pytester.path / "kbrel-report" / "responses.jsonl").read_text()
    assert answers.count(r"city \ufffd x") == 12
    assert r"\ud83d" not in answers


def _reports(folder, text):
    folder.mkdir(parents=True, exist_ok=True)
    for name in REPORT_FILES:
        (folder / name).write_text(f'{{"kbrel_version": "{text}"}}')


def _names(folder):
    return {path.name for path in folder.iterdir()}


def test_reports_take_the_place_of_those_before_them(tmp_path):
    for text in ("one", "two"):
        _reports(tmp_path, text)
        (tmp_path / "previous" / "notes.md").parent.mkdir(exist_ok=True)
        (tmp_path / "previous" / "notes.md").write_text("mine")
        (tmp_path / "notes.md").write_text("mine")
        assert move_aside(tmp_path)
        assert _names(tmp_path) == {"previous", "notes.md"}
        assert _names(tmp_path / "previous") == {*REPORT_FILES, "notes.md"}
        assert (tmp_path / "previous" / "report.json").read_text().split('"')[3] == text


def test_what_a_killed_run_left_does_not_replace_whole_reports(tmp_path):
    _reports(tmp_path / "previous", "whole")
    (tmp_path / "responses.jsonl").write_text("torn")
    assert not move_aside(tmp_path)
    assert _names(tmp_path) == {"previous"}
    assert _names(tmp_path / "previous") == set(REPORT_FILES)


@pytest.mark.parametrize(
    "name",
    ["report.json", "summary.md", "previous/report.html", "previous/report.json"],
)
def test_files_of_these_names_that_no_run_wrote_are_left_as_they_are(
    pytester, mini_suite, name
):
    mini_suite(ONE)
    path = pytester.path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text('{"mine": 1}')
    result = pytester.runpytest(*GATE, "--kb-output-path=.")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert f"{name} is no file of a report" in result.stderr.str()
    assert path.read_text() == '{"mine": 1}'


def test_ordinary_tests_change_nothing_of_what_a_killed_run_left(
    pytester, mini_suite, monkeypatch
):
    mini_suite(ONE)
    parts = pytester.path / "kbrel-report" / ".parts"
    (parts / "dead").mkdir(parents=True)
    # It was killed while it wrote its reports.
    (parts.parent / "responses.jsonl").touch()
    ordinary = pytester.makepyfile("def test_ordinary(): pass")
    with monkeypatch.context() as environment:
        environment.setenv("KB_MODEL", "scripted/knows.jsonl")
        assert pytester.runpytest(ordinary).ret == 0
    result = pytester.runpytest(*GATE)
    assert result.ret == 0, result.stdout.str() + result.stderr.str()
    assert not parts.exists()


def test_reports_are_moved_back_if_no_case_ran(pytester, mini_suite, report):
    mini_suite(ONE)
    pytester.runpytest(*GATE)
    before = report()
    assert pytester.runpytest(*GATE, "-k", "nothing").ret == 5
    assert report() == before


def test_reports_that_cannot_be_moved_are_a_usage_error(tmp_path):
    _reports(tmp_path, "one")
    (tmp_path / "previous").write_text("a file")
    with pytest.raises(
        pytest.UsageError,
        match=r"^--kb-output-path: .*cannot be moved to .*previous: .*; allo",
    ):
        move_aside(tmp_path)


def test_the_folder_of_a_living_run_stays_and_that_of_a_dead_one_goes(tmp_path):
    alive, mine = RunFolder(tmp_path, "alive"), RunFolder(tmp_path, "mine")
    stores = [RunStore(alive.store_path) for _ in range(2)]
    for store in stores:
        store.open()
    (tmp_path / ".parts" / "dead").mkdir()
    stores[0].close()
    mine.clear()
    assert _names(tmp_path / ".parts") == {"alive"}
    stores[1].close()
    mine.clear()
    mine.end()
    assert not (tmp_path / ".parts").exists()
