"""Edits and forgetting: what was taught, must stay, follows from it or is unlearned, fact by fact.

A fact is asked in all its wordings, and with it what it needs: questions that tell whether it counts as a test at
all. What is to be forgotten is asked by multiple choice too. Few-shot examples, judging and scores are those of
Head-to-Tail, each wording being a run of it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

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
)
from pytest_kbrel.probes.reliability import option_lists
from pytest_kbrel.records import (
    Ask,
    Case,
    EditsSettings,
    Fact,
    Outcome,
    Table,
)

COLUMNS = (
    *("right", "condition", "old", "missing", "rouge_l"),
    *("choices", "choices_unread", "may_know"),
)
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

    def named(ask: Ask, number: int) -> Ask:
        # A judge answers as it is.
        rounding = "" if ask.to else settings.rounding
        request = dataclasses.replace(ask.request, rounding=rounding)
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
    answers = Answers()
    answers.add(choices, (yield tuple(choices)))

    def outcome(fact: Fact, rows: Sequence[Outcome]) -> Outcome:
        picks = []
        for number, options in enumerate(offered.get(fact.id, ())):
            reply = answers.generated(fact.id, f"choice:{number}").text
            at = chosen_option(reply, options, question_of(case, fact))
            picks.append(None if at is None else options[at])
        return _outcome(case, fact, rows, picks)

    counts = {name: len(of) for name, of in asked.items()}
    rows, errors = joined(case.facts, results, counts, outcome)
    return ProbeResult(table=Table(columns=COLUMNS, rows=rows), errors=errors)


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


def _outcome(
    case: Case, fact: Fact, rows: Sequence[Outcome], picks: Sequence[str | None]
) -> Outcome:
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
        values=tuple(float(cells[name]) for name in COLUMNS),
        prompt_digest=joined_digest(digests, *draws),
        others=tuple(row.replies[0] for row in rows[1:count]),
    )
