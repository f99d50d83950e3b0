from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_kbrel.records import (
    CaseResult,
    GateResult,
    MetricValue,
    Run,
    Waiver,
)
from pytest_kbrel.reports import phrases, view
from pytest_kbrel.reports.view import key_metrics


def case(unparsable):
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
        metrics=tuple(
            MetricValue(name=n, better="lower", value=v) for n, v in values.items()
        ),
        gates=(),
    )


@pytest.mark.parametrize(
    ("unparsable", "shown"), [(0.25, ("unparsable",)), (0.0, ()), (None, ())]
)
def test_unreadable_verdicts_are_shown_where_there_are_any(unparsable, shown):
    assert key_metrics(case(unparsable)) == (
        "accuracy",
        "hallucination",
        "missing",
        *shown,
    )


def test_a_gated_metric_is_shown_whatever_else_is():
    demand = GateResult(
        metric="accuracy_em", rule="min", bound=0.1, verdict="pass", reason=""
    )
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
    (group,) = view.groups(run)
    assert group.metrics == (
        "accuracy",
        "hallucination",
        "missing",
        "unparsable",
        "accuracy_em",
    )


# Worst first: the order in which a run's verdicts are looked for and told.
WORST_FIRST = (
    *("fail", "invalid", "not run"),
    *("not comparable", "no baseline", "inconclusive", "pass"),
)


def run_of(small_run, *verdicts, **more):
    one = small_run.cases[0]
    cases = tuple(
        replace(one, id=f"monitor[{at}]", verdict=verdict)
        for at, verdict in enumerate(verdicts)
    )
    return replace(small_run, cases=cases, **more)


@pytest.mark.parametrize("at", range(7))
def test_the_worst_case_decides_and_is_told_first(at, small_run):
    run = run_of(small_run, *WORST_FIRST[at:][::-1])
    assert view.verdict(run) == WORST_FIRST[at]
    assert view.headline(run) == ", ".join(f"1 {word}" for word in WORST_FIRST[at:])
    assert [case.verdict for case in view.not_passed(run)] == [
        word for word in WORST_FIRST[at:] if word != "pass"
    ]
    assert view.verdict_counts(run) == {
        word: int(word in WORST_FIRST[at:]) for word in WORST_FIRST
    }


WAIVER = Waiver(owner="Ann", reason="known", expires="2026-12-31", case="x")


@pytest.mark.parametrize(
    ("verdict", "waived"),
    [
        ("fail", True),
        ("not comparable", True),
        ("no baseline", True),
        ("inconclusive", True),
        # What is unsound or was not asked is never waived, and what passes needs no waiver.
        ("invalid", False),
        ("not run", False),
        ("pass", False),
    ],
)
def test_a_waived_case_is_counted_and_does_not_decide(verdict, waived, small_run):
    run = run_of(small_run, verdict, "pass")
    case, passed = run.cases
    changed = replace(run, cases=(replace(case, waiver=WAIVER), passed))
    assert view.verdict(changed) == ("pass" if waived else verdict)
    assert ("(1 waived)" in view.headline(changed)) is waived
    assert phrases.is_waived(changed.cases[0], changed) is waived
    late = replace(case, waiver=replace(WAIVER, expired=True))
    assert view.verdict(replace(run, cases=(late, passed))) == verdict
    # Where nobody asked for a blessed run, a case without one is no failure that would be waived.
    for baseline in ("", "published/monitor/vicuna-7b"):
        alone = replace(changed, baseline=baseline)
        assert phrases.is_waived(alone.cases[0], alone) is (
            waived and verdict != "no baseline"
        )


@pytest.mark.parametrize(
    ("verdicts", "problems", "complete", "expected"),
    [
        ((), (), True, "invalid"),
        (("pass",), (), True, "pass"),
        (("pass",), (), False, "pass"),
        (("pass",), ("gw1 died",), True, "invalid"),
        (("fail",), ("gw1 died",), True, "fail"),
        (("not run", "pass"), (), False, "not run"),
    ],
)
def test_an_empty_or_broken_run_never_passes(
    verdicts, problems, complete, expected, small_run
):
    run = run_of(small_run, *verdicts, problems=problems, complete=complete)
    assert view.verdict(run) == expected
    assert view.headline(replace(run, cases=())) == "no case was decided"


def named(of, *names, **more):
    values = tuple(MetricValue(name=name, better="higher", value=0.5) for name in names)
    return replace(of, metrics=values, **more)


MONITOR = ("monitor", "pfd", "ird", "anchor_prob", "accuracy")
SEEN = ("cr", "wr", "ncr", "c_correct", "nccr", "unparsable")


@pytest.mark.parametrize(
    ("probe", "names", "shown"),
    [
        ("monitor", ("accuracy_max", *MONITOR[::-1]), MONITOR),
        ("head_to_tail", ("unparsable", "missing", "hallucination", "accuracy", "accuracy_f1"),
         ("accuracy", "hallucination", "missing", "unparsable")),
        ("reliability", ("ur", "ccr", *SEEN[::-1]), SEEN),
        ("reliability", ("wr", "iur", "c_wrong", "ur", "uccr"), ("ur", "c_wrong", "iur")),
        ("reliability", ("nccr", "new"), ("nccr",)),
        ("pooled", ("as_expected", "new"), ("as_expected", "new")),
        ("test", ("b", "a"), ("b", "a")),
    ],
)  # fmt: skip
def test_the_metrics_that_tell_most(probe, names, shown, small_run):
    slice_name = "unseen-zero-shot" if "ur" in shown else "seen-zero-shot"
    case = named(small_run.cases[0], *names, probe=probe, slice=slice_name, gates=())
    assert key_metrics(case) == shown


def test_suites_whose_files_have_one_name_are_told_apart_by_their_paths(small_run):
    one = small_run.cases[0]
    both = (
        replace(one, suite="x/world.kb.yaml"),
        replace(one, suite="y/world.kb.yaml"),
    )
    (group,) = view.groups(replace(small_run, cases=both))
    assert group.labels == ("P30 (x/world.kb.yaml)", "P30 (y/world.kb.yaml)")
