"""What MONITOR's two variants share: from a fact's probabilities and answers to its row."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from pytest_kbrel.metrics import monitor as formulas
from pytest_kbrel.probes.monitor.cells import BASE, Cell, Grid, answer_text, prompt_of
from pytest_kbrel.probes.wording import score_request
from pytest_kbrel.records import Ask, Case, Fact, Generated, Scored, Table

Probabilities = Callable[[Cell], Sequence[float]]


def row_values(
    grid: Grid,
    *,
    anchor: Sequence[float],
    foreign: Probabilities,
    right: Callable[[Cell], bool],
    asked: Iterable[Scored | Generated],
    study: Iterable[Generated],
    formats: Sequence[float],
    written: bool = True,
) -> tuple[float, ...]:
    """Return a kept fact's values, one for each of ``grid.columns``.

    ``anchor`` are the primary anchor's token probabilities, ``foreign`` those of a cell. ``asked`` are the
    responses MONITOR needs, ``study`` those of the accuracy study, counted when the grid is ``full``.
    ``written``: the model's answer in the base frame begins with the first token that is scored there.
    """
    ird = formulas.ird(anchor, [foreign(cell) for cell in grid.negatives])
    pfd = formulas.pfd(anchor, [foreign(cell) for cell in grid.frames])
    ablated = formulas.pfd(anchor, [foreign(cell) for cell in grid.ablated])
    return (
        1.0,
        pfd,
        ird,
        formulas.degree(pfd, ird),
        sum(anchor) / len(anchor),
        float(written),
        formulas.degree(ablated, ird),
        *_cost(asked),
        *(_cost(study) if grid.full else ()),
        *(float(right(cell)) for cell in grid.cells),
        *formats,
    )


def _cost(responses: Iterable[Scored | Generated]) -> tuple[float, float]:
    """Return the number of responses, and of their tokens: prompt with scored or generated continuation."""
    found = list(responses)
    return float(len(found)), float(sum(r.prompt_tokens + len(r.token_ids) for r in found))


def to_explain(
    case: Case, fact: Fact, grid: Grid, anchor: Sequence[float], foreign: Probabilities
) -> tuple[Ask, Ask]:
    """Return what attribution is to explain: the wrong context that moved the answer most, and none.

    Both ask for the gold object's probability behind the base frame.
    """
    worst = max(grid.negatives, key=lambda cell: formulas.ird(anchor, [foreign(cell)]))
    first, second = (
        Ask(
            fact_id=fact.id,
            role=cell.name,
            request=score_request(case.settings, prompt_of(case, fact, cell), answer_text(fact)),
        )
        for cell in (worst, BASE)
    )
    return first, second


def worst_first(table: Table) -> list[str]:
    """Return the ids of the kept facts, the largest term of eq. 3 first."""
    kept, term = table.columns.index("kept"), table.columns.index("term")
    found = sorted((-row.values[term], row.fact_id) for row in table.rows if row.values[kept])
    return [fact_id for _, fact_id in found]
