from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_kbrel.records import CaseResult, MetricValue
from pytest_kbrel.reports import selection
from pytest_kbrel.reports.selection import key_metrics


def case(unparsable: float | None) -> CaseResult:
    values = {
        "accuracy": 0.5,
        "hallucination": 0.25,
        "missing": 0.25,
        "accuracy_em": 0.4,
        "unparsable": unparsable,
    }
    return CaseResult(
        id="head_to_tail[a-head]",
        suite="s.kb.yaml",
        probe="head_to_tail",
        slice="a-head",
        verdict="pass",
        n=4,
        duration=0.0,
        metrics=tuple(MetricValue(name=n, better="lower", value=v) for n, v in values.items()),
        gates=(),
    )


@pytest.mark.parametrize(("unparsable", "shown"), [(0.25, ("unparsable",)), (0.0, ()), (None, ())])
def test_unreadable_verdicts_are_shown_where_there_are_any(unparsable, shown):
    assert key_metrics(case(unparsable)) == ("accuracy", "hallucination", "missing", *shown)


def test_rows_name_their_suite_where_there_are_several(small_run):
    (one, *_) = small_run.cases
    other = replace(one, suite="more/second.kb.yaml")
    alone = selection.groups(replace(small_run, cases=(one,)))
    both = selection.groups(replace(small_run, cases=(one, other)))
    assert [group.labels for group in alone] == [(one.slice,)]
    assert [group.labels for group in both] == [(f"{one.slice} (second)", f"{one.slice} (world)")]
