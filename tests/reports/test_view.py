from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_kbrel.records import (
    CaseResult,
    Correlation,
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


def test_who_judged_and_who_wrote_distractors(small_run):
    from tests.reports.conftest import fingerprint

    judge, writer = fingerprint("openai/judge"), fingerprint("openai/writer")
    asked = (("helpers_asked", "30"), ("helpers_reused", "12"))
    reused = " (12 of 30 replies reused from earlier runs)"
    assert view.helper_models(small_run) == ()
    both = replace(
        small_run,
        settings=(("judge", "openai/judge"),),
        helpers=(judge, writer),
        environment=asked,
    )
    expected = (
        ("judged by", "openai/judge"),
        ("distractors by", "openai/writer" + reused),
    )
    assert view.helper_models(both) == expected
    alone = replace(both, settings=(("judge", "rules"),), helpers=(writer,))
    assert view.helper_models(alone) == expected[1:]
    # One model may do both, which its metric tells.
    (one, *_) = small_run.cases
    written = replace(
        one,
        metrics=(MetricValue(name="distractors_written", better="higher", value=1.0),),
    )
    same = replace(both, helpers=(judge,), cases=(written,))
    assert view.helper_models(same) == (
        expected[0],
        ("distractors by", "openai/judge" + reused),
    )
    assert view.helper_models(replace(same, cases=())) == (
        ("judged by", "openai/judge" + reused),
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


@pytest.mark.parametrize(
    ("baseline", "blessed", "note", "expected"),
    [
        ("prod", True, "", ["no baseline"]),
        ("publish", True, "", ["no baseline"]),
        ("", False, "", []),
        ("published", False, " (published figures, unpaired)", []),
        ("published/monitor/vicuna-7b", False, " (published figures, unpaired)", []),
    ],
)
def test_who_was_asked_for_as_baseline(baseline, blessed, note, expected, small_run):
    gates = tuple(
        GateResult(metric="m", rule="max_drop", bound=0, verdict=verdict, reason="")
        for verdict in ("no baseline", "no baseline", "fail", "inconclusive")
    )
    run = run_of(small_run, "pass", "no baseline", baseline=baseline)
    run = replace(run, cases=tuple(replace(case, gates=gates) for case in run.cases))
    assert view.is_blessed(run) is blessed
    assert view.baseline_note(run) == note
    assert [case.verdict for case in view.not_passed(run)] == expected
    assert view.unjudged_count(run) == (0 if blessed else 4)


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


@pytest.mark.parametrize(
    ("probe", "shown"),
    [
        ("monitor", ("accuracy", "gated", "pfd")),
        ("reliability", ("accuracy", "gated", "own", "pfd")),
    ],
)
def test_over_several_cases_all_is_shown_but_for_what_monitor_has_beside(
    probe, shown, small_run
):
    gate = GateResult(metric="gated", rule="min", bound=0.1, verdict="pass", reason="")
    of = named(
        small_run.cases[0],
        "accuracy",
        "gated",
        "own",
        "pfd",
        probe=probe,
        aggregate=True,
        gates=(gate,),
    )
    assert key_metrics(of) == shown


def test_cases_have_one_order_and_pooled_figures_come_first(small_run):
    one = small_run.cases[0]
    cases = [
        replace(one, suite=suite, id=name, probe=probe, aggregate=aggregate)
        for suite, name, probe, aggregate in (
            ("b", "a", "monitor", False),
            ("a", "z", "pooled", True),
            ("a", "c", "monitor", True),
            ("a", "b", "monitor", False),
        )
    ]
    run = replace(small_run, cases=tuple(cases))
    assert [case.nodeid for case in view.ordered(run)] == [
        "a::b",
        "a::c",
        "a::z",
        "b::a",
    ]
    assert [case.nodeid for case in view.slices(run)] == ["a::b", "b::a"]
    assert [case.nodeid for case in view.aggregates(run)] == ["a::z", "a::c"]
    assert view.names(run) == {case.nodeid: case.nodeid for case in cases}
    assert view.names(replace(run, cases=tuple(cases[1:]))) == {
        "a::z": "z",
        "a::c": "c",
        "a::b": "b",
    }


def test_suites_whose_files_have_one_name_are_told_apart_by_their_paths(small_run):
    one = small_run.cases[0]
    both = (
        replace(one, suite="x/world.kb.yaml"),
        replace(one, suite="y/world.kb.yaml"),
    )
    (group,) = view.groups(replace(small_run, cases=both))
    assert group.labels == ("P30 (x/world.kb.yaml)", "P30 (y/world.kb.yaml)")


def test_tables_are_one_a_probe_and_two_of_reliability(small_run, make_case):
    failed = make_case(
        "test", "test_it", "invalid", (), id="test_it", suite="tests/test_it.py", n=0
    )
    unseen = [case for case in small_run.cases if case.slice == "unseen-zero-shot"]
    also = replace(unseen[0], id="reliability[unseen]", slice="unseen")
    unlike = replace(unseen[0], id="reliability[unseenly]", slice="unseenly")
    groups = view.groups(
        replace(small_run, cases=(failed, *small_run.cases[::-1], also, unlike))
    )
    assert [(group.row, group.title) for group in groups] == [
        ("slice", "MONITOR"),
        ("slice", "Head-to-Tail"),
        ("slice", "Reliable KB, seen"),
        ("slice", "Reliable KB, unseen"),
        ("test", "Tests in Python"),
    ]
    assert [group.metrics for group in groups] == [
        MONITOR,
        ("accuracy", "hallucination", "missing"),
        ("cr", "wr", "ncr", "c_correct", "nccr"),
        ("ur", "c_wrong", "iur"),
        (),
    ]
    assert [len(group.cases) for group in groups] == [2, 1, 2, 2, 1]
    assert all(not case.aggregate for group in groups for case in group.cases)


def test_the_case_that_lost_most_facts_is_the_worst(small_run):
    lost = small_run.cases[0].lost
    cases = [
        replace(small_run.cases[0], id=f"monitor[{n}]", lost=lost[:n])
        for n in (0, 1, 3, 2)
    ]
    assert view.worst(replace(small_run, cases=tuple(cases))) == cases[2]
    assert view.worst(replace(small_run, cases=tuple(cases[:1]))) is None
    same = replace(cases[2], id="monitor[a]")
    assert view.worst(replace(small_run, cases=(*cases, same))) == cases[2]
    overall = replace(cases[2], aggregate=True)
    assert view.worst(replace(small_run, cases=(overall, cases[1]))) == cases[1]


def test_correlations_are_shown_in_pairs_that_have_a_value(small_run):
    def one(method, r=0.5, **more):
        given = {"x": "a", "y": "b", "over": "slices", "p": 0.1, "n": 3, **more}
        return Correlation(method=method, r=r, **given)

    def shown(*of):
        return view.correlation_pairs(replace(small_run, correlations=of))

    pair = (one("pearson", 0.0), one("spearman", 0.0))
    assert shown(*pair) == shown(*pair[::-1]) == (pair,)
    assert shown(pair[0]) == shown(one("pearson", None), one("spearman", None)) == ()
    # Two of different figures are no pair.
    for other in ({"x": "c"}, {"y": "c"}, {"over": "models"}):
        assert shown(one("pearson"), one("spearman", **other)) == ()


def test_what_was_not_ruled_out_is_said_beside_failures_too(small_run):
    def wide(one):
        if one.verdict not in ("inconclusive", "fail"):
            return one
        gates = (
            replace(gate, verdict="inconclusive", high=0.06, unchanged=0.04)
            for gate in one.gates
        )
        return replace(one, gates=tuple(gates))

    run = replace(small_run, cases=tuple(map(wide, small_run.cases)))
    assert view.verdict(run) == "fail"
    # A failed case says itself what is wrong with it.
    assert view.not_excluded(run) == (
        "not ruled out: accuracy worse by 0.060 in head_to_tail[open-tail] "
        "(0.040 in a slice like it that lost nothing)"
    )
    assert view.not_excluded(replace(run, cases=run.cases[:1])) == ""
