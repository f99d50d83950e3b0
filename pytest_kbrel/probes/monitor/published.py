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
from pytest_kbrel.judges.rules import Judged
from pytest_kbrel.metrics import monitor as formulas
from pytest_kbrel.probes.base import (
    Answers,
    ProbeResult,
    ProbeRun,
    collect,
    digest_of,
    outcome_of,
    question_of,
)
from pytest_kbrel.probes.monitor.cells import (
    ANCHOR,
    BASE,
    Cell,
    FactResult,
    grid_of,
    prompt_of,
)
from pytest_kbrel.records import (
    Ask,
    Case,
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


def run(case: Case) -> ProbeRun:
    """Ask the primary anchors first, then everything else about the facts that are kept.

    The script's distances are means over 7 frames and 5 negatives, whatever the relation has; here they are
    means over its own R and M, since 6 frames / 7 (P264, P276) is no mean of anything.
    """
    grid = grid_of(case)
    answers = Answers()
    facts = {fact.id: _FactResult(case, fact, grid, answers) for fact in case.facts}
    first = tuple(of.ask(ANCHOR) for of in facts.values())
    answers.add(first, (yield first))
    watched = {
        name: tuple(step.token_id for step in of.steps(ANCHOR))
        for name, of in facts.items()
        if not answers.failed(name, ANCHOR.name) and of.is_gold(ANCHOR)
    }
    second = tuple(
        ask for name, of in facts.items() for ask in of.further(watched.get(name))
    )
    answers.add(second, (yield second))
    rows, errors = collect(
        case.facts, lambda fact: facts[fact.id].outcome(fact.id in watched)
    )
    return ProbeResult(
        table=Table(columns=grid.columns, rows=rows),
        errors=errors,
        moved=tuple(
            facts[row.fact_id].moved() for row in rows if row.fact_id in watched
        ),
    )


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


class _FactResult(FactResult):
    """One fact with the responses about it; its probabilities are those of what the model wrote."""

    beams = NUM_BEAMS

    def ask(self, cell: Cell, watch: tuple[int, ...] | None = ()) -> Ask:
        """Return the ask of a cell with the steps of its run, which ``watch`` tokens; ``None``: without."""
        request = self.request(prompt_of(self.case, self.fact, cell))
        if watch is not None:
            request = dataclasses.replace(request, steps=True, watch=watch)
        return Ask(fact_id=self.fact.id, role=cell.name, request=request)

    def further(self, watch: tuple[int, ...] | None) -> Iterator[Ask]:
        """Yield the asks of the second round, which follow the tokens of the anchor."""
        if watch is None:
            # A dropped fact is still asked its base question: lost and gained facts are told by that answer.
            yield self.ask(BASE)
            return
        for cell in self.grid.own[1:]:
            yield self.ask(cell, watch)
        for cell in self.grid.others:
            yield self.ask(cell, None)
        yield from self.format_asks()

    def steps(self, cell: Cell) -> tuple[Step, ...]:
        """Return the steps of a run that count: every run is trimmed by its own steps."""
        steps = self.answer(cell).steps
        length = trimmed_length([step.token for step in steps])
        # Where nothing of the anchor remains, the script divides by 0.
        return steps[: length or cell == ANCHOR]

    def is_gold(self, cell: Cell) -> bool:
        """Return True if the answer in a cell is the gold object."""
        return self.is_right(self.answer(cell).text)

    def is_right(self, text: str, frame: int = 0) -> bool:
        """Return True if a text is the gold object, whatever the frame."""
        return cleaned(text) == self.fact.object

    def probabilities(self, cell: Cell) -> list[float]:
        """Return the probabilities of the anchor's tokens in a cell."""
        anchor = [step.probability for step in self.steps(ANCHOR)]
        if cell == ANCHOR:
            return anchor
        watched = [step.watched or 0.0 for step in self.steps(cell)]
        return formulas.pad(watched, len(anchor))

    def outcome(self, is_counted: bool) -> Outcome:
        """Return the fact's row; ``ResponseError`` where a response cannot be used."""
        case, fact, grid = self.case, self.fact, self.grid
        anchor, base = self.answer(ANCHOR), self.answer(BASE)
        values = (0.0,) * len(grid.columns)
        if is_counted:
            values = self.values(map(self.answer, grid.own))
        # A dropped fact is not asked in the other cells, so that these are compared by their texts.
        draws = [prompt_of(case, fact, cell) for cell in grid.cells]
        draws += [prompt for _, prompt in self.format_prompts()]
        # The script knows no third label; who says "unsure" to everything is no broken model all the same.
        rule = uninformative_kind(
            base.text,
            question_of(case, fact),
            case.uninformative,
            language=fact.language,
        )
        verdict = Judged(label="correct" if self.is_gold(BASE) else "wrong", rule=rule)
        digest = digest_of(case, fact, [anchor, base], draws)
        return outcome_of(case, fact, base, verdict, values, digest)
