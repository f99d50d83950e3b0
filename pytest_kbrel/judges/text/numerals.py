"""Number parser: digits, number words, scales ("million"), Roman numerals and signs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal

_UNITS: Sequence[str] = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven"),
    *("twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
)
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_SCALES = {"hundred": 100, "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_NTH: Sequence[str] = (
    *("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"),
    *("eleventh", "twelfth", "thirteenth", "fourteenth", "fifteenth", "sixteenth", "seventeenth"),
    *("eighteenth", "nineteenth", "twentieth"),
)
NUMBER_WORDS = {word: value for value, word in enumerate(_UNITS)} | {
    word: value * 10 for value, word in enumerate(_TENS, start=2)
}
_ENDINGS = {1: "st", 2: "nd", 3: "rd"}
ORDINALS = {word: f"{value}{_ENDINGS.get(value, 'th')}" for value, word in enumerate(_NTH, start=1)}
_ROMAN = re.compile(r"(?:XL|X{0,4})(?:IX|IV|V?I{0,3})")
_DIGITS = re.compile(r"\d+(?:\.\d+)?")
_MINUSES = str.maketrans("−–‐‑＋", "----+")
_SIGN = re.compile(
    r"(?<=\d)(?P<between>[.,/:])(?=\d)"
    r"|(?<![\w.)\]])(?P<before>[+-])(?=\.?\d)"
    r"|(?<=\d)\s?(?P<behind>[%+])(?!\w)"
    r"|(?<!\w)[^\W\d_]{1,2}(?P<letter>[+#-]+)(?!\w)"
)
_GRADE = re.compile(r"([^\W\d_]{1,2})([+#-]*)")
_MARKS = {"plus": "+", "positive": "+", "minus": "-", "negative": "-", "sharp": "#"}
_SPELLED = re.compile(r"(?<=\w)[\s-](plus|positive|minus|negative|sharp)\b", re.IGNORECASE)
# Longer ones are no quantities; they stay as they are written.
_MOST_DIGITS = 18


def signs_of(text: str) -> tuple[str, ...]:
    """Return the signs that make a number, a grade or a symbol another one, in their order.

    Between digits "." "," "/" ":", before a number "-" and "+", behind one "%" and "+", and "+", "-", "#"
    behind one or two letters ("C++", "O-"). Normalising a text takes them away.
    """
    return tuple(
        match["between"] or match["before"] or match["behind"] or match["letter"]
        for match in _SIGN.finditer(_one_minus(text))
    )


def has_other_sign(text: str, gold: str) -> bool:
    """Return True if ``gold`` is a letter or two that ``text`` has with another sign only ("C#" for "C")."""
    meant = _GRADE.fullmatch(_one_minus(gold).strip())
    if not meant:
        return False
    spelled = _SPELLED.sub(lambda match: _MARKS[match[1].lower()], _one_minus(text))
    signs = re.findall(rf"(?<!\w){meant[1]}([+#-]*)(?![\w+#-])", spelled)
    return bool(signs) and meant[2] not in signs


def _one_minus(text: str) -> str:
    return text.translate(_MINUSES)


def roman(word: str) -> str:
    """Return the value of a Roman numeral of 1 to 49 in digits, ``""`` for anything else."""
    if not word or not _ROMAN.fullmatch(word):
        return ""
    values = [{"I": 1, "V": 5, "X": 10, "L": 50}[letter] for letter in word]
    following = [*values[1:], 0]
    total = sum(-value if value < after else value for value, after in zip(values, following, strict=True))
    return str(total)


def read_number(words: Sequence[str]) -> tuple[int, str]:
    """Read the number that begins ``words``: how many words it takes and its digits; ``(0, "")`` without one.

    "126", "one hundred and twenty-six" and "2.5 million" are numbers; "1990s" and "3rd" stay as they are.
    """
    first = words[0]
    if _DIGITS.fullmatch(first):
        if len(first) > _MOST_DIGITS or (first[0] == "0" and first != "0" and not first.startswith("0.")):
            return 1, first
        used, value = 1, Decimal(first)
        while used < len(words) and words[used] in _SCALES:
            value *= _SCALES[words[used]]
            used += 1
        return used, format_decimal(value)
    return _spelled(words) if first in NUMBER_WORDS else (0, "")


def _spelled(words: Sequence[str]) -> tuple[int, str]:
    total, current, used, room = 0, 0, 0, 100
    while used < len(words):
        word = words[used]
        if word in NUMBER_WORDS and NUMBER_WORDS[word] < room:
            current += NUMBER_WORDS[word]
            room = 10 if NUMBER_WORDS[word] >= 20 and NUMBER_WORDS[word] % 10 == 0 else 0
        elif word in _SCALES and used:
            if word == "hundred":
                current, room = current * 100, 100
            else:
                total, current, room = total + current * _SCALES[word], 0, 1000
        elif not (word == "and" and used and words[used - 1] in _SCALES and _continues(words, used + 1)):
            break
        used += 1
    return used, str(total + current)


def _continues(words: Sequence[str], index: int) -> bool:
    return index < len(words) and words[index] in NUMBER_WORDS


def format_decimal(value: Decimal) -> str:
    """Write a number without exponent and without zeros at the end of its decimals."""
    text = format(value, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text
