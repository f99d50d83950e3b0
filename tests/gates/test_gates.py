from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_kbrel import stats
from pytest_kbrel.catalogue.metrics import METRICS
from pytest_kbrel.catalogue.rules import GATE_RULES
from pytest_kbrel.gates import verdict_of
from pytest_kbrel.gates.cases import compare_case
from pytest_kbrel.metrics import metrics_for
from pytest_kbrel.records import (
    Fact,
    GateResult,
    Integrity,
    Judgement,
    ProbeName,
    Table,
    Unmatched,
)
from pytest_kbrel.stats.paired_rates import drop_p, mcnemar
from tests.gates.tables import (
    MONITOR,
    answers,
    case,
    comparison,
    consistency,
    decided,
    gate,
    only,
    outcome,
    scores,
)

BEFORE = "+" * 90 + "-" * 20 + "?" * 10


@pytest.mark.parametrize(
    ("rule", "bound", "verdict", "allowed"),
    [
        ("min", 0.75, "pass", "at least 0.750"),
        ("min", 0.751, "fail", "at least 0.751"),
        ("max", 0.75, "pass", "at most 0.750"),
        ("max", 0.749, "fail", "at most 0.749"),
    ],
)
def test_absolute_bounds_judge_the_value_and_show_its_interval(
    rule: str, bound: float, verdict: str, allowed: str
) -> None:
    actual = only(decided(case(gate("accuracy", rule, bound)), answers(BEFORE)))
    assert actual.verdict == verdict
    assert (
        actual.reason
        == f"accuracy is 0.750 [0.666, 0.819] over 120 facts; allowed: {allowed}"
    )
    assert actual.line == 7


def test_a_clear_regression_fails_with_the_whole_sentence() -> None:
    after = "-" * 12 + BEFORE[12:]
    result = decided(
        case(gate("accuracy", "max_drop", 0.02)), answers(after), answers(BEFORE)
    )
    assert result.verdict == "fail"
    assert only(result).reason == (
        "accuracy fell by 0.100 [-0.167, -0.058] from 0.750 to 0.650 (paired over 120 facts, "
        "p of no drop 0.0001); "
        "allowed: within 0.020, beyond 0.010"
    )
    assert [change.fact_id for change in result.lost] == [f"Q{i:03}" for i in range(12)]
    assert result.gained == ()
    lost = result.lost[0]
    assert (lost.question, lost.expected) == ("What of Q000?", "gold Q000")
    assert (lost.old_answer, lost.new_answer) == ("correct Q000", "wrong Q000")


def test_an_unchanged_run_passes() -> None:
    demands = case(gate("accuracy", "max_drop", 0.0), gate("accuracy", "recovery", 1.0))
    result = decided(demands, answers(BEFORE), answers(BEFORE))
    assert result.verdict == "pass"
    assert result.gates[0].reason == (
        "accuracy did not change [-0.031, 0.031] from 0.750 (no outcome changed, paired over 120 facts); "
        "allowed: within 0.000, beyond 0.000"
    )
    assert str(result.gates[0].observed) == "0.0"


def test_three_facts_that_did_not_change_clear_nothing() -> None:
    actual = only(
        decided(
            case(gate("accuracy", "max_drop", 0.05)), answers("++-"), answers("++-")
        )
    )
    assert actual.verdict == "inconclusive"
    assert "accuracy did not change [-0.561, 0.561] from 0.667" in actual.reason
    # Ten facts of which none is worse are enough, whatever their interval.
    assert "about 10 facts would decide" in actual.reason


