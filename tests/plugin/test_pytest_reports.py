"""Reports that pytest's hooks get of cases without an item."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from pytest_kbrel.plugin.fixtures import emit_reports

CASE = "suites/mini.kb.yaml::head_to_tail[overall]"


class Hooks:
    """Notes what is called, in order."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, Any]] = []

    def __getattr__(self, name: str) -> Any:
        return lambda **given: self.calls.append((name, given))


def handed_in(failure: str = "", **more: Any) -> tuple[list[tuple[str, Any]], int]:
    hooks = Hooks()
    session = SimpleNamespace(testscollected=7, config=SimpleNamespace(hook=hooks))
    emit_reports(cast(pytest.Session, session), CASE, failure, **more)
    return hooks.calls, session.testscollected


def test_a_case_is_begun_reported_in_three_phases_and_ended() -> None:
    calls, _ = handed_in(line=12)
    assert [name for name, _ in calls] == [
        "pytest_runtest_logstart",
        *["pytest_runtest_logreport"] * 3,
        "pytest_runtest_logfinish",
    ]
    location = ("suites/mini.kb.yaml", 11, "head_to_tail[overall]")
    for _, given in (calls[0], calls[-1]):
        assert given == {"nodeid": CASE, "location": location}
    reports = [given["report"] for _, given in calls[1:-1]]
    assert [report.when for report in reports] == ["setup", "call", "teardown"]
    for report in reports:
        assert (report.nodeid, report.location, report.outcome) == (CASE, location, "passed")
        assert report.longrepr is None
        assert not hasattr(report, "wasxfail")


@pytest.mark.parametrize(("line", "reported"), [(0, 0), (1, 0), (2, 1)])
def test_pytest_counts_lines_from_zero(line: int, reported: int) -> None:
    assert handed_in(line=line)[0][0][1]["location"][1] == reported


@pytest.mark.parametrize(
    ("failure", "waived", "outcome"),
    [("", "", "passed"), ("worse", "", "failed"), ("worse", "known", "skipped"), ("", "known", "passed")],
)
def test_only_the_call_fails_or_is_excused(failure: str, waived: str, outcome: str) -> None:
    calls, _ = handed_in(failure, waived=waived, properties=[("kb", "1")])
    setup, call, teardown = (given["report"] for _, given in calls[1:-1])
    assert [setup.outcome, call.outcome, teardown.outcome] == ["passed", outcome, "passed"]
    assert (setup.longrepr, call.longrepr, teardown.longrepr) == (None, failure or None, None)
    assert getattr(call, "wasxfail", "") == (waived if outcome == "skipped" else "")
    assert not hasattr(setup, "wasxfail")
    assert not hasattr(teardown, "wasxfail")
    assert list(call.user_properties) == [("kb", "1")]


@pytest.mark.parametrize(("is_new", "count"), [(False, 7), (True, 8)])
def test_a_case_that_was_not_collected_is_counted(is_new: bool, count: int) -> None:
    assert handed_in(is_new=is_new)[1] == count
