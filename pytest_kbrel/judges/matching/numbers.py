"""Rules for accepted answers that are a date, a period or a number: each returns its name, else ``""``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal
from itertools import product

from pytest_kbrel.judges.matching.negation import is_negated
from pytest_kbrel.judges.matching.parsing import (
    Answer,
    Gold,
    Question,
    find_spans,
    is_number,
)
from pytest_kbrel.judges.text.dates import MONTHS, Date, dates_in, finest, periods_in
from pytest_kbrel.judges.text.lexicon import (
    EXACT_DAY,
    FUNCTION,
    NEGATIONS,
    UNIT_NAMES,
    UNITS,
    word_set,
)
from pytest_kbrel.judges.text.tokens import read_words

# They count by more than one, or by parts.
_MULTIPLES = word_set(
    "dozen dozens score scores gross pair pairs lakh lakhs crore crores percent th ths"
)
_CURRENCY = re.compile(r"[¥₹₽₩₪₺₫฿₦₱₴]")
_CODE_OF = {"dollar": "usd", "euro": "eur", "pound": "gbp"}
_CODES = word_set(
    "usd eur gbp chf jpy cny inr rub krw aud cad nzd sek nok dkk pln brl mxn zar try rs rmb"
)
_KINDS = word_set("us usa metric full whole")
_RATES = word_set("per h hr hour s second sec squared cubed")
_TIMES = {
    "year": "annual",
    "month": "monthly",
    "week": "weekly",
    "day": "daily",
    "hour": "hourly",
}
_EARNING = word_set(
    "salary wage wages income earn earns earned earnings pay paid make makes"
)
_LIMITING = word_set("maximum most limit can may capacity allowed permitted")
_ALLOWED = word_set("allowed permitted limited")
_RANKS = word_set("rank ranked ranking place position finish finished")
_BOUNDS = word_set("under below above beyond exceeding beneath within")
_BOUNDING = frozenset(
    {
        ("more", "than"),
        ("less", "than"),
        ("fewer", "than"),
        ("greater", "than"),
        ("other", "than"),
    }
    | {
        ("at", "least"),
        ("at", "most"),
        ("up", "to"),
        ("half", "of"),
        ("part", "of"),
        ("out", "of"),
    }
)
_SIGNS = frozenset({"minus", "negative"})
_RANK = re.compile(r"(\d+)(?:st|nd|rd|th)?")
_MINUS = re.compile(r"\s*(?:[-−–]\s?\d|(?:minus|negative)\b)", re.IGNORECASE)
_NEGATIVE = re.compile(r"(?<![\w.)\]])[-−–](\d[\d,.]*)")
_SUBJECTS = word_set(
    "it he she they we i you this that these those there both neither only not because"
)
_SCALED = Decimal(10000)
# As they are written behind a number; "k" may be a unit as well.
_SCALES = {"k": 10**3, "m": 10**6, "mn": 10**6, "b": 10**9, "bn": 10**9}
_BETWEEN = frozenset({"or", "to", "and"})
_ABOUT = word_set("about around approximately roughly nearly almost some circa over")
_PARTS_OF_YEAR = {"early": range(1, 7), "mid": range(4, 10), "late": range(7, 13)}
_PART_OF_YEAR = re.compile(
    r"\b(early|mid|late)[\s-]+(?:in\s+)?(\d{4})\b", re.IGNORECASE
)
_DENYING = re.compile(
    r"(?:[\w']+[^\w']+)?\b(?:\w+n[o']t|not|never|no|nor|without)\b(?:[^\w']+[\w']+)?",
    re.IGNORECASE,
)


def _without_denials_of(question: Question, text: str) -> str:
    """Return an answer's text without the "not" of a title that the question holds: "Don't Look Back"."""
    if not question.has(*NEGATIONS):
        return text

    def blank(match: re.Match[str]) -> str:
        words = read_words(match[0]).words
        return (
            " " * len(match[0])
            if len(words) > 1 and any(find_spans(question.words, words))
            else match[0]
        )

    return _DENYING.sub(blank, text)


