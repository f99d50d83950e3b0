"""The first page of the documentation: what it writes is run, and prints what it shows."""

from __future__ import annotations

import doctest
import os
import re
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[1] / "docs" / "index.md").read_text(encoding="utf-8")
FILES = re.findall(r'```\w+ title="([\w.]+)"\n(.*?)```', PAGE, re.DOTALL)
# Commands of pytest, with what the page shows of their output and their exit code.
RUNS = re.findall(r"```console\n\$ pytest (.*?)\n(\.\.\..*?)```", PAGE, re.DOTALL)
EXIT_CODES = [1, 0]


def without_times(text: str) -> str:
    """Return an output without times, in which the rule at its end is as long with any of them."""
    text = re.sub(r"=+ (\d.* in) [\d.]+s.*", r"\1 0s", text)
    return "\n".join(line.rstrip() for line in text.splitlines()) + "\n"


@pytest.mark.slow
def test_the_runs_of_the_page_print_what_it_shows(pytester, monkeypatch):
    assert [name for name, _ in FILES] == ["questions.jsonl", "capitals.kb.yaml"]
    assert len(RUNS) == len(EXIT_CODES)
    for name, text in FILES:
        (pytester.path / name).write_text(text, encoding="utf-8")
    for name in os.environ:
        # Where CI is set, pytest's summary repeats each failure whole.
        if name in ("CI", "PYTEST_ADDOPTS") or name.startswith("KB_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("COLUMNS", "80")
    for (arguments, shown), exit_code in zip(RUNS, EXIT_CODES, strict=True):
        result = pytester.runpytest(*arguments.split())
        assert result.ret == exit_code
        printed = without_times(result.stdout.str())
        # A line of "..." stands for any lines.
        wanted = without_times(shown)
        assert doctest.OutputChecker().check_output(
            wanted, printed, doctest.ELLIPSIS
        ), printed
