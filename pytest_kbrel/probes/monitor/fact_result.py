"""One fact of MONITOR with the responses about it: its row, word prediction and fact checking.

Word prediction has the model complete a statement; fact checking asks whether a statement is true, once with
the gold object and once with each of the M wrong ones (Wang et al., Tables 1 and 2). Both are means over the
relation's statements.
"""

from __future__ import annotations

import re
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence

from pytest_kbrel.judges.replies import read_truth
from pytest_kbrel.metrics import monitor as formulas
from pytest_kbrel.probes.base import Answers, relation_of
from pytest_kbrel.probes.monitor.cells import ANCHOR, Cell, Grid
from pytest_kbrel.probes.prompts import check, fill
from pytest_kbrel.records import (
    Ask,
    Case,
    Fact,
    Generated,
    GenerateRequest,
    MovedCell,
    MovedCells,
    Scored,
)

# A completed sentence goes on behind its object: "Paris, the largest city", "Paris. It is".
_CLAUSE_END = re.compile(r"[.,;:!?](?=\s|$)|\s\(")


class FactResult(ABC):
    """One fact with the responses about it; the two variants differ in what they make of a response."""

    def __init__(self, case: Case, fact: Fact, grid: Grid, answers: Answers) -> None:
        self.case, self.fact, self.grid, self.answers = case, fact, grid, answers

    @abstractmethod
    def answer(self, cell: Cell) -> Generated:
        """Return what the model wrote in a cell; ``ResponseError`` where the request failed."""

    @abstractmethod
    def probabilities(self, cell: Cell) -> Sequence[float]:
        """Return the probabilities of the answer's tokens in a cell."""

    @abstractmethod
    def is_right(self, text: str, frame: int = 0) -> bool:
        """Return True if a text answers the question in a frame."""

    def is_written(self) -> bool:
        """Return True if the answer in the base frame begins with the first token that is scored there."""
        return True

    def values(self, asked: Iterable[Scored | Generated]) -> tuple[float, ...]:
        """Return a kept fact's values, one for each of ``grid.columns``.

        ``asked`` are the responses that MONITOR itself needs.
        """
        grid, anchor = self.grid, self.probabilities(ANCHOR)
        ird = formulas.ird(anchor, list(map(self.probabilities, grid.negatives)))
        pfd = formulas.pfd(anchor, list(map(self.probabilities, grid.frames)))
        ablated = formulas.pfd(anchor, list(map(self.probabilities, grid.ablated)))
        answers = {cell: self.answer(cell) for cell in grid.cells}
        return (
            1.0,
            pfd,
            ird,
            formulas.degree(pfd, ird),
            sum(anchor) / len(anchor),
            float(self.is_written()),
            formulas.degree(ablated, ird),
            *_cost(asked),
            *(_cost(answers.values()) if grid.full else ()),
            # Not float(): this way all rows share two numbers.
            *(
                1.0 if self.is_right(answer.text, cell.frame) else 0.0
                for cell, answer in answers.items()
            ),
            *self.format_values(),
        )

    def moved(self) -> MovedCells:
        """Return the primary anchor, and the frame and the wrong context that moved its probability most."""
        anchor = self.probabilities(ANCHOR)

        def distance(cell: Cell) -> float:
            return formulas.pfd(anchor, [self.probabilities(cell)])

        return MovedCells(
            fact_id=self.fact.id,
            anchor=self._moved(ANCHOR),
            frame=self._moved(max(self.grid.frames, key=distance)),
            context=self._moved(max(self.grid.negatives, key=distance)),
        )

    def _moved(self, cell: Cell) -> MovedCell:
        tokens = self.probabilities(cell)
        return MovedCell(
            # Interned: all facts of a run have the same few names.
            cell=sys.intern(cell.name),
            answer=self.answer(cell).text,
            probability=sum(tokens) / len(tokens),
        )

    def format_prompts(self) -> Iterator[tuple[str, str]]:
        """Yield the role and prompt of each question in another format; none unless the grid has ``formats``.

        Roles are ``wp:K``, ``fc_pos:K`` and ``fc_negM:K`` for opening or statement number K.
        """
        if not self.grid.formats:
            return
        fact, relation = self.fact, relation_of(self.case, self.fact)
        for number, opening in enumerate(relation.openings):
            yield f"wp:{number}", fill(opening, fact.subject)
        wrong = fact.negatives[: len(self.grid.negatives)]
        objects = [
            ("fc_pos", fact.object or ""),
            *((f"fc_neg{m}", name) for m, name in enumerate(wrong, start=1)),
        ]
        for number, statement in enumerate(relation.statements):
            for role, name in objects:
                yield f"{role}:{number}", check(fill(statement, fact.subject, name))

    def format_asks(self, request: Callable[[str], GenerateRequest]) -> Iterator[Ask]:
        """Yield the asks of :meth:`format_prompts`; ``request`` makes the request of a prompt."""
        for role, prompt in self.format_prompts():
            yield Ask(fact_id=self.fact.id, role=role, request=request(prompt))

    def format_answers(self) -> dict[str, Generated]:
        """Return the answers to :meth:`format_asks` by their roles, in their order."""
        roles = (role for role, _ in self.format_prompts())
        return {role: self.answers.generated(self.fact.id, role) for role in roles}

    def format_values(self) -> tuple[float, ...]:
        """Return the fact's shares (0..1) for :data:`~.cells.FORMATS`; empty without ``formats``.

        A reply that says neither true nor false is not right. A completion is right if it, or its first
        clause, is the gold object.
        """
        if not self.grid.formats:
            return ()
        verdicts: dict[str, list[bool]] = {"wp": [], "fc_pos": [], "fc_neg": []}
        for role, answer in self.format_answers().items():
            kind, text = role.partition(":")[0].rstrip("0123456789"), answer.text
            if kind == "wp":
                clause = _CLAUSE_END.split(text, maxsplit=1)[0]
                verdicts[kind].append(self.is_right(text) or self.is_right(clause))
            else:
                verdicts[kind].append(read_truth(text) is (kind == "fc_pos"))
        # Every negative has as many statements as the others, so this is the mean over the M of them.
        return tuple(sum(right) / len(right) for right in verdicts.values())


def _cost(responses: Iterable[Scored | Generated]) -> tuple[float, float]:
    """Return the number of responses, and of their tokens: prompt with scored or generated continuation."""
    counts = [one.prompt_tokens + len(one.token_ids) for one in responses]
    return float(len(counts)), float(sum(counts))
