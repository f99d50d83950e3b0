"""Dates in another language, put as English writes them: "22. März 1832" becomes "22 March 1832".

Names of months, the order of day and month and the words for "BC" are those of CLDR, through babel.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

from pytest_kbrel.judges.text.scripts import SIGNS, fold_letters
from pytest_kbrel.records import record

_ENGLISH = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
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
        text = calendar.era.sub(lambda found: f"{found['behind'] or found['before']} BC", text)
    for pattern in calendar.named:
        text = pattern.sub(_named(calendar), text)
    if language.partition("-")[0] in _CJK:
        text = _YEAR_MONTH_DAY.sub(_written, text)
        text = _MONTH_DAY.sub(lambda found: _date("", found[1], found[2], found[0]), text)
    if calendar.day_first:
        text = _NUMERIC.sub(lambda found: _date(found[4], found[3], found[1], found[0]), text)
    return text


def _named(calendar: _Calendar) -> Callable[[re.Match[str]], str]:
    def written(found: re.Match[str]) -> str:
        month = str(calendar.months[_key(found["month"])])
        parts = found.groupdict()
        return _date(parts.get("year") or "", month, parts.get("day") or "", found[0]).strip()

    return written


def _written(found: re.Match[str]) -> str:
    return _date(found[1], found[2] or "", found[3] or "", found[0])


def _date(year: str, month: str, day: str, else_: str) -> str:
    if month and not 1 <= int(month) <= 12:
        return else_
    return f" {' '.join(part for part in (day, _ENGLISH[int(month) - 1] if month else '', year) if part)} "


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
    months = {} if code in _CJK else dict(_months([locale, *map(Locale.parse, _VARIANTS.get(code, ()))]))
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
    found = (f"{day}{month}(?:{of}{year})?", rf"{month}\s+(?P<day>\d{{1,2}}),\s+{year}", f"{month}{of}{year}")
    return tuple(re.compile(pattern, re.IGNORECASE) for pattern in found)


def _era(locale: Any) -> re.Pattern[str] | None:
    names = {str(locale.eras[width].get(0, "")) for width in ("wide", "abbreviated")} - {""}
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
