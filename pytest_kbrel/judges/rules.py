"""Rule-based judge: is an answer correct, wrong or uninformative? ``docs/judging.md`` explains each rule."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_kbrel.judges.abstention import read_abstention, uninformative_kind
from pytest_kbrel.judges.dates import dates_in
from pytest_kbrel.judges.matching import (
    find_rule,
    is_whole,
    read_gold,
    without_coarser_dates,
)
from pytest_kbrel.judges.words import COUNTED, read_words, strip_wrapping
from pytest_kbrel.records import Label, base_language, record


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
    extra: Sequence[tuple[str, str]] = (),
    language: str = "",
    within: tuple[float, float] | None = None,
) -> Judged:
    """Judge one answer and name the rule that decided.

    What models write around an answer is stripped first. Equality with any of ``accepted`` comes first, then
    uninformative (Reliable KB, section 3.3), then the rules for other ways of stating an accepted answer
    (Head-to-Tail, section 2.2), else wrong. The paper lists uninformative first; but an answer that equals the
    gold is no way of saying nothing, be it "None". With nothing accepted
    (unseen knowledge) every informative answer is wrong. ``extra`` are the user's own rules for uninformative
    answers: (kind, regular expression). ``language`` is what question and answers are in ("de", "pt-BR";
    nothing stated is English). ``within`` is the range of numbers or years that are right, in the unit of the
    first of ``accepted``: where the answer has a number, it alone decides (rule ``range``).
    """
    answer = strip_wrapping(answer)
    text = read_words(answer, language)
    golds = [read_gold(gold, language) for gold in accepted]
    if text.words and any(text.words == gold.text.words for gold in golds):
        return Judged(label="correct", rule="equal")
    kind = uninformative_kind(
        answer, question, extra, language=language, unanswerable=not accepted
    )
    states = (
        kind == "unsure" and read_abstention(answer, base_language(language)).states
    )
    if kind and not (accepted and states):
        return Judged(label="uninformative", rule=kind)
    label: Label
    if within is not None and (number := first_number(answer, language)) is not None:
        label = "correct" if within[0] <= number <= within[1] else "wrong"
        return Judged(label=label, rule="range")
    asked = read_words(question, language)
    for gold in without_coarser_dates(golds):
        if rule := find_rule(text, gold, asked, language):
            return Judged(label="correct", rule=rule)
    label = "uninformative" if kind else "wrong"
    return Judged(label=label, rule=kind or "no rule")


def first_number(answer: str, language: str) -> float | None:
    """Return the first year or number of an answer, ``None`` where it has none."""
    words = read_words(answer, language).words
    if dates := dates_in(words):
        return dates[0].date.year
    return next(map(float, filter(COUNTED.fullmatch, words)), None)


def is_variant(answer: str, accepted: Sequence[str], *, language: str = "") -> bool:
    """Return True if all of ``answer`` is a variant of one of ``accepted``; a sentence with one in it is not.

    Head-to-Tail (arXiv 2308.10168, section 2.2) adds such variants to the accepted answers by hand before it
    scores how alike they are: "W Shakespeare" is as good as "William Shakespeare".
    """
    text = read_words(answer, language)
    return any(is_whole(text, read_gold(gold, language)) for gold in accepted)
