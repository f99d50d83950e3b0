"""MONITOR as the authors' published script computes it.

It differs from the paper's definition in four ways: probabilities are those of free-running steps of a beam
search, row 0 of its beams, and not teacher-forced; the anchor's tokens are those the model itself produced;
facts whose answer after the positive context is not the gold object are dropped; and an answer is right when
it equals the gold object, case and all, after some punctuation has been deleted from it.

What is done otherwise than in the script: docs/published-baselines.md.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

from pytest_kbrel.judges.abstention import uninformative_kind
from pytest_kbrel.metrics import monitor as formulas
from pytest_kbrel.probes.base import (
    Answers,
    ProbeResult,
    ProbeRun,
    collect,
    digest_of,
    question_of,
    request_of,
)
from pytest_kbrel.probes.monitor.cells import (
    ANCHOR,
    BASE,
    Cell,
    Grid,
    format_asks,
    format_prompts,
    format_values,
    grid_of,
    prompt_of,
    row_values,
    worst_first,
)
from pytest_kbrel.probes.monitor.moved_cells import moved_cells
from pytest_kbrel.records import (
    Ask,
    Case,
    Fact,
    GenerateRequest,
    MonitorSettings,
    MovedCells,
    Outcome,
    Step,
    Table,
)

NUM_BEAMS = 5
# Deleted from an answer, wherever they stand, in this order.
DELETED = (".</s>", ".\n", ".", ";", "!", ",", "?", "\n", "</s>", "<pad>")
# A step's token is "" where it ends a text; scripted models may spell it out.
_ENDS = ("", "</s>", "\n")
_CLOSING = ("", "</s>", ".")


def run(case: Case, settings: MonitorSettings) -> ProbeRun:
    """Ask the primary anchors first, then everything else about the facts that are kept.

    The script's distances are means over 7 frames and 5 negatives, whatever the relation has; here they are
    means over its own R and M, since 6 frames / 7 (P264, P276) is no mean of anything.
    """
    grid = grid_of(case)
    answers = Answers()
    first = tuple(_ask(case, fact, ANCHOR, settings, ()) for fact in case.facts)
    answers.add(first, (yield first))
    watched = {
        ask.fact_id: tuple(
            step.token_id for step in _anchor_steps(answers, ask.fact_id)
        )
        for ask, fact in zip(first, case.facts, strict=True)
        if not answers.failed(fact.id, ANCHOR.name) and _is_gold(answers, fact, ANCHOR)
    }
    second = tuple(
        ask
        for fact in case.facts
        for ask in _further(case, fact, grid, settings, watched.get(fact.id))
    )
    answers.add(second, (yield second))
    rows, errors = collect(
        case.facts, lambda fact: _outcome(case, fact, grid, answers, fact.id in watched)
    )
    facts = {fact.id: fact for fact in case.facts}
    table = Table(columns=grid.columns, rows=rows)
    return ProbeResult(
        table=table,
        errors=errors,
        moved=tuple(
            _moved(facts[fact_id], grid, answers) for fact_id in worst_first(table)
        ),
    )


def _further(
    case: Case,
    fact: Fact,
    grid: Grid,
    settings: MonitorSettings,
    watch: tuple[int, ...] | None,
) -> Iterator[Ask]:
    if watch is None:
        # A dropped fact is still asked its base question: lost and gained facts are told by that answer.
        yield _ask(case, fact, BASE, settings, ())
        return
    for cell in grid.own[1:]:
        yield _ask(case, fact, cell, settings, watch)

    def request(prompt: str) -> GenerateRequest:
        return dataclasses.replace(request_of(settings, prompt), num_beams=NUM_BEAMS)

    for cell in grid.others:
        yield Ask(
            fact_id=fact.id,
            role=cell.name,
            request=request(prompt_of(case, fact, cell)),
        )
    yield from format_asks(case, fact, grid, request)


def trimmed_length(tokens: Sequence[str]) -> int:
    """Return how many steps of a run count, given each step's most probable token; 0 is possible.

    A step is taken off the run's end where its last one is an end token or a full stop, and another where
    its last but one is a full stop. What remains ends before the first end token or newline behind its first
    step.
    """
    length = len(tokens)
    length -= sum(token in _CLOSING for token in tokens[-1:]) + sum(
        token == "." for token in tokens[-2:-1]
    )
    return next(
        (number for number in range(1, length) if tokens[number] in _ENDS), length
    )


def cleaned(answer: str) -> str:
    """Return an answer as the script compares it: stripped, then without :data:`DELETED`."""
    text = answer.strip()
    for piece in DELETED:
        text = text.replace(piece, "")
    return text


def _ask(
    case: Case,
    fact: Fact,
    cell: Cell,
    settings: MonitorSettings,
    watch: tuple[int, ...],
) -> Ask:
    return Ask(
        fact_id=fact.id,
        role=cell.name,
        request=dataclasses.replace(
            request_of(settings, prompt_of(case, fact, cell)),
            num_beams=NUM_BEAMS,
            steps=True,
            watch=watch,
        ),
    )


def _steps(answers: Answers, fact_id: str, cell: Cell) -> tuple[Step, ...]:
    """Return the steps of a run that count: every run is trimmed by its own steps."""
    steps = answers.generated(fact_id, cell.name).steps
    return steps[: trimmed_length([step.token for step in steps])]


def _anchor_steps(answers: Answers, fact_id: str) -> tuple[Step, ...]:
    # Where nothing remains, the script divides by 0.
    return (
        _steps(answers, fact_id, ANCHOR)
        or answers.generated(fact_id, ANCHOR.name).steps[:1]
    )


def _is_gold(answers: Answers, fact: Fact, cell: Cell) -> bool:
    return cleaned(answers.generated(fact.id, cell.name).text) == fact.object


def _foreign(answers: Answers, fact: Fact, cell: Cell, length: int) -> list[float]:
    return formulas.pad(
        [step.watched or 0.0 for step in _steps(answers, fact.id, cell)], length
    )


def _outcome(
    case: Case, fact: Fact, grid: Grid, answers: Answers, is_counted: bool
) -> Outcome:
    anchor_response = answers.generated(fact.id, ANCHOR.name)
    base = answers.generated(fact.id, BASE.name)
    values = (0.0,) * len(grid.columns)
    if is_counted:
        anchor = _anchor(answers, fact)
        values = row_values(
            grid,
            anchor=anchor,
            foreign=lambda cell: _foreign(answers, fact, cell, len(anchor)),
            right=lambda cell: _is_gold(answers, fact, cell),
            asked=[answers.generated(fact.id, cell.name) for cell in grid.own],
            study=[answers.generated(fact.id, cell.name) for cell in grid.cells],
            formats=format_values(
                case,
                fact,
                grid,
                answers,
                is_right=lambda text: cleaned(text) == fact.object,
            ),
        )
    return Outcome(
        fact_id=fact.id,
        question=question_of(case, fact),
        expected=fact.object or "",
        answer=base.text,
        label="correct" if _is_gold(answers, fact, BASE) else "wrong",
        values=values,
        # A dropped fact is not asked in the other cells, so that these are compared by their texts.
        prompt_digest=digest_of(
            case,
            fact,
            [anchor_response, base],
            draws=[
                *(prompt_of(case, fact, cell) for cell in grid.cells),
                *(prompt for _, prompt in format_prompts(case, fact, grid)),
            ],
        ),
        # The script knows no third label; who says "unsure" to everything is no broken model all the same.
        rule=uninformative_kind(
            base.text,
            question_of(case, fact),
            case.uninformative,
            language=fact.language,
        ),
    )


def _moved(fact: Fact, grid: Grid, answers: Answers) -> MovedCells:
    anchor = _anchor(answers, fact)
    return moved_cells(
        fact,
        grid,
        lambda cell: (
            anchor if cell == ANCHOR else _foreign(answers, fact, cell, len(anchor))
        ),
        lambda cell: answers.generated(fact.id, cell.name).text,
    )


def _anchor(answers: Answers, fact: Fact) -> list[float]:
    return [step.probability for step in _anchor_steps(answers, fact.id)]
