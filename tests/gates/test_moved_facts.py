"""The facts that moved MONITOR's figures most."""

from __future__ import annotations

import pytest

from pytest_kbrel.baselines import BaselineCase
from pytest_kbrel.gates import with_moved_facts
from pytest_kbrel.records import (
    MovedCell,
    MovedCells,
    MovedFact,
    Place,
    Table,
    Unmatched,
)
from tests.gates.tables import MONITOR, outcome
from tests.made_cases import made_result


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
BEFORE = table(
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
    baseline = (
        None if before is None else BaselineCase(key="k", table=before, metrics=())
    )
    case = made_result("mini.kb.yaml::monitor[P1]", table=now, **more)
    return {
        one.metric: one for one in with_moved_facts(case, CELLS, baseline, prompt).moved
    }


def test_each_figure_has_the_fact_that_made_it_worse_in_the_place_where_that_is_seen() -> (
    None
):
    seen = {
        metric: (one.place.fact_id, one.place.cell, one.column, one.before, one.now)
        for metric, one in moved(BEFORE).items()
    }
    assert seen == {
        "monitor": ("D", "negative1:0", "ird", 0.1, 0.8),
        "pfd": ("A", "none:2", "pfd", 0.1, 0.5),
        "ird": ("D", "negative1:0", "ird", 0.1, 0.8),
        "anchor_prob": ("C", "positive:0", "anchor", 0.9, 0.2),
    }


def test_the_place_has_the_prompt_and_the_answer_of_its_cell() -> None:
    found = moved(BEFORE)
    assert found["ird"].place == Place(
        fact_id="D",
        cell="negative1:0",
        prompt="negative1:0 of D?",
        answer="z",
        probability=0.1,
    )
    assert found["pfd"].place == Place(
        fact_id="A", cell="none:2", prompt="none:2 of A?", answer="y", probability=0.4
    )
    assert {one.anchor for one in found.values()} == {0.9}


def test_without_a_baseline_it_is_the_worst_fact() -> None:
    found = moved(None)
    assert {metric: one.place.fact_id for metric, one in found.items()} == {
        "monitor": "B", "pfd": "B", "ird": "B", "anchor_prob": "C",
    }  # fmt: skip
    assert found["pfd"].before is None


@pytest.mark.parametrize("alone", ["added", "waived", "unanswered"])
def test_facts_that_were_not_compared_moved_nothing(alone: str) -> None:
    unmatched = Unmatched(**{alone: ("D",)})
    assert moved(BEFORE, unmatched=unmatched)["ird"].place.fact_id != "D"
