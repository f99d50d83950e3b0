from dataclasses import replace

import pytest

from pytest_kbrel.records import (
    CaseResult,
    MetricValue,
    Relation,
    Waiver,
)
from pytest_kbrel.reports import view
from pytest_kbrel.reports.html.page import anchors
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
        ("inconclusive", True),
        # What is unsound or was not asked is never waived.
        ("invalid", False),
        ("not run", False),
    ],
)
def test_a_waived_case_is_counted_and_does_not_decide(verdict, waived, small_run):
    run = run_of(small_run, verdict, "pass")
    case, passed = run.cases
    changed = replace(run, cases=(replace(case, waiver=WAIVER), passed))
    assert view.verdict(changed) == ("pass" if waived else verdict)
    assert ("(1 waived)" in view.headline(changed)) is waived
    late = replace(case, waiver=replace(WAIVER, expired=True))
    assert view.verdict(replace(run, cases=(late, passed))) == verdict


@pytest.mark.parametrize(
    ("verdicts", "problems", "expected"),
    [
        ((), (), "invalid"),
        (("pass",), (), "pass"),
        (("pass",), ("gw1 died",), "invalid"),
        (("fail",), ("gw1 died",), "fail"),
    ],
)
def test_an_empty_or_broken_run_never_passes(verdicts, problems, expected, small_run):
    assert view.verdict(run_of(small_run, *verdicts, problems=problems)) == expected


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
    slice_name = "unseen-zero-shot" if "ur" in shown else "known-zero-shot"
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


@pytest.mark.parametrize(
    ("name", "label", "shown"),
    [
        ("P176", "manufacturer", "manufacturer"),
        ("P176", "P176", ""),
        ("capital_of", "capital of", ""),
    ],
)
def test_a_label_that_repeats_the_id_is_not_shown(name, label, shown):
    relation = Relation(id=name, label=label, domain="things", frames=())
    assert relation.shown_label == shown


def test_links_on_the_page_are_made_of_ids(small_run):
    cases = tuple(replace(case, label="continent") for case in small_run.cases)
    assert anchors(replace(small_run, cases=cases)) == anchors(small_run)
