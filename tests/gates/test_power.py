"""Minimum detectable effects before a run: those that a run would state if it changed as assumed."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import pytest

from pytest_kbrel import stats
from pytest_kbrel.gates.figures import figures_of, pooled_figures
from pytest_kbrel.gates.power import GatePower, Member, gate_powers
from pytest_kbrel.metrics import metrics_for
from pytest_kbrel.models.registry import BACKENDS, read_spec
from pytest_kbrel.planning.gate_power import power_of_gates
from pytest_kbrel.probes.head_to_tail import COLUMNS
from pytest_kbrel.records import Gate, Table
from pytest_kbrel.stats.power import mde
from tests.gates.tables import (
    HEAD_TO_TAIL,
    RELIABILITY,
    answers,
    consistency,
    gate,
    measure,
    outcome,
    scores,
)
from tests.made_cases import made_case

ALPHA = stats.sidak(4)
BEFORE = consistency([("+", 1.0)] * 30 + [("-", 1.0)] * 10)


def ids(n: int, prefix: str = "Q") -> tuple[str, ...]:
    return tuple(f"{prefix}{number:03}" for number in range(n))


def ahead(
    metric: str,
    rule: str,
    bound: float,
    n: int = 100,
    before: Table | None = None,
    clusters: tuple[tuple[str, str], ...] = (),
    wordings: int = 1,
    **more: Any,
) -> GatePower:
    """What a gate of one head-to-tail slice could find, or of a reliability slice if ``before`` is one."""
    columns = HEAD_TO_TAIL if before is None else before.columns
    probe, slice_ = (
        ("reliability", "known-x")
        if columns == RELIABILITY
        else ("head_to_tail", "world-head")
    )
    (actual,) = gate_powers(
        "s.kb.yaml::case",
        [gate(metric, rule, bound)],
        figures_of(metrics_for(probe, slice_, columns)),
        [Member(facts=ids(n), before=before, clusters=clusters, wordings=wordings)],
        **{"comparisons": 4, **more},
    )
    return actual


def found(n: int, changed: int, allowed: float) -> float | None:
    """The drop that is found where so many of ``n`` facts change."""
    flips = stats.Flips(n=n, down=changed, up=0, both=0)
    change = stats.Difference(estimate=stats.Estimate(), flips=flips)
    return stats.detectable(change, allowed, ALPHA)


def test_the_drop_of_a_rate_is_that_of_a_run_in_which_a_tenth_of_the_facts_change() -> (
    None
):
    actual = ahead("accuracy", "max_drop", 0.08, n=200)
    assert (actual.n, actual.groups, actual.wordings) == (200, None, 1)
    assert actual.mde == found(200, 20, 0.04)
    # A share of the blessed accuracy, .75, must be left: .875 of it by half the distance.
    ratio = ahead("accuracy", "recovery", 0.75, 200, answers("+++-" * 50))
    assert ratio.mde == found(200, 20, 0.125 * 0.75)


def test_facts_that_a_blessed_run_lacks_are_in_no_drop() -> None:
    actual = ahead("accuracy", "max_drop", 0.1, 50, answers("+" * 30))
    assert (actual.n, actual.mde) == (30, found(30, 3, 0.05))


def test_facts_asked_in_several_wordings_change_less() -> None:
    actual = ahead("accuracy", "max_drop", 0.08, n=200, wordings=3)
    se = math.sqrt(0.1 * (0.2 + 0.8 / 3) / 200)
    assert actual.mde == 0.04 + mde(se, 199, ALPHA)
    assert actual.wordings == 3


def test_facts_that_share_an_answer_count_as_fewer() -> None:
    """Ten clusters of ten facts, and a hundred facts alone."""
    shared = tuple((fact, f"C{number % 10}") for number, fact in enumerate(ids(100)))
    alone = ahead("accuracy", "max_drop", 0.0, n=200)
    actual = ahead("accuracy", "max_drop", 0.0, n=200, clusters=shared)
    assert actual.groups == pytest.approx(200**2 / (10 * 10**2 + 100))
    clusters = [number % 10 for number in range(100)] + list(range(10, 110))
    df = stats.cluster_df(clusters)
    assert df is not None
    assert alone.mde is not None
    se = math.sqrt(max(0.1, alone.mde) / 200)
    assert actual.mde == mde(se, df, ALPHA) > alone.mde
    few = tuple((fact, f"C{number % 5}") for number, fact in enumerate(ids(100)))
    undecided = ahead("accuracy", "max_drop", 0.0, clusters=few)
    assert (undecided.mde, undecided.note) == (None, "5.0 answers < 8")


def test_the_drop_of_another_figure_is_found_by_the_baselines_spread() -> None:
    before = consistency(
        [("+", 0.2 + 0.002 * i) for i in range(300)] + [("-", 0.5)] * 100
    )
    actual = ahead("nccr", "max_drop", 0.05, 400, before)
    figure = next(
        f
        for f in figures_of(metrics_for("reliability", "known-x", RELIABILITY))
        if f.name == "nccr"
    )
    se = figure.estimate([before]).se
    assert se is not None
    # Two figures of the same error, correlated by .8.
    plain = 0.025 + mde(math.sqrt(2 * (1 - 0.8)) * se, 399, ALPHA)
    assert actual.mde == pytest.approx(plain)


FEW = "no drop is found among so few facts"


@pytest.mark.parametrize(
    ("metric", "n", "before", "note"),
    [
        ("acuracy", 100, None, "no metric of this name is measured"),
        ("accuracy", 100, None, "why"),
        ("accuracy_f1", 100, None, "why"),
        ("accuracy", 2, answers("+-"), FEW),
        ("accuracy", 1, answers("+"), FEW),
        ("accuracy_f1", 40, scores([0.5, 0.6] * 20), ""),
        ("accuracy_f1", 20, scores([0.5] * 20), "no spread between the facts"),
        ("accuracy_f1", 1, scores([0.5]), "n < 2"),
        ("accuracy_f1", 2, scores([0.0, 1.0]), FEW),
    ],
)
def test_why_no_drop_can_be_foreseen(
    metric: str, n: int, before: Table | None, note: str
) -> None:
    result = ahead(metric, "max_drop", 0.01, n, before, unknown="why")
    assert result.note == note
    foreseen = (metric == "accuracy" and before is None) or not note
    assert (result.mde is not None) == foreseen


def test_what_is_noted_where_nothing_else_says_why_no_drop_is_known() -> None:
    spread = "its spread is known with a baseline only"
    assert ahead("accuracy_f1", "max_drop", 0.1).note == spread
    lacking = "the baseline has not measured it"
    columns = Table(columns=HEAD_TO_TAIL[:2], rows=answers("+-" * 9).rows)
    (power,) = gate_powers(
        "c",
        [gate("accuracy_f1", "max_drop", 0.1)],
        figures_of(metrics_for("head_to_tail", "x", HEAD_TO_TAIL)),
        [Member(facts=ids(18), before=columns)],
        comparisons=1,
    )
    assert (power.mde, power.note) == (None, lacking)
    unpaired = ahead("accuracy", "max_drop", 0.1, n=200, paired=False)
    assert (unpaired.mde, unpaired.note) == (None, "")


def test_an_absolute_gate_has_no_drop_to_find() -> None:
    actual = ahead("accuracy", "min", 0.1)
    assert (actual.n, actual.mde, actual.note) == (100, None, "")


def of_two(*before: Table | None) -> GatePower:
    members = [
        Member(facts=ids(20, prefix), before=one)
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
    for before in (
        (None, None),
        (expected("A", 20), None),
        (expected("A", 20), Table(columns=("as_expected",), rows=())),
    ):
        actual = of_two(*before)
        assert (actual.n, actual.note) == (40, "why")
    both = of_two(expected("A", 15), expected("B", 25))
    assert (both.n, both.note) == (35, "")


@pytest.mark.parametrize(
    ("args", "note"),
    [("logprobs=True", "needs a baseline"), ("", "no metric of this name is measured")],
)
def test_a_model_that_gives_no_probabilities_of_its_answers_has_no_calibration(
    args: str, note: str
) -> None:
    spec = read_spec("openai/m", f"base_url=http://x.org{',' if args else ''}{args}")
    gates = (Gate(metric="brier", rule="max_drop", bound=0.1),)
    case = dataclasses.replace(made_case("head_to_tail[a]"), gates=gates)
    (power,) = power_of_gates(
        [], [case], {f"{case.suite}::{case.id}": COLUMNS}, baseline=None,
        probabilities=BACKENDS[spec.backend].answer_probabilities(spec),
    )  # fmt: skip
    assert power.note == note


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
        for of in metrics_for("reliability", "known-x", BEFORE.columns)
        if of.name == "c_correct"
    ]
    (result,) = measure(consistency(after), metrics, consistency(before))
    assert result.note == note
