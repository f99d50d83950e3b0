"""MONITOR: how far prompt framing and interfering contexts move the probability of a known answer.

Wang et al., "Assessing the Reliability of Large Language Model Knowledge", arXiv 2310.09820.

Every fact is asked in the same cells, each a context with the number of a frame: the base frame after the gold
object (``positive:0``, the primary anchor), each frame without context (``none:0``, ...), and the base frame
after each of M wrong objects (``negative1:0``, ...; the foreign anchors of eq. 1 and 2).

Word prediction has the model complete a statement; fact checking asks whether a statement is true, once with
the gold object and once with each of the M wrong ones (Tables 1 and 2). Both are means over the relation's
statements.
"""

from __future__ import annotations

import functools
import random
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from pytest_kbrel.errors import ResponseError, SuiteError
from pytest_kbrel.judges.abstention import uninformative_kind
from pytest_kbrel.judges.replies import read_truth
from pytest_kbrel.judges.rules import Judged
from pytest_kbrel.metrics import monitor as formulas
from pytest_kbrel.metrics.monitor import ABLATED
from pytest_kbrel.probes.base import (
    Answers,
    ProbeResult,
    ProbeRun,
    collect,
    digest_of,
    judged_by_rules,
    outcome_of,
    question_of,
    relation_of,
    request_of,
    score_request,
    template_of,
    with_top_tokens,
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
    Outcome,
    Scored,
    Step,
    Table,
    record,
)

ANCHOR, BASE = "positive:0", "none:0"
_FIRST_WORD = re.compile(r"\W*\w+")
# A completed sentence goes on behind its object: "Paris, the largest city", "Paris. It is".
_CLAUSE_END = re.compile(r"[.,;:!?](?=\s|$)|\s\(")


def run(case: Case) -> ProbeRun:
    """Run the variant the settings name; columns as in :attr:`Grid.columns`.

    ``definition``: teacher-forced probabilities of the gold object's tokens, every fact counts, an answer is
    right by the judge's rules. ``published``: see :class:`_PublishedFact`.
    """
    grid, answers = grid_of(case), Answers()
    if grid.settings.variant == "published":
        return _run_published(case, grid, answers)
    return _run_definition(case, grid, answers)


def _run_definition(case: Case, grid: Grid, answers: Answers) -> ProbeRun:
    facts = {fact.id: _Fact(case, fact, grid, answers) for fact in case.facts}
    asks = tuple(ask for of in facts.values() for ask in of.asks())
    answers.add(asks, (yield asks))
    rows, errors = collect(case.facts, lambda fact: facts[fact.id].outcome())
    return ProbeResult(
        table=Table(columns=grid.columns, rows=rows),
        errors=errors,
        moved=tuple(facts[row.fact_id].moved() for row in rows),
    )


def _run_published(case: Case, grid: Grid, answers: Answers) -> ProbeRun:
    """Ask the primary anchors first, then everything else about the facts that are kept.

    The script's distances are means over 7 frames and 5 negatives, whatever the relation has; here they are
    means over its own R and M, since 6 frames / 7 (P264, P276) is no mean of anything.
    """
    facts = {fact.id: _PublishedFact(case, fact, grid, answers) for fact in case.facts}
    first = tuple(of.ask(ANCHOR) for of in facts.values())
    answers.add(first, (yield first))
    watched = {
        name: tuple(step.token_id for step in of.steps(ANCHOR))
        for name, of in facts.items()
        if not answers.failed(name, ANCHOR) and of.is_gold(ANCHOR)
    }
    second = tuple(
        ask for name, of in facts.items() for ask in of.further(watched.get(name))
    )
    answers.add(second, (yield second))
    rows, errors = collect(
        case.facts, lambda fact: facts[fact.id].outcome(fact.id in watched)
    )
    moved = (facts[row.fact_id].moved() for row in rows if row.fact_id in watched)
    table = Table(columns=grid.columns, rows=rows)
    return ProbeResult(table=table, errors=errors, moved=tuple(moved))


