"""Sessions ended by a signal: the reports, processes and exit status that they leave."""

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import ClassVar

import pytest

from pytest_kbrel.plugin.termination import Termination
from tests.plugin.conftest import (
    CAPITALS,
    GATED,
    KNOWN,
    MODEL,
    OVERCONFIDENT,
    script,
    start,
    wait_until,
)

pytestmark = pytest.mark.skipif(
    sys.platform == "win32", reason="Windows has no SIGTERM"
)
TERMINATED = "SIGTERM ended the session: a time limit, or whoever runs it"
STOPPED = "the session stopped before all its cases were decided"
SENDS = "import os, signal\n\n\ndef {hook}:\n    os.kill(os.getpid(), signal.SIGTERM)\n"

# Says when the model waits. A deaf worker is as one that does not come back from a call into
# a library.
ASKING = """
import os, pathlib, signal, time

if os.environ.get("PYTEST_XDIST_WORKER") == {deaf!r}:
    signal.signal(signal.SIGINT, signal.SIG_IGN)

def sleep(seconds):
    if seconds == 60:
        pathlib.Path("asking").touch()
    real(seconds)

real, time.sleep = time.sleep, sleep
"""


@pytest.fixture(autouse=True)
def _outlive_the_signal():
    """Keep the process of the tests alive where the session in it does not catch the signal."""
    former = signal.signal(signal.SIGTERM, lambda number, frame: None)
    yield
    signal.signal(signal.SIGTERM, former)


@pytest.fixture(autouse=True)
def _end_what_is_left():
    """End the sessions that a failed test did not see end."""
    yield
    while Session.begun:
        process = Session.begun.pop()
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()


@pytest.fixture
def old(pytester):
    """Lay the report of an older run, which nobody may take for a later one's, into the folder."""
    folder = pytester.path / "kbrel-report"
    folder.mkdir()
    (folder / "report.json").write_text('{"kbrel_version": "old"}')
    return folder


def verdicts(report):
    return sorted(
        case["verdict"] for case in report()["cases"] if not case["aggregate"]
    )


def test_sigterm_between_cases_leaves_a_report_of_what_was_decided(
    pytester, mini_suite, report, old
):
    mini_suite(GATED)
    before = signal.getsignal(signal.SIGTERM)
    pytester.makeconftest(SENDS.format(hook="pytest_runtest_teardown(item)"))
    result = pytester.runpytest(MODEL, "suites", "--kb-baseline-update=next")
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(["*Terminated: SIGTERM ended the session*"])
    assert verdicts(report) == ["not run", "not run", "pass"]
    actual = report()
    assert (actual["summary"]["verdict"], actual["complete"]) == ("invalid", False)
    assert actual["problems"][1:] == [TERMINATED, STOPPED]
    assert (
        "next: no baseline was written: the run is not complete"
        in actual["problems"][0]
    )
    assert actual["exit_status"] == 2
    assert not (pytester.path / "baselines").exists()
    assert json.loads((old / "previous" / "report.json").read_text()) == {
        "kbrel_version": "old"
    }
    assert signal.getsignal(signal.SIGTERM) == before


@pytest.mark.parametrize(
    "hook",
    ["pytest_collectstart(collector)", "pytest_itemcollected(item)"],
    ids=["first", "items"],
)
def test_sigterm_while_suites_are_collected_leaves_an_invalid_report(
    pytester, mini_suite, report, old, hook
):
    mini_suite(GATED)
    pytester.makeconftest(SENDS.format(hook=hook))
    result = pytester.runpytest(MODEL, "suites")
    assert result.ret == pytest.ExitCode.INTERRUPTED
    actual = report()
    assert actual["summary"]["verdict"] == "invalid"
    assert set(verdicts(report)) <= {"not run"}
    assert {TERMINATED, STOPPED} <= set(actual["problems"])
    assert "invalid" in (old / "summary.md").read_text()
    assert (old / "previous" / "report.json").exists()


