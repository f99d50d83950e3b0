"""The worked examples in front of a question: those most like it that give nothing away.

Reliable KB, section 3.4: four of the answered examples, or two of them and two of the unanswerable ones, each
time the nearest to the question.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence

from pytest_kbrel.errors import SuiteError
from pytest_kbrel.judges.words import read_words
from pytest_kbrel.metrics.text import normalise
from pytest_kbrel.probes.base import question_of, question_request, template_of
from pytest_kbrel.probes.prompts import BRIEF_SHOTS, UNSURE
from pytest_kbrel.records import Case, Fact, ReliabilitySettings, Request, Shot

# ``similar(questions, examples)``: one row a question, one number an example, the higher the more alike.
Similar = Callable[[Sequence[str], Sequence[str]], Iterable[Sequence[float]]]
# What an encoder computes differs in the last digits with the texts beside it.
DIGITS = 5


def with_shots(case: Case, similar: Similar) -> Case:
    """Return the case with its examples chosen for each fact; zero-shot cases come back as they are.

    They are chosen from ``case.repository``: answered ones first, each kind from the nearest to the farthest;
    equally near ones in the order of their texts. Raises ``SuiteError`` where too few examples are left for a
    fact when those that give its answer away are taken out.
    """
    settings = case.settings
    if not sum(settings.shown):
        return case
    # In one order, whatever the repository's.
    shots = sorted(case.repository, key=lambda shot: (shot.question, shot.answer or ""))
    examples = [
        (
            f" {_spelt(one.question)} ",
            f" {_spelt(one.answer or '')} ",
            _spelt(one.subject),
        )
        for one in shots
    ]
    questions = [question_of(case, fact) for fact in case.facts]
    rows = similar(questions, [shot.question for shot in shots])
    chosen = []
    for fact, question, row in zip(case.facts, questions, rows, strict=True):
        names = _Names(fact, question)
        ranked = sorted(
            (-round(float(row[index]), DIGITS), index)
            for index, example in enumerate(examples)
            if not names.given_away(*example)
        )
        nearest = _nearest(case, fact, [shots[index] for _, index in ranked])
        chosen.append((fact.id, nearest))
    return dataclasses.replace(case, shots=tuple(chosen))


def shots_in(case: Case, requests: Mapping[str, Request]) -> Case | None:
    """Return the case with the examples that stand in the requests of its questions, by fact id.

    ``None`` where a fact has no request, or one that its repository and its question do not make.
    """
    settings = case.settings
    assert isinstance(settings, ReliabilitySettings)
    around = template_of(settings)
    texts: dict[str, Shot] = {}
    turns: dict[tuple[str, str], Shot] = {}
    for shot in case.repository:
        ((question, answer),) = _shown([shot])
        texts[around.example(question, answer)] = shot
        turns[around.question(question), answer] = shot
    # An example may be the beginning of another.
    longest_first = sorted(texts, key=lambda text: (-len(text), text))
    chosen = []
    for fact in case.facts:
        question, request = question_of(case, fact), requests.get(fact.id)
        if request is None:
            return None
        shots: list[Shot] = []
        for number, (asked, answer) in enumerate(request.turns):
            bare = asked if number else asked.removeprefix(around.lead)
            shots += [turns[bare, answer]] if (bare, answer) in turns else []
        rest = request.prompt.removeprefix(around.lead)
        while text := next(filter(rest.startswith, longest_first), ""):
            shots.append(texts[text])
            rest = rest.removeprefix(text)
        # A match is proven by making the request again.
        again = question_request(settings, question, _shown(shots))
        if (request.turns, request.prompt) != (again.turns, again.prompt):
            return None
        chosen.append((fact.id, tuple(shots)))
    return dataclasses.replace(case, shots=tuple(chosen))


def _shown(shots: Sequence[Shot]) -> tuple[tuple[str, str], ...]:
    return tuple(
        (shot.question, UNSURE if shot.answer is None else shot.answer)
        for shot in shots
    )


def shots_of(case: Case, fact: Fact) -> tuple[tuple[str, str], ...]:
    """Return the (question, answer) examples of a fact, "unsure" where there is no answer.

    Raises ``SuiteError`` when the case asks with examples and has none for the fact.
    """
    assert isinstance(case.settings, ReliabilitySettings)
    if case.settings.prompt == "few-shot":
        return BRIEF_SHOTS
    shots: tuple[Shot, ...] = next(
        (chosen for name, chosen in case.shots if name == fact.id), ()
    )
    if len(shots) != sum(case.settings.shown):
        raise SuiteError(
            f"{case.id}: prompt {case.settings.prompt!r} shows {sum(case.settings.shown)} examples, found "
            f"{len(shots)} for {fact.id!r}; allowed: that many in the case's shots"
        )
    return _shown(shots)


def _nearest(case: Case, fact: Fact, ranked: Sequence[Shot]) -> tuple[Shot, ...]:
    answered = [shot for shot in ranked if shot.answer is not None]
    pools = (answered, [shot for shot in ranked if shot.answer is None])
    chosen: list[Shot] = []
    sorts = zip(pools, case.settings.shown, ("with", "without"), strict=True)
    for pool, count, sort in sorts:
        if len(pool) < count:
            raise SuiteError(
                f"{case.id}: {fact.id!r} needs {count} examples {sort} an answer, found {len(pool)} that are "
                "about something else; allowed: more examples under 'shots', or more facts"
            )
        chosen += pool[:count]
    return tuple(chosen)


class _Names:
    """The question, subject and right answers of one fact, as they are looked for in examples."""

    def __init__(self, fact: Fact, question: str) -> None:
        self.question, self.subject = _spelt(question), _spelt(fact.subject)
        # An emoji by itself has no spelling, and would be found in every example without an answer.
        self.answers = [spelt for answer in fact.accepted if (spelt := _spelt(answer))]

    def given_away(self, question: str, answer: str, subject: str) -> bool:
        """Return True if an example is the question itself, about its subject, or names subject and answer.

        Where the question is all there is of the subject, an example with the same answer may be the same
        question in other words. The texts stand between blanks, in one spelling.
        """
        if self.question and question.strip() == self.question:
            return True
        if not self.subject:
            return False
        if self.subject == self.question:
            return answer.strip() in self.answers
        if subject == self.subject or f" {self.subject} " in question:
            return True
        return f" {self.subject} " in answer and any(
            f" {right} " in question for right in self.answers
        )


def _spelt(text: str) -> str:
    return normalise(" ".join(read_words(text).words))
