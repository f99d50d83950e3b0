"""Cells of MONITOR: a context in front of a frame, their prompts, and which of them a case asks."""

from __future__ import annotations

import dataclasses
import random

from pytest_kbrel.errors import SuiteError
from pytest_kbrel.judges.words import is_unspaced
from pytest_kbrel.metrics.monitor import ABLATED
from pytest_kbrel.probes.base import (
    question_of,
    relation_of,
    request_of,
    template_of,
)
from pytest_kbrel.probes.prompts import LEAD_QUESTION, fill, template, with_context
from pytest_kbrel.records import (
    ANSWER_CUE,
    Case,
    Fact,
    GenerateRequest,
    MonitorSettings,
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
    contexts = tuple(f"negative{number}" for number in range(1, fewest + 1))
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
    if cell.context == "positive":
        assert fact.object is not None
        return with_context(fact.object, question)
    wrong = fact.negatives[int(cell.context.removeprefix("negative")) - 1]
    return with_context(wrong, question)