@record
class Grid:
    """The cells one case asks each of its facts in.

    ``frames`` and ``negatives`` are MONITOR's own, 1 + R + M with the anchor. The full accuracy study asks
    the ``others`` as well: all frames after all contexts, R x (1 + 1 + M). ``ablated`` are the
    frames of the prompt ablation (section 6.2), the base frame first.
    """

    settings: MonitorSettings
    frames: tuple[str, ...]
    negatives: tuple[str, ...]
    ablated: tuple[str, ...]
    others: tuple[str, ...]

    @property
    def own(self) -> tuple[str, ...]:
        """MONITOR's own cells, the primary anchor first."""
        return (ANCHOR, *self.frames, *self.negatives)

    @property
    def full(self) -> bool:
        """True if the accuracy study is asked in full."""
        return self.settings.study == "full"

    @property
    def formats(self) -> tuple[str, ...]:
        """The kinds of question in other formats that are asked: word prediction and fact checking."""
        return ("wp", "fc_pos", "fc_neg") if self.settings.formats == "all" else ()

    @property
    def columns(self) -> tuple[str, ...]:
        """The outcome columns: see :func:`pytest_kbrel.metrics.monitor.monitor_metrics`.

        ``first_token``: whether the first token that is scored is the one with which the model's answer begins.
        """
        return (
            *("kept", "pfd", "ird", "term", "anchor", "first_token"),
            ABLATED + "+".join(cell.removeprefix("none:") for cell in self.ablated),
            *("calls:monitor", "tokens:monitor"),
            *(("calls:study", "tokens:study") if self.full else ()),
            *(f"cell:{cell}" for cell in (*self.own, *self.others)),
            *(f"format:{name}" for name in self.formats),
        )


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
    numbers = range(len(relation.frames))
    frames = tuple(f"none:{number}" for number in numbers)
    contexts = ["positive", *(f"negative{m}" for m in range(1, fewest + 1))]
    others = [f"{of}:{number}" for of in contexts for number in numbers[1:]]
    # The same draw for every model, and the base frame always in it.
    draws = random.Random(f"{case.seed}/{relation.id}/ablation")
    drawn = draws.sample(frames[1:], min(settings.ablation, len(frames)) - 1)
    return Grid(
        settings=settings,
        frames=frames,
        negatives=tuple(f"{context}:0" for context in contexts[1:]),
        ablated=(frames[0], *sorted(drawn, key=frames.index)),
        others=tuple(others) if settings.study == "full" else (),
    )


def with_equal_negatives(case: Case) -> Case:
    """Return the case with as many negatives for each fact as its poorest one has: all are asked with these.

    Raises ``SuiteError`` as :func:`grid_of` does.
    """
    count = len(grid_of(case).negatives)
    facts = tuple(
        replace(fact, negatives=fact.negatives[:count]) for fact in case.facts
    )
    return replace(case, facts=facts)


def prompt_in(case: Case, fact: Fact, cell: str) -> str:
    """Return the prompt of a cell without a lead: the question, after the context entity if there is one.

    It is the raw text, unless the suite has a wording of its own around it.
    """
    return template_of(case.settings).question(_framed(case, fact, cell))


def _request_in(case: Case, fact: Fact, cell: str) -> GenerateRequest:
    """Return the request of a cell; where the relation has a lead, the answer is written behind it.

    A chat model's answer begins with the lead. Other models read question and lead as one text.
    """
    lead = fill(relation_of(case, fact).lead, fact.subject)
    if not lead or case.chat:
        request = request_of(case.settings, prompt_in(case, fact, cell))
        return replace(request, lead=lead)
    text = case.settings.prompt_text
    around = template_of(case.settings) if text else template(LEAD_QUESTION, ANSWER_CUE)
    asked = around.question(_framed(case, fact, cell))
    return request_of(case.settings, f"{asked} {lead}")


def _framed(case: Case, fact: Fact, cell: str) -> str:
    context, frame = cell.split(":")
    question = question_of(case, fact, int(frame))
    if context == "none":
        return question
    wrong = context.removeprefix("negative")
    entity = fact.negatives[int(wrong) - 1] if wrong.isdecimal() else fact.object
    return with_context(entity or "", question)


