"""MONITOR (arXiv 2310.09820) against its Tables 3 to 7, 11 and 12."""

from __future__ import annotations

import numpy as np
import pytest

from pytest_kbrel.gates.figures import figures_over
from pytest_kbrel.metrics import metrics_for
from pytest_kbrel.metrics.correlations import correlate
from pytest_kbrel.probes import run_case
from pytest_kbrel.records import (
    Case,
    CaseResult,
    Correlation,
    Fact,
    MonitorSettings,
    Relation,
    Table,
)
from tests.function_model import FunctionModel, answers_of
from tests.golden import figures_of
from tests.metrics import value_of

Figures = dict[tuple[str, str], dict[str, float]]


def printed(table: int) -> Figures:
    """Figures of one table by model and relation, as printed."""
    actual: Figures = {}
    for row, value in figures_of("monitor.csv", table):
        actual.setdefault((row["model"], row["relation"]), {})[row["metric"]] = value
    return actual


def over_models(figures: Figures, relation: str, x: str, y: str) -> Correlation:
    points = [
        (of[x], of[y])
        for (_, other), of in figures.items()
        if other == relation and x in of
    ]
    pearson, _ = correlate(x, y, points, over="models")
    assert pearson.n == 12
    return pearson


ELEVEN = printed(11)
MODELS = sorted({model for model, _ in ELEVEN})
RELATIONS = sorted({relation for _, relation in ELEVEN})


class TestTable7:
    """One fact, one frame, one wrong context: put through the probe, not only through the formulas."""

    @pytest.mark.parametrize("variant", ["definition", "published"])
    @pytest.mark.parametrize(
        ("anchor", "negative", "framing", "pfd", "ird", "term", "score"),
        [
            pytest.param(
                0.761, 0.411, 0.527, 0.234, 0.350, 0.29391, 0.38622, id="BLOOMZ-3b"
            ),
            pytest.param(
                0.928, 0.622, 0.849, 0.079, 0.306, 0.20335, 0.21912, id="Vicuna-7b"
            ),
        ],
    )
    def test_by_the_probe(
        self,
        variant: str,
        anchor: float,
        negative: float,
        framing: float,
        pfd: float,
        ird: float,
        term: float,
        score: float,
    ) -> None:
        def probability(prompt: str, continuation: str) -> float:
            return (
                anchor
                if "Gold" in prompt
                else negative
                if "Other" in prompt
                else framing
            )

        relation = Relation(
            id="P37", label="", domain="", frames=("What is spoken in [X]?",)
        )
        fact = Fact(
            id="f",
            relation="P37",
            subject="Somewhere",
            object="Gold",
            negatives=("Other",),
        )
        case = Case(
            id="monitor[P37]",
            suite="s.kb.yaml",
            probe="monitor",
            slice="P37",
            facts=(fact,),
            relations=(relation,),
            settings=MonitorSettings(variant=variant, negatives=1),  # type: ignore[arg-type]
            gates=(),
        )
        model = FunctionModel(answers=lambda prompt: "Gold", probability=probability)
        result = run_case(case, answers_of(model), lambda exchanges: None)
        assert result.errors == ()
        (row,) = result.table.rows
        columns = result.table.columns
        of = dict(zip(columns, row.values, strict=True))
        assert of["term"] == pytest.approx(term, abs=5e-6)
        metrics = {
            metric.name: metric for metric in metrics_for("monitor", "P37", columns)
        }
        actual = {
            name: value_of(
                metrics[name], [[of[column] for column in metrics[name].columns]]
            )
            for name in ("pfd", "ird", "anchor_prob", "monitor")
        }
        assert actual == pytest.approx(
            {"pfd": pfd, "ird": ird, "anchor_prob": anchor, "monitor": score}, abs=5e-6
        )


@pytest.mark.parametrize("model", MODELS)
def test_overall_scores_are_twenty_of_twenty_one_macro_means(model: str) -> None:
    """Table 4 prints the sum of the 20 scores of Table 11 divided by 21; ours is their mean."""
    cases = [
        CaseResult(
            id=f"monitor[{relation}]",
            suite="paper.kb.yaml",
            probe="monitor",
            slice=relation,
            verdict="pass",
            n=1,
            duration=0.0,
            metrics=(),
            gates=(),
            table=Table(columns=("kept", "pfd", "ird", "term", "anchor"), rows=()),
        )
        for relation in RELATIONS
    ]
    overall = next(figure for figure in figures_over(cases) if figure.name == "monitor")
    totals = {
        "term": [ELEVEN[model, relation]["monitor"] for relation in RELATIONS],
        "anchor": [1.0] * 20,
    }
    parts = [
        (np.array([totals[name][member] for name in names]), np.asarray(1.0))
        for member, names in overall.columns
    ]
    actual = float(overall.statistic(parts))
    table_4 = printed(4)[model, "ALL20"]["monitor"]
    assert 20 / 21 * actual == pytest.approx(table_4, abs=6e-4)
    assert actual != pytest.approx(table_4, abs=0.01)


def test_table_3_deltas() -> None:
    columns = ("kept", "cell:positive:0", "cell:none:0", "cell:negative1:0")
    metrics = {metric.name: metric for metric in metrics_for("monitor", "P17", columns)}
    for of in printed(3).values():
        totals = {
            "kept": 100.0,
            "cell:none:0": of["acc_no_context"],
            "cell:positive:0": of["acc_positive_context"],
            "cell:negative1:0": of["acc_negative_context"],
        }
        for name in ("delta_positive", "delta_negative"):
            metric = metrics[name]
            values = np.array([totals[column] for column in metric.columns])
            actual = 100 * float(metric.formula(values, np.asarray(100.0)))
            assert actual == pytest.approx(of[name], abs=0.0051)
    assert len(printed(3)) == 12


def test_table_6_correlation_with_the_deviation_of_accuracy() -> None:
    actual = over_models(printed(6), "P1412", "monitor", "acc_std")
    (stated,) = [of for (model, _), of in printed(6).items() if model.startswith("r(")]
    assert actual.r == pytest.approx(stated["pearson_r"], abs=0.0005)
    # 0.001 is printed, which does not follow from this r and 12 models.
    assert actual.p == pytest.approx(0.0046, abs=5e-5)
    assert stated["p_value"] == 0.001


@pytest.mark.parametrize("relation", ["P178", "P108", "P37"])
def test_table_12_correlations_from_table_5(relation: str) -> None:
    actual = over_models(printed(5), relation, "monitor", "acc_avg")
    assert actual.r == pytest.approx(printed(12)["", relation]["pearson_r"], abs=0.0006)
