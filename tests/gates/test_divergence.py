"""KL divergence and top-1 agreement against the baseline, and the gates that may be about them."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import pytest

from pytest_kbrel.records import Table, TopTokens
from tests.gates.tables import answers, case, decided, gate, model
from tests.gates.test_members import over, run_of


def at(first: int, second: int) -> TopTokens:
    """One position: a token of .5 and one of .3."""
    return ((first, math.log(0.5)), (second, math.log(0.3)))


SAME, OTHER = at(1, 2), at(2, 1)
# .5 ln(.5/.3) + .3 ln(.3/.5)
FAR = 0.10216512


def told(*texts: tuple[TopTokens, ...]) -> Table:
    """Twenty answers, the last of them with these top tokens, the others with two positions alike."""
    table = answers("+" * 20)
    tops = [(SAME, SAME)] * (20 - len(texts)) + list(texts)
    rows = (
        dataclasses.replace(row, top=top)
        for row, top in zip(table.rows, tops, strict=True)
    )
    return Table(columns=table.columns, rows=tuple(rows))


def test_positions_are_averaged_in_each_fact_and_then_over_the_facts() -> None:
    moved = decided(case(), told((OTHER, OTHER), (SAME, OTHER)), told()).churn
    assert moved is not None
    found = moved.divergence
    assert found is not None
    # Behind the first other token nothing is compared: one position, and half of two.
    assert (found.facts, found.positions) == (20, 39)
    assert found.kl == pytest.approx((FAR + FAR / 2) / 20, abs=1e-8)
    assert found.top1_agreement == pytest.approx(37 / 39)
    assert found.kl_low is not None
    assert found.kl_high is not None
    assert found.top1_low is not None
    assert found.top1_high is not None
    assert 0 <= found.kl_low < found.kl < found.kl_high
    assert 0 < found.top1_low < found.top1_agreement < found.top1_high <= 1


@pytest.mark.parametrize(
    ("metric", "rule", "bound", "verdict"),
    [
        ("kl", "max", 0.008, "pass"),
        ("kl", "max", 0.007, "fail"),
        ("top1_agreement", "min", 0.94, "pass"),
        ("top1_agreement", "min", 0.95, "fail"),
    ],
)
def test_gates_limit_them(metric: str, rule: str, bound: float, verdict: str) -> None:
    after = told((OTHER, OTHER), (SAME, OTHER))
    (judged,) = decided(case(gate(metric, rule, bound)), after, told()).gates
    value = "0.008" if metric == "kl" else "0.949"
    assert judged.verdict == verdict
    assert judged.reason.startswith(f"{metric} is {value} [")
    assert "over 20 facts; allowed: at " in judged.reason


@pytest.mark.parametrize(
    ("after", "before", "lacking"),
    [
        (told(), answers("+" * 20), "the baseline has no"),
        (answers("+" * 20), told(), "this run has no"),
        (answers("+" * 20), answers("+" * 20), "this run and the baseline have no"),
    ],
)
def test_without_tokens_in_both_runs_nothing_is_compared(
    after: Table, before: Table, lacking: str
) -> None:
    result = decided(
        case(gate("kl", "max", 1.0), gate("churn", "max", 1.0)), after, before
    )
    assert result.churn is not None
    assert result.churn.divergence is None
    assert [of.verdict for of in result.gates] == ["not comparable", "pass"]
    assert result.gates[0].reason.startswith(
        f"kl cannot be measured: {lacking} most probable tokens"
    )
    assert "--kb-top-k=K" in result.gates[0].reason


def test_token_ids_of_another_tokenizer_are_not_compared() -> None:
    result = decided(
        case(gate("kl", "max", 1.0)), told(), told(), model=model(tokenizer_digest="y")
    )
    assert result.churn is not None
    assert result.churn.divergence is None
    assert result.gates[0].verdict == "not comparable"
    assert "different tokenizers" in result.gates[0].reason


@pytest.mark.parametrize("probe", ["head_to_tail", "pooled"])
def test_cases_over_several_count_all_their_facts(probe: Any) -> None:
    names = ("a-head", "a-tail")
    before = [decided(case(slice=name), told()) for name in names]
    after = [decided(case(slice=name), told((OTHER,)), told()) for name in names]
    found = over(after, gate("kl", "max", 0.5), baseline=run_of(*before), probe=probe)
    assert found.churn is not None
    assert found.churn.divergence is not None
    assert (found.churn.divergence.facts, found.churn.divergence.positions) == (40, 78)
    assert found.churn.divergence.kl == pytest.approx(FAR / 20, abs=1e-8)
    assert found.gates[0].verdict == "pass"
