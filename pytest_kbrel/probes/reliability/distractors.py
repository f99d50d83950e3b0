"""The options of multiple-choice questions: the answer, three distractors and "unsure".

Distractors are those of the fact, or a model writes them (Reliable KB, section 2.2 and Table 8).
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Generator, Mapping, Sequence

from pytest_kbrel.errors import ResponseError
from pytest_kbrel.judges.abstention import uninformative_kind
from pytest_kbrel.metrics.reliability import OPTIONS
from pytest_kbrel.metrics.text import normalise
from pytest_kbrel.probes.base import Answers, question_of
from pytest_kbrel.probes.prompts import UNSURE, wrong_answers
from pytest_kbrel.records import (
    Ask,
    Case,
    Fact,
    GenerateRequest,
    ReliabilitySettings,
    Response,
    record,
)

DISTRACTORS_SHOWN = OPTIONS - 2
ROLE = "distractors"
# Enough for a name of some words.
_TOKENS_EACH = 16
_LONGEST = 200
_BULLET = re.compile(
    r"^\s*(?:\(?\d{1,3}[.):]+|\(?[A-Za-z]\)|[-*•–])\s+|^\s*\d{1,3}[.):]+(?=[^\s\d])"
)
_QUOTES = "\"'“”‘’«»„`"


@record
class Distractors:
    """The wrong ``options`` of each fact, by fact id; ``failures`` say why some facts have none.

    ``written`` counts those of a fact that a model wrote.
    """

    options: Mapping[str, tuple[str, ...]]
    failures: dict[str, ResponseError]
    written: Mapping[str, int]


Writing = Generator[tuple[Ask, ...], tuple[Response, ...], Distractors]


def distractors_for(case: Case, answers: Mapping[str, str]) -> Writing:
    """Return the distractors of each fact in ``answers`` (fact id to answer).

    Where the settings name a model, it writes them in one round of asks. What it writes is filled up from the
    facts' own.
    """
    settings = case.settings
    assert isinstance(settings, ReliabilitySettings)
    facts = [fact for fact in case.facts if fact.id in answers]
    if settings.distractors_from == "facts" or not facts:
        return Distractors(
            options={fact.id: fact.negatives for fact in facts}, failures={}, written={}
        )
    asks = tuple(_ask(case, fact, answers[fact.id], settings) for fact in facts)
    replies = Answers()
    replies.add(asks, (yield asks))
    options: dict[str, tuple[str, ...]] = {}
    failures: dict[str, ResponseError] = {}
    counts: dict[str, int] = {}
    for fact in facts:
        try:
            reply = replies.generated(fact.id, ROLE)
            # Where the writer was cut short, its last line is half a name.
            text = (
                reply.text if reply.finish == "stop" else reply.text.rpartition("\n")[0]
            )
            written = read_distractors(text, answers[fact.id], fact.language)
        except ResponseError as error:
            failures[fact.id] = error
            continue
        spellings = {normalise(text) for text in written}
        own = [wrong for wrong in fact.negatives if normalise(wrong) not in spellings]
        options[fact.id] = (*written, *own)[: settings.distractors]
        counts[fact.id] = min(len(written), settings.distractors)
    return Distractors(options=options, failures=failures, written=counts)


def read_distractors(reply: str, answer: str, language: str = "") -> tuple[str, ...]:
    """Return the wrong answers of a reply, one a line, without numbers, bullets, quotes and repetitions.

    What equals ``answer``, announces a list or says nothing is left out, and what is much longer
    than an option.
    As in the paper only the answer itself is left out: a distractor may be right where the answer is not.
    """
    options: dict[str, str] = {}
    for line in reply.splitlines():
        text = _BULLET.sub("", line).strip().strip(_QUOTES).strip()
        # A model that goes on by itself begins with the next question.
        if text.startswith("Question:"):
            break
        key = normalise(text)
        # "Here are three:" and "I'm sorry, I can't" are no options.
        if text.endswith(":") or uninformative_kind(text, language=language):
            continue
        if key and key not in (normalise(answer), UNSURE) and len(text) <= _LONGEST:
            options.setdefault(key, text)
    return tuple(options.values())


def option_lists(
    fact: Fact,
    answer: str,
    distractors: Sequence[str],
    questions: int,
    draws: random.Random,
) -> list[list[str]]:
    """Make ``questions`` lists of five: the answer and three distractors shuffled, then "unsure".

    Raises :class:`ResponseError` when fewer than three distractors differ from the answer.
    """
    # What is empty once normalised could not be told from any other option of that kind.
    usable = [
        wrong
        for wrong in distractors
        if normalise(wrong) not in ("", normalise(answer))
    ]
    if len(usable) < DISTRACTORS_SHOWN:
        raise ResponseError(
            f"{fact.id} (answer): {DISTRACTORS_SHOWN} distractors needed, "
            f"{len(usable)} differ from {answer!r}"
        )
    lists: list[list[str]] = []
    seen: set[frozenset[str]] = set()
    while len(lists) < questions:
        drawn = frozenset(draws.sample(usable, DISTRACTORS_SHOWN))
        # No set of distractors comes twice while there are others left.
        if drawn in seen and len(seen) < math.comb(len(usable), DISTRACTORS_SHOWN):
            continue
        seen.add(drawn)
        options = [answer, *sorted(drawn)]
        draws.shuffle(options)
        lists.append([*options, UNSURE])
    return lists


def length_ratio(fact: Fact) -> float:
    """Return how alike in length a fact's answer and its distractors are, 0..1: 1 where all are equally long.

    It is the mean over the distractors of the smaller number of characters divided by the larger one; 0
    without an answer or distractors.
    """
    if fact.object is None or not fact.negatives:
        return 0.0
    size = len(fact.object)
    return sum(
        min(size, len(wrong)) / max(size, len(wrong)) for wrong in fact.negatives
    ) / len(fact.negatives)


def _ask(case: Case, fact: Fact, answer: str, settings: ReliabilitySettings) -> Ask:
    count = settings.distractors
    return Ask(
        fact_id=fact.id,
        role=ROLE,
        to=settings.distractors_from,
        request=GenerateRequest(
            prompt=wrong_answers(question_of(case, fact), answer, count),
            max_new_tokens=count * _TOKENS_EACH,
            stop=("\nQuestion:",),
        ),
    )