def period_rule(answer: Answer, gold: Gold) -> str:
    """Return "period" if the answer's first period is the gold's."""
    return "period" if periods_in(answer.text)[:1] == (gold.period,) else ""


def date_rule(answer: Answer, golden_dates: Sequence[Date], question: Question) -> str:
    """Return "date" if the first date that is not the question's agrees with the gold in all that both state.

    A coarser date is right unless the question asks for the day.
    """
    text = _without_denials_of(question, answer.text)
    in_periods = {year for period in periods_in(text) for year in period}
    stated = [
        date
        for date in finest(dates_in(text), question.dates)
        if date.month or date.year not in in_periods
    ]
    if not stated:
        return ""
    if any(date.month for date in golden_dates):
        stated = [date for date in stated if date.month] or stated
    exact = question.has(*EXACT_DAY)
    for date, golden in product(_first_readings(stated), golden_dates):
        if (
            golden.year
            and not date.year
            and (date.fineness < 2 or question.has("year"))
        ):
            continue
        if (
            not date.month
            and golden.month
            and _is_other_part(text, date.year, golden.month)
        ):
            continue
        shared = (date.year and golden.year) or (date.day and golden.day)
        if (
            shared
            and date.agrees(golden)
            and (not exact or date.fineness >= golden.fineness)
        ):
            return "date"
    return ""


def _is_other_part(text: str, year: int | None, month: int) -> bool:
    """Return True if a text names a part of a year in which a month does not lie ("early 2018", December)."""
    return any(
        int(match[2]) == year and month not in _PARTS_OF_YEAR[match[1].lower()]
        for match in _PART_OF_YEAR.finditer(text)
    )


def _first_readings(stated: Sequence[Date]) -> Sequence[Date]:
    """Return the first date; of 04/05/2010 both readings, which stand side by side."""
    one, other = (*stated, *stated)[:2]
    turned = (other.year, other.month, other.day) == (one.year, one.day, one.month)
    return (one, other) if turned else (one,)


def contradicts_dates(
    answer: Answer, golds: Sequence[Gold], question: Question
) -> bool:
    """Return True if the answer gives a finer date than the year, and no gold of that year agrees with it."""
    finer = [date for gold in golds for date in gold.dates if date.month]
    text = _without_denials_of(question, answer.text)
    stated = [
        date
        for date in finest(dates_in(text), question.dates)
        if date.month and date.year
    ]
    for date in _first_readings(stated) if stated else ():
        of_year = [gold for gold in finer if gold.year == date.year]
        if not of_year or any(gold.agrees(date) for gold in of_year):
            return False
    return bool(stated)


def quantity_rule(answer: Answer, gold: Gold, question: Question) -> str:
    """Return "number" or "rounded" if the first number that is not the question's is the gold or near it."""
    assert gold.number is not None
    digits, unit = gold.number
    index = _first_number(
        answer, digits, question, years=_is_year_like(digits) and not unit
    )
    if index is None:
        return ""
    if not _counts(answer, index, index, gold, question):
        return ""
    if _is_minus(answer, index) != is_negative(gold.text):
        return ""
    if answer.words[index] == digits:
        return "number"
    about, value, exact = (
        answer.at(index - 1),
        Decimal(answer.words[index]),
        Decimal(digits),
    )
    # "Over 220" is not 216.
    if about == "over" and value > exact:
        return ""
    return (
        "rounded"
        if (about in _ABOUT or value > _SCALED) and _rounds_to(exact, value)
        else ""
    )


def _counts(
    answer: Answer, index: int, end: int, gold: Gold, question: Question
) -> bool:
    """Return True if the number from ``index`` to ``end`` is in the gold's unit and the one that is meant."""
    return (
        _has_unit(answer, end, gold.number[1] if gold.number else "", question)
        and not _is_bound(answer, index, gold, question)
        and not is_negated(answer, (index, index + 1), question)
        and not _alternative(answer, end)
    )


