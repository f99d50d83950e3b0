"""Tokeniser of the judge: the words of a text in one spelling, with numbers in digits.

Accents, articles, plurals and the small words of ten languages are folded in answers and accepted answers
alike, so that the rules that compare them know English words only.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Mapping
from decimal import Decimal
from functools import lru_cache
from typing import Any, NamedTuple

from pytest_kbrel.judges.dates import DIGIT, calendar_of, in_english_dates
from pytest_kbrel.records import LANGUAGES, base_language
from pytest_kbrel.resources import read_yaml

LONGEST = 2000
"""How many characters of a text are read: a longer one is no answer, and a hostile one costs time."""

# The voicing of kana is no accent.
_VOICED = "\u3099\u309a"
_HAN = r"\u3005-\u3007\u3400-\u9fff\uf900-\ufaff"
# Kana, Thai, Lao, Tibetan, Burmese and Khmer too have no spaces.
_UNSPACED = re.compile(rf"[{_HAN}\u3040-\u30ff\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff]")
# A run of one script is a word, and so is "city" or the like behind a longer name.
_RUN = re.compile(
    rf"([{_HAN}]{{2,}}(?=[都市县県省州国國](?![{_HAN}]))|[{_HAN}]+|[\u3041-\u309f]+|[\u30a1-\u30ff]+)"
)
# Vowel signs of Indic scripts and Thai are letters to their readers and none to Unicode.
_TOKEN = re.compile(
    r"(?=[\d-])(?P<number>(?:(?<![\w.)-])-)?(?:\d{1,3}(?:(?:,\d{3})+|(?: \d{3})+|(?:\.\d{3}){2,})(?!\d)(?:\.\d+)?"
    r"|\d+(?:\.\d+|,\d\d?(?!\d))?))(?:st|nd|rd|th|er|re|o|a|го|е|(?P<scale>[kKMB]|bn|))(?!\w)"
    r"|(?P<word>(?:[^\W_]+|[\u0900-\u0963\u0970-\u0e7f]+)+)|(?P<mark>[^\w\s]|\n)"
)
# "Duesseldorf" is Düsseldorf.
_UMLAUT = re.compile(r"(?i)([aou])e(?![iu])")
_ARTICLES = frozenset({"a", "an", "the"})
COUNTED = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?")


class Text(NamedTuple):
    """The words of a text, the marks before each, and capitals: 1 for a first one, 2 for all.

    ``known`` are the words as a set, and ``content`` those that are neither filler nor titles.
    """

    words: tuple[str, ...]
    gaps: tuple[str, ...]
    capitals: tuple[int, ...]
    known: frozenset[str]
    content: tuple[str, ...]


class _Language(NamedTuple):
    """What the words of a language are in English; ``rewrites`` come before a text is split.

    ``ending`` is what is taken off a word that is not in the list.
    """

    words: Mapping[str, str]
    rewrites: list[tuple[re.Pattern[str], str]]
    ending: re.Pattern[str]


def data(name: str) -> Any:
    """Return a YAML file of this folder, named without its ending."""
    return read_yaml(f"judges/{name}.yaml")


_DATA = data("words")
_LETTERS = str.maketrans(
    {letter: by for by, letters in _DATA["letters"].items() for letter in letters}
)
_NUMERALS = {
    word: str(number) for number, word in enumerate(_DATA["numerals"].split(), 1)
}
_FORMS = {form: line.split()[0] for line in _DATA["forms"] for form in line.split()}
_NUMBERS = {
    word: number * (10 if key == "tens" else 1)
    for key in ("tens", "numbers", "ordinals")
    for number, word in enumerate(_DATA[key].split())
}
_SCALES = _DATA["scales"]


@lru_cache(maxsize=65536)
def _form(word: str) -> str:
    """Return the spelling of a word that stands for all, of nouns the singular."""
    word = _UMLAUT.sub(r"\1", word)
    plural = word[-1] == "s" and len(word) > 3 and word[-2] not in "su"
    return _FORMS.get(word) or (word[:-1] if plural else word)


def substitutions(
    name: str, flags: int = 0
) -> tuple[tuple[str, re.Pattern[str], str], ...]:
    """Return those under a key: a sign that a text must have, a pattern, and what it becomes."""
    return tuple(
        (sign, re.compile(pattern, flags), by) for sign, pattern, by in _DATA[name]
    )


_SUBSTITUTIONS = substitutions("substitutions")


def word_set(name: str) -> frozenset[str]:
    """Return the words of a set in ``words.yaml``."""
    return frozenset(map(_form, _DATA[name].split()))


FILLER = word_set("filler")
_EMPTY = FILLER | word_set("titles")


@lru_cache(maxsize=32)
def _language(code: str) -> _Language:
    known = data(f"languages/{code}") if code in LANGUAGES and code != "en" else {}
    words, unspaced = (
        {
            fold_letters(word).lower(): english
            for english, forms in known.get(key, {}).items()
            for word in forms.split()
        }
        for key in ("words", "unspaced")
    )
    patterns = []
    if alternatives := known.get("alternatives"):
        patterns.append((re.compile(rf"(?i){alternatives}"), " or "))
    if elided := "|".join(known.get("elided", ())):
        patterns.append((re.compile(rf"(?i)\b(?:{elided})'(?=\w)"), " "))
    for word in sorted(unspaced, key=len, reverse=True):
        patterns.append((re.compile(re.escape(word)), f" {unspaced[word]} "))

    months = calendar_of(code).months.items()
    return _Language(
        {fold_letters(name).lower(): month for name, month in months} | words,
        patterns,
        re.compile(known.get("ending", "")),
    )


def fold_letters(text: str) -> str:
    """Return a text without accents, with one way of writing where a script has several."""
    if text.isascii():
        return text.replace("`", "'")
    text = text.translate(_LETTERS)
    if text.isascii():
        return text
    kept = (
        str(unicodedata.digit(char)) if char.isdecimal() else char
        for char in unicodedata.normalize("NFKD", text)
        if not unicodedata.combining(char) or char in _VOICED
    )
    return unicodedata.normalize("NFC", "".join(kept)).translate(_LETTERS)


def is_unspaced(text: str) -> bool:
    """Return True if a text has letters of a script without spaces between words."""
    return bool(_UNSPACED.search(text))


@lru_cache(maxsize=8192)
def read_words(text: str, language: str = "") -> Text:
    """Read a text in ``language``; of a longer one only the first ``LONGEST`` characters."""
    code = base_language(language)
    known = _language(code)
    text = in_english_dates(fold_letters(text[:LONGEST]), code)
    for pattern, by in known.rewrites:
        text = pattern.sub(by, text)
    if is_unspaced(text):
        text = _RUN.sub(r" \1 ", text)
    has_digit = DIGIT.search(text)
    for sign, pattern, by in _SUBSTITUTIONS:
        if has_digit if sign == "0" else sign in text:
            text = pattern.sub(by, text)
    pieces: list[_Piece] = []
    gap = "\n"
    for number, scale, written, mark in _TOKEN.findall(text):
        if mark and mark not in _FORMS:
            gap += mark
            continue
        written += mark
        word = written.lower()
        if number:
            pieces.append((_digits(number), gap, ""))
            if scale:
                pieces.append((scale, "", ""))
        elif english := known.words.get(word):
            pieces += [(part, gap, written) for part in english.split()]
        else:
            pieces.append((known.ending.sub("", word), gap, written))
        gap = ""
    return _text(pieces)


# A word, the marks before it, and the word as it is written, empty for digits.
_Piece = tuple[str, str, str]


def _digits(number: str) -> str:
    """Return a number without separators of thousands."""
    number = re.sub(r"[, ]", "", re.sub(r",(?=\d\d?$)", ".", number))
    return number.replace(".", "") if number.count(".") > 1 else number


def _text(pieces: list[_Piece]) -> Text:
    """Return words, marks and capitals of what was read, with numbers in digits and without articles."""
    words: list[str] = []
    gaps: list[str] = []
    capitals: list[int] = []
    before, behind = "", 0
    # "The The" is nothing but articles.
    says = any(word not in _ARTICLES for word, _, _ in pieces)
    for index, (word, gap, written) in enumerate(pieces):
        if index < behind:
            continue
        form, capital, kind = _known(word, written)
        gap = before + gap
        if kind == "number":
            behind, form = _number(pieces, index)
        elif kind == "article" and says and (gap or written != "A"):
            before = gap
            continue
        elif kind == "numeral" and gap == "" and any(capitals[-1:]):
            form = _NUMERALS[written]
        words.append(form)
        gaps.append(gap)
        capitals.append(capital)
        before = ""
    content = tuple(word for word in words if word not in _EMPTY)
    return Text(tuple(words), tuple(gaps), tuple(capitals), frozenset(words), content)


@lru_cache(maxsize=65536)
def _known(word: str, written: str) -> tuple[str, int, str]:
    """Return the spelling of a word, its capitals, and its kind where words beside it change it."""
    capital = written[:1].isupper() + (len(written) > 1 and written.isupper())
    if word in _NUMBERS or word in _SCALES or word[0] in "-0123456789":
        return word, capital, "number"
    if word in _ARTICLES:
        return _form(word), capital, "article"
    return _form(word), capital, "numeral" if written in _NUMERALS else ""


def _number(pieces: list[_Piece], start: int) -> tuple[int, str]:
    """Read the number that begins at ``start``: where it ends, and its digits.

    "126", "one hundred and twenty-six" and "2.5 million" are numbers.
    """
    total, below, room, index = Decimal(0), Decimal(0), 100, start
    while index < len(pieces):
        word, gap, _ = pieces[index]
        if index > start and gap not in ("", "-"):
            break
        value, scale = _NUMBERS.get(word), _SCALES.get(word)
        if scale == 100:
            below, room = (below or Decimal(1)) * 100, 100
        elif scale:
            total, room = total + (below or Decimal(1)) * scale, scale
            below = Decimal(0)
        elif value is not None and value < room:
            below, room = below + value, 10 if value >= 20 else 0
        elif index == start and COUNTED.fullmatch(word) and len(word) < 19:
            below, room = Decimal(word), 0
        elif word != "and" or room < 100 or pieces[index:] == pieces[-1:]:
            break
        index += 1
    number = f"{total + below:f}"
    if index == start:
        return index, pieces[start][0]
    return index, re.sub(r"\.?0+$", "", number) if "." in number else number


_STRIPPED = substitutions("wrapping", re.IGNORECASE | re.DOTALL)


def strip_wrapping(answer: str) -> str:
    """Return an answer without what models put around it."""
    answer = html.unescape(answer) if "&" in answer else answer
    for sign, pattern, by in _STRIPPED:
        if sign in answer:
            answer = pattern.sub(by, answer)
    return answer.strip()[:LONGEST]
