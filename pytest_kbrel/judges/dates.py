"""Date parser of the judge: the dates of a text, in English words and in ten languages.

Names of months, the order of day and month and the words for "BC" are those of CLDR, through babel.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

_MONTHS = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
]
_MONTH_OF = {
    form: number
    for number, name in enumerate(_MONTHS, start=1)
    for form in (name, name[:3])
} | {"sept": 9}
DIGIT = re.compile(r"\d")
_STAMP = re.compile(r"[+]?(\d{4}-\d\d-\d\d)T00:00:00Z?")
_YEAR_FIRST = re.compile(r"(?<![\d.-])(\d{4})([-/.])(\d\d?)\2(\d\d?)(?![\d-])")
_YEAR_LAST = re.compile(r"(?<![\d.-])(\d\d?)([-/.])[ ]?(\d\d?)\2[ ]?(\d{4})(?!\d)")
_CJK = re.compile(
    r"(?:(\d{3,4})\s*年)?\s*(\d\d?)\s*月(?:\s*(\d\d?)\s*[日号號])?|(\d{3,4})\s*年"
)


class Date(NamedTuple):
    """A date; ``month`` and ``day`` are 0 where not stated, ``year`` too. Years BC are negative."""

    year: int
    month: int = 0
    day: int = 0

    def agrees(self, other: Date) -> bool:
        """Return True if both state a year, or both a day, and no part that both state differs."""
        shared = [one and two for one, two in zip(self, other, strict=True)]
        return bool(shared[0] or shared[2]) and all(
            one == two or not both
            for one, two, both in zip(self, other, shared, strict=True)
        )

    def refines(self, other: Date) -> bool:
        """Return True if both agree and this one states more."""
        return self.agrees(other) and self.count(0) < other.count(0)


class Dated(NamedTuple):
    """A date and where its words begin and end."""

    date: Date
    start: int
    end: int


def dates_in(words: Sequence[str]) -> list[Dated]:
    """Return the dates that the words of a text name, in their order."""
    hits: list[Dated] = []
    index, size = 0, len(words)
    while index < size:
        month = _MONTH_OF.get(words[index], 0)
        start, end, day, year = index, index + 1, 0, 0
        if month:
            before = index - 1
            if before >= 0 and (day := _day(words[before])):
                start = before
            elif end < size and (day := _day(words[end])):
                end += 1
            after = end + (end < size and words[end] in ("of", "in", "year"))
            if after < size and (year := _year(words[after], 100)):
                end = after + 1
            if day or year:
                hits.append(Dated(Date(year, month, day), start, end))
        elif year := _year(words[index], 1000):
            hits.append(Dated(Date(year), start, end))
        index = end
    return hits


def _day(word: str) -> int:
    return int(word) if word.isdecimal() and 1 <= int(word) <= 31 else 0


def _year(word: str, least: int) -> int:
    """Return a year of at least ``least``, or one BC; 0 for another word."""
    if word[:1] == "-" and word[1:].isdecimal() and len(word) < 6:
        return int(word)
    return int(word) if word.isdecimal() and least <= int(word) <= 2999 else 0


def in_english_dates(text: str, language: str) -> str:
    """Return a text with dates in digits, of CJK languages and BC as English words write them."""
    if not DIGIT.search(text):
        return text
    text = _STAMP.sub(r"\1", text).replace("-00-00", "")
    text = _YEAR_FIRST.sub(
        lambda hits: _english(hits[1], hits[3], hits[4], hits[0]), text
    )
    calendar = calendar_of(language)

    def last(hits: re.Match[str]) -> str:
        # Americans and Britons do not agree on the order: both readings stand then.
        orders = [(hits[3], hits[1]), (hits[1], hits[3])]
        readings = orders[:1] if calendar.day_first else orders
        return "".join(_english(hits[4], *one, "") for one in readings) or hits[0]

    text = _YEAR_LAST.sub(last, text)
    if "年" in text or "月" in text:
        text = _CJK.sub(
            lambda hits: _english(hits[1] or hits[4], hits[2], hits[3], hits[0]),
            text,
        )
    if calendar.era:
        text = calendar.era.sub(lambda hits: f" -{hits[1] or hits[2]} ", text)
    return text


def _english(year: str | None, month: str | None, day: str | None, written: str) -> str:
    if month and not 1 <= int(month) <= 12:
        return written
    name = _MONTHS[int(month) - 1] if month else ""
    return f" {day or ''} {name} {year or ''} "


class Calendar(NamedTuple):
    """Names of months with the English ones, the words for "BC", and the order of day and month."""

    months: dict[str, str]
    era: re.Pattern[str] | None
    day_first: bool


@lru_cache(maxsize=32)
def calendar_of(language: str) -> Calendar:
    """Return what CLDR says of a language; nothing of one that it does not know."""
    from babel import Locale, UnknownLocaleError

    try:
        locale = Locale.parse(language)
    except (UnknownLocaleError, ValueError):
        return Calendar({}, None, day_first=False)
    months = {
        name.rstrip("."): _MONTHS[number - 1]
        for form in ("format", "stand-alone")
        for width in ("abbreviated", "wide")
        for number, name in locale.months[form][width].items()
        if len(name) > 1 and not name.rstrip("月").isdecimal()
    }
    eras = {str(locale.eras[width].get(0, "")) for width in ("wide", "abbreviated")}
    names = "|".join(
        r"\s*".join(map(re.escape, name.replace(".", ". ").split()))
        for name in sorted(eras - {""}, key=len, reverse=True)
    )
    pattern = str(locale.date_formats["short"].pattern)
    return Calendar(
        months=months,
        era=re.compile(
            rf"(?i)\b(\d{{1,4}})\s*(?:году|года|год|г\.)?\s*(?:{names})(?!\w)|(?:{names})\s*(\d{{1,4}})\s*年?"
        )
        if names
        else None,
        day_first=pattern.find("d") < pattern.find("M"),
    )
