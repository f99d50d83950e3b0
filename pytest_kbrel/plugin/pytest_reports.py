"""pytest reports of cases that no item ran: aggregates, and items that never ended."""

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
    """Hand pytest the reports of a case, so that it counts, prints and exits by it.

    ``failure`` is why the case failed, ``""`` when it passed; with ``waived``, the reason why it may, pytest
    shows an expected failure. ``is_new`` says that the case was not collected: the progress column counts to
    what was, and must end at 100 %.
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
            # All that report know an expected failure by this, as from pytest.xfail.
            report.wasxfail = waived
        hook.pytest_runtest_logreport(report=report)
    hook.pytest_runtest_logfinish(nodeid=nodeid, location=location)


def add_suite_properties(config: pytest.Config, properties: Sequence[tuple[str, str]]) -> None:
    """Put properties of the whole run into the JUnit file, if one is written."""
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
    """Make all texts of a report printable: failure, traceback, captured output and properties.

    Terminal, summary, JUnit and xdist take them from the report.
    """
    for name in ("longrepr", "sections", "user_properties"):
        if hasattr(report, name):
            setattr(report, name, _shown(getattr(report, name)))


def _shown(value: Any) -> Any:
    """Return a text, a sequence of them, or what pytest made of a traceback, with all its texts printable."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, (list, tuple)):
        return type(value)(map(_shown, value))
    if hasattr(value, "toterminal"):
        for name, part in vars(value).items():
            setattr(value, name, _shown(part))
    return value