def rank_rule(answer: Answer, gold: Gold, question: Question) -> str:
    """Return "number" if an answer is the same rank as ordinal or as number: "fifth" and 5."""
    sought = _RANK.fullmatch(gold.words[0])
    if not question.has(*_RANKS) or not sought or len(gold.words) > 1:
        return ""
    ranks = [
        (index, match)
        for index, word in enumerate(answer.words)
        if answer.fresh[index] and (match := _RANK.fullmatch(word))
    ]
    if len(ranks) != 1:
        return ""
    [(index, match)] = ranks
    if match[1] != sought[1] or match[0].isdigit() == sought[0].isdigit():
        return ""
    # "In the fifth season", "five goals": something else is counted.
    behind = index + 1
    counted = (
        not answer.ends(behind)
        and answer.words[behind] not in FUNCTION
        and answer.fresh[behind]
    )
    return "" if counted or is_negated(answer, (index, behind), question) else "number"


def is_in_range(
    answer: Answer, gold: Gold, within: tuple[float, float], question: Question
) -> bool | None:
    """Return True if the first number or year that is not the question's lies in a range, its ends included.

    The range is in the unit of the gold. ``None`` where the answer has no number, or no year where the gold
    is one.
    """
    low, high = (Decimal(str(end)) for end in within)
    if gold.dates:
        years = [
            date.year
            for date in finest(dates_in(answer.text), question.dates)
            if date.year
        ]
        return low <= years[0] <= high if years else None
    digits, unit = gold.number or ("", "")
    index = _first_number(
        answer, digits, question, years=_is_year_like(digits) and not unit
    )
    if index is None:
        return None
    value = Decimal(answer.words[index]) * (-1 if _is_minus(answer, index) else 1)
    end = index
    scale = _SCALES.get(answer.at(index + 1), 1)
    # "2.5m" are metres where the range is of small numbers.
    if 1 < scale <= max(abs(low), abs(high)) and not answer.breaks[index + 1]:
        value, end = value * scale, index + 1
    return low <= value <= high and _counts(answer, index, end, gold, question)


def _first_number(
    answer: Answer, digits: str, question: Question, *, years: bool
) -> int | None:
    """Return where the first number stands that is not the question's, nor part of a date.

    What looks like a year is taken for one, unless ``years`` says that such numbers are meant, or it is the
    gold's ``digits``.
    """
    words = answer.words
    # An answer that is nothing but a number gives it, whether the question holds it or not.
    tied = FUNCTION | UNIT_NAMES | _SIGNS
    alone = sum(word not in tied for word in words) == 1
    held = [] if alone else list(question.words)
    for index, word in enumerate(words):
        if not is_number(word):
            continue
        if word in held:
            held.remove(word)
            continue
        near = (answer.at(index - 1), answer.at(index + 1))
        is_year = not years and _is_year_like(word) and near[1] not in UNIT_NAMES
        if word == digits or not (is_year or not MONTHS.isdisjoint(near)):
            return index
    return None


def _is_year_like(digits: str) -> bool:
    return len(digits) == 4 and digits[:2] in ("18", "19", "20")


def _has_unit(answer: Answer, index: int, unit: str, question: Question) -> bool:
    """Return True if the number at ``index`` counts what the gold counts, as far as what stands around tells.

    Where the gold has a unit, that unit must follow, or nothing that could be another. There are too many
    units to list them.
    """
    after = index + 1
    word, ends = answer.at(after), answer.ends(after)
    if not unit:
        # The sign for percent is a word that no break can part from its number.
        return word != "percent" and (ends or word not in _MULTIPLES)
    # Between 0 and 1 or 0 and 100: a number by itself is a share only where one is asked for.
    if unit == "percent" and not question.has("percent", "percentage"):
        return word == "percent"
    if _CURRENCY.search(answer.text) or answer.at(index - 1) in _CODES - {
        _CODE_OF.get(unit, "")
    }:
        return False
    if ends and word not in UNIT_NAMES:
        return True
    named = word
    if word in _KINDS and answer.at(after + 1):
        after += 1
        word = answer.words[after]
        named = UNITS.get(word, word)
    if named == unit:
        # "5 km per hour", "5 km/h"
        return answer.at(after + 1) not in _RATES or _is_rate(
            answer, after + 1, unit, question
        )
    return word not in UNIT_NAMES and (word in FUNCTION or question.has(word))


