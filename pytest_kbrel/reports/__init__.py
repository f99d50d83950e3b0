"""A report folder: the names of its files, and where an earlier one is.

``view.View`` has what all reports say of a finished ``Run``; templates lay it out, and nothing is computed.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

REPORT = "report.json"
PAGE = "report.html"
SUMMARY = "summary.md"
RESPONSES = "responses.jsonl"
OUTCOMES = "outcomes.jsonl.xz"
# The report first: without it the others are no run's.
REPORT_FILES = (REPORT, PAGE, SUMMARY, RESPONSES, OUTCOMES)
# The variable in which GitHub Actions names the file that is shown on a job's page.
JOB_PAGE = "GITHUB_STEP_SUMMARY"
# In a folder of reports, that of the reports of the run before.
PREVIOUS = "previous"


def earlier_note(report: Path) -> str:
    """Return a note on where the previous report is, for an error about a missing one; empty without one."""
    earlier = report.parent / PREVIOUS / report.name
    if not earlier.is_file():
        return ""
    return f"; a run began in that folder and did not end (killed?), or was refused; the one before: {earlier}"


def runs_beside(folder: Path) -> list[str]:
    """Return the names of the report folders beside ``folder``, whether it is there or not."""
    try:
        return sorted(path.parent.name for path in folder.parent.glob(f"*/{REPORT}"))
    except OSError:
        return []


def add_to_job_page(folder: Path) -> str:
    """Append the summary in ``folder`` to the page of the job of GitHub Actions that this process runs in.

    Does nothing outside such a job. Returns why the summary could not be appended; ``""`` otherwise.
    """
    page = os.environ.get(JOB_PAGE)
    if not page:
        return ""
    try:
        text = (folder / SUMMARY).read_text(encoding="utf-8")
        with open(page, "a", encoding="utf-8", newline="\n") as stream:
            # What an earlier step wrote may end without a line break.
            stream.write(f"\n{text}")
    except OSError as error:
        return f"warning: the summary was not added to ${JOB_PAGE}: {error}"
    return ""


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal; the file may be larger than the memory."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
