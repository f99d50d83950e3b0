"""The worked examples in front of a question: those most like it that give nothing away.

Reliable KB, section 3.4: four of the answered examples, or two of them and two of the unanswerable ones, each
time the nearest to the question.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence

from pytest_kbrel.errors import SuiteError
from pytest_kbrel.metrics.text import normalise
from pytest_kbrel.probes.base import question_of
from pytest_kbrel.probes.prompts import UNSURE
from pytest_kbrel.records import Case, Fact, ReliabilitySettings, Shot

# ``similar(questions, examples)``: one row a question, one number an example, the higher the more alike.
Similar = Callable[[Sequence[str], Sequence[str]], Iterable[Sequence[float]]]
# What an encoder computes differs in the last digits with the texts beside it.
_DIGITS = 5


def with_shots(case: Case, similar: Similar) -> Case:
    """Return the case with its examples chosen for each fact; zero-shot cases come back as they are.

    They are chosen from ``case.repository``: answered ones first, each kind from the nearest to the farthest;
    equally near ones in the order of their texts. Raises ``SuiteError`` where too few examples are left for a
    fact when those that give its answer away are taken out.
    """
    settings = case.settings
    if not isinstance(settings, ReliabilitySettings) or not sum(settings.shown):
        return case
    # In one order, whatever the repository's.
    shots = sorted(case.repository, key=lambda shot: (shot.question, shot.answer or ""))
    texts = [(f" {normalise(s.question)} ", f" {normalise(s.answer or '')} ") for s in shots]
    subjects = [normalise(shot.subject) for shot in shots]
    questions = [question_of(case, fact) for fact in case.facts]
    rows = similar(questions, [shot.question for shot in shots])
    chosen = []
    for fact, question, row in zip(case.facts, questions, rows, strict=True):
        ranked = sorted(range(len(shots)), key=lambda place: (-round(float(row[place]), _DIGITS), place))
        names = _Names(fact, question)
        usable = [place for place in ranked if not names.given_away(*texts[place], subjects[place])]
        chosen.append((fact.id, _nearest(case, fact, [shots[place] for place in usable], settings)))
    return dataclasses.replace(case, shots=tuple(chosen))


def shots_of(case: Case, fact: Fact) -> tuple[tuple[str, str], ...]:
    """Return the (question, answer) examples of a fact, "unsure" where there is no answer.

    Raises ``SuiteError`` when the case asks with examples and has none for the fact.
    """
    assert isinstance(case.settings, ReliabilitySettings)
    shots: tuple[Shot, ...] = next((found for name, found in case.shots if name == fact.id), ())
    if len(shots) != sum(case.settings.shown):
        raise SuiteError(
            f"{case.id}: prompt {case.settings.prompt!r} shows {sum(case.settings.shown)} examples, found "
            f"{len(shots)} for {fact.id!r}; allowed: that many in the case's shots"
        )
    return tuple((shot.question, UNSURE if shot.answer is None else shot.answer) for shot in shots)


def _nearest(
    case: Case, fact: Fact, ranked: Sequence[Shot], settings: ReliabilitySettings
) -> tuple[Shot, ...]:
    answered = [shot for shot in ranked if shot.answer is not None]
    unanswerable = [shot for shot in ranked if shot.answer is None]
    found: list[Shot] = []
    for pool, count, sort in zip((answered, unanswerable), settings.shown, ("with", "without"), strict=True):
        if len(pool) < count:
            raise SuiteError(
                f"{case.id}: {fact.id!r} needs {count} examples {sort} an answer, found {len(pool)} that are "
                "about something else; allowed: more examples under 'shots', or more facts"
            )
        found += pool[:count]
    return tuple(found)


class _Names:
    """The question, subject and right answers of one fact, as they are looked for in examples."""

    def __init__(self, fact: Fact, question: str) -> None:
        self.question, self.subject = normalise(question), normalise(fact.subject)
        self.answers = [normalise(answer) for answer in fact.accepted]

    def given_away(self, asked: str, answered: str, about: str) -> bool:
        """Tell whether an example is the question itself, is about its subject, or names subject and answer.

        ``asked`` and ``answered`` are its normalised question and answer between blanks.
        """
        if asked.strip() == self.question:
            return True
        if not self.subject:
            return False
        if about == self.subject or f" {self.subject} " in asked:
            return True
        return f" {self.subject} " in answered and any(f" {answer} " in asked for answer in self.answers)
