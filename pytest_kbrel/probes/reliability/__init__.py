"""Reliable KB: factuality and consistency on known and unseen knowledge.

Zheng, Lapata and Pan, "How Reliable are LLMs as Knowledge Bases?", arXiv 2407.13578.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pytest_kbrel.errors import ResponseError
from pytest_kbrel.judges.replies import chosen_option
from pytest_kbrel.judges.rules import Judged
from pytest_kbrel.judges.words import strip_wrapping
from pytest_kbrel.metrics.calibration import ANSWERED, PROBABILITIES
from pytest_kbrel.metrics.text import normalise
from pytest_kbrel.probes.base import (
    Answers,
    ProbeResult,
    ProbeRun,
    choice_request,
    collect,
    digest_of,
    draws_for,
    outcome_of,
    probability_values,
    question_of,
    question_request,
    with_top_tokens,
)
from pytest_kbrel.probes.grading import UNPARSABLE, Verdicts, judged, judged_by_rules
from pytest_kbrel.probes.reliability.distractors import (
    Distractors,
    distractors_for,
    length_ratio,
    option_lists,
)
from pytest_kbrel.probes.reliability.shots import shots_of
from pytest_kbrel.records import (
    UNINFORMATIVE,
    Ask,
    Case,
    Control,
    Fact,
    Outcome,
    ReliabilitySettings,
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
        self.distractors: Distractors
        self.offered: dict[str, list[list[str]]] = {}
        self.columns: tuple[str, ...] = COLUMNS
        if any(control.majority for control in case.controls):
            self.columns += (MAJORITY,)
        if self.settings.controls == "asked":
            self.columns += SHUFFLED
        if self.settings.distractors_from != "facts":
            self.columns += WRITTEN
        self.alike = dict(case.alike)
        if self.alike and self.settings.distractors_from == "facts":
            self.columns += ALIKE

    def run(self) -> ProbeRun:
        """Ask three rounds, and two more where models judge and write distractors."""
        facts = self.case.facts
        first = tuple(ask for fact in facts for ask in self._questions(fact))
        self.answers.add(first, (yield first))
        texts = {
            fact.id: self._answer(fact)
            for fact in facts
            if not self.answers.failed(fact.id, "answer")
        }
        self.verdicts = yield from judged(self.case, texts)
        asserted = {
            name: text
            for name, text in texts.items()
            if _asserts(self.verdicts.get(name))
        }
        self.distractors = yield from distractors_for(self.case, asserted)
        failures = self.distractors.failures
        for fact in facts:
            options = self.distractors.options.get(fact.id)
            if options is None:
                continue
            draws = draws_for(self.case, fact)
            try:
                self.offered[fact.id] = option_lists(
                    fact, texts[fact.id], options, self.settings.choices, draws
                )
            except ResponseError as error:
                failures[fact.id] = error
        second = tuple(ask for fact in facts for ask in self._choices(fact))
        self.answers.add(second, (yield second))
        rows, errors = collect(facts, self._outcome)
        return ProbeResult(table=Table(columns=self.columns, rows=rows), errors=errors)

    def _answer(self, fact: Fact) -> str:
        # An option that begins with "Answer:" would give itself away among names.
        text = self.answers.generated(fact.id, "answer").text
        return strip_wrapping(text) or text

    def _questions(self, fact: Fact) -> Iterator[Ask]:
        shots = shots_of(self.case, fact)
        question = question_of(self.case, fact)
        request = question_request(self.settings, question, shots)
        request = with_top_tokens(self.case, request)
        yield Ask(fact_id=fact.id, role="answer", request=request)
        # Of unseen knowledge no answer is right, whatever the subject.
        if fact.accepted and (shuffled := self._control(fact).shuffled):
            request = question_request(self.settings, shuffled, shots)
            yield Ask(fact_id=fact.id, role="shuffled/answer", request=request)

    def _choices(self, fact: Fact) -> Iterator[Ask]:
        lists, shuffled = self.offered.get(fact.id, []), self._control(fact).shuffled
        sets = [("choice", question_of(self.case, fact), lists)]
        if shuffled:
            sets.append(("shuffled/choice", shuffled, lists[:_MOST_SHUFFLED]))
        for role, question, offered in sets:
            for number, options in enumerate(offered):
                request = choice_request(self.settings, question, options)
                yield Ask(fact_id=fact.id, role=f"{role}:{number}", request=request)

    def _control(self, fact: Fact) -> Control:
        return self.controls.get(fact.id) or Control(fact_id=fact.id)

    def _outcome(self, fact: Fact) -> Outcome:
        if fact.id in self.distractors.failures:
            raise self.distractors.failures[fact.id]
        response = self.answers.generated(fact.id, "answer")
        verdict = self.verdicts[fact.id]
        lists = self.offered.get(fact.id, [])
        picks = self._picks(fact, "choice", lists)
        consistency = self._share_again(fact, picks)
        correct, wrong = (
            float(_asserts(verdict) and verdict.label == name)
            for name in ("correct", "wrong")
        )
        values = {
            "correct": correct,
            "wrong": wrong,
            "uninformative": float(verdict.label == "uninformative"),
            "consistency_correct": correct * consistency,
            "consistency_wrong": wrong * consistency,
            "choices": float(len(lists)),
            "choices_unread": float(picks.count(None)),
            **{kind: float(verdict.rule == kind) for kind in UNINFORMATIVE},
            "unparsable": float(verdict.rule == UNPARSABLE),
            "distractors": float(len(self.distractors.options.get(fact.id, ()))),
            "distractors_written": float(self.distractors.written.get(fact.id, 0)),
            "distractors_drawn": float(fact.id in self.alike),
            "distractors_alike": self.alike.get(fact.id, 0.0),
            "distractors_length": length_ratio(fact) if fact.id in self.alike else 0.0,
            **self._controlled(fact, correct, wrong),
            **probability_values(
                response, right=bool(correct), answered=_asserts(verdict)
            ),
        }
        # The options hold the answer, so their texts cannot be compared: what they are drawn from is.
        draws = (str(self.case.seed), *fact.negatives)
        digest = digest_of(self.case, fact, [response], draws)
        own = [values[name] for name in self.columns]
        return outcome_of(self.case, fact, response, verdict, own, digest)

    def _controlled(self, fact: Fact, correct: float, wrong: float) -> dict[str, float]:
        control = self._control(fact)

        def is_right(text: str) -> float:
            return float(judged_by_rules(self.case, fact, text).label == "correct")

        values = {MAJORITY: is_right(control.majority)}
        if self.settings.controls == "asked":
            lists, reply = self.offered.get(fact.id, []), ""
            if control.shuffled and fact.accepted:
                reply = self.answers.generated(fact.id, "shuffled/answer").text
            asked = lists[:_MOST_SHUFFLED] if control.shuffled else []
            picks = self._picks(fact, "shuffled/choice", asked)
            again = self._share_again(fact, picks)
            shares = (is_right(reply), correct * again, wrong * again)
            values |= dict(zip(SHUFFLED, shares, strict=True))
        return values

    def _picks(
        self, fact: Fact, role: str, lists: Sequence[Sequence[str]]
    ) -> list[str | None]:
        """Return the option that each reply to the multiple-choice questions picks; ``None`` for none."""
        picks, question = [], question_of(self.case, fact)
        if role != "choice":
            question = self._control(fact).shuffled
        for number, options in enumerate(lists):
            reply = self.answers.generated(fact.id, f"{role}:{number}").text
            at = chosen_option(reply, options, question)
            picks.append(None if at is None else options[at])
        return picks

    def _share_again(self, fact: Fact, picks: Sequence[str | None]) -> float:
        """Return the share of the picks that are the model's own answer, 0 without any."""
        answer = normalise(self._answer(fact))
        again = sum(pick is not None and normalise(pick) == answer for pick in picks)
        return again / len(picks) if picks else 0.0


def _asserts(verdict: Judged | None) -> bool:
    """Return True if an answer was judged correct or wrong."""
    return (
        verdict is not None
        and verdict.label != "uninformative"
        and verdict.rule != UNPARSABLE
    )
