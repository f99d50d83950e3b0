"""Cells of MONITOR: a context in front of a frame, their prompts, and one fact with the responses in them.

Word prediction has the model complete a statement; fact checking asks whether a statement is true, once with
the gold object and once with each of the M wrong ones (Wang et al., Tables 1 and 2). Both are means over the
relation's statements.
"""

from __future__ import annotations

import dataclasses
import random
import re
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence

from pytest_kbrel.errors import SuiteError
from pytest_kbrel.judges.replies import read_truth
from pytest_kbrel.judges.words import is_unspaced
from pytest_kbrel.metrics import monitor as formulas
from pytest_kbrel.metrics.monitor import ABLATED
from pytest_kbrel.probes.base import (
    Answers,
    question_of,
    relation_of,
    request_of,
    template_of,
)
from pytest_kbrel.probes.prompts import (
    LEAD_QUESTION,
    check,
    fill,
    template,
    with_context,
)
from pytest_kbrel.records import (
    ANSWER_CUE,
    Ask,
    Case,
    Fact,
    Generated,
    GenerateRequest,
    MonitorSettings,
    MovedCell,
    MovedCells,
    Scored,
    record,
)

# Whether the first token that is scored is the one with which the model's own answer begins.
FIRST_TOKEN = "first_token"
FORMATS = ("format:wp", "format:fc_pos", "format:fc_neg")


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
    """The cells one case asks each of its facts in.

    ``frames`` and ``negatives`` are MONITOR's own, 1 + R + M with the anchor. With ``full`` the accuracy
    study asks the ``others`` as well: all frames after all contexts, R x (1 + 1 + M). ``ablated`` are the
    frames of the prompt ablation (section 6.2), the base frame first. ``formats``: word prediction and fact
    checking are asked too.
    """

    frames: tuple[Cell, ...]
    negatives: tuple[Cell, ...]
    ablated: tuple[Cell, ...]
    others: tuple[Cell, ...] = ()
    full: bool = False
    formats: bool = False

    @property
    def own(self) -> tuple[Cell, ...]:
        """MONITOR's own cells, the primary anchor first."""
        return (ANCHOR, *self.frames, *self.negatives)

    @property
    def cells(self) -> tuple[Cell, ...]:
        """All cells, MONITOR's own first."""
        return (*self.own, *self.others)

    @property
    def columns(self) -> tuple[str, ...]:
        """The outcome columns: see :func:`pytest_kbrel.metrics.monitor.monitor_metrics`."""
        return (
            *("kept", "pfd", "ird", "term", "anchor"),
            FIRST_TOKEN,
            ABLATED + "+".join(str(cell.frame) for cell in self.ablated),
            *("calls:monitor", "tokens:monitor"),
            *(("calls:study", "tokens:study") if self.full else ()),
            *(f"cell:{cell.name}" for cell in self.cells),
            *(FORMATS if self.formats else ()),
        )


def answer_text(fact: Fact) -> str:
    """Return a fact's object as it stands behind a prompt: after a blank, where its script has blanks."""
    answer = fact.object or ""
    return answer if is_unspaced(answer[:1]) else f" {answer}"


def grid_of(case: Case) -> Grid:
    """Return the case's grid: R from its relation's frames, M from its facts' negatives.

    Raises ``SuiteError`` for a fact without object or negatives, and where word prediction is to be asked and
    no statement of the relation ends with its object.
    """
    settings = case.settings
    assert isinstance(settings, MonitorSettings)
    poorest = min(case.facts, key=lambda fact: len(fact.negatives))
    fewest = len(poorest.negatives)
    if not fewest or any(fact.object is None for fact in case.facts):
        raise SuiteError(
            f"{case.id}: every fact that MONITOR asks about needs an object and at least one of `negatives`; "
            f"found {poorest.id} with {fewest}"
        )
    relation = case.relations[0]
    if settings.formats == "all" and not relation.openings:
        raise SuiteError(
            f"{case.id}: `formats: all` needs `statements` of relation {relation.id!r}, one of them with [Y] "
            f"at its end; found {len(relation.statements)}, none of which ends so"
        )
    frames = tuple(
        Cell(context="none", frame=frame) for frame in range(len(relation.frames))
    )
    contexts = [f"negative{number}" for number in range(1, fewest + 1)]
    full = settings.study == "full"
    return Grid(
        frames=frames,
        negatives=tuple(Cell(context=context, frame=0) for context in contexts),
        ablated=_drawn(case, frames, settings.ablation),
        others=tuple(
            Cell(context=context, frame=cell.frame)
            for context in ("positive", *contexts)
            for cell in frames[1:]
        )
        if full
        else (),
        full=full,
        formats=settings.formats == "all",
    )


