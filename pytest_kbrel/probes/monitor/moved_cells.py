"""Cells in which the probability of an answer moved most, for examples in reports."""

from __future__ import annotations

import sys
from collections.abc import Callable

from pytest_kbrel.metrics import monitor as formulas
from pytest_kbrel.probes.monitor.cells import (
    ANCHOR,
    Cell,
    Grid,
    Probabilities,
    prompt_of,
)
from pytest_kbrel.records import Case, Fact, MovedCell, MovedCells


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
