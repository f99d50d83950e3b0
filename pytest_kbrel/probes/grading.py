"""Grading of answers: by rules alone, or with a model as judge where rules do not find them equal."""

from __future__ import annotations

from collections.abc import Generator, Mapping

from pytest_kbrel.catalogue.probes import PROBES
from pytest_kbrel.judges.replies import read_verdict
from pytest_kbrel.judges.rules import Judged, first_number, is_variant, judge
from pytest_kbrel.probes.base import Answers, question_of
from pytest_kbrel.probes.prompts import any_number, verdict
from pytest_kbrel.records import Ask, Case, Fact, GenerateRequest, Response

# The rule of an answer whose judge's reply could not be read.
UNPARSABLE = "unparsable"
# One word is asked for; a few more are read past, and most models spend a token or two on quotes.
_REPLY_TOKENS = 16
# A date or a number with its unit has no more.
_NUMBER_WORDS = 3
# An unreadable reply is not counted as a right answer; the rule keeps it apart from an answer found wrong.
_JUDGED = {
    "correct": Judged(label="correct", rule="judge"),
    "incorrect": Judged(label="wrong", rule="judge"),
    "unparsable": Judged(label="wrong", rule=UNPARSABLE),
}


class Verdicts(dict[str, Judged]):
    """Verdicts by fact id. Looking up a fact whose judge failed raises :class:`ResponseError`."""

    def __init__(self) -> None:
        self.replies = Answers()

    def __missing__(self, fact_id: str) -> Judged:
        return _JUDGED[read_verdict(self.replies.generated(fact_id, "judge").text)]


Judging = Generator[tuple[Ask, ...], tuple[Response, ...], Verdicts]


def judged(case: Case, answers: Mapping[str, str]) -> Judging:
    """Judge the answers, by fact id; a probe writes ``verdicts = yield from judged(case, answers)``.

    Where ``case.judge`` names a model, it is asked about every informative answer that is not simply equal to
    an accepted one, nor a number that is held against the fact's range, in one round of asks with the role
    ``judge`` (Head-to-Tail, section 2.2). Facts without an accepted answer are judged by rules.
    ``verdicts[fact_id]`` raises :class:`ResponseError` where the judge gave no reply: that is an error of the
    fact, never a verdict.
    """
    facts = {fact.id: fact for fact in case.facts}
    verdicts = Verdicts()
    asks: list[Ask] = []
    for fact_id, answer in answers.items():
        by_rules = judged_by_rules(case, facts[fact_id], answer)
        if case.judge == "rules" or not _is_open(facts[fact_id], by_rules):
            verdicts[fact_id] = by_rules
        else:
            asks.append(_ask(case, facts[fact_id], answer))
    if asks:
        verdicts.replies.add(asks, (yield tuple(asks)))
    for ask in asks:
        if not verdicts.replies.failed(ask.fact_id, "judge"):
            verdicts[ask.fact_id] = verdicts[ask.fact_id]
    return verdicts


def is_judged(case: Case) -> bool:
    """Return True if the verdicts of ``case`` may depend on who its judge is."""
    return PROBES[case.probe].judged and any(fact.accepted for fact in case.facts)


def judged_by_rules(case: Case, fact: Fact, answer: str, frame: int = 0) -> Judged:
    """Judge one answer to the question in ``frame`` by rules alone, whoever the case's judge is."""
    return judge(
        answer,
        fact.accepted,
        question_of(case, fact, frame),
        extra=case.uninformative,
        language=fact.language,
        within=fact.answer_range,
    )


def is_variant_of(case: Case, fact: Fact, answer: str) -> bool:
    """Return True if the whole answer is an accepted one in another writing (Head-to-Tail, section 2.2).

    A number or year by itself that lies in the fact's range is one too.
    """
    is_short = len(answer.split()) <= _NUMBER_WORDS
    number = first_number(answer, fact.language) if is_short else None
    if fact.answer_range is not None and number is not None:
        return judged_by_rules(case, fact, answer).label == "correct"
    return is_variant(answer, fact.accepted, language=fact.language)


def _is_open(fact: Fact, by_rules: Judged) -> bool:
    # Whether a number lies in a range is no matter of opinion.
    decided = by_rules.label == "uninformative" or by_rules.rule in ("equal", "range")
    return bool(fact.accepted) and not decided


def _ask(case: Case, fact: Fact, answer: str) -> Ask:
    accepted = fact.accepted
    if fact.answer_range is not None:
        accepted += (any_number(*fact.answer_range),)
    return Ask(
        fact_id=fact.id,
        role="judge",
        to=case.judge,
        request=GenerateRequest(
            prompt=verdict(question_of(case, fact), accepted, answer),
            max_new_tokens=_REPLY_TOKENS,
        ),
    )
