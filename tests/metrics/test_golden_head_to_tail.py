"""Head-to-Tail (arXiv 2308.10168 v1): its tables put through our own aggregation."""

from __future__ import annotations

import numpy as np
import pytest

from pytest_kbrel.gates.figures import figures_over
from pytest_kbrel.records import CaseResult, Table
from tests.golden import figures_of

DOMAINS = ("movie", "book", "academics", "open")
BUCKETS = ("head", "torso", "tail")
SHORT = {"a_lm": "accuracy", "h_lm": "hallucination", "m": "missing"}
# One printed decimal of a percentage, twice.
ROUNDING = 0.0011

Place = tuple[str, str, str, str]


def printed(table: int) -> dict[Place, dict[str, float]]:
    """Figures of one table as shares, by bucket, domain, model and variant; misprints as corrected."""
    result: dict[Place, dict[str, float]] = {}
    for row, value in figures_of("head_to_tail.csv", table):
        place = (row["bucket"], row["domain"], row["model"], row["variant"])
        result.setdefault(place, {})[row["metric"]] = value / 100
    return result


ELEVEN = printed(11)
MODELS = sorted({model for _, _, model, _ in ELEVEN})
ASKED = {
    row["domain"]: int(value)
    for row, value in figures_of("head_to_tail.csv", 2)
    if row["metric"] == "n_questions"
}


def aggregate(slices: dict[str, tuple[float, dict[str, float]]]) -> dict[str, float]:
    """Our figures over slices, each given as its number of questions and its rates."""
    columns = ("correct", "missing")
    cases = [
        CaseResult(
            id=f"head_to_tail[{name}]",
            suite="paper.kb.yaml",
            probe="head_to_tail",
            slice=name,
            verdict="pass",
            n=round(n),
            duration=0.0,
            metrics=(),
            gates=(),
            table=Table(columns=columns, rows=()),
        )
        for name, (n, _) in slices.items()
    ]
    totals = []
    for n, of in slices.values():
        rates = {"correct": of["a_lm"], "missing": 1 - of["a_lm"] - of["h_lm"]}
        totals.append(
            ({column: n * rates[column] for column in columns}, np.asarray(n))
        )
    result = {}
    for figure in figures_over(cases):
        parts = [
            (np.array([totals[member][0][name] for name in names]), totals[member][1])
            for member, names in figure.columns
            if set(names) <= set(columns)
        ]
        if len(parts) == len(figure.columns):
            result[figure.name] = float(figure.statistic(parts))
    return result


@pytest.mark.parametrize("model", MODELS)
def test_table_11_over_domains_and_buckets(model: str) -> None:
    """The 12 slices of a model give its figures over all domains, for each bucket and for all of them."""
    slices = {
        f"{domain}-{bucket}": (ASKED[domain] / 3, ELEVEN[bucket, domain, model, ""])
        for domain in DOMAINS
        for bucket in BUCKETS
    }
    result = aggregate(slices)
    everything = {
        bucket: ELEVEN[bucket, "all", model, ""] for bucket in (*BUCKETS, "all")
    }
    for bucket in BUCKETS:
        assert result[f"accuracy_{bucket}"] == pytest.approx(
            everything[bucket]["a_lm"], abs=ROUNDING
        )
        single = {name: of for name, of in slices.items() if name.endswith(bucket)}
        of_bucket = aggregate(single)
        for metric, name in SHORT.items():
            assert of_bucket[name] == pytest.approx(
                everything[bucket][metric], abs=ROUNDING + 5e-4
            ), name
    gap = everything["head"]["a_lm"] - everything["tail"]["a_lm"]
    assert result["gap"] == pytest.approx(gap, abs=2 * ROUNDING)
    for metric, name in SHORT.items():
        assert result[name] == pytest.approx(
            everything["all"][metric], abs=ROUNDING + 5e-4
        ), name