def test_undefined_metrics_never_pass() -> None:
    table = consistency([("?", 0.0)] * 5 + [("-", 0.3)] * 5)
    demands = (gate("c_correct", "min", 0.0), gate("c_correct", "max_drop", 1.0))
    result = decided(
        case(*demands, probe="reliability", slice="known-zero-shot"),
        table,
        consistency([("+", 0.5)] * 10),
    )
    assert [g.verdict for g in result.gates] == ["fail", "fail"]
    assert (
        result.gates[0].reason
        == "c_correct is undefined: no correct answer; allowed: at least 0.000"
    )
    # What the baseline did not have either was not lost.
    same = decided(
        case(*demands, probe="reliability", slice="seen-zero-shot"), table, table
    )
    assert [g.verdict for g in same.gates] == ["fail", "inconclusive"]
    silent = decided(
        case(
            gate("c_wrong", "max", 0.3), probe="reliability", slice="unseen-zero-shot"
        ),
        consistency([("?", 0.0)] * 5, expected=False),
    )
    assert silent.verdict == "inconclusive"
    assert "no wrong answer" in only(silent).reason


def test_facts_that_the_baseline_lacks_are_listed_and_left_out() -> None:
    demands = case(gate("accuracy", "max_drop", 0.02), gate("accuracy", "min", 0.5))
    result = decided(demands, answers("+" * 30 + "--"), answers("+" * 30))
    assert [g.verdict for g in result.gates] == ["pass", "pass"]
    assert (
        "paired over 30 facts); 2 facts not in the baseline left out; allowed"
        in result.gates[0].reason
    )
    value = result.metrics[0]
    assert (value.n, value.paired, value.delta) == (32, 30, 0.0)
    assert result.lost == ()
    assert result.unmatched == Unmatched(added=("Q030", "Q031"))


@pytest.mark.parametrize(
    ("shared", "verdict"), [(16, "pass"), (15, "not comparable"), (0, "not comparable")]
)
def test_at_least_half_of_the_facts_need_a_partner(shared: int, verdict: str) -> None:
    demands = case(gate("accuracy", "max_drop", 0.02))
    result = decided(demands, answers("+" * 32), answers("+" * shared))
    assert result.verdict == verdict
    if verdict != "pass":
        assert only(result).reason.startswith(
            f"head_to_tail[world-head]: {32 - shared} of 32 facts are not in the baseline "
            f"(first: Q0{shared:02}), and at least half must be; allowed: "
        )
        assert only(result).p is None


def test_facts_that_were_asked_in_vain_are_not_called_unasked() -> None:
    asked = tuple(
        Fact(id=f"Q{n:03}", relation="P36", subject="x", object="y") for n in range(31)
    )
    demands = case(
        gate("accuracy", "max_drop", 0.02),
        facts=asked,
        integrity=Integrity(errored=0.1),
    )
    result = decided(
        demands, answers("+" * 30), answers("+" * 32), errors=["Q030: timeout"]
    )
    assert result.unmatched == Unmatched(unanswered=("Q030",), unasked=("Q031",))
    # Decided again without its suite, it is the record that knows.
    again = compare_case(result, demands.gates, comparison(result, answers("+" * 32)))
    assert again.unmatched == result.unmatched


# Worst first. Over a whole run the order is another one: there a failure is said before what is unsound.
SEVERITY: tuple[Judgement, ...] = (
    *("invalid", "fail", "not comparable"),
    *("no baseline", "inconclusive", "pass"),
)
VERDICTS = st.lists(st.sampled_from(SEVERITY), max_size=5)


@given(VERDICTS, st.booleans())
def test_the_worst_gate_decides(verdicts: list[Judgement], asked: bool) -> None:
    results = [GateResult(metric="m", rule="min", bound=0, verdict=v) for v in verdicts]
    actual = verdict_of(results, baseline_asked=asked)
    counted = [v for v in verdicts if asked or v != "no baseline"]
    if counted or not verdicts:
        assert actual == min(counted, key=SEVERITY.index, default="pass")
    else:
        assert actual == "no baseline"


PROBABILITY = st.floats(0.0, 1.0)
MARKED = st.tuples(st.sampled_from("+-?"), PROBABILITY)
CELLS = st.tuples(PROBABILITY, PROBABILITY, st.sampled_from((0.0, 0.5)))


