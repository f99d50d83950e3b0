"""pytest reports: of cases that no item ran (aggregates, items that never ended), and made printable."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from pytest_kbrel.printing import printable


def emit_reports(
    session: pytest.Session,
    nodeid: str,
    failure: str,
    *,
    properties: Sequence[tuple[str, str]] = (),
    line: int = 0,
    is_new: bool = False,
    waived: str = "",
) -> None:
    """Pass the reports of a case to pytest's hooks, so that pytest counts and prints it.

    ``failure`` is why the case failed, ``""`` if it passed. With ``waived``, the reason of a waiver, pytest
    shows an expected failure. ``is_new`` is True for a case that was not collected, so that pytest's progress
    ends at 100 %.
    """
    path, _, name = nodeid.partition("::")
    location = (path, max(line - 1, 0), name)
    session.testscollected += is_new
    hook = session.config.hook
    hook.pytest_runtest_logstart(nodeid=nodeid, location=location)
    for when in ("setup", "call", "teardown"):
        failed = bool(failure) and when == "call"
        excused = failed and bool(waived)
        report = pytest.TestReport(
            nodeid=nodeid,
            location=location,
            keywords={},
            outcome="skipped" if excused else "failed" if failed else "passed",
            longrepr=printable(failure) if failed else None,
            when=when,
            user_properties=properties,
        )
        if excused:
            # pytest and its plugins recognise an expected failure by this, as after pytest.xfail.
            report.wasxfail = waived
        hook.pytest_runtest_logreport(report=report)
    hook.pytest_runtest_logfinish(nodeid=nodeid, location=location)


def add_suite_properties(config: pytest.Config, properties: Sequence[tuple[str, str]]) -> None:
    """Add properties of the run to the JUnit file, if one is written."""
    try:
        # pytest has no public way: record_testsuite_property does nothing under xdist (pytest #7767).
        from _pytest.junitxml import xml_key
    except ImportError:
        return
    xml = config.stash.get(xml_key, None)
    if xml is not None:
        for name, value in properties:
            xml.add_global_property(name, value)


def make_printable(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Make failure, traceback, captured output and properties of a report printable.

    Failures quote models, and tracebacks may contain keys.
    """
    for name in ("longrepr", "sections", "user_properties"):
        if hasattr(report, name):
            setattr(report, name, _shown(getattr(report, name)))


def _shown(value: Any) -> Any:
    """Return a text, a sequence or a traceback of pytest's with all its texts printable."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, (list, tuple)):
        return type(value)(map(_shown, value))
    if hasattr(value, "toterminal"):
        for name, part in vars(value).items():
            setattr(value, name, _shown(part))
    return value
