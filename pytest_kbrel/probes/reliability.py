"""Reliable KB: factuality and consistency on known and unseen knowledge.

Zheng, Lapata and Pan, "How Reliable are LLMs as Knowledge Bases?", arXiv 2407.13578.

The options of a multiple-choice question are the answer, three distractors and "unsure"; distractors are those of
the fact, or a model writes them (section 2.2 and Table 8). The worked examples in front of a question are four of
the answered ones, or two of them and two of the unanswerable ones, each time the nearest to the question that give
nothing away (section 3.4).
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from pytest_kbrel.errors import ResponseError, SuiteError
from pytest_kbrel.judges.abstention import uninformative_kind
from pytest_kbrel.judges.replies import chosen_option
from pytest_kbrel.judges.rules import Judged
from pytest_kbrel.judges.words import read_words, strip_wrapping
from pytest_kbrel.metrics.calibration import ANSWERED, PROBABILITIES
from pytest_kbrel.metrics.reliability import OPTIONS
from pytest_kbrel.metrics.text import normalise
from pytest_kbrel.probes.base import (
    UNPARSABLE,
    Answers,
    ProbeResult,
    ProbeRun,
    Verdicts,
    choice_request,
    collect,
    digest_of,
    draws_for,
    judged,
    judged_by_rules,
    language_of,
    outcome_of,
    probability_values,
    question_of,
    question_request,
    template_of,
    with_top_tokens,
)
from pytest_kbrel.probes.prompts import (
    UNSURE,
    shots_in_language,
    translated,
    wrong_answers,
)
from pytest_kbrel.records import (
    UNINFORMATIVE,
    Ask,
    Case,
    Control,
    Fact,
    GenerateRequest,
    Outcome,
    Pairs,
    ReliabilitySettings,
    Request,
    Shot,
    Table,
)

COLUMNS = (
    *("correct", "wrong", "uninformative", "consistency_correct", "consistency_wrong"),
    *UNINFORMATIVE,
    *("unparsable", "choices", "choices_unread", ANSWERED, *PROBABILITIES),
)
MAJORITY = "majority"
SHUFFLED = ("shuffled_right", "shuffled_correct", "shuffled_wrong")
WRITTEN = ("distractors", "distractors_written")
ALIKE = ("distractors_drawn", "distractors_alike", "distractors_length")
# Shuffled questions cost as much as others, and a share of few is enough for a mean over the facts.
_MOST_SHUFFLED = 4


DISTRACTORS_SHOWN = OPTIONS - 2
ROLE = "distractors"
# Enough for a name of some words.
_TOKENS_EACH = 16
_LONGEST = 200
_BULLET = re.compile(
    r"^\s*(?:\(?\d{1,3}[.):]+|\(?[A-Za-z]\)|[-*•–])\s+|^\s*\d{1,3}[.):]+(?=[^\s\d])"
)
_QUOTES = "\"'“”‘’«»„`"


def run(case: Case) -> ProbeRun:
    """Ask each question, then K multiple-choice questions about each correct or wrong answer (section 3.3).

    The consistency of an answer is the share of the K questions in which the model picks it again (eq. 4).
    The columns are :data:`COLUMNS`; :data:`MAJORITY` where the case has such controls, :data:`SHUFFLED`
    where they are asked, :data:`WRITTEN` where a model writes distractors, and :data:`ALIKE` where they were
    drawn by the kind of the answer.
    """
    return _Probe(case).run()


class _Probe:
    """One run of the probe, whose later rounds ask about the answers of earlier ones."""

    def __init__(self, case: Case) -> None:
        assert isinstance(case.settings, ReliabilitySettings)
        self.case, self.settings = case, case.settings
        self.controls = {control.fact_id: control for control in case.controls}
        self.answers = Answers()
        self.verdicts: Verdicts
        # The wrong options of each fact, how many of them a model wrote, and why some facts have none.
        self.options: dict[str, tuple[str, ...]] = {}
        self.written: dict[str, int] = {}
        self.failures: dict[str, ResponseError] = {}
        self.offered: dict[str, list[list[str]]] = {}
        self.alike = dict(case.alike)
        self.columns: tuple[str, ...] = COLUMNS
        if any(control.majority for control in case.controls):
            self.columns += (MAJORITY,)
        if case.dated:
            self.columns += ("outdated",)
        if self.settings.controls == "asked":
            self.columns += SHUFFLED
        if self.settings.writer:
            self.columns += WRITTEN
        elif self.alike:
            self.columns += ALIKE

    def run(self) -> ProbeRun:
        """Ask three rounds, and two more where models judge and write distractors."""
        facts, answers = self.case.facts, self.answers
        first = tuple(ask for fact in facts for ask in self._questions(fact))
        answers.add(first, (yield first))
        texts = {
            fact.id: self._answer(fact)
            for fact in facts
            if not answers.failed(fact.id, "answer")
        }
        self.verdicts = yield from judged(self.case, texts)
        asserted = [fact for fact in facts if _asserts(self.verdicts.get(fact.id))]
        if self.settings.writer and asserted:
            writing = tuple(self._writing(fact, texts[fact.id]) for fact in asserted)
            answers.add(writing, (yield writing))
        for fact in asserted:
            try:
                self._offer(fact, texts[fact.id])
            except ResponseError as error:
                self.failures[fact.id] = error
        second = tuple(ask for fact in facts for ask in self._choices(fact))
        answers.add(second, (yield second))
        rows, errors = collect(facts, self._outcome)
        return ProbeResult(table=Table(columns=self.columns, rows=rows), errors=errors)

    def _answer(self, fact: Fact) -> str:
        # An option that begins with "Answer:" would give itself away among names.
        text = self.answers.generated(fact.id, "answer").text
        return strip_wrapping(text) or text

    def _asked(self, fact: Fact) -> Iterator[tuple[str, str, list[list[str]]]]:
        """Yield what leads the roles of asks, the question and its lists of options: the fact's and the control's."""
        lists = self.offered.get(fact.id, [])
        yield "", question_of(self.case, fact), lists
        if shuffled := self._control(fact).shuffled:
            yield "shuffled/", shuffled, lists[:_MOST_SHUFFLED]

    def _questions(self, fact: Fact) -> Iterator[Ask]:
        shots = shots_of(self.case, fact)
        for lead, question, _ in self._asked(fact):
            request = question_request(self.settings, question, shots)
            if not lead:
                request = with_top_tokens(self.case, request)
            # Of unseen knowledge no answer is right, whatever the subject.
            if not lead or fact.accepted:
                yield Ask(fact_id=fact.id, role=f"{lead}answer", request=request)

    def _writing(self, fact: Fact, answer: str) -> Ask:
        count, question = self.settings.distractors, question_of(self.case, fact)
        request = GenerateRequest(
            prompt=wrong_answers(question, answer, count),
            max_new_tokens=count * _TOKENS_EACH,
            stop=("\nQuestion:",),
        )
        to = self.settings.writer
        return Ask(fact_id=fact.id, role=ROLE, to=to, request=request)

    def _offer(self, fact: Fact, answer: str) -> None:
        """Draw the options of a fact; what a model wrote is filled up from the fact's own wrong answers."""
        wrong = fact.negatives
        if self.settings.writer:
            reply = self.answers.generated(fact.id, ROLE)
            # Where the writer was cut short, its last line is half a name.
            text = (
                reply.text if reply.finish == "stop" else reply.text.rpartition("\n")[0]
            )
            written = read_distractors(text, answer, fact.language)
            spellings = {normalise(text) for text in written}
            own = [one for one in wrong if normalise(one) not in spellings]
            wrong = (*written, *own)[: self.settings.distractors]
            self.written[fact.id] = min(len(written), self.settings.distractors)
        self.options[fact.id] = wrong
        draws = draws_for(self.case, fact)
        count = self.settings.choices
        unsure = translated(UNSURE, self.settings.instructions)
        self.offered[fact.id] = option_lists(fact, answer, wrong, count, draws, unsure)

    def _choices(self, fact: Fact) -> Iterator[Ask]:
        for lead, question, lists in self._asked(fact):
            for number, options in enumerate(lists):
                request = choice_request(self.settings, question, options)
                role = f"{lead}choice:{number}"
                yield Ask(fact_id=fact.id, role=role, request=request)

    def _control(self, fact: Fact) -> Control:
        return self.controls.get(fact.id) or Control(fact_id=fact.id)

    def _outcome(self, fact: Fact) -> Outcome:
        if fact.id in self.failures:
            raise self.failures[fact.id]
        response = self.answers.generated(fact.id, "answer")
        verdict = self.verdicts[fact.id]
        asserts = _asserts(verdict)
        correct, wrong = (
            float(asserts and verdict.label == name) for name in ("correct", "wrong")
        )
        picks = {lead: [*self._picks(fact, lead)] for lead, *_ in self._asked(fact)}
        own = normalise(self._answer(fact))
        # The share of the picks that are the model's own answer, 0 without any.
        again = {
            lead: sum(one is not None and normalise(one) == own for one in of)
            / max(len(of), 1)
            for lead, of in picks.items()
        }
        control, shuffled, reply = self._control(fact), again.get("shuffled/", 0.0), ""
        if control.shuffled and fact.accepted:
            reply = self.answers.generated(fact.id, "shuffled/answer").text

        def is_right(text: str) -> float:
            return float(judged_by_rules(self.case, fact, text).label == "correct")

        values = {
            "correct": correct,
            "wrong": wrong,
            "uninformative": float(verdict.label == "uninformative"),
            "consistency_correct": correct * again[""],
            "consistency_wrong": wrong * again[""],
            "choices": float(len(picks[""])),
            "choices_unread": float(picks[""].count(None)),
            **{kind: float(verdict.rule == kind) for kind in UNINFORMATIVE},
            "unparsable": float(verdict.rule == UNPARSABLE),
            "outdated": float(verdict.label == "outdated"),
            "distractors": float(len(self.options.get(fact.id, ()))),
            "distractors_written": float(self.written.get(fact.id, 0)),
            "distractors_drawn": float(fact.id in self.alike),
            "distractors_alike": self.alike.get(fact.id, 0.0),
            "distractors_length": length_ratio(fact) if fact.id in self.alike else 0.0,
            MAJORITY: is_right(control.majority),
            "shuffled_right": is_right(reply),
            "shuffled_correct": correct * shuffled,
            "shuffled_wrong": wrong * shuffled,
            **probability_values(response, right=bool(correct), answered=asserts),
        }
        # The options hold the answer, so their texts cannot be compared: what they are drawn from is.
        draws = (str(self.case.seed), *fact.negatives)
        digest = digest_of(self.case, fact, [response], draws)
        row = [values[name] for name in self.columns]
        return outcome_of(self.case, fact, response, verdict, row, digest)

    def _picks(self, fact: Fact, lead: str) -> Iterator[str | None]:
        """Yield the option that each reply to the multiple-choice questions picks; ``None`` for none."""
        for own, question, lists in self._asked(fact):
            for number, options in enumerate(lists if own == lead else ()):
                role = f"{lead}choice:{number}"
                reply = self.answers.generated(fact.id, role).text
                at = chosen_option(reply, options, question)
                yield None if at is None else options[at]


