"""Head-to-Tail (arXiv 2308.10168 v1): its tables put through our own aggregation."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from pytest_kbrel.gates.figures import figures_over
from pytest_kbrel.metrics.correlations import correlate
from pytest_kbrel.records import CaseResult, Table
from tests.golden import figures_of, rows_of

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


def test_the_paper_asks_as_many_questions_as_its_domains_say() -> None:
    assert [ASKED[domain] for domain in DOMAINS] == [3093, 3000, 2946, 9132]
    assert sum(ASKED[domain] for domain in DOMAINS) == ASKED["all"] == 18171
    assert (len(MODELS), len(ELEVEN)) == (14, 14 * 4 * 5)


def test_four_cells_are_misprints() -> None:
    corrected = [row for row in rows_of("head_to_tail.csv") if row["corrected"]]
    places = [
        (row["table"], row["bucket"], row["domain"], row["model"], row["metric"])
        for row in corrected
    ]
    assert places == [
        ("11", "head", "all", "LLaMA (7B)", "h_f1"),
        ("11", "tail", "book", "Vicuna (13B)", "h_lm"),
        ("4", "torso", "book", "ChatGPT", "h_lm"),
        ("6", "predicate-tail", "open", "LLaMA (7B)", "h_lm"),
    ]
    # Table 11 has the first two, so that they show there: as printed, the parts do not make a whole.
    row = corrected[0]
    of = ELEVEN["head", "all", "LLaMA (7B)", ""]
    left = 1 - of["a_f1"] - of["m"]
    assert left != pytest.approx(float(row["value"]) / 100, abs=0.0151)
    assert left == pytest.approx(float(row["corrected"]) / 100, abs=0.0015)


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


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("domain", DOMAINS)
def test_table_11_over_the_buckets_of_a_domain(model: str, domain: str) -> None:
    slices = {
        f"{domain}-{bucket}": (ASKED[domain] / 3, ELEVEN[bucket, domain, model, ""])
        for bucket in BUCKETS
    }
    result = aggregate(slices)
    of = ELEVEN["all", domain, model, ""]
    assert result["accuracy"] == pytest.approx(of["a_lm"], abs=ROUNDING)
    assert result["hallucination"] == pytest.approx(of["h_lm"], abs=ROUNDING)


@pytest.mark.parametrize(("table", "cells"), [(3, 20), (4, 60), (7, 108), (9, 12)])
def test_other_tables_repeat_table_11(table: int, cells: int) -> None:
    same = 0
    for (bucket, domain, model, variant), figures in printed(table).items():
        if variant in ("", "few-shot"):
            for metric, value in figures.items():
                assert value == ELEVEN[bucket, domain, model, ""][metric], (
                    bucket,
                    domain,
                    model,
                    metric,
                )
                same += 1
    assert same == cells


def test_table_6_over_the_buckets_of_predicates() -> None:
    """522 questions about head and torso predicates and 8610 about tail ones: 9132 in the open domain."""
    six = printed(6)
    models = {model for _, _, model, _ in six}
    assert sorted(models) == MODELS
    for model in models:
        parts = {
            "open-head": (522.0, six["predicate-head+torso", "open", model, ""]),
            "open-tail": (8610.0, six["predicate-tail", "open", model, ""]),
        }
        # Buckets of different size: the accuracy over all facts is that of one bucket holding both.
        pooled = aggregate(
            {f"{name}{i}-head": part for i, (name, part) in enumerate(parts.items())}
        )
        of = ELEVEN["all", "open", model, ""]
        assert pooled["accuracy"] == pytest.approx(of["a_lm"], abs=ROUNDING)
        assert pooled["hallucination"] == pytest.approx(of["h_lm"], abs=ROUNDING)


def pairs(metric: str, other: str) -> Iterator[tuple[float, float]]:
    for model in MODELS:
        for bucket in (*BUCKETS, "all"):
            of = ELEVEN[bucket, "all", model, ""]
            yield of[metric], of[other]


@pytest.mark.parametrize("score", ["em", "f1", "rl"])
def test_rates_by_rules_and_by_judge_go_together(score: str) -> None:
    """Table 8's question, asked of the rates that Table 11 prints of each model and bucket."""
    for of_model, of_rule in (("a_lm", f"a_{score}"), ("h_lm", f"h_{score}")):
        for result in correlate(
            of_rule, of_model, list(pairs(of_rule, of_model)), over="models"
        ):
            assert result.r is not None
            assert result.r > 0.7
            assert result.n == 14 * 4