@pytest.mark.parametrize("when", ["before", "after"])
def test_sigterm_while_reports_are_written_tears_none_of_them(
    pytester, mini_suite, report, monkeypatch, when
):
    from pytest_kbrel.plugin import controller

    mini_suite(GATED)
    write = controller.write_reports

    def interrupted(run, *more):
        for moment in ("before", "after"):
            if moment == when:
                os.kill(os.getpid(), signal.SIGTERM)
                os.kill(os.getpid(), signal.SIGTERM)
            run = write(run, *more) if moment == "before" else run
        return run

    monkeypatch.setattr(controller, "write_reports", interrupted)
    result = pytester.runpytest(MODEL, "suites")
    # Everything was decided, and still whoever ended it must not read a 0.
    assert result.ret == pytest.ExitCode.INTERRUPTED
    assert verdicts(report) == ["pass", "pass", "pass"]
    assert {path.name for path in (pytester.path / "kbrel-report").iterdir()} == {
        *(
            "report.json",
            "report.html",
            "summary.md",
            "responses.jsonl",
            "outcomes.jsonl.xz",
        )
    }


def test_a_session_without_a_suite_has_no_handler_of_ours_and_keeps_the_old_report(
    pytester, monkeypatch, old
):
    monkeypatch.setenv("KB_MODEL", "reference")
    pytester.makepyfile(
        "import signal\n\n\ndef test_own():\n"
        f"    assert repr(signal.getsignal(signal.SIGTERM)) == {repr(signal.getsignal(signal.SIGTERM))!r}\n"
    )
    pytester.runpytest().assert_outcomes(passed=1)
    assert [path.name for path in old.iterdir()] == ["report.json"]


def test_what_only_looks_keeps_the_old_report(pytester, mini_suite, old):
    mini_suite(GATED)
    for flag in ("--collect-only", "--kb-plan", "--kb-limit=x"):
        pytester.runpytest(MODEL, "suites", flag)
        assert [path.name for path in old.iterdir()] == ["report.json"]


def test_the_reports_say_why_a_suite_could_not_be_collected(
    pytester, mini_suite, report, old
):
    mini_suite(GATED, name="good")
    mini_suite("suite: mini\nfact: typo.jsonl\n")
    result = pytester.runpytest(MODEL, "suites", "--kb-baseline-update=prod")
    assert not (pytester.path / "baselines").exists()
    assert result.ret == pytest.ExitCode.INTERRUPTED
    why = "suites/mini.kb.yaml:2: unknown key 'fact'"
    assert f"suites/mini.kb.yaml could not be collected: {why}" in " ".join(
        report()["problems"]
    )
    assert report()["summary"]["verdict"] == "invalid"
    for name in ("summary.md", "report.html"):
        assert "could not be collected" in (old / name).read_text()


@pytest.mark.parametrize(
    ("more", "what"), [((), "go on"), (("--kb-use-cache=off",), "run again")]
)
def test_an_interrupted_run_says_first_how_to_go_on(
    pytester, mini_suite, report, more, what
):
    mini_suite(GATED)
    pytester.makeconftest(
        "def pytest_runtest_teardown(item):\n    raise KeyboardInterrupt\n"
    )
    result = pytester.runpytest(OVERCONFIDENT, "suites", *more, no_reraise_ctrlc=True)
    assert result.ret == pytest.ExitCode.INTERRUPTED
    kept = r"answers are not kept: --kb-use-cache=off" if more else r"run it again, it"
    result.stdout.re_match_lines([rf"kbrel: .*{kept} .*"])
    commands = [line for line in result.outlines if "  pytest " in line]
    assert commands[0].startswith(f"{what:<10}  pytest ")
    assert " ".join((OVERCONFIDENT, "suites", *more)) in commands[0]
    assert not any("--lf" in line for line in commands)
    assert report()["problems"] == [
        "the session was interrupted (Ctrl-C) before all its cases were decided"
    ]
    pytester.makeconftest(
        "def pytest_runtest_call(item):\n    raise KeyboardInterrupt\n"
    )
    result = pytester.runpytest(OVERCONFIDENT, "suites", *more, no_reraise_ctrlc=True)
    assert sum("interrupted in this case" in line for line in result.outlines) == 1


def test_a_test_in_python_that_asks_a_model_begins_a_run_too(
    pytester, mini_suite, report, old
):
    mini_suite(GATED)
    pytester.makepyfile(
        "import os\n\n\ndef test_own(kb_model):\n    assert not os.path.exists('kbrel-report/report.json')\n"
    )
    pytester.runpytest(MODEL, "-k", "own").assert_outcomes(passed=1)