def _asserts(verdict: Judged | None) -> bool:
    """Return True if an answer was judged correct or wrong."""
    return (
        verdict is not None
        and verdict.label in ("correct", "wrong")
        and verdict.rule != UNPARSABLE
    )


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
    unsure: str = UNSURE,
) -> list[list[str]]:
    """Make ``questions`` lists of five: the answer and three distractors shuffled, then ``unsure``.

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
        lists.append([*options, unsure])
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
        gives_away = _test_of(fact, question)
        ranked = sorted(
            (-round(float(row[index]), DIGITS), index)
            for index, example in enumerate(examples)
            if not gives_away(*example)
        )
        nearest = _nearest(case, fact, [shots[index] for _, index in ranked])
        chosen.append((fact.id, nearest))
    return replace(case, shots=tuple(chosen))


def shots_in(case: Case, requests: Mapping[str, Request]) -> Case | None:
    """Return the case with the examples that stand in the requests of its questions, by fact id.

    ``None`` where a fact has no request, or one that its repository and its question do not make.
    """
    settings = case.settings
    assert isinstance(settings, ReliabilitySettings)
    around = template_of(settings)
    texts = {around.example(*_shown(case, [of])[0]): of for of in case.repository}
    # An example may be the beginning of another.
    longest_first = sorted(texts, key=lambda text: (-len(text), text))
    chosen = []
    for fact in case.facts:
        question, request = question_of(case, fact), requests.get(fact.id)
        if request is None:
            return None
        shots: list[Shot] = []
        turns = (around.answered(*turn) for turn in request.turns)
        rest = "".join([*turns, request.prompt]).removeprefix(around.lead)
        while text := next(filter(rest.startswith, longest_first), ""):
            shots.append(texts[text])
            rest = rest.removeprefix(text)
        # A match is proven by making the request again.
        again = question_request(settings, question, _shown(case, shots))
        if (request.turns, request.prompt) != (again.turns, again.prompt):
            return None
        chosen.append((fact.id, tuple(shots)))
    return replace(case, shots=tuple(chosen))


def _shown(case: Case, shots: Sequence[Shot]) -> Pairs:
    unsure = translated(UNSURE, language_of(case.settings))
    return tuple(
        (shot.question, unsure if shot.answer is None else shot.answer)
        for shot in shots
    )


def shots_of(case: Case, fact: Fact) -> Pairs:
    """Return the (question, answer) examples of a fact, "unsure" where there is no answer.

    Raises ``SuiteError`` when the case asks with examples and has none for the fact.
    """
    assert isinstance(case.settings, ReliabilitySettings)
    if case.settings.prompt == "few-shot":
        return shots_in_language(case.settings.instructions)[0]
    shots: tuple[Shot, ...] = next(
        (chosen for name, chosen in case.shots if name == fact.id), ()
    )
    if len(shots) != sum(case.settings.shown):
        raise SuiteError(
            f"{case.id}: prompt {case.settings.prompt!r} shows {sum(case.settings.shown)} examples, found "
            f"{len(shots)} for {fact.id!r}; allowed: that many in the case's shots"
        )
    return _shown(case, shots)


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


def _test_of(fact: Fact, question: str) -> Callable[[str, str, str], bool]:
    """Return the test whether an example gives the answer to a fact away.

    It does if it is the question itself, about its subject, or names subject and answer.
    Where the question is all there is of the subject, an example with the same answer may be the same
    question in other words. The test takes question, answer and subject; the texts stand between blanks, in one
    spelling.
    """
    asked, about = _spelt(question), _spelt(fact.subject)
    # An emoji by itself has no spelling, and would be found in every example without an answer.
    right = [spelt for answer in fact.accepted if (spelt := _spelt(answer))]

    def gives_away(question: str, answer: str, subject: str) -> bool:
        if asked and question.strip() == asked:
            return True
        if not about:
            return False
        if about == asked:
            return answer.strip() in right
        if subject == about or f" {about} " in question:
            return True
        named = f" {about} " in answer
        return named and any(f" {one} " in question for one in right)

    return gives_away


def _spelt(text: str) -> str:
    return normalise(" ".join(read_words(text).words))
