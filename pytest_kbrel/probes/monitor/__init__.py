"""MONITOR: how far prompt framing and interfering contexts move the probability of a known answer.

Wang et al., "Assessing the Reliability of Large Language Model Knowledge", arXiv 2310.09820.

Every fact is asked in the same cells: the base frame after the gold object (the primary anchor), each frame
without context, and the base frame after each of M wrong objects (the foreign anchors of eq. 1 and 2).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from pytest_kbrel.errors import ResponseError
from pytest_kbrel.judges.rules import Judged
from pytest_kbrel.probes.base import (
    Answers,
    ProbeResult,
    ProbeRun,
    collect,
    digest_of,
    outcome_of,
    request_of,
    score_request,
    with_top_tokens,
)
from pytest_kbrel.probes.grading import judged_by_rules
from pytest_kbrel.probes.monitor import published
from pytest_kbrel.probes.monitor.cells import (
    ANCHOR,
    BASE,
    Cell,
    Grid,
    answer_text,
    format_answers,
    format_asks,
    format_values,
    grid_of,
    prompt_of,
    row_values,
)
from pytest_kbrel.probes.monitor.moved_cells import moved_cells
from pytest_kbrel.records import (
    Ask,
    Case,
    Fact,
    Generated,
    GenerateRequest,
    MonitorSettings,
    MovedCells,
    Outcome,
    Scored,
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
        return published.run(case, settings)
    return _run_definition(case, settings)


def _run_definition(case: Case, settings: MonitorSettings) -> ProbeRun:
    grid = grid_of(case)

    def request(prompt: str) -> GenerateRequest:
        return request_of(settings, prompt)

    def asks_about(fact: Fact) -> Iterator[Ask]:
        for cell in grid.cells:
            prompt = prompt_of(case, fact, cell)
            if cell in own:
                scored = score_request(settings, prompt, answer_text(fact))
                yield Ask(fact_id=fact.id, role=f"{cell.name}/score", request=scored)
            answer = (
                with_top_tokens(case, request(prompt))
                if cell == BASE
                else request(prompt)
            )
            yield Ask(fact_id=fact.id, role=f"{cell.name}/answer", request=answer)
        yield from format_asks(case, fact, grid, request)

    own = frozenset(grid.own)
    asks = tuple(ask for fact in case.facts for ask in asks_about(fact))
    answers = Answers()
    answers.add(asks, (yield asks))
    facts = {fact.id: _FactResult(case, fact, grid, answers) for fact in case.facts}
    rows, errors = collect(case.facts, lambda fact: facts[fact.id].outcome())
    table = Table(columns=grid.columns, rows=rows)
    return ProbeResult(
        table=table,
        errors=errors,
        moved=tuple(facts[row.fact_id].moved() for row in rows),
    )


class _FactResult:
    """One fact with the responses about it."""

    def __init__(self, case: Case, fact: Fact, grid: Grid, answers: Answers) -> None:
        self._case, self._fact, self._grid, self._answers = case, fact, grid, answers
        self._scored: dict[Cell, Scored] = {}
        self._verdicts: dict[tuple[str, int], Judged] = {}

    def outcome(self) -> Outcome:
        """Return the fact's row; ``ResponseError`` where a response cannot be used."""
        case, fact, grid, answers = self._case, self._fact, self._grid, self._answers
        self._scored = {
            cell: answers.scored(fact.id, f"{cell.name}/score") for cell in grid.own
        }
        scored = list(self._scored.values())
        generated = {
            cell: answers.generated(fact.id, f"{cell.name}/answer")
            for cell in grid.cells
        }
        judged = {
            cell: self._judged(answer.text, cell) for cell, answer in generated.items()
        }
        values = row_values(
            grid,
            foreign=self._probabilities,
            right=lambda cell: judged[cell].label == "correct",
            asked=scored,
            study=generated.values(),
            formats=format_values(case, fact, grid, answers, self._is_right),
            written=self._is_written(generated[BASE]),
        )
        # Only what is asked beyond MONITOR's own cells: runs without must stay comparable with older ones.
        others = [generated[cell] for cell in grid.others]
        formats = format_answers(case, fact, grid, answers)
        digest = digest_of(case, fact, [*scored, *others, *formats])
        return outcome_of(case, fact, generated[BASE], judged[BASE], values, digest)

    def moved(self) -> MovedCells:
        """Return where the fact's probability moved most, once it has its outcome."""

        def answer(cell: Cell) -> str:
            return self._answers.generated(self._fact.id, f"{cell.name}/answer").text

        return moved_cells(self._fact, self._grid, self._probabilities, answer)

    def _is_written(self, answer: Generated) -> bool:
        """Return True if an answer of the base frame begins with the token that is scored there."""
        if answer.token_ids:
            # White space, or a decoder's own token, may stand before an answer.
            return self._scored[BASE].token_ids[0] in answer.token_ids[:2]
        # A server shows no tokens of what it writes: the first word stands for them.
        word = _FIRST_WORD.match(self._fact.object or "")
        return word is not None and answer.text.lstrip().startswith(word.group())

    def _probabilities(self, cell: Cell) -> tuple[float, ...]:
        anchor, scored = self._scored[ANCHOR], self._scored[cell]
        counts = {len(one.probabilities) for one in (anchor, scored)}
        if scored.token_ids != anchor.token_ids or len(counts) > 1:
            raise ResponseError(
                f"{self._fact.id} ({cell.name}): {self._fact.object!r} is tokenised into {scored.token_ids} "
                f"here and into {anchor.token_ids} after the positive context, so the probabilities have no "
                "common length"
            )
        return scored.probabilities

    def _judged(self, text: str, cell: Cell) -> Judged:
        # Behind several contexts a model often answers the same, to the same question.
        key = text, cell.frame
        if key not in self._verdicts:
            self._verdicts[key] = judged_by_rules(self._case, self._fact, *key)
        return self._verdicts[key]

    def _is_right(self, text: str) -> bool:
        return self._judged(text, BASE).label == "correct"
