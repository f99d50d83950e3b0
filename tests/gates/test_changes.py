"""The churn: what changed against the baseline, whichever way, and the gates that may be about it."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import pytest

from pytest_kbrel import stats
from pytest_kbrel.baselines import BaselineCase
from pytest_kbrel.gates import with_moved_facts
from pytest_kbrel.gates.changes import QUANTILES, churn_of
from pytest_kbrel.gates.measurement import pair
from pytest_kbrel.records import (
    Churn,
    MovedCell,
    MovedCells,
    MovedFact,
    Table,
    TopTokens,
    Unmatched,
)
from tests.gates.tables import MONITOR, answers, case, decided, gate, model, outcome
from tests.gates.test_members import over, run_of
from tests.made_cases import made_result

BEFORE = answers("+" * 20 + "-" * 20)


def with_answers(table: Table, **texts: str) -> Table:
    rows = (
        dataclasses.replace(row, answer=texts.get(row.fact_id, row.answer))
        for row in table.rows
    )
    return Table(columns=table.columns, rows=tuple(rows))


def test_a_wrong_answer_that_became_another_wrong_one_is_churn() -> None:
    after = with_answers(BEFORE, Q030="another", Q031="yet another")
    result = decided(case(), after, BEFORE)
    assert (result.lost, result.gained) == ((), ())
    assert result.churn == Churn(facts=40, texts=2, labels=0)


@pytest.mark.parametrize(("bound", "verdict"), [(0.05, "pass"), (0.049, "fail")])
@pytest.mark.parametrize("metric", ["churn", "flips"])
def test_a_gate_may_limit_it(metric: str, bound: float, verdict: str) -> None:
    after = with_answers(answers("-" + "+" * 19 + "+" + "-" * 19), Q000="x", Q020="y")
    (actual,) = decided(case(gate(metric, "max", bound)), after, BEFORE).gates
    low, high = stats.wilson(2, 40)
    assert actual.verdict == verdict
    assert actual.reason.startswith(
        f"{metric} is 0.050 [{low:.3f}, {high:.3f}] over 40 facts; allowed: at most"
    )


def test_the_change_of_confidence_is_told_in_quantiles() -> None:
    def anchors(*values: float) -> Table:
        rows = (
            outcome(f"Q{at:02}", (at != 0, 0.1, 0.1, 0.1, value, 1, 1), "correct")
            for at, value in enumerate(values)
        )
        return Table(columns=MONITOR, rows=tuple(rows))

    churn = churn_of([pair(anchors(*[0.5] * 12), anchors(*[0.4] * 6, *[0.7] * 6))])
    assert churn is not None
    # A fact that a variant of MONITOR left out has no anchor.
    assert dict(churn.anchor_moves) == pytest.approx(
        dict(zip(QUANTILES, (-0.2, -0.2, -0.2, 0.1, 0.1), strict=True))
    )


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


def moved_cells(fact: str) -> MovedCells:
    return MovedCells(
        fact_id=fact,
        anchor=MovedCell(cell="positive:0", answer="x", probability=0.9),
        frame=MovedCell(cell="none:2", answer="y", probability=0.4),
        context=MovedCell(cell="negative1:0", answer="z", probability=0.1),
    )


def table(**facts: tuple[float, float, float, float]) -> Table:
    """Facts with their (pfd, ird, term, anchor)."""
    rows = (
        outcome(fact, (1, *values, 1, 1), "correct") for fact, values in facts.items()
    )
    return Table(columns=MONITOR, rows=tuple(rows))


CELLS = tuple(map(moved_cells, "ABCD"))
# B was bad before; A has become worse in its frames, D by its contexts, and C is less sure of its answer.
EARLIER = table(
    A=(0.1, 0.1, 0.1, 0.9),
    B=(0.9, 0.9, 0.9, 0.9),
    C=(0.1, 0.1, 0.1, 0.9),
    D=(0.1, 0.1, 0.1, 0.9),
)
NOW = table(
    A=(0.5, 0.1, 0.3, 0.9),
    B=(0.9, 0.9, 0.9, 0.9),
    C=(0.1, 0.1, 0.1, 0.2),
    D=(0.1, 0.8, 0.5, 0.9),
)


def prompt(fact: str, cell: str) -> str:
    return f"{cell} of {fact}?"


def moved(
    before: Table | None, now: Table = NOW, **more: object
) -> dict[str, MovedFact]:
    baseline = None if before is None else BaselineCase(table=before)
    case = made_result("mini.kb.yaml::monitor[P1]", table=now, **more)
    return {
        one.metric: one for one in with_moved_facts(case, CELLS, baseline, prompt).moved
    }


def test_each_figure_has_the_fact_that_made_it_worse_in_the_place_where_that_is_seen() -> (
    None
):
    seen = {
        metric: (one.fact_id, one.place.cell, one.column, one.before, one.now)
        for metric, one in moved(EARLIER).items()
    }
    assert seen == {
        "monitor": ("D", "negative1:0", "ird", 0.1, 0.8),
        "pfd": ("A", "none:2", "pfd", 0.1, 0.5),
        "ird": ("D", "negative1:0", "ird", 0.1, 0.8),
        "anchor_prob": ("C", "positive:0", "anchor", 0.9, 0.2),
    }


def test_the_place_has_the_prompt_and_the_answer_of_its_cell() -> None:
    found = moved(EARLIER)
    ird, pfd = found["ird"], found["pfd"]
    assert (ird.prompt, pfd.prompt) == ("negative1:0 of D?", "none:2 of A?")
    assert ird.place == MovedCell(cell="negative1:0", answer="z", probability=0.1)
    assert pfd.place == MovedCell(cell="none:2", answer="y", probability=0.4)
    assert {one.anchor for one in found.values()} == {0.9}


def test_without_a_baseline_it_is_the_worst_fact() -> None:
    found = moved(None)
    assert {metric: one.fact_id for metric, one in found.items()} == {
        "monitor": "B", "pfd": "B", "ird": "B", "anchor_prob": "C",
    }  # fmt: skip
    assert found["pfd"].before is None


@pytest.mark.parametrize("alone", ["added", "waived", "unanswered"])
def test_facts_that_were_not_compared_moved_nothing(alone: str) -> None:
    unmatched = Unmatched(**{alone: ("D",)})
    assert moved(EARLIER, unmatched=unmatched)["ird"].fact_id != "D"