class _Fact:
    """One fact with the responses about it; its probabilities are those of the gold object.

    ``role`` stands behind a cell's name in the role of its answer, which is searched for with so many
    ``beams``.
    """

    role = "/answer"
    beams = 1

    def __init__(self, case: Case, fact: Fact, grid: Grid, answers: Answers) -> None:
        self.case, self.fact, self.grid, self.answers = case, fact, grid, answers
        # Behind several contexts a model often answers the same, to the same question.
        self._judged = functools.cache(functools.partial(judged_by_rules, case, fact))

    def asks(self) -> Iterator[Ask]:
        """Yield the asks about the fact in all cells and formats."""
        case, fact, own = self.case, self.fact, self.grid.own
        for cell in (*own, *self.grid.others):
            answer = _request_in(case, fact, cell)
            if cell in own:
                scored = score_request(answer, fact.object or "")
                yield Ask(fact_id=fact.id, role=f"{cell}/score", request=scored)
            if cell == BASE:
                answer = with_top_tokens(case, answer)
            yield Ask(fact_id=fact.id, role=cell + self.role, request=answer)
        yield from self.format_asks()

    def outcome(self) -> Outcome:
        """Return the fact's row; ``ResponseError`` where a response cannot be used."""
        scored = list(map(self._scored, self.grid.own))
        values = self.values(scored)
        # Only what is asked beyond MONITOR's own cells: runs without must stay comparable with older ones.
        others = [*map(self.answer, self.grid.others), *self.format_answers().values()]
        digest = digest_of(self.case, self.fact, [*scored, *others])
        base = self.answer(BASE)
        verdict = self._judged(base.text)
        return outcome_of(self.case, self.fact, base, verdict, values, digest)

    def answer(self, cell: str) -> Generated:
        """Return what the model wrote in a cell; ``ResponseError`` where the request failed."""
        return self.answers.generated(self.fact.id, cell + self.role)

    def _scored(self, cell: str) -> Scored:
        return self.answers.get(self.fact.id, f"{cell}/score", Scored)

    def probabilities(self, cell: str) -> Sequence[float]:
        """Return the probabilities of the answer's tokens in a cell."""
        anchor, scored = self._scored(ANCHOR), self._scored(cell)
        counts = {len(one.probabilities) for one in (anchor, scored)}
        if scored.token_ids != anchor.token_ids or len(counts) > 1:
            raise ResponseError(
                f"{self.fact.id} ({cell}): {self.fact.object!r} is tokenised into {scored.token_ids} "
                f"here and into {anchor.token_ids} after the positive context, so the probabilities have no "
                "common length"
            )
        return scored.probabilities

    def is_right(self, text: str, frame: int = 0) -> bool:
        """Return True if a text answers the question in a frame."""
        return self._judged(text, frame).label == "correct"

    def is_written(self) -> bool:
        """Return True if the answer in the base frame begins with the first token that is scored there."""
        answer = self.answer(BASE)
        if answer.token_ids:
            # White space, or a decoder's own token, may stand before an answer.
            return self._scored(BASE).token_ids[0] in answer.token_ids[:2]
        # A server shows no tokens of what it writes: the first word stands for them.
        word = _FIRST_WORD.match(self.fact.object or "")
        return word is not None and answer.text.lstrip().startswith(word.group())

    def values(self, asked: Iterable[Scored | Generated]) -> tuple[float, ...]:
        """Return a kept fact's values, one for each of ``grid.columns``.

        ``asked`` are the responses that MONITOR itself needs.
        """
        grid, anchor = self.grid, self.probabilities(ANCHOR)
        ird, pfd, ablated = (
            formulas.pfd(anchor, list(map(self.probabilities, cells)))
            for cells in (grid.negatives, grid.frames, grid.ablated)
        )
        answers = {cell: self.answer(cell) for cell in (*grid.own, *grid.others)}
        return (
            *(1.0, pfd, ird, formulas.degree(pfd, ird), sum(anchor) / len(anchor)),
            float(self.is_written()),
            formulas.degree(ablated, ird),
            *_cost(asked),
            *(_cost(answers.values()) if grid.full else ()),
            # Not float(): this way all rows share two numbers.
            *(
                1.0 if self.is_right(answer.text, int(cell.split(":")[1])) else 0.0
                for cell, answer in answers.items()
            ),
            *self.format_values(),
        )

    def moved(self) -> MovedCells:
        """Return the primary anchor, and the frame and the wrong context that moved its probability most."""
        anchor = self.probabilities(ANCHOR)

        def farthest(cells: Sequence[str]) -> MovedCell:
            cell = max(
                cells,
                key=lambda cell: formulas.pfd(anchor, [self.probabilities(cell)]),
            )
            tokens = self.probabilities(cell)
            return MovedCell(
                # Interned: all facts of a run have the same few names.
                cell=sys.intern(cell),
                answer=self.answer(cell).text,
                probability=sum(tokens) / len(tokens),
            )

        return MovedCells(
            fact_id=self.fact.id,
            anchor=farthest([ANCHOR]),
            frame=farthest(self.grid.frames),
            context=farthest(self.grid.negatives),
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
        objects = {"fc_pos": fact.object or ""}
        objects |= {f"fc_neg{m}": name for m, name in enumerate(wrong, start=1)}
        for number, statement in enumerate(relation.statements):
            for role, name in objects.items():
                yield f"{role}:{number}", check(fill(statement, fact.subject, name))

    def format_asks(self) -> Iterator[Ask]:
        """Yield the asks of :meth:`format_prompts`."""
        for role, prompt in self.format_prompts():
            yield Ask(fact_id=self.fact.id, role=role, request=self.request(prompt))

    def request(self, prompt: str) -> GenerateRequest:
        """Return the request of a prompt as it stands."""
        request = request_of(self.case.settings, prompt)
        return replace(request, num_beams=self.beams)

    def format_answers(self) -> dict[str, Generated]:
        """Return the answers to :meth:`format_asks` by their roles, in their order."""
        roles = (role for role, _ in self.format_prompts())
        return {role: self.answers.generated(self.fact.id, role) for role in roles}

    def format_values(self) -> tuple[float, ...]:
        """Return the fact's shares (0..1) for ``grid.formats``.

        A reply that says neither true nor false is not right. A completion is right if it, or its first
        clause, is the gold object.
        """
        verdicts: dict[str, list[bool]] = {kind: [] for kind in self.grid.formats}
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


# Deleted from an answer of the published variant, wherever they stand, in this order.
_DELETED = (".</s>", ".\n", ".", ";", "!", ",", "?", "\n", "</s>", "<pad>")
# A step's token is "" where it ends a text; scripted models may spell it out.
_ENDS = ("", "</s>", "\n")
_CLOSING = ("", "</s>", ".")


class _PublishedFact(_Fact):
    """One fact as the authors' published script has it; its probabilities are those of what the model wrote.

    The script differs from the paper's definition in four ways: probabilities are those of free-running steps
    of a beam search, row 0 of its beams, and not teacher-forced; the anchor's tokens are those the model itself
    produced; facts whose answer after the positive context is not the gold object are dropped; and an answer is
    right when it equals the gold object, case and all, after some punctuation has been deleted from it. What is
    done otherwise than in the script: docs/published-baselines.md.
    """

    role = ""
    beams = 5

    def ask(self, cell: str, watch: tuple[int, ...] | None = ()) -> Ask:
        """Return the ask of a cell with the steps of its run, which ``watch`` tokens; ``None``: without."""
        request = self.request(prompt_in(self.case, self.fact, cell))
        if watch is not None:
            request = replace(request, steps=True, watch=watch)
        return Ask(fact_id=self.fact.id, role=cell, request=request)

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

    def steps(self, cell: str) -> tuple[Step, ...]:
        """Return the steps of a run that count: every run is trimmed by its own steps.

        A step is taken off the run's end where its last one is an end token or a full stop, and another where
        its last but one is a full stop. What remains ends before the first end token or newline behind its
        first step.
        """
        steps = self.answer(cell).steps
        tokens = [step.token for step in steps]
        length = len(tokens) - sum(token in _CLOSING for token in tokens[-1:])
        length -= tokens[-2:-1] == ["."]
        ends = (number for number in range(1, length) if tokens[number] in _ENDS)
        # Where nothing of the anchor remains, the script divides by 0.
        return steps[: next(ends, length) or cell == ANCHOR]

    def is_gold(self, cell: str) -> bool:
        """Return True if the answer in a cell is the gold object."""
        return self.is_right(self.answer(cell).text)

    def is_right(self, text: str, frame: int = 0) -> bool:
        """Return True if a text is the gold object, whatever the frame."""
        text = text.strip()
        for piece in _DELETED:
            text = text.replace(piece, "")
        return text == self.fact.object

    def is_written(self) -> bool:
        """Return True: what is scored is what the model wrote."""
        return True

    def probabilities(self, cell: str) -> Sequence[float]:
        """Return the probabilities of the anchor's tokens in a cell."""
        anchor = [step.probability for step in self.steps(ANCHOR)]
        if cell == ANCHOR:
            return anchor
        watched = [step.watched or 0.0 for step in self.steps(cell)]
        return formulas.pad(watched, len(anchor))

    def outcome(self, is_counted: bool = True) -> Outcome:
        """Return the fact's row; ``ResponseError`` where a response cannot be used."""
        case, fact, grid = self.case, self.fact, self.grid
        anchor, base = self.answer(ANCHOR), self.answer(BASE)
        values = (0.0,) * len(grid.columns)
        if is_counted:
            values = self.values(map(self.answer, grid.own))
        # A dropped fact is not asked in the other cells, so that these are compared by their texts.
        draws = [prompt_in(case, fact, cell) for cell in (*grid.own, *grid.others)]
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
