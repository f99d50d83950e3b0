"""Workers that die leave a red run and no baseline, unless nothing is lost with them."""

from __future__ import annotations

import json

import pytest

from tests.plugin.conftest import MODEL

ITEM = "head_to_tail[places-head]"
DIE = {
    "exit": "os._exit(0)",
    "SIGKILL": "os.kill(os.getpid(), signal.SIGKILL)",
    "SIGSEGV": "os.kill(os.getpid(), signal.SIGSEGV)",
}
MOMENTS = {
    "while collecting": "def pytest_collection_finish(session):\n    die()",
    "in front of a case": f"def pytest_runtest_setup(item):\n    if item.name == {ITEM!r}: die()",
    "as a case begins": f"def pytest_runtest_call(item):\n    if item.name == {ITEM!r}: die()",
    "as a case ends": f"""\
@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    yield
    if item.name == {ITEM!r}: die()""",
    "behind a case": f"def pytest_runtest_teardown(item):\n    if item.name == {ITEM!r}: die()",
    "as the session ends": "def pytest_sessionfinish(session):\n    die()",
}
# Another worker takes its place before anything is asked; or all its cases have been told.
UNHARMED = ("while collecting", "as the session ends")
CONFTEST = """\
import os, pathlib, signal
import pytest

def die():
    # The first worker that comes here dies, its successor does not.
    if "PYTEST_XDIST_WORKER" in os.environ:
        try:
            os.close(os.open("died", os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return
        {how}

{when}
"""


@pytest.mark.slow
@pytest.mark.parametrize("how", DIE)
@pytest.mark.parametrize("when", MOMENTS)
def test_a_worker_that_dies(pytester, mini_suite, report, when, how):
    mini_suite()
    pytester.makeconftest(CONFTEST.format(how=DIE[how], when=MOMENTS[when]))
    result = pytester.runpytest(MODEL, "suites", "-n2", "--kb-baseline-update=prod")
    assert (pytester.path / "died").exists()
    printed = result.stdout.str() + result.stderr.str()
    assert "INTERNALERROR" not in printed
    actual = report()
    # Of nine cases none is missing, whoever decided it.
    assert len(actual["cases"]) == 9
    if when in UNHARMED:
        assert (result.ret, actual["summary"]["verdict"], actual["complete"]) == (0, "pass", True), printed
        lines = (pytester.path / "kbrel-report" / "responses.jsonl").read_bytes().splitlines()
        assert len({json.loads(line)["case"] for line in lines}) == 6
        return
    assert result.ret != pytest.ExitCode.OK, printed
    assert actual["summary"]["verdict"] == "invalid"
    assert not actual["complete"] or actual["problems"]
    assert not (pytester.path / "baselines").exists()
