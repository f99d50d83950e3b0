"""Cases of a run by themselves: their order, names and figures."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_kbrel.records import (
    JUDGEMENTS,
    Case,
    CaseResult,
    MetricValue,
    Run,
    is_published,
)
from pytest_kbrel.reports.formatting import thousands


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