def with_equal_negatives(case: Case) -> Case:
    """Return the case with as many negatives for each fact as its poorest one has: all are asked with these.

    Raises ``SuiteError`` as :func:`grid_of` does.
    """
    count = len(grid_of(case).negatives)
    facts = tuple(
        dataclasses.replace(fact, negatives=fact.negatives[:count])
        for fact in case.facts
    )
    return dataclasses.replace(case, facts=facts)


def _drawn(case: Case, frames: tuple[Cell, ...], count: int) -> tuple[Cell, ...]:
    """Draw ``count`` frames, the base frame always among them: the same for every model."""
    draws = random.Random(f"{case.seed}/{case.relations[0].id}/ablation")
    others = draws.sample(frames[1:], min(count, len(frames)) - 1)
    return (frames[0], *sorted(others, key=lambda cell: cell.frame))


def prompt_of(case: Case, fact: Fact, cell: Cell) -> str:
    """Return the prompt of a cell without a lead: the question, after the context entity if there is one.

    It is the raw text, unless the suite has a wording of its own around it.
    """
    return template_of(case.settings).question(_framed(case, fact, cell))


def prompt_in(case: Case, fact: Fact, name: str) -> str:
    """Return the prompt of a fact in the cell of this name, as :func:`prompt_of` has it."""
    context, _, frame = name.partition(":")
    return prompt_of(case, fact, Cell(context=context, frame=int(frame)))


def request_in(case: Case, fact: Fact, cell: Cell) -> GenerateRequest:
    """Return the request of a cell; where the relation has a lead, the answer is written behind it.

    A chat model's answer begins with the lead. Other models read question and lead as one text.
    """
    lead = fill(relation_of(case, fact).lead, fact.subject)
    if not lead or case.chat:
        request = request_of(case.settings, prompt_of(case, fact, cell))
        return dataclasses.replace(request, lead=lead)
    text = case.settings.prompt_text
    around = template_of(case.settings) if text else template(LEAD_QUESTION, ANSWER_CUE)
    asked = around.question(_framed(case, fact, cell))
    return request_of(case.settings, f"{asked} {lead}")


def _framed(case: Case, fact: Fact, cell: Cell) -> str:
    question = question_of(case, fact, cell.frame)
    if cell.context == "none":
        return question
    wrong = cell.context.removeprefix("negative")
    entity = fact.negatives[int(wrong) - 1] if wrong.isdecimal() else fact.object
    return with_context(entity or "", question)


# A completed sentence goes on behind its object: "Paris, the largest city", "Paris. It is".
_CLAUSE_END = re.compile(r"[.,;:!?](?=\s|$)|\s\(")


class FactResult(ABC):
    """One fact with the responses about it; the two variants differ in what they make of a response.

    ``role`` stands behind a cell's name in the role of its answer, which is searched for with so many
    ``beams``.
    """

    role = ""
    beams = 1

    def __init__(self, case: Case, fact: Fact, grid: Grid, answers: Answers) -> None:
        self.case, self.fact, self.grid, self.answers = case, fact, grid, answers

    def answer(self, cell: Cell) -> Generated:
        """Return what the model wrote in a cell; ``ResponseError`` where the request failed."""
        return self.answers.generated(self.fact.id, cell.name + self.role)

    def request(self, prompt: str) -> GenerateRequest:
        """Return the request of a prompt as it stands."""
        request = request_of(self.case.settings, prompt)
        return dataclasses.replace(request, num_beams=self.beams)

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
        ird = formulas.pfd(anchor, list(map(self.probabilities, grid.negatives)))
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

    def format_asks(self) -> Iterator[Ask]:
        """Yield the asks of :meth:`format_prompts`."""
        for role, prompt in self.format_prompts():
            yield Ask(fact_id=self.fact.id, role=role, request=self.request(prompt))

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
