"""Date and period parser; dates of other languages are first rewritten in English.

Names of months, the order of day and month and the words for "BC" are those of CLDR, through babel.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

from pytest_kbrel.judges.text.lexicon import ORDINALS
from pytest_kbrel.judges.text.tokens import SIGNS, fold_letters
from pytest_kbrel.records import record

_MONTHS: Sequence[str] = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_MONTH_OF = {name: number for number, name in enumerate(_MONTHS, start=1)}
_MONTH_OF |= {name[:3]: number for name, number in _MONTH_OF.items()} | {"sept": 9}
MONTHS = frozenset(_MONTH_OF)
_MONTH = (
    r"(?P<month{0}>" + "|".join(sorted(_MONTH_OF, key=len, reverse=True)) + r")\b\.?"
)
_DAY = r"(?P<day{0}>\d{{1,2}})(?:st|nd|rd|th)?"
_YEAR = r"(?P<year{0}>\d{{3,4}})"
_ERA = r"(?:\s*(?P<bc>b\.?\s?c\.?(?:\s?e\.?)?(?![a-z])))?"
_OF = r",?\s*(?:of\s+)?"
_FORMS = (
    r"(?P<iso>\d{4}[-/.]\d{1,2}[-/.]\d{1,2})",
    r"(?P<slashed>\d{1,2}[-/.]\d{1,2}[-/.]\d{4})",
    rf"{_DAY.format(1)}\s*(?:of\s+)?{_MONTH.format(1)}(?:{_OF}{_YEAR.format(1)})?",
    rf"{_MONTH.format(2)}\s*(?:the\s+)?{_DAY.format(2)}(?!\d)(?:{_OF}{_YEAR.format(2)})?",
    rf"{_MONTH.format(3)}{_OF}(?P<year3>\d{{4}})",
    r"(?P<decade>\d{3}0)s",
    r"(?P<century>\d{1,2})(?:st|nd|rd|th)[\s-]+century",
    r"(?P<year4>[12]\d{3})",
    r"(?P<year5>\d{1,4})(?=\s*b\.?\s?c)",
)
_DATE = re.compile(
    rf"(?<![\w.,/$£€-])(?:the\s+)?(?:{'|'.join(_FORMS)}){_ERA}"
    r"(?:\s*(?:a\.?d\.?|c\.?e\.?)(?![a-z]))?(?![\w%]|[.,]\d)"
)
_AROUND = re.compile(
    r"^(?:(?:in|on|at|around|circa|c\.|ca\.|about|approximately|since|the|year|season|of|by)\s+|c\.\s?)+"
)
_PERIOD = re.compile(
    r"(?<!\d)(?:(?:from|between)\s+)?([12]\d{3})\s*(?:[-–—‒/]|to|until|till|through|and)\s*([12]\d{3}|\d\d|present|now)(?![-/.]?\d)"
)
_CENTURY = re.compile(
    r"\b(" + "|".join(sorted(ORDINALS, key=len, reverse=True)) + r")[\s-]+century"
)
_BOUND = re.compile(
    r"\b(?:before|after|prior to|(?:earlier|later|sooner|other) than|until|till|up to|except|or)"
    r"\s+(?:(?:in|on|the|maybe|possibly)\s+)*\Z"
)
_NOT = re.compile(r"\b(?:not|never|no longer|cannot)\b|n['’]t\b")
# "Not in 1998 but in 2010", "not only in 2010" and "did not open until 2010" affirm what follows.
_AFFIRMED = re.compile(r"\b(?:but|only|until|till|just)\b")
_CLAUSE = re.compile(r"[^.,;:!?()\n]{0,80}\Z")
_OTHER = re.compile(
    r"\s*,?\s*or\s+(?:(?:in|on|the|maybe|possibly)\s+)*[\w ]{0,12}\d|\s*\?\s*(?:no|not|wrong|actually)\b"
)
# Years on end, not the year and a number of something ("In 2010, 2000 people").
_LISTED = re.compile(
    r"(?<![\w./-])[12]\d{3}(?:(?:\s*[,;&]|,?\s*and)\s*(?:and\s+)?"
    r"[12]\d{3}\b(?!\s+(?!and\s+[12]\d{3})[a-z]|[/.-]\d))+"
)
_YEARS = re.compile(r"\d{4}")
_PARTS = re.compile(r"[-/.]")
_ANY_DIGIT = re.compile(r"\d")
_TO = re.compile(r"[-–—‒/]|to|until|till|through")


@record
class Date:
    """A date; ``month`` and ``day`` are 0 where not stated; ``unit`` is "" or "decade" or "century"."""

    year: int
    month: int = 0
    day: int = 0
    unit: str = ""

    @property
    def fineness(self) -> int:
        """Return the number of parts that are stated."""
        return (self.year != 0) + (self.month != 0) + (self.day != 0)

    def agrees(self, other: Date) -> bool:
        """Return True if no part that both state differs."""
        return self.unit == other.unit and all(
            mine == theirs or not mine or not theirs
            for mine, theirs in (
                (self.year, other.year),
                (self.month, other.month),
                (self.day, other.day),
            )
        )


@lru_cache(maxsize=4096)
def dates_in(text: str) -> tuple[Date, ...]:
    """Return the dates a text names, in its order; a date whose order is open is there in both readings."""
    lower = _with_digits(text)
    # "8 September 2010, 2011 and 2012" begins with a day; years alone make a list.
    lists = [
        match.span()
        for match in _LISTED.finditer(lower)
        if len(set(_YEARS.findall(match[0]))) > 1
    ]
    return tuple(
        date
        for match in _DATE.finditer(lower)
        if not is_denied(lower, match.start()) and not _OTHER.match(lower, match.end())
        for date in _dates(match)
        if date.month
        or not any(start <= match.start("year4") < end for start, end in lists)
    )


def is_denied(lower: str, start: int) -> bool:
    """Return True if what begins at ``start`` of a text in small letters is denied or only a bound."""
    clause = _CLAUSE.search(lower, max(0, start - 80), start)
    before = clause[0] if clause else ""
    denial = _NOT.search(before)
    if denial:
        return not _AFFIRMED.search(before, denial.end())
    return bool(_BOUND.search(before))


@lru_cache(maxsize=4096)
def as_dates(text: str) -> tuple[Date, ...]:
    """Return the readings of a text that is a date and nothing else, else nothing."""
    match = _DATE.fullmatch(_AROUND.sub("", _with_digits(text).strip().strip(".,;!")))
    return tuple(_dates(match)) if match else ()


def _with_digits(text: str) -> str:
    """Return a text in small letters and with centuries in digits, ``""`` for one without a date."""
    lower = text.casefold()
    if "century" in lower:
        return _CENTURY.sub(lambda match: ORDINALS[match[1]] + " century", lower)
    return lower if _ANY_DIGIT.search(lower) else ""


def _dates(match: re.Match[str]) -> Iterator[Date]:
    part = match.groupdict()
    sign = -1 if part["bc"] else 1
    if part["iso"]:
        yield from _possible(*map(int, _PARTS.split(part["iso"])))
    elif part["slashed"]:
        one, other, year = map(int, _PARTS.split(part["slashed"]))
        yield from _possible(year, other, one)
        if one != other:
            yield from _possible(year, one, other)
    elif part["decade"]:
        yield Date(year=int(part["decade"]), unit="decade")
    elif part["century"]:
        yield Date(year=sign * int(part["century"]), unit="century")
    else:
        values = {name.rstrip("12345"): value for name, value in part.items() if value}
        year, day = sign * int(values.get("year", 0)), int(values.get("day", 0))
        if "month" in values:
            yield from _possible(year, _MONTH_OF[values["month"]], day)
        elif year:
            yield Date(year=year)


def _possible(year: int, month: int, day: int) -> Iterator[Date]:
    if 1 <= month <= 12 and 0 <= day <= 31:
        yield Date(year=year, month=month, day=day)


@lru_cache(maxsize=4096)
def periods_in(text: str) -> tuple[tuple[int, int], ...]:
    """Return the periods from year to year that a text names; an open end is 0."""
    if not _ANY_DIGIT.search(text):
        return ()
    periods: list[tuple[int, int]] = []
    lower = text.casefold()
    for match in _PERIOD.finditer(lower):
        if is_denied(lower, match.start()) or not (
            "between" in match[0] or _TO.search(match[0])
        ):
            continue
        first, last = int(match[1]), match[2]
        if last.isdigit():
            periods.append(
                (first, int(last) if len(last) == 4 else first // 100 * 100 + int(last))
            )
        else:
            periods.append((first, 0))
    return tuple(periods)


def as_period(text: str) -> tuple[int, int] | None:
    """Return the period a text is, ``None`` where it is none or more than one."""
    if not _ANY_DIGIT.search(text):
        return None
    match = _PERIOD.fullmatch(_AROUND.sub("", text.casefold().strip().strip(".,;!")))
    periods = periods_in(text) if match else ()
    return periods[0] if len(periods) == 1 else None


def finest(dates: Sequence[Date], but: Sequence[Date] = ()) -> tuple[Date, ...]:
    """Return the dates that are not in ``but`` and not merely a coarser word for another of them."""
    remaining = [date for date in dates if date not in but]
    return tuple(
        date
        for date in remaining
        if not any(
            other.fineness > date.fineness and date.year == other.year
            for other in remaining
        )
    )


# Countries of one language that name the months in another way.
_VARIANTS = {"ar": ("ar_SY", "ar_MA", "ar_TN"), "de": ("de_AT",), "pt": ("pt_PT",)}
_CJK = ("zh", "ja")
_YEAR_MONTH_DAY = re.compile(
    r"(?<!\d)(\d{3,4})\s*年(?:度)?(?:\s*(\d{1,2})\s*月(?:份)?(?:\s*(\d{1,2})\s*[日号號])?)?"
)
_MONTH_DAY = re.compile(r"(?<!\d)(\d{1,2})\s*月\s*(\d{1,2})\s*[日号號]")
_NUMERIC = re.compile(r"(?<![\d.,/-])(\d{1,2})([./-])[ ]?(\d{1,2})\2[ ]?(\d{4})(?!\d)")


@record
class _Calendar:
    months: dict[str, int]
    named: tuple[re.Pattern[str], ...]
    era: re.Pattern[str] | None
    day_first: bool


def in_english_dates(text: str, language: str) -> str:
    """Return ``text`` with the dates of ``language`` (de, pt-BR) as English writes them.

    A language that CLDR does not know leaves the text as it is.
    """
    calendar = _calendar(language)
    if calendar is None or not any(sign.isdecimal() for sign in text):
        return text
    if calendar.era:
        text = calendar.era.sub(
            lambda match: f"{match['behind'] or match['before']} BC", text
        )
    for pattern in calendar.named:
        text = pattern.sub(lambda match: _named(match, calendar.months), text)
    if language.partition("-")[0] in _CJK:
        text = _YEAR_MONTH_DAY.sub(
            lambda match: _english(match, match[1], match[2], match[3]), text
        )
        text = _MONTH_DAY.sub(
            lambda match: _english(match, "", match[1], match[2]), text
        )
    if calendar.day_first:
        text = _NUMERIC.sub(
            lambda match: _english(match, match[4], match[3], match[1]), text
        )
    return text


def _named(match: re.Match[str], months: dict[str, int]) -> str:
    parts = match.groupdict()
    return _english(
        match, parts.get("year"), str(months[_key(match["month"])]), parts.get("day")
    ).strip()


def _english(
    match: re.Match[str], year: str | None, month: str | None, day: str | None
) -> str:
    if month and not 1 <= int(month) <= 12:
        return match[0]
    name = _MONTHS[int(month) - 1].capitalize() if month else ""
    return f" {' '.join(filter(None, (day, name, year)))} "


def _key(name: str) -> str:
    return fold_letters(name).casefold().rstrip(".")


@lru_cache(maxsize=64)
def _calendar(language: str) -> _Calendar | None:
    from babel import Locale, UnknownLocaleError

    code = language.partition("-")[0]
    try:
        locale = Locale.parse(code)
    except (UnknownLocaleError, ValueError):
        return None
    months = (
        {}
        if code in _CJK
        else dict(_months([locale, *map(Locale.parse, _VARIANTS.get(code, ()))]))
    )
    pattern = str(locale.date_formats["short"].pattern)
    return _Calendar(
        months=months,
        named=_patterns(months) if months else (),
        era=_era(locale),
        day_first=pattern.find("d") < pattern.find("M") < pattern.lower().find("y"),
    )


def _months(locales: list[Any]) -> Iterator[tuple[str, int]]:
    for locale in locales:
        for form in ("format", "stand-alone"):
            for width in ("abbreviated", "wide"):
                for number, name in locale.months[form][width].items():
                    if len(_key(name)) > 1 and not name.isdecimal():
                        yield _key(name), number


def _patterns(months: dict[str, int]) -> tuple[re.Pattern[str], ...]:
    names = "|".join(map(re.escape, sorted(months, key=len, reverse=True)))
    month = rf"(?<![\w{SIGNS}])(?P<month>{names})(?![\w{SIGNS}])\.?"
    # "22nd" and "of" as the ten languages have them.
    day = r"(?<![\d.,/-])(?P<day>\d{1,2})(?:\.|er|re|º|°|ª|-?го|-?е)?\s*(?:de\s+|di\s+|d['’])?"
    year = r"(?P<year>\d{3,4})(?!\d)(?:\s*(?:г\.|года|году|год)(?!\w))?"
    of = r",?\s*(?:de\s+|del\s+|di\s+)?"
    forms = (
        f"{day}{month}(?:{of}{year})?",
        rf"{month}\s+(?P<day>\d{{1,2}}),\s+{year}",
        f"{month}{of}{year}",
    )
    return tuple(re.compile(pattern, re.IGNORECASE) for pattern in forms)


def _era(locale: Any) -> re.Pattern[str] | None:
    names = {
        str(locale.eras[width].get(0, "")) for width in ("wide", "abbreviated")
    } - {""}
    if not names:
        return None
    spaced = "|".join(
        r"\s*".join(map(re.escape, name.replace(".", ". ").split()))
        for name in sorted(names, key=len, reverse=True)
    )
    return re.compile(
        rf"(?<!\d)(?P<behind>\d{{1,4}})\s*(?:году|года|год|г\.)?\s*(?:{spaced})(?!\w)|(?:{spaced})\s*(?P<before>\d{{1,4}})\s*年?",
        re.IGNORECASE,
    )
