from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_kbrel.records import CaseResult, GateResult, MetricValue, Run
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


def test_a_gated_metric_is_shown_whatever_else_is():
    demand = GateResult(metric="accuracy_em", rule="min", bound=0.1, verdict="pass", reason="")
    nothing = replace(demand, metric="accuracy_f1")
    gated = replace(case(0.0), gates=(demand, nothing))
    assert key_metrics(gated) == ("accuracy", "hallucination", "missing", "accuracy_em")
    run = Run(
        kbrel_version="0",
        created="",
        model=None,
        environment=(),
        settings=(),
        cases=(gated, replace(case(0.25), id="head_to_tail[b-head]")),
    )
    (group,) = selection.groups(run)
    assert group.metrics == ("accuracy", "hallucination", "missing", "unparsable", "accuracy_em")


def test_rows_name_their_suite_where_there_are_several(small_run):
    (one, *_) = small_run.cases
    other = replace(one, suite="more/second.kb.yaml")
    alone = selection.groups(replace(small_run, cases=(one,)))
    both = selection.groups(replace(small_run, cases=(one, other)))
    assert [group.labels for group in alone] == [(one.slice,)]
    assert [group.labels for group in both] == [(f"{one.slice} (second)", f"{one.slice} (world)")]


def test_who_judged_and_who_wrote_distractors(small_run):
    from tests.reports.conftest import fingerprint

    judge, writer = fingerprint("openai/judge"), fingerprint("openai/writer")
    asked = (("helpers_asked", "30"), ("helpers_reused", "12"))
    reused = " (12 of 30 replies reused from earlier runs)"
    assert selection.helped_by(small_run) == ()
    both = replace(
        small_run, settings=(("judge", "openai/judge"),), helpers=(judge, writer), environment=asked
    )
    expected = (("judged by", "openai/judge"), ("distractors by", "openai/writer" + reused))
    assert selection.helped_by(both) == expected
    alone = replace(both, settings=(("judge", "rules"),), helpers=(writer,))
    assert selection.helped_by(alone) == expected[1:]
    # One model may do both, which its metric tells.
    (one, *_) = small_run.cases
    written = replace(one, metrics=(MetricValue(name="distractors_written", better="higher", value=1.0),))
    same = replace(both, helpers=(judge,), cases=(written,))
    assert selection.helped_by(same) == (expected[0], ("distractors by", "openai/judge" + reused))
    assert selection.helped_by(replace(same, cases=())) == (("judged by", "openai/judge" + reused),)


def test_seen_and_unseen_knowledge_are_told_apart_without_metrics(stopped_run):
    groups = {group.title: group.labels for group in selection.groups(stopped_run)}
    assert groups == {"MONITOR": ("P30",), "Reliable KB, unseen": ("unseen-zero-shot",)}
