"""Rule-based judge: is an answer correct, wrong or uninformative? ``docs/judging.md`` explains each rule."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from pytest_kbrel.judges.abstention import (
    is_not_applicable,
    statement_besides,
    uninformative_kind,
    without_frame,
)
from pytest_kbrel.judges.language import is_english, language_of, to_english
from pytest_kbrel.judges.matching.matcher import compare
from pytest_kbrel.judges.matching.numbers import (
    begins_with_yes_or_no,
    is_in_range,
    is_negative,
)
from pytest_kbrel.judges.matching.parsing import (
    APPROXIMATE,
    quantity,
    read_answer,
    read_gold,
    read_question,
)
from pytest_kbrel.judges.matching.variants import STRICT, full_name
from pytest_kbrel.judges.text.dates import as_dates
from pytest_kbrel.judges.text.lexicon import FUNCTION, GIVEN, PARTICLES
from pytest_kbrel.judges.text.tokens import (
    LONGEST,
    has_other_sign,
    read_words,
    signs_of,
)
from pytest_kbrel.metrics.text import normalise
from pytest_kbrel.records import Label, record

# Bounded repeats: a hostile answer of line ends alone must cost no more than its length.
_NEXT_QUESTION = re.compile(
    r"\n[^\S\n]{0,20}(?:Q|Question)\s{0,5}\d{0,4}\s{0,5}[:.]", re.IGNORECASE
)
_THOUGHT = re.compile(
    r"<(think|thinking|thought|reasoning)>.*?(?:</\1>|\Z)", re.IGNORECASE | re.DOTALL
)
_THOUGHT_END = re.compile(r"</(?:think|thinking|thought|reasoning)>", re.IGNORECASE)
# Only tags that models write: "<Lima>" is an answer.
_TAG = re.compile(
    r"</?(?:final_answer|final|answer|response|output|result|a|b|i|u|s|p|q|em|strong|br|hr|div|span|sub|sup"
    r"|code|pre|ul|ol|li|h[1-6]|bos|eos|pad)\s?/?>",
    re.IGNORECASE,
)
_LABEL = re.compile(
    r"^[\s*]*(?:(?:the|my|final|short|correct)\s+)*(?:answer|response)[\s*]*[:=][\s*]*",
    re.IGNORECASE,
)
# "Not Cusco, but Lima." says what it is behind "but".
_NOT_THIS = re.compile(
    r"^(?:\W*not\s+(?!only\b|just\b)[^,.;:!?\n]{1,60}[,;]\s*but|[^,.;:!?\n]{1,60}\snot but)[\s,、]+",
    re.IGNORECASE,
)
# A nickname within a name: Dwayne "The Rock" Johnson.
_CALLED = re.compile(r"(\b[A-Z]\w+) [\"“'‘][A-Z][^\"”'’\n]{0,30}[\"”'’] (?=[A-Z]\w)")
# A full name says more than the surname.
_WHOLE_RULES = [rule for rule in STRICT if rule is not full_name]
# "And" and "of" stand in names: "Chile's Easter Island", "Easter Island of Chile".
_LEADING_IN = (FUNCTION | APPROXIMATE) - GIVEN - PARTICLES - {"and"}
# Golds come again with every answer; answers do not.
_normalised = lru_cache(maxsize=16384)(normalise)


@record
class Judged:
    """Label of an answer and the rule that decided: ``equal``, ``date``, ``contained``, ``unsure``, ..."""

    label: Label
    rule: str


def judge(
    answer: str,
    accepted: Sequence[str],
    question: str = "",
    *,
    answer_type: str = "",
    extra: Sequence[tuple[str, str]] = (),
    language: str = "",
    within: tuple[float, float] | None = None,
) -> Judged:
    """Judge one answer and name the rule that decided.

    Equality with any of ``accepted`` after normalisation comes first, then uninformative (Reliable KB,
    section 3.3), then the rules for other ways of writing a gold (Head-to-Tail, section 2.2), else wrong. The
    paper lists uninformative first; but an answer that equals the gold is no way of saying nothing, be it
    "None" or "Duran Duran Duran Duran". With nothing accepted (unseen knowledge) every informative answer is
    wrong. Where a model goes on and asks itself the next question, only what comes before counts.
    ``answer_type`` says what is asked for where it is known; else the question's words tell. ``extra``
    are the user's own rules for uninformative answers: (kind, regular expression). ``language`` is what
    question and answers are in ("de", "pt-BR"; nothing stated is English): the rules for that language come
    beside the English ones, and of a language without rules (see ``LANGUAGES``) only its dates are known.
    ``within`` is the range of numbers or years that are right, in the unit of the first of ``accepted``:
    where the answer has a number, it alone decides (rule ``range``).
    """
    answer = strip_wrapping(answer)
    if not is_english(language):
        answer = language_of(language).without_label(answer)
    normal = normalise(answer)
    equals = [gold for gold in accepted if normal == _normalised(gold)]
    if (
        normal
        and equals
        and not is_not_applicable(answer)
        and signs_of(answer) in map(signs_of, equals)
    ):
        return Judged(label="correct", rule="equal")

    def compared(text: str) -> tuple[str, bool]:
        return _compared(text, accepted, question, answer_type, language, within)

    kind = uninformative_kind(
        answer, question, extra, language=language, unanswerable=not accepted
    )
    besides = (
        statement_besides(answer, language)
        if accepted and kind in ("", "unsure")
        else ""
    )
    # "I am aware of no other. It is Lima." answers; what is not accepted there may be an excuse.
    rule, right = compared(besides) if besides else ("", False)
    if kind and not right:
        return Judged(label="uninformative", rule=kind)
    if not right:
        rule, right = compared(answer) if accepted else ("no rule", False)
    return Judged(label="correct" if right else "wrong", rule=rule)


def _compared(
    answer: str,
    accepted: Sequence[str],
    question: str,
    answer_type: str,
    language: str,
    within: tuple[float, float] | None,
) -> tuple[str, bool]:
    """Compare with the accepted answers, without those that the answer only seems to give."""
    answer = without_frame(answer, language)
    if not is_english(language):
        (answer, question), accepted = to_english(
            (answer, question), accepted, language
        )
    answer = _NOT_THIS.sub("", answer)
    query = read_question(question, answer_type)
    reply = read_answer(answer, query)
    inside = (
        is_in_range(reply, read_gold(accepted[0]), within, query)
        if within is not None
        else None
    )
    if inside is not None:
        return "range", inside
    golds = [
        gold
        for gold in accepted
        if not has_other_sign(answer, gold)
        and (
            (plain := _normalised(gold)) not in ("yes", "no")
            or begins_with_yes_or_no(reply, plain)
        )
    ]
    rule, right = compare(reply, golds, query)
    if not right and _CALLED.search(answer):
        return compare(read_answer(_CALLED.sub(r"\1 ", answer), query), golds, query)
    return rule, right


def strip_wrapping(answer: str) -> str:
    """Return an answer without what models put around it: thoughts, "Answer:", tags, the next question."""
    if "<" in answer:
        answer = _THOUGHT.sub(" ", answer)
        # Some chat templates write the opening tag themselves, so that the answer has the closing one only.
        answer = _THOUGHT_END.split(answer)[-1]
    answer = answer.strip()[:LONGEST]
    following = _NEXT_QUESTION.search(answer)
    if following and answer[: following.start()].strip():
        answer = answer[: following.start()]
    if "<" in answer:
        answer = _TAG.sub(" ", answer)
    return _LABEL.sub("", answer)


def is_variant(
    answer: str,
    accepted: Sequence[str],
    question: str = "",
    answer_type: str = "",
    *,
    language: str = "",
) -> bool:
    """Return True if all of ``answer`` is a variant of one of ``accepted``; a sentence with one in it is not.

    Head-to-Tail (arXiv 2308.10168, section 2.2) adds such variants to the accepted answers by hand before it
    scores how alike they are: "W Shakespeare" is as good as "William Shakespeare". The rules are those of
    :func:`judge` that hold for the whole of an answer. What leads in ("It is Lima", "about 7", "in 1990") is
    no part of a writing.
    """
    if not is_english(language):
        (answer, question), accepted = to_english(
            (answer, question), accepted, language
        )
    query = read_question(question, answer_type)
    reply = read_words(answer)
    if not reply.words:
        return False
    dates, number = as_dates(answer[:LONGEST]), quantity(reply.words)
    for gold in map(read_gold, accepted):
        if not _LEADING_IN.isdisjoint(
            set(reply.words).difference(read_words(gold.text).words)
        ):
            continue
        if gold.is_text:
            alike = bool(gold.words) and any(
                rule(reply, gold, query) for rule in _WHOLE_RULES
            )
        elif gold.number:
            alike = number == gold.number and is_negative(gold.text) == is_negative(
                answer
            )
        else:
            alike = gold.dates != () and dates == gold.dates
        if alike:
            return True
    return False
