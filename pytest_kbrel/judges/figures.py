"""Rules for golds that are a date, a period or a number."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from pytest_kbrel.judges.contained import is_negated
from pytest_kbrel.judges.dates import MONTHS, Date, dates_in, finest, periods_in
from pytest_kbrel.judges.reading import Answer, Gold, Question, is_number
from pytest_kbrel.judges.words import EXACT_DAY, UNITS, listed

_UNIT_NAMES = frozenset(UNITS.values())
_SCALED = Decimal(10000)
_BETWEEN = frozenset({"or", "to", "and"})
_ABOUT = listed("about around approximately roughly nearly almost some circa over")


def is_period(answer: Answer, gold: Gold) -> str:
    """The answer's first period is the gold's."""
    found = periods_in(answer.text)
    return "period" if found and found[0] == gold.period else ""


def is_date(answer: Answer, golden_dates: Sequence[Date], question: Question) -> str:
    """The first date that is not the question's agrees with the gold in all that both say.

    A coarser date is right unless the question asks for the day.
    """
    in_periods = {year for period in periods_in(answer.text) for year in period}
    said = [
        date
        for date in finest(dates_in(answer.text), question.dates)
        if date.month or date.year not in in_periods
    ]
    if not said:
        return ""
    if any(date.month for date in golden_dates):
        said = [date for date in said if date.month] or said
    # Both readings of 04/05/2010 stand side by side.
    first = [date for date in said if date.year == said[0].year and date.fineness == said[0].fineness]
    readings = first if len(first) == 2 and first[0].day == first[1].month else first[:1]
    for date in readings:
        for golden in golden_dates:
            if golden.year and not date.year and golden.fineness > 1 and date.fineness < 2:
                continue
            exact = not any(question.has(word) for word in EXACT_DAY) or date.fineness >= golden.fineness
            shared = (date.year and golden.year) or (date.day and golden.day)
            if shared and date.agrees(golden) and exact:
                return "date"
    return ""


def contradicts_dates(answer: Answer, golds: Sequence[Gold], question: Question) -> bool:
    """Tell whether the answer gives a finer date than the year, and no gold of that year agrees with it."""
    finer = [date for gold in golds for date in gold.dates if date.month]
    said = [date for date in finest(dates_in(answer.text), question.dates) if date.month and date.year]
    return any(
        any(gold.year == date.year for gold in finer)
        and not any(gold.year == date.year and gold.agrees(date) for gold in finer)
        for date in said[:1]
    )


def is_quantity(answer: Answer, gold: Gold, question: Question) -> str:
    """The first number that is not the question's is the gold's, or the gold rounded."""
    assert gold.number is not None
    digits, unit = gold.number
    year_like = len(digits) == 4 and not unit
    held = list(question.words)
    words = answer.words
    for place, word in enumerate(words):
        if not is_number(word):
            continue
        if word in held:
            held.remove(word)
            continue
        near = (words[place - 1] if place else "", words[place + 1] if place + 1 < len(words) else "")
        is_year = len(word) == 4 and word[:2] in ("18", "19", "20") and near[1] not in _UNIT_NAMES
        if word != digits and ((is_year and not year_like) or not MONTHS.isdisjoint(near)):
            continue
        own = near[1] if near[1] in _UNIT_NAMES else ""
        if own and (own != unit if unit else own == "percent"):
            return ""
        if is_negated(answer, (place, place + 1), question) or _alternative(answer, place, question):
            return ""
        if word == digits:
            return "number"
        rounded = near[0] in _ABOUT or Decimal(word) > _SCALED
        return "rounded" if rounded and _rounds_to(Decimal(digits), Decimal(word)) else ""
    return ""


def _alternative(answer: Answer, place: int, question: Question) -> bool:
    """Tell whether another number follows as a choice or the end of a range: "7 or 8", "7-8"."""
    for after in range(place + 1, min(place + 4, len(answer.words))):
        word = answer.words[after]
        if is_number(word):
            return not answer.breaks[after]
        if word not in _BETWEEN and word not in _UNIT_NAMES:
            return False
    return False


def _rounds_to(exact: Decimal, said: Decimal) -> bool:
    """Tell whether ``said`` is ``exact`` with fewer, but at least two, significant digits."""
    figures = said.normalize().as_tuple()
    if len(figures.digits) < 2 or not isinstance(figures.exponent, int):
        return False
    step = Decimal(1).scaleb(figures.exponent)
    return (
        exact != said
        and len(exact.normalize().as_tuple().digits) > len(figures.digits)
        and (abs(exact - said) * 2 <= step)
    )
