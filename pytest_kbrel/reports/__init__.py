"""One file an output, each a function of a finished ``Run``. They format; nothing is computed here."""

from __future__ import annotations

from pathlib import Path

from pytest_kbrel.records import Run
from pytest_kbrel.reports.files import PAGE, REPORT, SUMMARY, write_text
from pytest_kbrel.reports.html import report_html
from pytest_kbrel.reports.json_report import write_json
from pytest_kbrel.reports.markdown import summary_markdown

__all__ = ["write_reports"]


def write_reports(run: Run, directory: Path) -> tuple[Path, ...]:
    """Write ``report.json``, ``report.html`` and ``summary.md`` into ``directory`` and return their paths."""
    as_json, as_html, as_markdown = (directory / name for name in (REPORT, PAGE, SUMMARY))
    write_json(run, as_json)
    write_text(as_html, report_html(run))
    write_text(as_markdown, summary_markdown(run))
    return as_json, as_html, as_markdown
