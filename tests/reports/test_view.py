"""The view that all reports lay out: verdict and sentences, key metrics, and facts lost and gained."""

from dataclasses import replace

import pytest

from pytest_kbrel.catalogue.metrics import BESIDE
from pytest_kbrel.records import Change, Churn, Waiver
from pytest_kbrel.reports.changes import changed_facts, examples
from pytest_kbrel.reports.view import View, key_figures
from tests.reports.conftest import case, gate, metric, small

# The order in which a run's verdicts are looked for and told.
WORST_FIRST = (
    *("fail", "invalid", "not run"),
    *("not comparable", "no baseline", "inconclusive", "pass"),
)
WAIVER = Waiver(owner="Ann", reason="known", expires="2026-12-31", case="x")


def run_of(*cases, **more):
    return replace(small(), cases=cases, **more)


def decided(*verdicts, **more):
    cases = (case("monitor", f"P{at}", of, ()) for at, of in enumerate(verdicts))
    return run_of(*cases, **more)


@pytest.mark.parametrize("at", range(7))
def test_the_worst_case_decides_and_is_told_first(at):
    view = View(decided(*WORST_FIRST[at:][::-1]))
    assert view.verdict == WORST_FIRST[at]
    assert view.headline() == ", ".join(f"1 {word}" for word in WORST_FIRST[at:])
    told = [one.verdict for one in view.cases]
    assert told == sorted(
        told, key=lambda word: (word == "not run", WORST_FIRST.index(word))
    )


@pytest.mark.parametrize(
    "verdict", ["fail", "not comparable", "inconclusive", "invalid", "not run"]
)
def test_a_waived_case_is_counted_and_does_not_decide(verdict):
    one, passed = decided(verdict, "pass").cases
    view = View(run_of(replace(one, waiver=WAIVER), passed))
    # What is unsound or was not asked is never waived.
    waived = verdict not in ("invalid", "not run")
    assert view.verdict == ("pass" if waived else verdict)
    assert ("(1 waived)" in view.headline()) is waived
    late = replace(one, waiver=replace(WAIVER, expired=True))
    assert View(run_of(late, passed)).verdict == verdict


def test_an_empty_or_broken_run_never_passes():
    assert View(decided()).verdict == "invalid"
    assert View(decided("pass", problems=("gw1 died",))).verdict == "invalid"
    assert View(decided("fail", problems=("gw1 died",))).verdict == "fail"


def keys(probe, names, **more):
    values = tuple(metric(name, 0.5) for name in names.split())
    return " ".join(
        of.name for of in key_figures(case(probe, "a", "pass", values, **more))
    )


def test_the_metrics_that_tell_most_are_shown_and_gated_ones():
    gated = gate(metric="accuracy_max")
    names = "accuracy_max ird pfd accuracy anchor_prob monitor"
    first = "monitor pfd ird anchor_prob accuracy"
    assert keys("monitor", names) == first
    assert keys("monitor", names, gates=(gated,)) == f"{first} accuracy_max"
    # The judge's unreadable verdicts where there are any; MONITOR's figures never alone.
    assert keys("head_to_tail", "unparsable accuracy") == "accuracy unparsable"
    none = case("head_to_tail", "a", "pass", (metric("unparsable", 0.0),))
    assert key_figures(none) == []
    assert keys("test", "b a") == "b a"
    assert set(BESIDE["monitor"]) < set(first.split())


def test_suites_whose_files_have_one_name_are_told_apart():
    both = (
        case("monitor", "P30", "pass", (), suite=f"{folder}/world.kb.yaml", label="continent")
        for folder in "xy"
    )  # fmt: skip
    run = run_of(*both)
    (group,) = View(run).groups
    assert group.labels == ("P30 continent (x/world)", "P30 continent (y/world)")
    assert (
        View(run).names["x/world.kb.yaml::monitor[P30]"].startswith("x/world.kb.yaml::")
    )


def fact(at, relation="P108", bucket="head", **more):
    given = {"question": "?", "expected": "a", "old_answer": "a", "new_answer": "b"}
    known = {"fact_id": f"f{at}", "relation": relation, "bucket": bucket}
    return Change(**(given | known | more))


def changed(lost, gained=(), **more):
    return run_of(
        case("monitor", "P1", "fail", (), lost=tuple(lost), gained=tuple(gained)),
        **more,
    )


def test_the_sentence_on_changed_facts():
    lost = [
        *(fact(at) for at in range(7)),
        *(fact(at, "P1") for at in range(7, 9)),
        *(fact(at, "P1", "tail") for at in range(9, 12)),
    ]
    gained = [fact(at, "P30", "torso") for at in range(20, 25)]
    run = changed(lost, gained, compared=(1240, 1300))
    told = "12 of 1,240 facts lost, 5 gained; 9 of the 12 are head; worst P108"
    assert View(run).changes == told
    facts = changed_facts(run)
    assert [(of.name, of.lost, of.gained) for of in facts.buckets] == [
        ("head", 9, 0), ("torso", 0, 5), ("tail", 3, 0),
    ]  # fmt: skip
    assert [(of.name, of.lost, of.gained) for of in facts.relations] == [
        ("P108", 7, 0), ("P1", 5, 0), ("P30", 0, 5),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("lost", "told"),
    [
        ([fact(1, "P2"), fact(2, "P1", "tail")], "2 facts lost, 0 gained; worst P1 and 1 other"),
        ([fact(at, "", "") for at in range(3)], "3 facts lost, 0 gained; worst monitor[P1]"),
        ([fact(at, "P1", expected="") for at in range(3)], "3 facts lost, 0 gained; all of them are unanswerable; worst P1"),
    ],
)  # fmt: skip
def test_what_is_not_known_is_not_said(lost, told):
    assert View(changed(lost)).changes == told


