"""Gates against what a paper prints, and gates against a control."""

from __future__ import annotations

import pytest

from pytest_kbrel import stats
from pytest_kbrel.baselines import PublishedCase, PublishedFigure
from pytest_kbrel.records import (
    CaseResult,
    Gate,
    Table,
)
from tests.gates.tables import answers, case, decided, gate, only, run_of, value

PAPER = "Sun et al., arXiv 2308.10168 v1"


def printed(
    n: int = 0, members: tuple[str, ...] = (), id: str = "x", **values: float
) -> PublishedCase:
    figures = tuple(
        PublishedFigure(name=name, value=value, source=f"{PAPER}, Table 11", n=n)
        for name, value in values.items()
    )
    return PublishedCase(id=id, figures=figures, members=members)


def against(published: PublishedCase | None, table: Table, *gates: Gate) -> CaseResult:
    cases = {} if published is None else {case().id: published}
    return decided(case(*gates), table, baseline=run_of(published=cases, paper=PAPER))


def test_the_difference_is_unpaired_and_says_so() -> None:
    result = against(printed(accuracy=0.6, n=3000), answers("+" * 50 + "-" * 50))
    actual = value(result, "accuracy")
    assert (actual.unpaired, actual.paired, actual.baseline) == (True, 0, 0.6)
    assert actual.delta == pytest.approx(-0.1)
    own, theirs = stats.wilson(50, 100), stats.wilson(1800, 3000)
    assert actual.delta_low == pytest.approx(
        -0.1 - ((0.5 - own[0]) ** 2 + (theirs[1] - 0.6) ** 2) ** 0.5
    )
    assert actual.delta_high == pytest.approx(
        -0.1 + ((own[1] - 0.5) ** 2 + (0.6 - theirs[0]) ** 2) ** 0.5
    )
    assert actual.p is not None
    assert 0.01 < actual.p < 0.05
    assert actual.mde is not None
    assert (result.lost, result.gained) == ((), ())
    assert not value(result, "missing").unpaired
    assert value(result, "missing").baseline is None


@pytest.mark.parametrize(
    ("right", "bound", "verdict"),
    [
        (20, 0.05, "fail"),
        (58, 0.2, "pass"),
        (95, 0.0, "pass"),
        (55, 0.02, "inconclusive"),
        (58, 0.05, "inconclusive"),
        # Significantly worse, but by less than is tolerated, if only just.
        (45, 0.16, "inconclusive"),
    ],
)
def test_max_drop(right: int, bound: float, verdict: str) -> None:
    result = against(
        printed(accuracy=0.6, n=3000),
        answers("+" * right + "-" * (100 - right)),
        gate("accuracy", "max_drop", bound),
    )
    assert result.verdict == verdict
    reason = only(result).reason
    assert (
        "unpaired, against a published figure: Sun et al., arXiv 2308.10168 v1, Table 11"
        in reason
    )
    assert "facts would decide" not in reason
    if verdict == "inconclusive":
        assert "would be found with 80 % power" in reason


@pytest.mark.parametrize(
    ("right", "bound", "verdict"),
    [
        (95, 1.0, "pass"),
        (58, 0.7, "pass"),
        (58, 0.95, "inconclusive"),
        (20, 0.9, "fail"),
    ],
)
def test_recovery(right: int, bound: float, verdict: str) -> None:
    table = answers("+" * right + "-" * (100 - right))
    result = against(
        printed(accuracy=0.6, n=3000), table, gate("accuracy", "recovery", bound)
    )
    assert (result.verdict, only(result).verdict) == (verdict, verdict)
    assert "of the baseline: accuracy " in only(result).reason
    turned = against(
        printed(hallucination=0.4, n=3000),
        table,
        gate("hallucination", "recovery", bound * 0.9),
    )
    assert turned.verdict in (verdict, "inconclusive")


def test_a_figure_that_the_paper_does_not_print_is_not_judged() -> None:
    demands = gate("accuracy_f1", "max_drop", 0.02), gate("accuracy", "max_drop", 0.5)
    result = against(printed(accuracy=0.6), answers("+++-"), *demands)
    assert [actual.verdict for actual in result.gates] == ["no baseline", "pass"]
    assert result.gates[0].reason == f"{PAPER} prints no accuracy_f1 of this case"
    assert result.verdict == "pass"
