"""Words and numbers as people read them, and names and figures of cases. Whatever a model or a data file says passes through ``one_line``."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from pytest_kbrel.errors import count as count
from pytest_kbrel.printing import redacted, visible
from pytest_kbrel.records import (
    JUDGEMENTS,
    Case,
    CaseResult,
    MetricValue,
    Run,
    is_published,
)

DASH = "–"
# These metrics are initials; the others are words.
_INITIALS = re.compile(
    r"(?:cr|wr|ur|ncr|ccr|cwr|nccr|iur|pfd|ird|monitor|ece|auroc)(?=_|$)"
)

_WHOLE = re.compile(r"[0-9]{1,18}")


def one_line(text: str, limit: int = 0) -> str:
    """Return ``text`` on one line with control, bidi and surrogate characters spelled out.

    With ``limit`` the result has at most that many characters, the last an ellipsis where some are left out.
    """
    # Only what can be seen is looked at: an answer may be megabytes long.
    clean = "".join(map(visible, text[: limit + 1] if limit else text))
    if not limit or len(clean) <= limit:
        return clean
    # Where text is printed, no half of a key would be found.
    return "".join(map(visible, redacted(text)))[: limit - 1] + "…"


def end_of(text: str, limit: int) -> str:
    """Return the end of a prompt on one line: instructions and examples stand before the question."""
    line = one_line(" ".join(text.split()))
    return line if len(line) <= limit else "…" + line[1 - limit :]


def answer_text(answer: str, limit: int = 0) -> str:
    """Return an answer on one line; ``(nothing)`` where it is blank, for a blank cannot be read."""
    return one_line(answer.strip(), limit) or "(nothing)"


def expected_text(expected: str, limit: int = 0) -> str:
    """Return the expected answer on one line; in words where a question has none."""
    return one_line(expected.strip(), limit) or "(no answer exists)"


def metric_title(name: str) -> str:
    """Return what a sentence calls a metric: ``UR``, ``anchor prob``."""
    words = _INITIALS.sub(lambda initials: initials[0].upper(), name, count=1)
    return one_line(words.replace("_", " "), 60)


def number(value: float | None, digits: int = 3, *, zero: bool = True) -> str:
    """Return ``0.583``, or ``.583`` without ``zero``; a dash where there is no number."""
    if value is None or not math.isfinite(value):
        return DASH
    shown = f"{value:.{digits}f}"
    if float(shown) == 0:
        shown = shown.lstrip("-")
    return shown if zero or abs(float(shown)) >= 1 else shown.replace("0.", ".", 1)


def signed(value: float | None, digits: int = 3, *, zero: bool = True) -> str:
    """Return a difference with its sign, ``=`` where there is none at all, nothing where none is known."""
    if value is None or not math.isfinite(value):
        return ""
    if value == 0:
        return "="
    shown = number(value, digits, zero=zero)
    return shown if shown.startswith("-") or float(shown) == 0 else f"+{shown}"


def interval(low: float | None, high: float | None, digits: int = 3) -> str:
    """Return ``[0.430, 0.594]``, or nothing where there is no interval."""
    if low is None or high is None:
        return ""
    return f"[{number(low, digits)}, {number(high, digits)}]"


def difference(low: float | None, high: float | None, digits: int = 3) -> str:
    """Return the interval of a difference, ``[-0.110, +0.002]``."""
    if low is None or high is None:
        return ""
    ends = [signed(end, digits) if end else number(end, digits) for end in (low, high)]
    return f"[{ends[0]}, {ends[1]}]"


def with_interval(value: float | None, low: float | None, high: float | None) -> str:
    """Return ``0.417 [0.285, 0.549]``; the value alone where it has no interval."""
    return f"{number(value)} {interval(low, high)}".rstrip()


def p_value(p: float | None) -> str:
    """Return ``p = 0.012`` or ``p < 0.001``."""
    if p is None:
        return ""
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"


def bound(value: float) -> str:
    """Return a gate's bound the way the suite file writes it."""
    return f"{value:.6g}"


def thousands(digits: str) -> str:
    """Return a whole number that is written in ``digits`` as ``13,275``; other text as it is, on one line."""
    return f"{int(digits):,}" if _WHOLE.fullmatch(digits) else one_line(digits, 60)


def ordered(run: Run) -> tuple[CaseResult, ...]:
    """Return the cases by node id: workers finish in any order, reports have one."""
    return tuple(sorted(run.cases, key=lambda case: case.nodeid))


def slices(run: Run) -> tuple[CaseResult, ...]:
    """Return the cases of single slices, not the aggregates."""
    return tuple(case for case in ordered(run) if not case.aggregate)


def metric(case: CaseResult, name: str) -> MetricValue | None:
    """Return the metric called ``name``, or ``None``."""
    return next((value for value in case.metrics if value.name == name), None)


def relation_title(relation: str, label: str) -> str:
    """Return id and label of a relation, ``P176 manufacturer``; the id alone where no label is known."""
    return f"{relation} {label}" if label else relation


def case_title(case: Case | CaseResult) -> str:
    """Return what a report calls a case: its id, with the label of its relation.

    ``monitor[P176 manufacturer]``
    """
    part = f"[{case.slice}]"
    if not case.label or not case.id.endswith(part):
        return case.id
    return f"{case.id.removesuffix(part)}[{relation_title(case.slice, case.label)}]"


def suites(run: Run) -> set[str]:
    """Return the suites of a run's cases; those of a paper's figures have none."""
    return {case.suite for case in run.cases} - {""}


def names(run: Run) -> dict[str, str]:
    """Return a name for each node id: with its suite where the run has several."""
    short = len(suites(run)) < 2
    return {
        case.nodeid: case_title(case)
        if short or not case.suite
        else f"{case.suite}::{case_title(case)}"
        for case in run.cases
    }


def verdict_counts(run: Run) -> dict[str, int]:
    """Return how many cases have each verdict, all verdicts named."""
    return {
        word: sum(case.verdict == word for case in run.cases) for word in JUDGEMENTS
    }


def is_blessed(run: Run) -> bool:
    """Return True if the baseline is a blessed run, not a paper's figures."""
    return bool(run.baseline) and not is_published(run.baseline)


def reused(environment: Mapping[str, str], what: str) -> str:
    """Return how many ``answers`` or ``helpers``' replies came from a cache: ``1,200 of 1,240``."""
    figures = (environment.get(f"{what}_{kind}", "") for kind in ("reused", "asked"))
    return " of ".join(map(thousands, figures))
