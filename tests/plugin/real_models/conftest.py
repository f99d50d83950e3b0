"""Sessions over the small checkpoints, each of which is gated once for all tests."""

import json
from typing import Any

import pytest

from pytest_kbrel.records import record
from tests.plugin.real_models.cases import CASES
from tests.plugin.real_models.checkpoints import make_checkpoint
from tests.plugin.real_models.world import write_suite


@record
class Session:
    """What came out of a session: its exit code, its report and its responses."""

    code: int
    report: dict[str, Any]
    responses: list[dict[str, Any]]


@pytest.fixture(scope="session")
def _sessions():
    return {}


@pytest.fixture
def gated(pytester, monkeypatch, _sessions):
    """Return a function that gates a checkpoint by the command line that a user would type."""
    monkeypatch.setenv("COLUMNS", "80")

    def gate(case):
        if case.id not in _sessions:
            make_checkpoint(pytester.path / case.name, case.manner, case.shape)
            write_suite(pytester.path / "suites", head=case.suite)
            result = pytester.runpytest("suites", *case.flags)
            folder = pytester.path / "kbrel-report"
            lines = (folder / "responses.jsonl").read_text("utf-8").splitlines()
            _sessions[case.id] = Session(
                code=int(result.ret),
                report=json.loads((folder / "report.json").read_text("utf-8")),
                responses=[json.loads(line) for line in lines],
            )
        return _sessions[case.id]

    return gate


@pytest.fixture
def session_of(gated):
    """Return a function that gives the session of the case with this id."""
    by_id = {case.id: case for case in CASES}
    return lambda name: gated(by_id[name])
