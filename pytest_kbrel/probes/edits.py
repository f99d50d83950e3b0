"""Edits and forgetting: what was taught, must stay, follows from it or is unlearned, fact by fact.

A fact is asked in all its wordings, and with it what it needs: questions that tell whether it counts as a test at
all. What is to be forgotten is asked by multiple choice too. Few-shot examples, judging and scores are those of
Head-to-Tail, each wording being a run of it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from pytest_kbrel.errors import ResponseError
from pytest_kbrel.judges.replies import chosen_option
from pytest_kbrel.probes import head_to_tail
from pytest_kbrel.probes.base import (
    Answers,
    ProbeResult,
    ProbeRun,
    choice_request,
    collect,
    digest_of,
    draws_for,
    in_step,
    in_wording,
    joined_digest,
    judged_by_rules,
    question_of,
)
from pytest_kbrel.probes.reliability import DISTRACTORS_SHOWN, option_lists
from pytest_kbrel.records import (
    Ask,
    Case,
    EditsSettings,
    Fact,
    Generated,
    Outcome,
    Table,
    read_digest,
    short_digest,
)

COLUMNS = (
    *("right", "condition", "first", "old", "missing", "rouge_l"),
    *("choices", "choices_unread"),
)
# By chance one in four options is picked, and so three of four times by one model in twenty.
_KNOWN = 0.75


def run(case: Case) -> ProbeRun:
    """Ask each fact in all its wordings, with what it needs and its multiple-choice questions.

    ``right`` is that a fact is as its role wants it; ``condition`` what must be so in the baseline for the fact
    to count: what is to stay right, what the needs of one that follows are right, what is to be forgotten
    known. ``first`` is the first wording right, ``old`` answered with the old object.
    """
    settings = _settings(case)
    asked = {fact.id: _questions(case, fact) for fact in case.facts}

    def named(ask: Ask, number: int) -> Ask:
        if ask.to:
            return in_wording(ask, number)
        request = dataclasses.replace(ask.request, rounding=settings.rounding)
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
    options = {fact.id: _options(case, fact) for fact in case.facts}
    choices = tuple(
        named(
            Ask(
                fact_id=fact.id,
                role=f"choice:{number}",
                request=choice_request(settings, question_of(case, fact), offered),
            ),
            0,
        )
        for fact in case.facts
        for number, offered in enumerate(options[fact.id])
    )
    answers = Answers()
    if choices:
        answers.add(choices, (yield choices))
    tables = [{row.fact_id: row for row in of.table.rows} for of in results]
    failures = [error for result in results for error in result.errors]

    def outcome(fact: Fact) -> Outcome:
        rows = [table[fact.id] for table in tables if fact.id in table]
        if len(rows) < len(asked[fact.id]):
            own = [error for error in failures if error.startswith(f"{fact.id} (")]
            raise ResponseError(own[0])
        replies = [
            answers.generated(fact.id, f"choice:{number}")
            for number in range(len(options[fact.id]))
        ]
        return _outcome(case, fact, rows, replies, options[fact.id])

    rows, errors = collect(case.facts, outcome)
    return ProbeResult(table=Table(columns=COLUMNS, rows=rows), errors=errors)


def _questions(case: Case, fact: Fact) -> list[Fact]:
    """Return a fact for each question to ask: its wordings, then its needs."""
    first = question_of(case, fact)
    wordings = dict.fromkeys((first, *fact.wordings))
    asked = [dataclasses.replace(fact, question=text) for text in wordings]
    for question, (answer, *others) in fact.needs:
        need = Fact(
            id=fact.id,
            relation=fact.relation,
            subject=fact.subject,
            question=question,
            object=answer,
            aliases=tuple(others),
            language=fact.language,
        )
        asked.append(need)
    return asked


def _options(case: Case, fact: Fact) -> list[list[str]]:
    """Return the options of each multiple-choice question; none where there are too few wrong answers."""
    if fact.role != "forget" or len(fact.negatives) < DISTRACTORS_SHOWN:
        return []
    count, draws = _settings(case).choices, draws_for(case, fact)
    return option_lists(fact, fact.object or "", fact.negatives, count, draws)


def _settings(case: Case) -> EditsSettings:
    assert isinstance(case.settings, EditsSettings)
    return case.settings


def _outcome(
    case: Case,
    fact: Fact,
    rows: Sequence[Outcome],
    replies: Sequence[Generated],
    lists: Sequence[Sequence[str]],
) -> Outcome:
    values = [dict(zip(head_to_tail.COLUMNS, row.values, strict=True)) for row in rows]
    count = len(rows) - len(fact.needs)
    right = [bool(of["correct"]) for of in values]
    question, first = question_of(case, fact), rows[0]
    picks = [
        None if at is None else options[at]
        for reply, options in zip(replies, lists, strict=True)
        for at in [chosen_option(reply.text, options, question)]
    ]
    is_right = (any if fact.any_wording else all)(right[:count])
    condition = all(right[count:])
    if fact.role == "forget":
        is_picked = bool(picks) and picks.count(fact.object) >= _KNOWN * len(picks)
        condition = is_picked or any(right[:count])
        is_right = not condition
    elif fact.role == "keep":
        condition = condition and is_right
    old = dataclasses.replace(fact, object=fact.old, aliases=(), answer_range=None)
    is_old = bool(fact.old) and not right[0]
    if is_old:
        is_old = judged_by_rules(case, old, first.answer).label == "correct"
    cells = {
        "right": is_right,
        "condition": condition,
        "first": right[0],
        "old": is_old,
        "missing": values[0]["missing"],
        "rouge_l": values[0]["rouge_l"],
        "choices": len(picks),
        "choices_unread": picks.count(None),
    }
    digests = [row.prompt_digest for row in rows]
    if replies:
        digests.append(digest_of(case, fact, replies))
    digest = read_digest(joined_digest(digests))
    assert digest is not None
    needed = [[question, *answers] for question, answers in fact.needs]
    draws = short_digest([case.seed, fact.negatives, fact.old, needed])
    return dataclasses.replace(
        first,
        values=tuple(float(cells[name]) for name in COLUMNS),
        prompt_digest=str(dataclasses.replace(digest, draws=draws)),
        others=tuple(row.replies[0] for row in rows[1:count]),
    )