def monitored(cells: list[tuple[float, float, float]]) -> Table:
    """A table of MONITOR: anchor, move of its probability, and accuracy."""
    rows = [
        outcome(f"Q{i:03}", (1, moved, moved, moved, anchor, right, right), "wrong")
        for i, (anchor, moved, right) in enumerate(cells)
    ]
    return Table(columns=MONITOR, rows=tuple(rows))


@given(
    of=st.one_of(
        st.tuples(
            st.just(("reliability", "seen-zero-shot")),
            st.lists(MARKED, min_size=1, max_size=25).map(consistency),
        ),
        st.tuples(
            st.just(("head_to_tail", "world-head")),
            st.lists(PROBABILITY, min_size=1, max_size=25).map(scores),
        ),
        st.tuples(
            st.just(("monitor", "P36")),
            st.lists(CELLS, min_size=1, max_size=25).map(monitored),
        ),
    ),
    within=st.floats(0.01, 1.0),
    which=st.integers(0, 10**6),
)
def test_no_gate_fails_a_run_against_itself_however_few_its_facts(
    of: tuple[tuple[ProbeName, str], Table], within: float, which: int
) -> None:
    (probe, name), table = of
    measured = [of.name for of in metrics_for(probe, name, table.columns)]
    # A control has no gate.
    metrics = [METRICS[name] for name in measured if name in METRICS]
    demands = [
        gate(metric.name, rule.name, within)
        for metric in metrics
        for rule in GATE_RULES.values()
        if rule.relative and rule.is_for(metric)
    ]
    of_case = case(probe=probe, slice=name)
    result = compare_case(
        decided(of_case, table),
        [demands[which % len(demands)]],
        comparison(of_case, table),
    )
    assert only(result).verdict in ("pass", "inconclusive")
    assert (result.lost, result.gained) == ((), ())


@given(
    st.lists(st.sampled_from("+-?"), min_size=2, max_size=30),
    st.randoms(use_true_random=False),
)
def test_order_changes_nothing(marks: list[str], shuffler: random.Random) -> None:
    before, after = answers("".join(marks)), answers("".join(reversed(marks)))
    rows = list(after.rows)
    shuffler.shuffle(rows)
    demands = case(gate("accuracy", "max_drop", 0.02), gate("missing", "recovery", 0.9))
    shuffled = decided(demands, Table(columns=after.columns, rows=tuple(rows)), before)
    plain = decided(demands, after, before)
    if plain.verdict == "invalid":
        return
    assert (shuffled.metrics, shuffled.gates) == (plain.metrics, plain.gates)
    assert (shuffled.lost, shuffled.gained) == (plain.lost, plain.gained)


AFTER = "-" * 12 + BEFORE[12:]


@pytest.mark.parametrize("metric", ["accuracy", "hallucination"])
def test_a_drop_is_how_much_worse_the_metric_is(metric: str) -> None:
    result = decided(
        case(gate(metric, "max_drop", 0.02)),
        answers(AFTER),
        answers(BEFORE),
        comparisons=9,
    )
    value = next(value for value in result.metrics if value.name == metric)
    assert value.delta_low is not None
    assert value.delta_high is not None
    sign = -1 if metric == "accuracy" else 1
    actual = only(result)
    assert actual.observed == pytest.approx(0.1)
    assert (actual.low, actual.high) == tuple(
        sorted((sign * value.delta_low, sign * value.delta_high))
    )
    assert actual.p == pytest.approx(drop_p(120, 12, 0, 0.01))
    assert value.p == pytest.approx(mcnemar(12, 0))
    assert actual.p_sidak == pytest.approx(1 - (1 - actual.p) ** 9)


def test_the_corrected_p_decides() -> None:
    after = "-" * 7 + BEFORE[7:]
    for comparisons in (1, 5, 20, 60, 200):
        result = decided(
            case(gate("accuracy", "max_drop", 0.02)),
            answers(after),
            answers(BEFORE),
            comparisons=comparisons,
        )
        actual = only(result)
        assert actual.p is not None
        assert actual.p_sidak is not None
        assert (
            (actual.verdict == "fail")
            == (actual.p_sidak < 0.05)
            == (actual.p < stats.sidak(comparisons))
        )
