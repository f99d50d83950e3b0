"""The texts of pytest's reports, as they may be printed: failures quote models, and tracebacks hold keys."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_kbrel.printing import printable


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
