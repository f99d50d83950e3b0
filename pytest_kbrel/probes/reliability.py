"""Reliable KB: factuality and consistency on seen and unseen knowledge.

Zheng, Lapata and Pan, "How Reliable are LLMs as Knowledge Bases?", arXiv 2407.13578.
"""

from __future__ import annotations

import random

from pytest_kbrel.errors import ResponseError
from pytest_kbrel.judges.rules import chosen_option, label
from pytest_kbrel.metrics.text import normalise
from pytest_kbrel.probes.base import (
    Answers,
    ProbeResult,
    ProbeRun,
    collect,
    digest_of,
    draws_for,
    question_of,
)
from pytest_kbrel.probes.prompts import UNSURE, choice, qa
from pytest_kbrel.records import Ask, Case, Fact, GenerateRequest, Outcome, ReliabilitySettings, Table

COLUMNS = ("correct", "wrong", "uninformative", "consistency_correct", "consistency_wrong")
DISTRACTORS_SHOWN = 3


def run(case: Case) -> ProbeRun:
    """Ask each question, then K multiple-choice questions about each informative answer (section 3.3).

    The consistency of an answer is the share of the K questions in which the model picks it again.
    """
    settings = case.settings
    assert isinstance(settings, ReliabilitySettings)
    first = tuple(
        Ask(
            fact_id=fact.id,
            role="answer",
            request=GenerateRequest(
                prompt=qa(question_of(case, fact)), max_new_tokens=settings.max_new_tokens
            ),
        )
        for fact in case.facts
    )
    answers = Answers()
    answers.add(first, (yield first))
    offered: dict[str, list[list[str]]] = {}
    unusable: dict[str, str] = {}
    for fact in case.facts:
        try:
            said = answers.generated(fact.id, "answer").text
            if label(said, fact.accepted, question_of(case, fact)) != "uninformative":
                offered[fact.id] = _option_lists(said, fact, settings.choices, draws_for(case, fact))
        except ResponseError as error:
            unusable[fact.id] = str(error)
    second = tuple(
        Ask(
            fact_id=fact.id,
            role=f"choice:{number}",
            request=GenerateRequest(
                prompt=choice(question_of(case, fact), options), max_new_tokens=settings.max_new_tokens
            ),
        )
        for fact in case.facts
        for number, options in enumerate(offered.get(fact.id, ()))
    )
    answers.add(second, (yield second))
    rows, errors = collect(
        [fact for fact in case.facts if fact.id not in unusable],
        lambda fact: _outcome(case, fact, answers, offered.get(fact.id, [])),
    )
    return ProbeResult(table=Table(columns=COLUMNS, rows=rows), errors=(*unusable.values(), *errors))


def _option_lists(said: str, fact: Fact, questions: int, draws: random.Random) -> list[list[str]]:
    """Make ``questions`` lists of five: the answer and three distractors shuffled, then "unsure"."""
    usable = [wrong for wrong in fact.negatives if normalise(wrong) != normalise(said)]
    if len(usable) < DISTRACTORS_SHOWN:
        raise ResponseError(
            f"{fact.id} (answer): {DISTRACTORS_SHOWN} distractors needed, {len(usable)} differ from {said!r}"
        )
    lists: list[list[str]] = []
    seen: set[frozenset[str]] = set()
    while len(lists) < questions:
        drawn = frozenset(draws.sample(usable, DISTRACTORS_SHOWN))
        # No set of distractors comes twice while there are others left.
        if drawn in seen and len(seen) < _combinations(len(usable)):
            continue
        seen.add(drawn)
        options = [said, *sorted(drawn)]
        draws.shuffle(options)
        lists.append([*options, UNSURE])
    return lists


def _combinations(n: int) -> int:
    return n * (n - 1) * (n - 2) // 6


def _outcome(case: Case, fact: Fact, answers: Answers, offered: list[list[str]]) -> Outcome:
    response = answers.generated(fact.id, "answer")
    question = question_of(case, fact)
    verdict = label(response.text, fact.accepted, question)
    again = 0
    for number, options in enumerate(offered):
        reply = answers.generated(fact.id, f"choice:{number}").text
        picked = chosen_option(reply, options)
        again += picked is not None and normalise(options[picked]) == normalise(response.text)
    consistency = again / len(offered) if offered else 0.0
    correct, wrong = float(verdict == "correct"), float(verdict == "wrong")
    return Outcome(
        fact_id=fact.id,
        question=question,
        expected=fact.object or "",
        answer=response.text,
        label=verdict,
        values=(correct, wrong, 1.0 - correct - wrong, correct * consistency, wrong * consistency),
        # The options hold the answer, so that their texts cannot be compared: what they are drawn from is.
        prompt_digest=digest_of(case, fact, [response], draws=(str(case.seed), *fact.negatives)),
        truncated=response.finish == "length",
    )
