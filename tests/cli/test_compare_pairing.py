"""Runs paired fact by fact, on cases made by hand: what fails, what is printed and what is written."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_kbrel.baselines import Baseline, BaselineCase
from pytest_kbrel.cli.compare.pairing import (
    PairedRun,
    RecordedOutcomes,
    pair_runs,
)
from pytest_kbrel.cli.compare.render import paired_lines, summary_lines
from pytest_kbrel.records import (
    AggregateCase,
    CaseResult,
    Change,
    Gate,
    GateResult,
    Looks,
    MetricValue,
    Outcome,
    Run,
    Table,
    Waiver,
)
from tests.made_cases import told as because

SUITE = "w.kb.yaml"
HEAD = "head_to_tail[a]"


def gate(verdict: str = "pass", rule: str = "max_drop", **more: Any) -> GateResult:
    entry = {
        "metric": "accuracy",
        "rule": rule,
        "bound": 0.1,
        "verdict": verdict,
        "reasons": (),
        "line": 7,
    }
    return GateResult(**(entry | more))


def case(
    name: str = HEAD, *gates: GateResult, labels: str = "", **more: Any
) -> CaseResult:
    rows = tuple(
        Outcome(
            **{
                "fact_id": f"f{n}",
                "question": "q?",
                "expected": "e",
                "answer": "a",
                "prompt_digest": "d",
            },
            label="correct" if label == "+" else "wrong",
            values=(float(label == "+"), 0.0, 0.0, 0.0, 0.0, 0.0, 0.0),
        )
        for n, label in enumerate(labels)
    )
    columns = ("correct", "missing", "f1", "rouge_l", "em", "rules", "unparsable")
    entry = {
        **{
            "id": name,
            "suite": SUITE,
            "probe": "head_to_tail",
            "slice": "a",
            "verdict": "pass",
        },
        **{"n": len(rows), "duration": 0.0, "metrics": (), "gates": gates},
        "table": Table(columns=columns, rows=rows)
        if rows
        else Table(columns=(), rows=()),
    }
    return CaseResult(**(entry | more))


def run(*cases: CaseResult, **more: Any) -> Run:
    fields = {
        "kbrel_version": "1",
        "created": "",
        "model": None,
        "environment": (),
        "settings": (),
    }
    return Run(**(fields | {"cases": cases} | more))


def paired(*cases: CaseResult, **more: Any) -> PairedRun:
    given = {"number": 3, "name": "b", "p_holm": {}, "obstacles": {}, **more}
    return PairedRun(run=run(*cases), **given)


WAIVER = Waiver(owner="o", reason="r", expires="2090-01-01", case=HEAD)


def test_an_expired_waiver_fails_a_comparison() -> None:
    assert paired(case(HEAD, gate(), expired=(replace(WAIVER, expired=True),))).fails
    assert not paired(case(HEAD, gate()), case("head_to_tail[b]")).fails
    assert not paired().fails


def side(*cases: CaseResult) -> RecordedOutcomes:
    return RecordedOutcomes(
        run=Baseline(
            path=Path("x"),
            **{
                "kbrel_version": "1",
                "created": "",
                "reason": "",
                "commit": "",
                "versions": (),
            },
            model=None,
            settings=(),
            cases={
                f"{SUITE}::{one.id}": BaselineCase(
                    key=f"{SUITE}::{one.id}", table=one.table, metrics=()
                )
                for one in cases
            },
        ),
        cases=cases,
    )


def test_a_run_is_compared_by_the_look_that_it_took() -> None:
    before = side(case(labels="+" * 40))
    recorded = case(HEAD, gate(), labels="+" * 38 + "-" * 2)
    look = Looks(taken=4, of=10, asked=40, facts=100)
    ordinary, early = (
        pair_runs(before, {(2, "b"): of}, "a")[0].run.cases[0].gates[0]
        for of in (
            side(recorded),
            side(replace(recorded, looks=look)),
        )
    )
    assert "; undecided after 40 of 100 facts, at look 4 of 10" in early.reason
    assert ordinary.high is not None
    assert early.high is not None
    assert early.high > ordinary.high


def test_gates_of_all_candidates_are_one_family() -> None:
    before = side(case(labels="+" * 40))
    gates = (
        gate(),
        gate(rule="recovery", bound=0.9),
        gate(rule="min", bound=0.1),
        gate(rule="max", bound=0.9),
    )
    after = side(case(HEAD, *gates, labels="+" * 30 + "-" * 10))
    one = pair_runs(before, {(2, "b"): after}, "a")
    two = pair_runs(before, {(2, "b"): after, (3, "c"): after}, "a")
    (p, sidak), (_, of_both) = (
        (pair.run.cases[0].gates[0].p, pair.run.cases[0].gates[0].p_sidak)
        for pair in (one[0], two[0])
    )
    assert p is not None
    # One case of each candidate compares with the baseline, by two gates: the smaller p counts twice.
    other = one[0].run.cases[0].gates[1].p
    assert other is not None
    adjusted = max(p, other) if p > other else min(2 * p, max(p, other))
    assert sidak == pytest.approx(adjusted)
    assert of_both == pytest.approx(1 - (1 - adjusted) ** 2)
    assert [pair.run.baseline for pair in two] == ["a", "a"]
    assert one[0].fails


def test_a_case_that_was_not_measured_is_not_compared_and_one_that_is_new_has_no_baseline() -> (
    None
):
    before = side(case(labels="++--"))
    broken = case(HEAD, gate("invalid"), verdict="invalid", errors=("no answers",))
    new = case("head_to_tail[b]", gate(), labels="++--")
    (pair,) = pair_runs(before, {(2, "b"): side(broken, new)}, "a")
    first, second = pair.run.cases
    assert (first, second.gates[0].verdict) == (broken, "no baseline")
    assert list(pair.obstacles) == [f"{SUITE}::head_to_tail[b]"]
    assert pair.obstacles[f"{SUITE}::head_to_tail[b]"].startswith("no baseline: ")
    assert list(pair.p_holm.values()) == [None] * len(pair.p_holm)


@pytest.mark.parametrize("gates", [(), (gate(),)])
def test_a_case_that_the_candidate_lacks_fails(gates: tuple[GateResult, ...]) -> None:
    other = case("head_to_tail[b]", *gates, labels="++--")
    overall = AggregateCase(
        id="head_to_tail[overall]",
        suite=SUITE,
        probe="head_to_tail",
        slice="overall",
        members=(HEAD,),
        gates=(Gate(metric="accuracy_macro", rule="max", bound=0.5),),
    )
    before = replace(side(case(labels="++--"), other), aggregates=(overall,))
    whole, less = pair_runs(
        before, {(2, "b"): before, (3, "c"): side(case(labels="++--"))}, "a"
    )
    assert not whole.fails
    assert less.fails
    assert {one.nodeid: one.verdict for one in less.run.cases[1:]} == {
        f"{SUITE}::head_to_tail[b]": "not run",
        f"{SUITE}::head_to_tail[overall]": "not run",
    }
    text = "\n".join(told(less))
    assert text.count("not run: a has this case, and the candidate does not") == 2
    (summary,) = (line for line in summary_lines([less]) if line)
    assert f"gates: {1 + len(gates)} not run;" in summary


@settings(max_examples=30)
@given(
    labels=st.text("+-", min_size=100, max_size=120),
    lost=st.sampled_from((0, 3, 10, 40)),
    chosen=st.sets(st.integers(0, 99), min_size=2),
    more=st.booleans(),
)
def test_facts_that_the_candidate_lacks_make_no_gate_better(
    labels: str, lost: int, chosen: set[int], more: bool
) -> None:
    gates = gate(), gate(rule="min", bound=0.4), gate(rule="recovery", bound=0.9)
    whole = case(HEAD, *gates, labels="-" * lost + labels[lost:])
    # Those that were wrong, or any.
    rows = whole.table.rows
    kept = tuple(
        row
        for at, row in enumerate(rows)
        if at not in chosen or not (more or row.label == "wrong")
    )
    if len(rows) - len(kept) < 2:
        return
    less = replace(whole, table=replace(whole.table, rows=kept), n=len(kept))
    before = side(case(labels=labels))
    pairs = pair_runs(before, {(2, "b"): side(whole), (3, "c"): side(less)}, "a")
    assert pairs[1].fails
    (shrunk,) = pairs[1].run.cases
    assert {of.verdict for of in (shrunk, *shrunk.gates)} == {"not comparable"}
    # Of another limit it is no such case.
    limited = side(less)
    limited = replace(limited, run=replace(limited.run, settings=(("limit", "90"),)))
    (pair,) = pair_runs(before, {(2, "b"): limited}, "a")
    assert pair.run.cases[0].verdict != "not comparable"


def change(number: int) -> Change:
    return Change(
        fact_id=f"f{number}",
        question=f"q{number}?",
        expected="e",
        old_answer="old",
        new_answer="new",
    )


def told(at: PairedRun, width: int = 200) -> list[str]:
    return list(paired_lines([at], width))


def test_what_is_printed_of_a_candidate() -> None:
    figure = MetricValue(
        **{
            "name": "accuracy",
            "better": "higher",
            "value": 0.9,
            "baseline": 0.5,
            "delta": -0.2,
        },
        **{"delta_low": -0.3, "delta_high": -0.1, "p": 0.01, "paired": 3},
    )
    other = replace(figure, name="f1", delta=None, p=None, baseline=None)
    facts = tuple(map(change, range(6)))
    shown = case(
        HEAD,
        gate("fail", reasons=because("worse")),
        gate(),
        metrics=(figure, other),
        lost=facts,
        gained=facts[:5],
    )
    lines = told(paired(shown, p_holm={(f"{SUITE}::{HEAD}", "accuracy"): 0.04}))
    assert lines[1] == "3 against 1, paired fact by fact: b"
    assert "head_to_tail[a], 3 facts paired: pass" in lines
    (head,) = [line for line in lines if line.endswith("95 % interval")]
    assert head.split() == ["1", "3", "3", "-", "1", "95", "%", "interval"]
    (row,) = [line for line in lines if line.startswith("  accuracy ")]
    # The difference is over the facts that have a partner, and so is the second figure.
    assert row.split()[:4] == ["accuracy", "0.500", "0.300", "-0.200"]
    assert row.endswith("Holm 0.040")
    assert "    accuracy max_drop 0.1: fail: worse" in lines
    assert "    accuracy max_drop 0.1: pass" in lines
    assert "6 facts lost, 5 gained" in lines
    assert sum(line.startswith("  lost: q") for line in lines) == 5
    assert "  lost: and 1 more (--json has all)" in lines
    assert not any(line.startswith("  gained: and") for line in lines)
    assert lines[-1].startswith("p is one-sided (worse); Holm:")
    assert list(paired_lines([], 200)) == []


def test_why_a_case_cannot_be_compared_is_said_once() -> None:
    stuck = case(HEAD, gate("not comparable", reasons=because("other prompts")))
    lines = told(
        paired(stuck, obstacles={f"{SUITE}::{HEAD}": "not comparable: other prompts"})
    )
    assert [line.strip() for line in lines if "other prompts" in line] == [
        "not comparable: other prompts"
    ]
    assert "    accuracy max_drop 0.1: not comparable" in lines
    broken = told(
        paired(
            case(
                HEAD,
                gate("invalid", reasons=because("x")),
                verdict="invalid",
                errors=("no answers",),
            )
        )
    )
    assert [line.strip() for line in broken if "no answers" in line] == ["no answers"]
    # An error that left facts out, and no more, is none of the comparison's.
    assert not any(
        "left out" in line for line in told(paired(case(errors=("left out",))))
    )


def test_a_summary_counts_verdicts_the_worst_first() -> None:
    verdicts = (
        "pass",
        "inconclusive",
        "no baseline",
        "not comparable",
        "not run",
        "invalid",
        "fail",
        "pass",
    )
    one = paired(case(HEAD, *map(gate, verdicts), lost=(change(1),)), number=2)
    assert list(summary_lines([one, paired(case(), number=4)])) == [
        "",
        "2 against 1: gates: 1 fail, 1 invalid, 1 not run, 1 not comparable, 1 no baseline, 1 inconclusive, "
        "2 pass; 1 fact lost, 0 gained",
        "4 against 1: gates: none are known; 0 facts lost, 0 gained",
    ]
    assert list(summary_lines([])) == []
