"""Cells in which the probability of an answer moved most, for examples in reports and for attribution."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

from pytest_kbrel.metrics import monitor as formulas
from pytest_kbrel.probes.base import score_request
from pytest_kbrel.probes.monitor.cells import (
    ANCHOR,
    BASE,
    Cell,
    Grid,
    Probabilities,
    answer_text,
    prompt_of,
    worst_first,
)
from pytest_kbrel.records import Ask, Case, Fact, MovedCell, MovedCells, Table


def moved_cells(
    fact: Fact, grid: Grid, foreign: Probabilities, answer: Callable[[Cell], str]
) -> MovedCells:
    """Return the primary anchor, and the frame and the wrong context that moved its probability most.

    ``foreign`` are the token probabilities of a cell, ``answer`` is what the model answered there.
    """
    anchor = foreign(ANCHOR)
    frame, context = (
        max(cells, key=lambda cell: formulas.pfd(anchor, [foreign(cell)]))
        for cells in (grid.frames, grid.negatives)
    )

    def moved(cell: Cell) -> MovedCell:
        tokens = foreign(cell)
        # Interned: all facts of a run have the same few names.
        return MovedCell(
            cell=sys.intern(cell.name),
            answer=answer(cell),
            probability=sum(tokens) / len(tokens),
        )

    return MovedCells(
        fact_id=fact.id,
        anchor=moved(ANCHOR),
        frame=moved(frame),
        context=moved(context),
    )


def prompt_in(case: Case, fact: Fact, cell: str) -> str:
    """Return the prompt of a fact in the cell of this name, as :func:`.cells.prompt_of` has it."""
    return prompt_of(case, fact, _cell(cell))


def _cell(name: str) -> Cell:
    context, _, frame = name.partition(":")
    return Cell(context=context, frame=int(frame))


def to_explain(
    case: Case, table: Table, moved: Sequence[MovedCells], count: int
) -> tuple[tuple[Ask, Ask], ...]:
    """Return pairs of asks for attribution about ``count`` facts of a case's table, the worst one first.

    Both ask for the gold object's probability in the base frame: after the wrong context that moved it most,
    and without one.
    """
    facts = {fact.id: fact for fact in case.facts}
    contexts = {of.fact_id: of.context.cell for of in moved}
    worst = (
        [fact_id for fact_id in worst_first(table) if fact_id in contexts]
        if contexts
        else []
    )

    def ask(fact: Fact, cell: Cell) -> Ask:
        request = score_request(
            case.settings, prompt_of(case, fact, cell), answer_text(fact)
        )
        return Ask(fact_id=fact.id, role=cell.name, request=request)

    return tuple(
        (ask(facts[fact_id], _cell(contexts[fact_id])), ask(facts[fact_id], BASE))
        for fact_id in worst[:count]
    )