def test_no_change_is_said_only_where_facts_were_compared():
    same = [replace(one, lost=(), gained=()) for one in small().cases]
    told = View(run_of(*same, compared=(200, 1800))).changes
    assert told == "no fact lost or gained of the 200 of 1,800 facts that were compared"
    alone = [replace(one, metrics=()) for one in same]
    assert View(run_of(*alone)).changes == ""


def test_another_model_that_answers_exactly_as_the_baseline_is_called_so():
    alike = "answers exactly as the baseline does"
    value, moved = metric("accuracy", 0.5, 0.0, paired=20), metric("ird", 0.5, 1e-9)
    same = case(
        "head_to_tail", "a", "pass", (value,), churn=Churn(facts=20, texts=0, labels=0)
    )
    model = small().model
    other = replace(model, weights_digest="other")
    assert alike in View(run_of(same, base=other)).changes
    for one, base in (
        (same, model),
        (replace(same, churn=Churn(facts=20, texts=1, labels=0)), other),
        (replace(same, metrics=(value, moved)), other),
    ):
        assert alike not in View(run_of(one, base=base)).changes


def test_a_fact_that_two_cases_lost_is_one_and_keeps_what_either_knows():
    whole = fact(1, "P36", "", old_probability=0.9, new_probability=0.5)
    lost = ((fact(1, "", "tail"),), (whole, fact(2)))
    # Whichever comes first.
    for order in (lost, lost[::-1]):
        cases = [
            case("monitor", f"P{at}", "fail", (), lost=of)
            for at, of in enumerate(order)
        ]
        cases.append(replace(cases[0], suite="another.kb.yaml"))
        cases.append(replace(cases[0], id="x", lost=(fact(3),), aggregate=True))
        found = changed_facts(run_of(*cases)).lost
        assert len(found) == 2 + len(order[0])
        assert replace(whole, bucket="tail") in found


def test_facts_that_carried_the_verdict_come_first_then_one_of_each_group():
    far = {"old_probability": 0.9, "new_probability": 0.1}
    unseen = [fact(at, "unseen", "", expected="") for at in range(8)]
    capitals = [fact(at, "P36", "tail") for at in range(20, 22)] + [
        fact(29, "P36", "tail", **far)
    ]
    rivers = [fact(at, "P30", "tail") for at in range(30, 32)]
    run = run_of(
        case("monitor", "P36", "pass", (), lost=tuple(capitals)),
        case("reliability", "unseen", "fail", (), lost=(*rivers, *unseen)),
    )
    lost = changed_facts(run).lost
    order = ["unseen", "P30", *["unseen"] * 7, "P30", *["P36"] * 3]
    assert [one.relation for one in lost] == order
    # Of a group that whose probability moved furthest.
    assert lost[-3].fact_id == "f29"
    assert [one.relation for one in examples(lost, 3)] == ["unseen", "P36", "P30"]
    assert examples((), 3) == ()


@pytest.mark.parametrize(
    ("blessed", "note"),
    [
        ("2026-01-02T01:00:00+00:00", " (blessed on the same day, 2026-01-02)"),
        ("2026-01-01T22:30:00-02:00", " (blessed on the same day, 2026-01-02)"),
        ("2025-12-20T01:00:00+00:00", " (blessed 13 days before, 2025-12-20)"),
        ("0001-01-01T00:00:00+14:00", ""),
        ("yesterday", ""),
    ],
)
def test_the_age_of_the_baseline(blessed, note):
    assert View(replace(small(), blessed=blessed)).baseline_note == note


def test_the_largest_drop_that_was_not_ruled_out():
    def undecided(at, high, **more):
        known = {"verdict": "inconclusive", "high": high, "unchanged": 0.04}
        open_gate = gate(**known | more)
        gates = (open_gate, replace(open_gate, high=0.01))
        return case("monitor", f"P{at}", "inconclusive", (), gates=gates)

    view = View(run_of(undecided(1, 0.05), undecided(2, 0.09), undecided(3, 0.07)))
    assert view.not_excluded == (
        "not ruled out: accuracy worse by 0.090 in monitor[P2] (0.040 in a slice like it that lost "
        "nothing), and at most that in 2 more slices"
    )
    assert View(decided("fail", "pass")).not_excluded == ""
    assert (
        "P4"
        not in View(
            run_of(undecided(1, 0.05), undecided(4, 0.99, unchanged=None))
        ).not_excluded
    )
