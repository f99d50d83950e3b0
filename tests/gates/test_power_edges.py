"""What is foreseen of each rule, with and without a blessed run, a waiver and a partner for each fact."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from pytest_kbrel import stats
from pytest_kbrel.gates.figures import figures_of, pooled_figures
from pytest_kbrel.gates.measurement import measure
from pytest_kbrel.gates.power import GatePower, Member, gate_powers
from pytest_kbrel.metrics import metrics_for
from pytest_kbrel.metrics.base import mean
from pytest_kbrel.records import Gate, Table
from tests.gates.tables import (
    HEAD_TO_TAIL,
    MONITOR,
    answers,
    case,
    consistency,
    decided,
    gate,
    outcome,
    scores,
)
from tests.gates.test_power import ahead, ids
from tests.gates.test_rounding import monitor

RULES = ("min", "max", "max_drop", "recovery", "above_control")


@pytest.mark.parametrize("rule", RULES)
def test_what_a_gate_says_of_itself(rule: Any) -> None:
    result = ahead("accuracy", rule, 0.25, n=50)
    assert (result.case, result.metric, result.rule, result.bound) == (
        "s.kb.yaml::case",
        "accuracy",
        rule,
        0.25,
    )
    assert (result.line, result.n, result.note, result.never) == (7, 50, "", "")
    assert (result.mde is not None) is (rule in ("max_drop", "recovery"))
    # A waiver is the reason that counts, and a metric that is not measured is another matter.
    waived = ahead("accuracy", rule, 0.25, n=50, waived="a waiver lets it")
    assert (waived.never, waived.mde) == ("a waiver lets it", result.mde)
    met = ahead(
        "accuracy",
        rule,
        {"max": 1.0, "max_drop": 1.0}.get(rule, -1.0),
        n=50,
        waived="a waiver lets it",
    )
    assert met.never == "a waiver lets it"
    gone = ahead("acuracy", rule, 0.25, n=50, waived="a waiver lets it", unknown="why")
    assert (gone.never, gone.note, gone.mde, gone.n) == (
        "a waiver lets it", "no metric of this name is measured", None, 50,
    )  # fmt: skip


NOT_EVEN = "not even the loss of all"
BEFORE = consistency([("+", 1.0)] * 30 + [("-", 1.0)] * 10)


@pytest.mark.parametrize(
    ("metric", "rule", "bound", "never"),
    [
        # nccr lies between -1 and 1, and is 0.5 here.
        ("nccr", "min", -1.0, "nccr is never below -1"),
        ("nccr", "min", -0.99, ""),
        ("nccr", "max", 1.0, "nccr is never above 1"),
        ("nccr", "above_control", -2.0, "nccr is never more than 2 from its control"),
        ("nccr", "above_control", -1.99, ""),
        (
            "nccr",
            "max_drop",
            1.5,
            "from the baseline's 0.500 it can get worse by 1.5, within the tolerance",
        ),
        ("nccr", "max_drop", 1.49, ""),
        (
            "wr",
            "max_drop",
            0.75,
            "from the baseline's 0.250 it can get worse by 0.75, within the tolerance",
        ),
        ("wr", "max_drop", 0.74, ""),
        ("wr", "recovery", 0.25, "at least 0.25 of the baseline is left in any case"),
        ("wr", "recovery", 0.26, ""),
        ("cr", "recovery", 0.0, "at least 0 of the baseline is left in any case"),
        ("cr", "recovery", 0.01, ""),
    ],
)
def test_which_bounds_every_value_meets(
    metric: str, rule: Any, bound: float, never: str
) -> None:
    assert ahead(metric, rule, bound, before=BEFORE).never == never


def test_of_an_unknown_baseline_all_can_be_lost() -> None:
    for metric in ("accuracy", "hallucination"):
        assert ahead(metric, "recovery", 0.01).never == ""
        assert (
            ahead(metric, "recovery", 0.0).never
            == "at least 0 of the baseline is left in any case"
        )


def test_of_a_perfect_baseline_all_can_be_lost() -> None:
    perfect = consistency([("+", 1.0)] * 40)
    assert ahead("wr", "recovery", 0.5, before=perfect).never == ""
    assert ahead("cr", "recovery", 0.5, before=perfect).never == ""
    wrong = consistency([("-", 1.0)] * 40)
    assert (
        ahead("cr", "recovery", 0.5, before=wrong).never
        == "of a baseline of 0 nothing can be recovered"
    )


@pytest.mark.parametrize(
    ("bound", "never"), [(1.0, "its range is 1, within the tolerance"), (0.1, "")]
)
def test_of_what_the_baseline_has_not_measured_nothing_is_known(
    bound: float, never: str
) -> None:
    old = Table(
        columns=("correct", "missing"),
        rows=tuple(outcome(q, (1, 0), "correct") for q in ids(40)),
    )
    (result,) = gate_powers(
        "c",
        [gate("accuracy_f1", "max_drop", bound)],
        figures_of(metrics_for("head_to_tail", "x", HEAD_TO_TAIL)),
        [Member(facts=ids(40), columns=HEAD_TO_TAIL, before=old)],
        comparisons=1,
    )
    assert (result.never, result.mde, result.note) == (
        never,
        None,
        "the baseline has not measured it",
    )


@pytest.mark.parametrize("paired", [True, False])
def test_against_a_paper_neither_drops_nor_facts_are_foreseen(paired: bool) -> None:
    few = ahead("accuracy", "max_drop", 0.1, n=1, paired=paired)
    assert (few.never == "") is not paired
    many = ahead("accuracy", "max_drop", 0.1, n=200, paired=paired, unknown="why")
    assert (many.mde is not None) is paired
    assert (many.never, many.note, many.n) == ("", "why", 200)
    assert (
        ahead("accuracy", "max_drop", 1.0, n=200, paired=paired).never
        == "its range is 1, within the tolerance"
    )


def of_two(*before: Table | None, facts: int = 20) -> GatePower:
    members = [
        Member(facts=ids(facts, prefix), columns=("as_expected",), before=one)
        for prefix, one in zip("AB", before, strict=True)
    ]
    (result,) = gate_powers(
        "c",
        [gate("as_expected", "max_drop", 0.01)],
        pooled_figures(2),
        members,
        comparisons=1,
        unknown="why",
    )
    return result


def expected(prefix: str, n: int) -> Table:
    return Table(
        columns=("as_expected",),
        rows=tuple(outcome(q, (1,), "correct") for q in ids(n, prefix)),
    )


def test_a_run_counts_where_it_has_all_members_and_then_only_its_facts_do() -> None:
    assert (of_two(None, None).n, of_two(None, None).note) == (40, "why")
    for lacking in (None, Table(columns=("as_expected",), rows=())):
        assert (
            of_two(expected("A", 20), lacking).n,
            of_two(expected("A", 20), lacking).note,
        ) == (40, "why")
    both = of_two(expected("A", 15), expected("B", 25))
    assert (both.n, both.note) == (35, "")


@pytest.mark.parametrize(
    ("facts", "never"),
    [
        (1, "nothing can be concluded from one fact"),
        (
            2,
            "not even the loss of all 2 facts would be significant (p < 0.05 is needed)",
        ),
        (
            3,
            "not even the loss of all 3 facts would be significant (p < 0.05 is needed)",
        ),
        (4, ""),
        (40, ""),
        (41, ""),
    ],
)
def test_so_many_facts_are_needed(facts: int, never: str) -> None:
    assert ahead("accuracy", "max_drop", 0.01, n=facts).never == never
    assert (
        ahead("accuracy", "max_drop", 0.01, before=answers("+" * facts)).never == never
    )


def test_the_loss_of_some_facts_may_be_significant_where_that_of_all_is_not() -> None:
    """Where all answers are wrong, and all equally consistent, c_wrong has no spread left to go by.

    Of ten facts two are wrong before. The loss of nine has the p-value 0.022, and that of eight 0.043.
    """
    assert 0.022 < stats.sidak(2) < 0.043
    right, wrong = [("+", 1.0)], [("-", 0.0)]
    rows = [
        (right * 8 + wrong * 2, ""),
        (wrong * 2 + right * 8, ""),
        (right * 38 + wrong * 2, ""),
        (wrong * 2 + right * 38, ""),
        (right * 58 + wrong * 2, ""),
        (wrong * 2 + right * 58, ""),
        (
            right * 7 + wrong * 2,
            f"{NOT_EVEN} 9 facts would be significant (p < 0.025 is needed)",
        ),
    ]
    result = [
        ahead("c_wrong", "max_drop", 0.1, before=consistency(of), comparisons=2)
        for of, _ in rows
    ]
    assert [one.never for one in result] == [never for _, never in rows]
    before = consistency(rows[0][0])
    of = case(gate("c_wrong", "max_drop", 0.1), probe="reliability", slice="seen-x")
    for lost, verdict in ((10, "inconclusive"), (9, "fail"), (8, "inconclusive")):
        after = consistency([("-", 1.0)] * lost + wrong * (10 - lost))
        assert decided(of, after, before, comparisons=2).verdict == verdict


def monitor_ahead(
    metric: str, cells: Sequence[str], rule: str = "max_drop", bound: float = 0.1
) -> GatePower:
    columns = (*MONITOR[:5], *cells)
    (result,) = gate_powers(
        "c",
        [gate(metric, rule, bound)],
        figures_of(metrics_for("monitor", "P36", columns)),
        [Member(facts=ids(2), columns=columns)],
        comparisons=1,
    )
    return result


def test_the_worst_of_a_figure_of_many_columns_is_that_of_all_alike() -> None:
    """Of up to four columns all combinations are tried: a delta is worst where its two sides are unlike."""
    negatives = [f"cell:negative:{at}:0" for at in range(4)]
    few = "not even the loss of all 2 facts would be significant (p < 0.05 is needed)"
    rows = [
        ("delta_negative", ["cell:none:0", *negatives[:3]], few),
        ("delta_negative", ["cell:none:0", *negatives], ""),
        ("accuracy", ["cell:none:0", *negatives], few),
        ("accuracy", ["cell:none:0", *negatives[:3]], few),
    ]
    assert [monitor_ahead(metric, cells).never for metric, cells, _ in rows] == [
        never for *_, never in rows
    ]


def test_a_spread_is_at_most_one_half_so_that_some_of_it_is_always_left() -> None:
    table = Table(
        columns=MONITOR,
        rows=tuple(
            outcome(q, (1, 0, 0, 0, 0.5, 1, at % 2), "correct")
            for at, q in enumerate(ids(40))
        ),
    )
    gates = [gate("accuracy_std", "recovery", bound) for bound in (0.5, 0.51)]
    figures = figures_of(metrics_for("monitor", "P36", MONITOR))
    members = [Member(facts=ids(40), columns=MONITOR, before=table)]
    result = gate_powers("c", gates, figures, members, comparisons=1)
    # The two cells' accuracies are 1 and 0.5, whose standard deviation is 0.25.
    assert [one.never for one in result] == [
        "at least 0.5 of the baseline is left in any case",
        "",
    ]


def test_where_the_best_is_not_seen_the_baseline_tells_whether_a_drop_can_be_found() -> (
    None
):
    figures = figures_of([mean("c", "correct", better="higher", bounds=(0.0, 2.0))])
    for before, never in (
        (None, ""),
        (
            answers("++"),
            "not even the loss of all 2 facts would be significant (p < 0.05 is needed)",
        ),
    ):
        member = Member(facts=ids(2), columns=HEAD_TO_TAIL, before=before)
        (result,) = gate_powers(
            "c", [gate("c", "max_drop", 0.1)], figures, [member], comparisons=1
        )
        assert result.never == never


def test_facts_that_a_blessed_run_lacks_are_in_no_drop() -> None:
    member = Member(facts=ids(50), columns=HEAD_TO_TAIL, before=answers("+" * 30))
    figures = figures_of(metrics_for("head_to_tail", "x", HEAD_TO_TAIL))
    (result,) = gate_powers(
        "c", [gate("accuracy", "max_drop", 0.1)], figures, [member], comparisons=1
    )
    assert (result.n, result.mde) == (30, stats.rate_mde(30, 3.0, stats.sidak(1), 0.05))


def test_what_is_noted_where_nothing_else_says_why_no_drop_is_known() -> None:
    assert (
        ahead("accuracy_f1", "max_drop", 0.1).note
        == "its spread is known with a baseline only"
    )
    assert ahead("accuracy", "max_drop", 0.1, n=200, paired=False).note == ""


@pytest.mark.parametrize(
    ("before", "mde", "note"),
    [
        (scores([0.5, 0.6] * 20), True, ""),
        (scores([0.5] * 20), False, "no spread between the facts"),
        (scores([0.5]), False, "n < 2"),
        (scores([0.0, 1.0]), False, "no drop is found among so few facts"),
    ],
)
def test_why_no_drop_can_be_foreseen(before: Table, mde: bool, note: str) -> None:
    result = ahead("accuracy_f1", "max_drop", 0.01, before=before)
    assert ((result.mde is not None), result.note) == (mde, note)


def test_where_the_worst_is_not_known_a_drop_may_have_to_be_larger() -> None:
    """MONITOR has no largest value."""
    figures = figures_of(
        [
            of
            for of in metrics_for("monitor", "P36", MONITOR)
            if of.name in ("monitor", "pfd")
        ]
    )
    facts = tuple(f"Q{i:03}" for i in range(40))
    gates = [gate(name, "max_drop", 0.01) for name in ("monitor", "pfd")]
    result = gate_powers(
        "c",
        gates,
        figures,
        [Member(facts=facts, columns=MONITOR, before=monitor())],
        comparisons=1,
    )
    assert [one.note for one in result] == ["or more", ""]
    assert all(one.mde is not None and one.never == "" for one in result)


def test_drops_of_rates_over_few_facts_are_not_found() -> None:
    assert (
        ahead("accuracy", "max_drop", 0.01, n=2).note
        == "no drop is found among so few facts"
    )
    empty = ahead("accuracy", "max_drop", 0.01, n=0)
    assert (empty.n, empty.mde, empty.note) == (
        0,
        None,
        "no drop is found among so few facts",
    )


def test_gates_are_foreseen_in_their_order() -> None:
    gates = [
        Gate(metric=name, rule="min", bound=0.1, line=at)
        for at, name in enumerate(("missing", "accuracy"))
    ]
    result = gate_powers(
        "c",
        gates,
        figures_of(metrics_for("head_to_tail", "x", HEAD_TO_TAIL)),
        [Member(facts=("a",), columns=HEAD_TO_TAIL)],
        comparisons=0,
    )
    assert [(one.metric, one.line) for one in result] == [
        ("missing", 0),
        ("accuracy", 1),
    ]


@pytest.mark.parametrize(
    ("after", "before", "note"),
    [
        ([("+", 0.5)], [("+", 0.5)], "n < 2"),
        ([("?", 0.5)] * 3, [("+", 0.5)] * 3, "no correct answer"),
        ([("+", 0.5), ("+", 0.6)], [("?", 0.5)] * 2, "baseline: no correct answer"),
        (
            [("+", 0.5), ("+", 0.6), ("?", 0)],
            [("?", 0)] * 3,
            "baseline: no correct answer",
        ),
        ([("+", 0.5), ("+", 0.6)], [], "no fact in common with the baseline"),
        ([("+", 0.5), ("+", 0.6)], [("+", 0.5), ("+", 0.6)], "unchanged in every fact"),
        # Where the candidate's own figure says something, that comes first.
        (
            [("+", 0.5)] * 3,
            [],
            "no spread between the facts; no fact in common with the baseline",
        ),
    ],
)
def test_why_a_difference_is_not_known(after: Any, before: Any, note: str) -> None:
    metrics = [
        of
        for of in metrics_for("reliability", "seen-x", BEFORE.columns)
        if of.name == "c_correct"
    ]
    (result,) = measure(consistency(after), metrics, consistency(before))
    assert result.note == note
