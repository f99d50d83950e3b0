"""The cells MONITOR asks in: a context in front of a frame."""

from __future__ import annotations

from pytest_kbrel.errors import SuiteError
from pytest_kbrel.probes.base import question_of
from pytest_kbrel.probes.prompts import with_context
from pytest_kbrel.records import Case, Fact, record


@record
class Cell:
    """A context (``positive``, ``none``, ``negative1`` to ``negativeM``) with a frame number."""

    context: str
    frame: int

    @property
    def name(self) -> str:
        """The cell's name, used for roles and columns."""
        return f"{self.context}:{self.frame}"


ANCHOR = Cell(context="positive", frame=0)
BASE = Cell(context="none", frame=0)


@record
class Grid:
    """The cells one case asks each of its facts in: 1 + R + M of them."""

    frames: tuple[Cell, ...]
    negatives: tuple[Cell, ...]

    @property
    def cells(self) -> tuple[Cell, ...]:
        """All cells, the primary anchor first."""
        return (ANCHOR, *self.frames, *self.negatives)

    @property
    def columns(self) -> tuple[str, ...]:
        """The outcome columns: the sums of eq. 3, then whether the answer was right in each cell."""
        return ("kept", "pfd", "ird", "term", "anchor", *(f"cell:{cell.name}" for cell in self.cells))


def grid_of(case: Case) -> Grid:
    """Return the case's grid: R from its relation's frames, M from its facts' negatives."""
    poorest = min(case.facts, key=lambda fact: len(fact.negatives))
    fewest = len(poorest.negatives)
    if not fewest or any(fact.object is None for fact in case.facts):
        raise SuiteError(
            f"{case.id}: every fact that MONITOR asks about needs an object and at least one of `negatives`; "
            f"found {poorest.id} with {fewest}"
        )
    return Grid(
        frames=tuple(Cell(context="none", frame=frame) for frame in range(len(case.relations[0].frames))),
        negatives=tuple(Cell(context=f"negative{number}", frame=0) for number in range(1, fewest + 1)),
    )


def prompt_of(case: Case, fact: Fact, cell: Cell) -> str:
    """Return the prompt of a cell: the raw question, after the context entity if there is one."""
    question = question_of(case, fact, cell.frame)
    if cell.context == "none":
        return question
    if cell.context == "positive":
        assert fact.object is not None
        return with_context(fact.object, question)
    return with_context(fact.negatives[int(cell.context.removeprefix("negative")) - 1], question)