def _is_rate(answer: Answer, index: int, unit: str, question: Question) -> bool:
    """Return True if the rate at ``index`` may be meant: "$90 per year", if no other time is asked for."""
    word, following = answer.words[index], answer.at(index + 1)
    if question.has(word) or (word == "per" and question.has(following)):
        return True
    if word != "per" or unit not in _CODE_OF or following not in _TIMES:
        return False
    # What somebody earns is meant by the year.
    asked_times = {
        time for time, adverb in _TIMES.items() if question.has(time, adverb)
    }
    if asked_times:
        return following in asked_times
    return following == "year" or not question.has(*_EARNING)


def _is_bound(answer: Answer, index: int, gold: Gold, question: Question) -> bool:
    """Return True if the number is only a bound or a share: "more than 126", "half of 126"."""
    before = answer.words[max(0, index - 2) : index]
    if (
        before
        and before[-1] in _BOUNDS
        and before[-1] not in gold.text.casefold().split()
    ):
        return True
    if before == ("up", "to") and (
        question.has(*_LIMITING) or not _ALLOWED.isdisjoint(answer.words[:index])
    ):
        # Where the most is meant that is allowed, the bound is the answer.
        return False
    return before in _BOUNDING and " ".join(before) not in gold.text.casefold()


def is_negative(text: str) -> bool:
    """Return True if a number begins with a minus, as a sign or as a word."""
    return bool(_MINUS.match(text))


def _is_minus(answer: Answer, index: int) -> bool:
    digits = answer.words[index]
    return answer.at(index - 1) in _SIGNS or any(
        match[1].replace(",", "").rstrip(".") == digits
        for match in _NEGATIVE.finditer(answer.text)
    )


def begins_with_yes_or_no(answer: Answer, gold: str) -> bool:
    """Return True if an answer begins with ``gold``, "yes" or "no", as a word of its own and keeps to it.

    "No one knows" and "No doubt" are no "no"; "Yes, but actually no" is neither.
    """
    words = answer.words
    if answer.at(0) != gold or (not answer.ends(1) and words[1] not in _SUBJECTS):
        return False
    other = "no" if gold == "yes" else "yes"
    return not any(
        word == other and answer.ends(index + 1) for index, word in enumerate(words)
    )


def _alternative(answer: Answer, index: int) -> bool:
    """Return True if another number follows as a choice or the end of a range: "7 or 8", "7-8"."""
    for after in range(index + 1, min(index + 4, len(answer.words))):
        word = answer.words[after]
        if is_number(word):
            # "126, 127, 128", not "126, 2 of them"
            counts_nothing = answer.ends(after + 1) or answer.words[after + 1] in (
                "and",
                "or",
            )
            listed_on = (
                after == index + 1 and answer.breaks[after] == "," and counts_nothing
            )
            return not answer.breaks[after] or listed_on
        if word not in _BETWEEN and word not in UNIT_NAMES:
            return False
    return False


def _rounds_to(exact: Decimal, rounded: Decimal) -> bool:
    """Return True if ``rounded`` is ``exact`` with fewer, but at least two, significant digits."""
    figures = rounded.normalize().as_tuple()
    if len(figures.digits) < 2 or not isinstance(figures.exponent, int):
        return False
    step = Decimal(1).scaleb(figures.exponent)
    return (
        exact != rounded
        and len(exact.normalize().as_tuple().digits) > len(figures.digits)
        and (abs(exact - rounded) * 2 <= step)
    )
