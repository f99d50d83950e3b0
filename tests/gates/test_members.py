"""What a figure over several cases takes of its members, and of whom it says nothing."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import pytest

from pytest_kbrel.baselines import (
    Baseline,
    PublishedCase,
    PublishedFigure,
)
from pytest_kbrel.records import (
    CaseKind,
    CaseResult,
    Gate,
    Table,
    Waiver,
)
from tests.gates.tables import (
    HEAD_TO_TAIL,
    answers,
    case,
    decided,
    gate,
    model,
    outcome,
    run_of,
)
from tests.gates.tables import over as decided_over

HEAD, TAIL = "head_to_tail[a-head]", "head_to_tail[a-tail]"
GAP = gate("gap", "max_drop", 0.5)


def member(name: str, marks: str, **more: Any) -> CaseResult:
    return decided(case(slice=name, **more), answers(marks, prefix=name))


def members(head: str = "+++-", tail: str = "+---") -> list[CaseResult]:
    return [member("a-head", head), member("a-tail", tail)]


def over(of: Sequence[CaseResult], *gates: Gate, **more: Any) -> CaseResult:
    return decided_over(
        of, *gates, **{"named": (HEAD, TAIL), "probe": "head_to_tail", **more}
    )


NO_ROWS = dataclasses.replace(
    member("a-tail", "+"), table=Table(columns=HEAD_TO_TAIL, rows=())
)
INVALID = dataclasses.replace(member("a-tail", "+"), verdict="invalid")
ELSEWHERE = dataclasses.replace(member("a-tail", "+"), suite="suites/other.kb.yaml")


@pytest.mark.parametrize(
    ("of", "named", "why"),
    [
        ([*members()[:1], NO_ROWS], (HEAD, TAIL), f"{TAIL} is invalid"),
        ([*members()[:1], INVALID], (HEAD, TAIL), f"{TAIL} is invalid"),
        # The same case of another suite is another one.
        ([*members()[:1], ELSEWHERE], (HEAD, TAIL), f"{TAIL} has no result"),
        ([INVALID], (HEAD, TAIL), f"{HEAD} has no result; {TAIL} is invalid"),
        (members(), (), "it has no members"),
    ],
)
@pytest.mark.parametrize("probe", ["head_to_tail", "pooled"])
def test_why_nothing_can_be_measured(
    of: list[CaseResult], named: Sequence[str], why: str, probe: CaseKind
) -> None:
    late = Waiver(owner="Ann", reason="known", expires="2026-12-31", case="overall")
    result = over(of, gate("gap", "min", 0.0), named=named, probe=probe, waivers=[late])
    said = f"overall cannot be measured: {why}; allowed: members that were all measured"
    assert (result.verdict, result.errors, result.metrics, result.n) == (
        "invalid",
        (said,),
        (),
        0,
    )
    assert [(one.verdict, one.reason, one.line) for one in result.gates] == [
        ("invalid", f"not judged: {said}", 7)
    ]
    assert (result.waiver, result.members) == (late, tuple(named))


@pytest.mark.parametrize("probe", ["head_to_tail", "pooled"])
def test_a_baseline_may_lack_a_member_or_be_another_models(probe: CaseKind) -> None:
    drop = gate("as_expected" if probe == "pooled" else "gap", "max_drop", 0.5)
    given: dict[str, Any] = {"probe": probe, "baseline": run_of(*members())}
    assert over(members(), drop, **given).gates[0].verdict != "not comparable"
    other = over(members(), drop, **given, model=model(decoding="b"))
    assert other.verdict == "not comparable"
    assert other.gates[0].reason.startswith(
        "candidate and baseline differ in decoding ('b' and 'greedy'); "
    )
    lacking = over(members(), drop, probe=probe, baseline=run_of(members()[0]))
    assert lacking.verdict == "no baseline"
    assert lacking.gates[0].reason == (
        f"the baseline has no case {TAIL}: bless a run of all suites anew"
    )
    elsewhere = run_of(
        *(dataclasses.replace(of, suite="x/other.kb.yaml") for of in members())
    )
    nothing = over(members(), drop, probe=probe, baseline=elsewhere)
    assert nothing.gates[0].reason == (
        f"the baseline has no case {HEAD}, {TAIL} (it has the suite files other.kb.yaml): "
        "bless a run of all suites anew"
    )
    # Where one is lacking nothing is paired.
    assert {value.baseline for value in lacking.metrics} == {None}
    assert (
        over(members(), drop, probe=probe)
        .gates[0]
        .reason.startswith("no baseline was given")
    )


def test_a_case_that_a_blessed_run_lacks_outweighs_gates_that_pass_and_no_run_at_all_does_not() -> (
    None
):
    demands = (GAP, gate("gap", "min", -1.0))
    lacking, none_given = (
        over(members(), *demands, baseline=run_of(members()[0])),
        over(members(), *demands),
    )
    for result in (lacking, none_given):
        assert [judged.verdict for judged in result.gates] == ["no baseline", "pass"]
    assert (lacking.verdict, none_given.verdict) == ("no baseline", "pass")


def paper(*names: str, **more: Any) -> Baseline:
    printed = PublishedFigure(name="accuracy", value=0.9, source="Some, Table 1")
    case_ = PublishedCase(id="overall", figures=(printed,), members=names)
    return run_of(published={"overall": case_}, paper="Some", **more)


@pytest.mark.parametrize(
    ("ours", "theirs", "same"),
    [
        ((HEAD, TAIL), (TAIL, HEAD), True),
        # The top tenth counts in no figure but its own.
        ((HEAD, TAIL, "head_to_tail[a-top10]"), (HEAD, TAIL), True),
        ((HEAD, TAIL), (HEAD,), False),
        ((HEAD, TAIL), (HEAD, TAIL, "head_to_tail[a-torso]"), False),
        ((HEAD, TAIL), (), False),
    ],
)
def test_a_papers_figure_is_one_over_the_same_members(
    ours: Sequence[str], theirs: Sequence[str], same: bool
) -> None:
    of = [*members(), member("a-top10", "+")]
    drop = gate("accuracy", "max_drop", 0.1)
    result = over(of, drop, named=ours, baseline=paper(*theirs))
    (value,) = (value for value in result.metrics if value.name == "accuracy")
    assert value.unpaired is same
    assert value.baseline == (0.9 if same else None)
    said = f"Some has no figures of overall over the same {len(ours)} cases"
    assert (result.gates[0].reason == said) is not same
    # Of a paper nobody expects what it did not measure.
    other = over(
        of, drop, gate("accuracy", "min", 0.1), named=ours, baseline=paper(*theirs)
    )
    assert (other.verdict == "pass") is not same


def test_a_fact_with_two_rows_in_members_is_counted_once() -> None:
    twice = [decided(case(slice=name), answers("+-")) for name in ("a-head", "a-tail")]
    assert (over(twice).n, over(twice, probe="pooled").n) == (2, 2)
    rows = tuple(outcome(f"R{at}", (1, 0, 1, 1), "correct") for at in range(3))
    apart = [
        twice[0],
        decided(case(slice="a-tail"), Table(columns=HEAD_TO_TAIL, rows=rows)),
    ]
    assert (over(apart).n, over(apart, probe="pooled").n) == (5, 5)
