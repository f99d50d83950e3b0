"""Edits and forgetting: what was taught, must stay, follows from it or is unlearned, fact by fact.

A fact is asked in all its wordings, and with it what it needs: questions that tell whether it counts as a test at
all. What is to be forgotten is asked by multiple choice too. Few-shot examples, judging and scores are those of
Head-to-Tail, each wording being a run of it.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from itertools import chain
from statistics import fmean

from pytest_kbrel.judges.replies import chosen_option
from pytest_kbrel.probes import head_to_tail
from pytest_kbrel.probes.base import (
    Answers,
    ProbeResult,
    ProbeRun,
    choice_request,
    draws_for,
    in_step,
    in_wording,
    joined,
    joined_digest,
    judged_by_rules,
    question_of,
    score_request,
)
from pytest_kbrel.probes.reliability import option_lists
from pytest_kbrel.records import (
    Ask,
    Case,
    EditsSettings,
    Fact,
    GenerateRequest,
    Outcome,
    Scored,
    Table,
)

COLUMNS = (
    *("right", "condition", "old", "missing", "rouge_l"),
    *("choices", "choices_unread", "may_know"),
)
# Also with the authors' scores.
SCORES = ("compared", "preferred", "rewordings", "reworded", "ratio")
# The log-probability of what has none in float32.
_LEAST = -104.0
# By chance one in four options is picked, and so three of four times by one model in twenty.
_KNOWN = 0.75


def run(case: Case) -> ProbeRun:
    """Ask each fact in all its wordings, with what it needs and its multiple-choice questions.

    ``right`` is that a fact is as its role wants it; ``condition`` what must be so in the baseline for the fact
    to count: what is to stay right, what the needs of one that follows are right, what is to be forgotten
    known. ``old`` is that the first answer is the old object, ``may_know`` that the fact would be known if all
    replies that pick no option picked it.
    """
    # What was right once is as wrong as any other answer.
    case = dataclasses.replace(case, dated=False)
    settings = case.settings
    assert isinstance(settings, EditsSettings)
    asked = {fact.id: _questions(case, fact) for fact in case.facts}
    written: dict[tuple[str, int], GenerateRequest] = {}

    def named(ask: Ask, number: int) -> Ask:
        # A judge answers as it is.
        rounding = "" if ask.to else settings.rounding
        request = dataclasses.replace(ask.request, rounding=rounding)
        if ask.role == "answer" and isinstance(request, GenerateRequest):
            written[ask.fact_id, number] = request
        return in_wording(dataclasses.replace(ask, request=request), number)

    runs = [
        head_to_tail.run(
            dataclasses.replace(
                case, facts=tuple(of[number] for of in asked.values() if of[number:])
            )
        )
        for number in range(max(map(len, asked.values())))
    ]
    results = yield from in_step(runs, named)
    offered = {
        fact.id: option_lists(
            fact,
            fact.object or "",
            fact.negatives,
            settings.choices,
            draws_for(case, fact),
        )
        for fact in case.facts
        if fact.role == "forget"
    }
    choices = []
    for fact in case.facts:
        for number, options in enumerate(offered.get(fact.id, ())):
            request = choice_request(settings, question_of(case, fact), options)
            ask = Ask(fact_id=fact.id, role=f"choice:{number}", request=request)
            choices.append(named(ask, 0))
    scores = {
        fact.id: _scores(fact, len(asked[fact.id]) - len(fact.needs), written)
        for fact in case.facts
        if settings.scores == "authors" and (fact.old or fact.negatives)
    }
    further = [*choices, *chain(*chain(*scores.values()))]
    answers = Answers()
    answers.add(further, (yield tuple(further)))

    def outcome(fact: Fact, rows: Sequence[Outcome]) -> Outcome:
        picks = []
        for number, options in enumerate(offered.get(fact.id, ())):
            reply = answers.generated(fact.id, f"choice:{number}").text
            at = chosen_option(reply, options, question_of(case, fact))
            picks.append(None if at is None else options[at])
        logs = [
            [_mean_log(answers.get(fact.id, ask.role, Scored)) for ask in of]
            for of in scores.get(fact.id, ())
        ]
        return _outcome(case, fact, rows, picks, _compared(fact.role, logs))

    counts = {name: len(of) for name, of in asked.items()}
    rows, errors = joined(case.facts, results, counts, outcome)
    table = Table(columns=_columns(settings), rows=rows)
    return ProbeResult(table=table, errors=errors)


def _columns(settings: EditsSettings) -> tuple[str, ...]:
    return COLUMNS + (SCORES if settings.scores == "authors" else ())


def _questions(case: Case, fact: Fact) -> list[Fact]:
    """Return a fact for each question to ask: its wordings, then its needs."""
    first = question_of(case, fact)
    wordings = dict.fromkeys((first, *fact.wordings))
    asked = [dataclasses.replace(fact, question=text) for text in wordings]
    asked += (
        # Its answers are of another kind than the fact's.
        dataclasses.replace(
            fact,
            question=question,
            object=right[0],
            aliases=right[1:],
            answer_type="",
            answer_range=None,
            former=(),
        )
        for question, right in fact.needs
    )
    return asked


def _scores(
    fact: Fact, count: int, written: Mapping[tuple[str, int], GenerateRequest]
) -> list[list[Ask]]:
    """Return what scores the right answer, and each wrong one, in each of ``count`` wordings."""
    texts = (fact.object or "", *filter(None, [fact.old]), *fact.negatives)
    return [
        [
            in_wording(Ask(fact_id=fact.id, role=f"score:{at}", request=request), of)
            for at, text in enumerate(texts)
            for request in [score_request(written[fact.id, of], text)]
        ]
        for of in range(count)
    ]


def _mean_log(scored: Scored) -> float:
    return fmean(math.log(p) if p else _LEAST for p in scored.probabilities)


def _compared(role: str, logs: Sequence[Sequence[float]]) -> dict[str, float]:
    """Return the authors' scores by column, from mean log-probabilities, the right answer's first.

    ROME (Meng et al., arXiv 2202.05262), section 3.3; TOFU (Maini et al., arXiv 2401.06121), section 2.2.2, as
    their code computes them.
    """
    if not logs:
        return dict.fromkeys(SCORES, 0.0)
    first, *others = [right > max(wrong) for right, *wrong in logs]
    right, *wrong = logs[0]
    ratio = fmean(math.exp(one - right) for one in wrong)
    return {
        "compared": 1,
        "preferred": first,
        "rewordings": len(others),
        "reworded": sum(others),
        "ratio": min(ratio, 1 / ratio) if role == "forget" else max(0, 1 - ratio),
    }


def _outcome(
    case: Case,
    fact: Fact,
    rows: Sequence[Outcome],
    picks: Sequence[str | None],
    scores: Mapping[str, float],
) -> Outcome:
    settings = case.settings
    assert isinstance(settings, EditsSettings)
    values = [dict(zip(head_to_tail.COLUMNS, row.values, strict=True)) for row in rows]
    right = [bool(of["correct"]) for of in values]
    count, first = len(rows) - len(fact.needs), rows[0]
    is_right = (any if fact.any_wording else all)(right[:count])
    condition = all(right[count:])
    picked, unread = picks.count(fact.object), picks.count(None)
    if fact.role == "forget":
        condition = picked >= _KNOWN * len(picks) or any(right[:count])
        is_right = not condition
    elif fact.role == "keep":
        condition = condition and is_right
    old = dataclasses.replace(fact, object=fact.old or None, aliases=())
    of_old = judged_by_rules(case, old, first.answer)
    cells = {
        **values[0],
        **scores,
        "right": is_right,
        "condition": condition,
        "old": of_old.label == "correct" and not right[0],
        "choices": len(picks),
        "choices_unread": unread,
        "may_know": picked + unread >= _KNOWN * len(picks),
    }
    digests = [row.prompt_digest for row in rows]
    # The accepted answers are those of the fact, without those of what it needs.
    draws = case.seed, fact.negatives, fact.old, fact.needs, fact.any_wording
    return dataclasses.replace(
        first,
        values=tuple(float(cells[name]) for name in _columns(settings)),
        prompt_digest=joined_digest(digests, *draws),
        others=tuple(row.replies[0] for row in rows[1:count]),
    )
