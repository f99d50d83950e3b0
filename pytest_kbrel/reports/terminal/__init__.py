"""The terminal: the first screen of a run, its full tables, and the failure message of a case."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_kbrel.catalogue.rules import GATE_RULES
from pytest_kbrel.catalogue.verdicts import VERDICTS
from pytest_kbrel.printing import printable
from pytest_kbrel.records import CaseResult, Run
from pytest_kbrel.reports.cases import case_title
from pytest_kbrel.reports.formatting import one_line
from pytest_kbrel.reports.terminal.cases import entries, example, moved_fact, moved_text
from pytest_kbrel.reports.terminal.lines import WIDEST, Line, laid_out
from pytest_kbrel.reports.terminal.tables import table_lines
from pytest_kbrel.reports.view import View

__all__ = ["failure_text", "table_lines", "terminal_lines"]
# pytest prints a message as it is, however wide the terminal is.
_WIDTH = 80


def terminal_lines(
    run: Run,
    *,
    width: int,
    written_to: str = "",
    verbosity: int = 0,
    steps: Sequence[tuple[str, str]] = (),
    is_first: bool = False,
) -> list[Line]:
    """Return (text, markup) pairs for ``terminalreporter.write_line(text, **markup)``.

    They are the first screen: the verdict, the models, facts lost and gained, and the cases that did not
    pass. From a ``verbosity`` of 1 on, the full tables stand before it; below 0 each case is one line.
    ``steps`` are what can be done next: (what, command). ``is_first``: this run is a first baseline.

    No line is wider than ``width``, nor than 100 columns, but commands and the path of the reports, which
    stay whole. Every verdict is also a word.
    """
    width, view = max(20, min(width, WIDEST)), View(run)
    words: dict[str, str] = {name: kind.shown for name, kind in VERDICTS.items()}
    if is_first:
        words["no baseline"] = "not compared yet"
    data = {
        "view": view,
        "width": width,
        "verbosity": verbosity,
        "is_first": is_first,
        "words": words,
        "entries": entries(view),
        "example": example,
        "table_lines": table_lines,
    }
    lines = laid_out("screen.txt.j2", width, data)
    rest = [""] if steps and verbosity >= 0 else []
    if rest:
        wide = max(len(what) for what, _ in steps)
        rest += [f"{what:<{wide}}  {how}" for what, how in steps]
    if written_to:
        rest.append(f"reports written to {one_line(written_to)}")
    return [*lines, *((printable(text), {}) for text in rest)]


def failure_text(result: CaseResult, *, baseline_name: str) -> str:
    """Return the message of a failing item: each gate that did not pass, and the first lost facts.

    No line takes more than 80 columns.
    """
    data = {
        "case": result,
        "title": case_title(result),
        "baseline": one_line(baseline_name) or "the baseline",
        "missed": [gate for gate in result.gates if gate.verdict != "pass"],
        "rules": GATE_RULES,
        "moved_fact": moved_fact,
        "moved_text": moved_text,
    }
    lines = laid_out("failure.txt.j2", _WIDTH, data)
    return "\n".join(text for text, _ in lines)
