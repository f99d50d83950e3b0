"""MONITOR: how far prompt framing and interfering contexts move the probability of a known answer.

Wang et al., "Assessing the Reliability of Large Language Model Knowledge", arXiv 2310.09820.

Every fact is asked in the same cells: the base frame after the gold object (the primary anchor), each frame
without context, and the base frame after each of M wrong objects (the foreign anchors of eq. 1 and 2).
"""

from __future__ import annotations

from collections.abc import Iterator

from pytest_kbrel.errors import ResponseError
from pytest_kbrel.judges.rules import label
from pytest_kbrel.metrics import monitor as formulas
from pytest_kbrel.probes import monitor_published
from pytest_kbrel.probes.base import Answers, ProbeResult, ProbeRun, collect, digest_of, question_of
from pytest_kbrel.probes.monitor_cells import ANCHOR, BASE, Cell, Grid, grid_of, prompt_of
from pytest_kbrel.records import (
    Ask,
    Case,
    Fact,
    GenerateRequest,
    Label,
    MonitorSettings,
    Outcome,
    ScoreRequest,
    Table,
)


def run(case: Case) -> ProbeRun:
    """Run the variant the settings name; columns as :attr:`monitor_cells.Grid.columns` gives them.

    ``definition``: teacher-forced probabilities of the gold object's tokens, every fact counts, an answer is
    right by the judge's rules. ``published``: :mod:`pytest_kbrel.probes.monitor_published`.
    """
    settings = case.settings
    assert isinstance(settings, MonitorSettings)
    if settings.variant == "published":
        return monitor_published.run(case, settings)
    return _run_definition(case, settings)


def _run_definition(case: Case, settings: MonitorSettings) -> ProbeRun:
    grid = grid_of(case)
    asks = tuple(
        ask
        for fact in case.facts
        for cell in grid.cells
        for ask in _asks(case, fact, cell, settings.max_new_tokens)
    )
    answers = Answers()
    answers.add(asks, (yield asks))
    rows, errors = collect(case.facts, lambda fact: _outcome(case, fact, grid, answers))
    return ProbeResult(table=Table(columns=grid.columns, rows=rows), errors=errors)


def _asks(case: Case, fact: Fact, cell: Cell, max_new_tokens: int) -> Iterator[Ask]:
    prompt = prompt_of(case, fact, cell)
    scored = ScoreRequest(prompt=prompt, continuation=f" {fact.object}")
    yield Ask(fact_id=fact.id, role=f"{cell.name}/score", request=scored)
    answered = GenerateRequest(prompt=prompt, max_new_tokens=max_new_tokens)
    yield Ask(fact_id=fact.id, role=f"{cell.name}/answer", request=answered)


def _outcome(case: Case, fact: Fact, grid: Grid, answers: Answers) -> Outcome:
    anchor = answers.scored(fact.id, f"{ANCHOR.name}/score")

    def probabilities(cell: Cell) -> tuple[float, ...]:
        found = answers.scored(fact.id, f"{cell.name}/score")
        if found.token_ids != anchor.token_ids:
            raise ResponseError(
                f"{fact.id} ({cell.name}): {fact.object!r} is tokenised into {found.token_ids} here and into "
                f"{anchor.token_ids} after the positive context, so the probabilities have no common length"
            )
        return found.probabilities

    pfd = formulas.pfd(anchor.probabilities, [probabilities(cell) for cell in grid.frames])
    ird = formulas.ird(anchor.probabilities, [probabilities(cell) for cell in grid.negatives])
    right = [_label(case, fact, cell, answers) == "correct" for cell in grid.cells]
    base = answers.generated(fact.id, f"{BASE.name}/answer")
    return Outcome(
        fact_id=fact.id,
        question=question_of(case, fact),
        expected=fact.object or "",
        answer=base.text,
        label=_label(case, fact, BASE, answers),
        values=(
            1.0,
            pfd,
            ird,
            formulas.degree(pfd, ird),
            sum(anchor.probabilities) / len(anchor.probabilities),
            *map(float, right),
        ),
        prompt_digest=digest_of(
            case, fact, (answers.scored(fact.id, f"{cell.name}/score") for cell in grid.cells)
        ),
    )


def _label(case: Case, fact: Fact, cell: Cell, answers: Answers) -> Label:
    answer = answers.generated(fact.id, f"{cell.name}/answer")
    return label(answer.text, fact.accepted, question_of(case, fact, cell.frame))
