from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from pytest_kbrel.catalogue.metrics import METRICS
from pytest_kbrel.metrics.correlations import (
    correlate,
    correlations,
    over_slices,
)
from pytest_kbrel.records import CaseResult, MetricValue, ProbeName


def test_pearson_and_spearman_by_hand() -> None:
    points = [(1.0, 1.0), (2.0, 3.0), (3.0, 2.0), (4.0, 40.0)]
    pearson, spearman = correlate("x", "y", points, over="models")
    assert (pearson.method, spearman.method) == ("pearson", "spearman")
    assert spearman.r == pytest.approx(0.8)
    xs, ys = np.array(points).T
    assert pearson.r == pytest.approx(np.corrcoef(xs, ys)[0, 1])
    t = pearson.r * math.sqrt(2 / (1 - pearson.r**2))
    assert pearson.p == pytest.approx(2 * stats.t.sf(t, 2))
    assert (pearson.x, pearson.y, pearson.over, pearson.n, pearson.note) == (
        "x",
        "y",
        "models",
        4,
        "",
    )


@pytest.mark.parametrize(
    ("ys", "p"),
    [
        ((1, 2, 3), 2 / 6),
        ((3, 2, 1), 2 / 6),
        ((1, 1, 2), 4 / 6),
        ((1, 2, 3, 4), 2 / 24),
    ],
)
def test_few_points_have_the_p_of_all_their_orders(
    ys: tuple[float, ...], p: float
) -> None:
    _, spearman = correlate(
        "x", "y", [(at, y) for at, y in enumerate(ys)], over="models"
    )
    assert spearman.p == pytest.approx(p)


@pytest.mark.parametrize("n", [0, 1, 2])
def test_below_three_there_is_no_correlation(n: int) -> None:
    for result in correlate("x", "y", [(0.1, 0.2), (0.3, 0.1)][:n], over="models"):
        assert (result.r, result.p, result.n) == (None, None, n)
        assert result.note == f"not enough models: {n}, and 3 are needed"


def test_a_constant_figure_has_no_correlation() -> None:
    for result in correlate(
        "x", "y", [(0.1, 0.2), (0.1, 0.3), (0.1, 0.4)], over="slices"
    ):
        assert (result.r, result.p, result.n, result.note) == (
            None,
            None,
            3,
            "x is the same in all",
        )
    (both, _) = correlate("x", "y", [(0.1, 0.2)] * 3, over="slices")
    assert both.note == "x and y are the same in all"
    (zero, _) = correlate("x", "y", [(0.0, 0.2), (0.0, 0.3), (0.0, 0.4)], over="slices")
    assert zero.note == "x is the same in all"
    (rounded, _) = correlate(
        "x", "y", [(0.1 + 0.2, 1.0), (0.3, 2.0), (0.3, 4.0)], over="slices"
    )
    assert rounded.r is None


def test_points_that_lack_a_figure_are_left_out_and_counted() -> None:
    whole = [(1.0, 2.0), (2.0, 1.0), (3.0, 5.0)]
    holes = [(None, 1.0), (1.0, math.nan), *whole, (math.inf, 2.0)]
    for plain, result in zip(
        correlate("x", "y", whole, over="models"),
        correlate("x", "y", holes, over="models"),
        strict=True,
    ):
        assert (result.r, result.p, result.n) == (plain.r, plain.p, 3)
        assert result.note == "3 of 6 models left out: they lack one of the figures"


def test_pairs_that_no_point_has_bring_nothing() -> None:
    points = [
        {"monitor": 0.1 * k, "accuracy": 1 - 0.2 * k, "accuracy_std": None}
        for k in range(4)
    ]
    (result,) = correlations("monitor", points, over="models")
    assert [(one.x, one.y, one.method) for one in result] == [
        ("monitor", "accuracy", "pearson"),
        ("monitor", "accuracy", "spearman"),
    ]
    assert result[0].r == pytest.approx(-1)


def test_rules_that_are_the_judge_are_not_held_against_themselves() -> None:
    points = [
        {"accuracy": 0.1 * k, "accuracy_rules": 0.1 * k, "accuracy_em": 0.05 * k**2}
        for k in range(4)
    ]
    pairs = correlations("head_to_tail", points, over="slices")
    assert {one.x for pair in pairs for one in pair} == {"accuracy_em"}


def decided(
    probe: ProbeName, slice_name: str, aggregate: bool = False, **values: float | None
) -> CaseResult:
    return CaseResult(
        id=f"{probe}[{slice_name}]",
        suite="s.kb.yaml",
        probe=probe,
        slice=slice_name,
        verdict="pass",
        n=1,
        duration=0.0,
        metrics=tuple(
            MetricValue(name=name, better=METRICS[name].better, value=value)
            for name, value in values.items()
        ),
        gates=(),
        aggregate=aggregate,
    )


def test_seen_and_unseen_slices_of_a_group_make_one_point() -> None:
    cases = []
    for number, group in enumerate(("person", "time", "number")):
        seen = {
            "ncr": 0.1 * number,
            "nccr": 0.2,
            "c_correct": 0.3 * number,
            "c_wrong": 0.2,
        }
        unseen = {"ur": 0.3 * number, "iur": 0.9, "c_wrong": 0.2 * number}
        cases.append(decided("reliability", f"known-{group}-zero-shot", **seen))
        cases.append(decided("reliability", f"unseen-{group}-zero-shot", **unseen))
    cases.append(
        decided(
            "reliability",
            "known-four-shot",
            ncr=0.5,
            nccr=0.1,
            c_correct=0.9,
            c_wrong=1.5,
        )
    )
    result = {
        (one.x, one.y): one for one in over_slices(cases) if one.method == "pearson"
    }
    assert result["ncr", "ur"].r == pytest.approx(1)
    assert (result["ncr", "ur"].n, result["ncr", "ur"].over) == (3, "slices")
    assert (
        result["ncr", "ur"].note
        == "1 of 4 slices left out: they lack one of the figures"
    )
    assert result["nccr", "iur"].note.startswith("nccr and iur are the same in all")
    # C_wrong is the mean of both; a group without unseen questions has that of its seen ones.
    assert result["c_correct", "c_wrong"].n == 4
    assert result["c_correct", "c_wrong"].r == pytest.approx(
        np.corrcoef([0.0, 0.3, 0.6, 0.9], [0.1, 0.2, 0.3, 1.5])[0, 1]
    )


def test_aggregates_top_tenths_and_unmeasured_cases_are_no_points() -> None:
    slices = [decided("head_to_tail", f"{d}-head", accuracy=a, accuracy_f1=a / 2) for d, a in
              (("a", 0.1), ("b", 0.2), ("c", 0.5))]  # fmt: skip
    more = [
        decided("head_to_tail", "a-top10", accuracy=0.9, accuracy_f1=0.1),
        decided("head_to_tail", "overall", True, accuracy=0.9, accuracy_f1=0.1),
        decided("head_to_tail", "d-head"),
    ]
    assert over_slices([*slices, *more]) == over_slices(slices)
    assert over_slices(slices)[0].r == pytest.approx(1)
    assert over_slices([]) == ()
