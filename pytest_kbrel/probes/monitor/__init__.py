"""MONITOR: how far prompt framing and interfering contexts move the probability of a known answer.

Wang et al., "Assessing the Reliability of Large Language Model Knowledge", arXiv 2310.09820.

Every fact is asked in the same cells: the base frame after the gold object (the primary anchor), each frame
without context, and the base frame after each of M wrong objects (the foreign anchors of eq. 1 and 2).
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator

from pytest_kbrel.errors import ResponseError
from pytest_kbrel.probes.base import (
    Answers,
    ProbeResult,
    ProbeRun,
    collect,
    digest_of,
    outcome_of,
    with_top_tokens,
)
from pytest_kbrel.probes.grading import judged_by_rules
from pytest_kbrel.probes.monitor import published
from pytest_kbrel.probes.monitor.cells import (
    ANCHOR,
    BASE,
    Cell,
    FactResult,
    Grid,
    answer_text,
    grid_of,
    request_in,
)
from pytest_kbrel.records import (
    Ask,
    Case,
    Fact,
    MonitorSettings,
    Outcome,
    Scored,
    ScoreRequest,
    Table,
)

_FIRST_WORD = re.compile(r"\W*\w+")


def run(case: Case) -> ProbeRun:
    """Run the variant the settings name; columns as in :attr:`cells.Grid.columns`.

    ``definition``: teacher-forced probabilities of the gold object's tokens, every fact counts, an answer is
    right by the judge's rules. ``published``: :mod:`pytest_kbrel.probes.monitor.published`.
    """
    settings = case.settings
    assert isinstance(settings, MonitorSettings)
    if settings.variant == "published":
        return published.run(case)
    return _run_definition(case)


def _run_definition(case: Case) -> ProbeRun:
    grid, answers = grid_of(case), Answers()
    facts = {fact.id: _FactResult(case, fact, grid, answers) for fact in case.facts}
    asks = tuple(ask for of in facts.values() for ask in of.asks())
    answers.add(asks, (yield asks))
    rows, errors = collect(case.facts, lambda fact: facts[fact.id].outcome())
    return ProbeResult(
        table=Table(columns=grid.columns, rows=rows),
        errors=errors,
        moved=tuple(facts[row.fact_id].moved() for row in rows),
    )


class _FactResult(FactResult):
    """One fact with the responses about it; its probabilities are those of the gold object."""

    role = "/answer"

    def __init__(self, case: Case, fact: Fact, grid: Grid, answers: Answers) -> None:
        super().__init__(case, fact, grid, answers)
        # Behind several contexts a model often answers the same, to the same question.
        self._judged = functools.cache(functools.partial(judged_by_rules, case, fact))

    def asks(self) -> Iterator[Ask]:
        """Yield the asks about the fact in all cells and formats."""
        case, fact = self.case, self.fact
        for number, cell in enumerate(self.grid.cells):
            answer = request_in(case, fact, cell)
            if number < len(self.grid.own):
                scored = ScoreRequest(
                    prompt=answer.prompt,
                    continuation=answer_text(fact),
                    system=answer.system,
                    lead=answer.lead,
                )
                yield Ask(fact_id=fact.id, role=f"{cell.name}/score", request=scored)
            if cell == BASE:
                answer = with_top_tokens(case, answer)
            yield Ask(fact_id=fact.id, role=cell.name + self.role, request=answer)
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

    def _scored(self, cell: Cell) -> Scored:
        return self.answers.get(self.fact.id, f"{cell.name}/score", Scored)

    def is_written(self) -> bool:
        """Return True if an answer of the base frame begins with the token that is scored there."""
        answer = self.answer(BASE)
        if answer.token_ids:
            # White space, or a decoder's own token, may stand before an answer.
            return self._scored(BASE).token_ids[0] in answer.token_ids[:2]
        # A server shows no tokens of what it writes: the first word stands for them.
        word = _FIRST_WORD.match(self.fact.object or "")
        return word is not None and answer.text.lstrip().startswith(word.group())

    def probabilities(self, cell: Cell) -> tuple[float, ...]:
        """Return the probabilities of the gold object's tokens in a cell."""
        anchor, scored = self._scored(ANCHOR), self._scored(cell)
        counts = {len(one.probabilities) for one in (anchor, scored)}
        if scored.token_ids != anchor.token_ids or len(counts) > 1:
            raise ResponseError(
                f"{self.fact.id} ({cell.name}): {self.fact.object!r} is tokenised into {scored.token_ids} "
                f"here and into {anchor.token_ids} after the positive context, so the probabilities have no "
                "common length"
            )
        return scored.probabilities

    def is_right(self, text: str, frame: int = 0) -> bool:
        """Return True if a text answers the question in a frame by the judge's rules."""
        return self._judged(text, frame).label == "correct"