def test_sigterm_ends_a_session_that_waits_for_a_server(
    pytester, mini_suite, report, openai_server
):
    mini_suite(GATED)
    calls_to, ended = openai_server.calls_to, threading.Event()

    def say(text):
        if len(calls_to("chat/completions")) > 2:
            ended.wait(120)
        return "Oslo"

    openai_server.say = say
    args = f"--kb-model-args=base_url={openai_server.base_url}"
    process = start(pytester, "--kb-model=openai/judge", args, "suites")
    try:
        assert wait_until(lambda: len(calls_to("chat/completions")) > 2, 60)
        process.terminate()
        # Its server answers after two minutes.
        process.communicate(timeout=30)
    finally:
        ended.set()
        process.kill()
    assert process.returncode == pytest.ExitCode.INTERRUPTED
    assert "not run" in verdicts(report)


class Session:
    """A session in a process group of its own, which waits for long in one question of its model."""

    begun: ClassVar[list[subprocess.Popen]] = []

    def __init__(self, pytester, mini_suite, deaf=""):
        mini_suite(GATED)
        pytester.makeconftest(ASKING.format(deaf=deaf))
        slow = [(f"capital of {CAPITALS[-1][0]}", "Oslo"), *KNOWN]
        waits = json.dumps({"contains": "capital of Norway?", "delay": 60}) + "\n"
        (pytester.path / "slow.jsonl").write_text(waits + script(slow))
        flags = ("--kb-model=scripted/slow.jsonl", "--kb-use-cache=off", "suites")
        # These tests may run in a worker themselves.
        environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith("PYTEST_XDIST")
        }
        self.process = start(
            pytester,
            *flags,
            "-n2",
            env=environment,
            stdout=subprocess.PIPE,
            # What a shell starts in the background, such as a job of CI, ignores Ctrl-C, and so would this.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        self.begun.append(self.process)
        assert wait_until((pytester.path / "asking").exists)
        self.workers = [
            int(path.name)
            for path in Path("/proc").glob("[0-9]*")
            if self._is_child(path)
        ]

    def _is_child(self, folder):
        state, parent = self._state(folder)
        return state != "Z" and parent == self.process.pid

    @staticmethod
    def _state(folder):
        try:
            actual = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            return "Z", 0
        return actual[0], int(actual[1])

    def gone(self, seconds):
        """Tell whether all workers are gone so many seconds later."""
        return wait_until(
            lambda: all(
                self._state(Path(f"/proc/{worker}"))[0] == "Z"
                for worker in self.workers
            ),
            seconds,
        )

    def ended(self):
        output, _ = self.process.communicate(timeout=60)
        return self.process.returncode, output.decode()


needs_proc = pytest.mark.skipif(
    not Path("/proc/self/stat").exists(), reason="looks at /proc"
)


@needs_proc
@pytest.mark.slow
@pytest.mark.parametrize(
    ("send", "number", "deaf"),
    [
        pytest.param(os.kill, signal.SIGTERM, "", id="controller"),
        pytest.param(os.killpg, signal.SIGTERM, "", id="group"),
        pytest.param(os.killpg, signal.SIGINT, "gw0", id="ctrl-c-and-a-deaf-worker"),
    ],
)
def test_workers_are_gone_soon_after_their_session_was_ended(
    pytester, mini_suite, report, old, send, number, deaf
):
    session = Session(pytester, mini_suite, deaf)
    assert len(session.workers) == 2
    send(session.process.pid, number)
    # Three seconds, and some for a machine that has other things to do; xdist itself would take ten.
    assert session.gone(8)
    status, output = session.ended()
    assert status == pytest.ExitCode.INTERRUPTED, output
    # One case of three waits for its answer, and the other worker may have run the two others.
    assert {"not run", "invalid"} & set(verdicts(report))
    assert report()["summary"]["verdict"] == "invalid"
    assert not (old / ".parts").exists()


@needs_proc
@pytest.mark.slow
def test_a_killed_controller_leaves_no_workers_and_no_report_of_an_older_run(
    pytester, mini_suite, old
):
    session = Session(pytester, mini_suite)
    session.process.kill()
    session.process.communicate(timeout=60)
    # execnet waits for five seconds, then interrupts, then ends the worker.
    assert session.gone(30)
    assert not (old / "report.json").exists()
    assert (old / "previous" / "report.json").exists()


def test_a_forked_child_dies_of_the_signal_as_ever(monkeypatch):
    termination, sent = Termination(), []
    termination.watch()
    handler = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr("os.getpid", lambda: -1)
    monkeypatch.setattr("os.kill", lambda pid, number: sent.append((pid, number)))
    handler(signal.SIGTERM, None)
    assert sent == [(-1, signal.SIGTERM)]
    assert not termination.arrived
