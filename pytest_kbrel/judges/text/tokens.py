"""Tokeniser: a text as words in one spelling, without diacritics and articles, with numbers in digits.

Letters of scripts that are written in several ways are folded first. The judges compare these words;
:func:`pytest_kbrel.metrics.text.normalise` stays as it is, since published scores depend on it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from decimal import Decimal
from functools import lru_cache

from pytest_kbrel.judges.text.lexicon import (
    NUMBER_WORDS,
    ORDINALS,
    PHRASES,
    SPELLINGS,
    UNITS,
    word_set,
)
from pytest_kbrel.records import record

# Combining signs that belong to a word and that \w does not match: vowels of Indic scripts and Thai, harakat.
SIGNS = (
    r"\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06dc\u06df-\u06e4"
    r"\u0900-\u0963\u0966-\u096f\u0971-\u0df3\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ecd"
    r"\u0f71-\u0f84\u102b-\u103e\u17b4-\u17d3"
)
# Letters of scripts that put no space between words: Han, kana, Thai, Lao, Tibetan, Burmese, Khmer.
_UNSPACED = (
    r"\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
    r"\u0e00-\u0e7f\u0e80-\u0eff\u0f00-\u0fff\u1000-\u109f\u1780-\u17ff"
)
_UNSPACED_LETTER = re.compile(f"[{_UNSPACED}]")
_KATAKANA = r"\u30a1-\u30fa\u30fc-\u30fe"
_KATAKANA_LETTER = re.compile(f"[{_KATAKANA}]")
# Harakat, the small alef, tatweel, marks of direction, and the nukta of Devanagari and its neighbours.
_DROPPED = (
    "\u064b\u064c\u064d\u064e\u064f\u0650\u0651\u0652\u0653\u0654\u0655\u0670\u0640"
    "\u061c\u200e\u200f\u093c\u09bc\u0a3c\u0abc"
)
_FOLDED = str.maketrans(
    dict.fromkeys("أإآٱ", "ا")
    | {"ؤ": "و", "ئ": "ي", "ى": "ي", "ة": "ه", "ک": "ك", "ی": "ي", "ँ": "ं"}
    | {"ё": "е", "Ё": "Е"}
    | dict.fromkeys(_DROPPED, "")
)
_FOLDABLE = re.compile(f"[{_DROPPED}أإآٱؤئىةکیँёЁ٠-٩۰-۹०-९০-৯]")


def fold_letters(text: str) -> str:
    """Return a text in NFKC with one way of writing where a script has several.

    Arabic loses hamza, vowels and tatweel, Devanagari its nukta; digits of all scripts become 0 to 9.
    """
    if not _FOLDABLE.search(text):
        return text
    folded = text.translate(_FOLDED)
    return "".join(
        str(unicodedata.digit(sign)) if sign.isdecimal() else sign for sign in folded
    )


def is_unspaced(text: str) -> bool:
    """Return True if a text has letters of a script without spaces between words."""
    return bool(_UNSPACED_LETTER.search(text))


def has_no_case(word: str) -> bool:
    """Return True if a word is in a script without capitals."""
    return word.lower() == word.upper()


def unspaced_pattern(texts: Sequence[str]) -> str:
    """Return an expression for any of ``texts``, the longest first.

    Katakana ends where another script begins, so that a name in it is none inside a longer one.
    """
    before, behind = f"(?<![{_KATAKANA}])", f"(?![{_KATAKANA}])"
    return "|".join(
        f"{before if _KATAKANA_LETTER.match(text[0]) else ''}{re.escape(text)}"
        f"{behind if _KATAKANA_LETTER.match(text[-1]) else ''}"
        for text in sorted(filter(is_unspaced, set(texts)), key=len, reverse=True)
    )


# What follows is not read: an answer of this length is none, and a hostile one costs time.
LONGEST = 2000
LOWER, STARTS, CAPITAL, UPPER = 0, 1, 2, 3

_PIECE = re.compile(
    r"(?P<number>\d{1,3}(?:,\d{3})+(?:\.\d+)?(?!\d)|\d{1,3}(?: \d{3})+(?![\d.,]\d|\d)"
    r"|\d{1,3}(?:\.\d{3}){2,}(?!\d)"
    r"|\d+(?:\.\d+)?)(?P<ordinal>(?:st|nd|rd|th|s)\b)?"
    rf"|(?P<word>[^\W\d_][^\W_]*(?:[{SIGNS}]+[^\W_]*)*(?:'[^\W\d_]+)*)"
    r"|(?P<money>[$£€])"
    r"|(?P<mark>[^\w\s])",
    re.IGNORECASE,
)
_MONEY = {"$": "dollar", "£": "pound", "€": "euro"}
_AMOUNT = re.compile(
    r"(?:\b(?:US|A|C|NZ))?([$£€])\s?(\d[\d.,]*)(?:\s?(thousand|million|billion|trillion|bn|m|k)\b)?",
    re.IGNORECASE,
)
_SHORT_SCALES = {"bn": "billion", "m": "million", "k": "thousand"}
# What stands for an apostrophe; "‘" opens a quotation.
APOSTROPHES = str.maketrans(dict.fromkeys("´`ʼ′’", "'"))
_LATIN_MARK = re.compile(r"(?<=[a-zA-Z])[\u0300-\u036f]+")
_LETTERS = str.maketrans(
    {
        "ø": "o",
        "ł": "l",
        "đ": "d",
        "ð": "d",
        "þ": "th",
        "æ": "ae",
        "œ": "oe",
        "ı": "i",
        "ß": "ss",
    }
    | {
        "Ø": "O",
        "Ł": "L",
        "Đ": "D",
        "Ð": "D",
        "Þ": "Th",
        "Æ": "Ae",
        "Œ": "Oe",
        "İ": "I",
    }
    | dict.fromkeys("\u200b\u200c\u200d\u2060\ufeff\u00ad", "")
)
_SEASON = re.compile(r"\b(1\d{3}|20\d\d)([-–/])(\d\d)\b(?![-–/.,]?\d)((?: season)?)")
_MONTHS = 12
_CONTRACTED = re.compile(
    r"^(is|was|are|were|do|does|did|has|have|had|would|could|should|ca|wo)n't$"
)
_ABBREVIATED = word_set(
    "mr mrs ms dr st prof rev jr jnr sr snr capt gen col maj lt sen gov no vs mt ft inc ltd co corp c ave "
    "blvd rd"
)
# Hyphens and apostrophes tie, everything else parts.
_TYING = frozenset("-‐‑'&*_%+#@°")
_ENCLOSING = frozenset('"“”„‘«»‹›()[]{}')
_BREAKS = ("", '"', ",", ".")
# Word in lower case, case, break before it.
_Piece = tuple[str, int, str]
_ENDING = frozenset(".!?;\n…")


@record
class Words:
    """The words of a text; ``cases`` and ``breaks`` have one item a word.

    ``cases`` is ``LOWER``, ``STARTS`` (a capital, but the sentence begins here), ``CAPITAL`` or ``UPPER``
    (two capitals and more, nothing else). ``breaks`` is what stands before the word: ``""``, ``'"'`` (a
    quotation mark or parenthesis), ``","`` (any other mark inside a sentence) or ``"."``.
    """

    words: tuple[str, ...]
    cases: tuple[int, ...]
    breaks: tuple[str, ...]

    def part(self, start: int, end: int) -> Words:
        """Return the words from ``start`` to before ``end``."""
        return Words(
            words=self.words[start:end],
            cases=self.cases[start:end],
            breaks=self.breaks[start:end],
        )

    def at(self, index: int) -> str:
        """Return the word at ``index``, ``""`` outside the text."""
        return self.words[index] if 0 <= index < len(self.words) else ""

    def ends(self, index: int) -> bool:
        """Return True if a mark stands before the word at ``index`` or the text ends there."""
        return index >= len(self.words) or self.breaks[index] != ""

    def next_break(self, index: int, marks: str = '",.') -> int:
        """Return where the next word stands from ``index`` on that follows a mark; else the text's end."""
        size = len(self.words)
        return next(
            (
                at
                for at in range(index, size)
                if self.breaks[at] and self.breaks[at] in marks
            ),
            size,
        )

    def last_break(self, index: int, marks: str = '",.') -> int:
        """Return where the last word stands up to ``index`` that follows a mark; else 0."""
        while index > 0 and not (self.breaks[index] and self.breaks[index] in marks):
            index -= 1
        return index


@lru_cache(maxsize=4096)
def read_words(text: str) -> Words:
    """Read a text; of a longer one only the first ``LONGEST`` characters."""
    pieces = _pieces(normalise_letters(text[:LONGEST]))
    read: list[_Piece] = []
    gap = ""
    index = 0
    while index < len(pieces):
        word, case, before = pieces[index]
        if before:
            gap = max(gap, before, key=_BREAKS.index)
        if word in ("a", "an", "the") and case not in (CAPITAL, UPPER):
            index += 1
            continue
        used, written = _one_spelling(pieces, index, read)
        read.append((written, case, gap))
        gap = ""
        index += used
    words, cases, breaks = (
        zip(*(read or pieces), strict=True) if pieces else ((), (), ())
    )
    return Words(words=words, cases=cases, breaks=breaks)


def normalise_letters(text: str) -> str:
    """Return a text without accents, and with one spelling of signs, letters and amounts of money."""
    text = unicodedata.normalize("NFKC", text.translate(APOSTROPHES))
    if not text.isascii():
        text = _LATIN_MARK.sub(
            "", unicodedata.normalize("NFD", text.translate(_LETTERS))
        )
        text = fold_letters(unicodedata.normalize("NFC", text))
    text = _SEASON.sub(_season, text)
    if "$" in text or "£" in text or "€" in text:
        text = _AMOUNT.sub(_amount, text)
    return text


def _season(match: re.Match[str]) -> str:
    first, dash, second, behind = match.groups()
    # "1992-03" may be a month.
    is_month = dash == "-" and not behind and int(second) <= _MONTHS
    return (
        match[0]
        if is_month or int(second) <= int(first[2:])
        else f"{first}-{first[:2]}{second}{behind}"
    )


def _amount(match: re.Match[str]) -> str:
    scale = (match[3] or "").lower()
    end = "." if match[2][-1] in ".," else ""
    return f"{match[2].rstrip('.,')} {_SHORT_SCALES.get(scale, scale)} {_MONEY[match[1]]}{end}"


def _pieces(text: str) -> list[_Piece]:
    pieces: list[_Piece] = []
    gap, end = ".", 0
    last = ""
    for match in _PIECE.finditer(text):
        if "\n" in text[end : match.start()]:
            gap = "."
        tied, end = end == match.start(), match.end()
        if mark := match["mark"]:
            if mark == "." and last == "A" and tied and pieces[-1][0] == "a":
                # An initial is no article: "A. Adams".
                pieces[-1] = ("a", CAPITAL, pieces[-1][2])
            gap = _break(mark, last, gap)
            if mark == "%" or (mark == "&" and pieces):
                pieces.append(("percent" if mark == "%" else "and", LOWER, gap))
            continue
        if match["number"]:
            number = match["number"].replace(",", "").replace(" ", "")
            if number.count(".") > 1:
                number = number.replace(".", "")
            elif "." in number and not number.partition(".")[2].strip("0"):
                # "36.0" is 36.
                number = number.partition(".")[0]
            word, last = number + (match["ordinal"] or "").lower(), ""
            pieces.append((word, LOWER, gap))
        elif match["word"]:
            last = match["word"]
            pieces += _word(last, gap)
        gap = ""
    return pieces


def _break(mark: str, last: str, gap: str) -> str:
    if mark in _TYING:
        return gap
    if mark == "." and (len(last) == 1 or last.lower() in _ABBREVIATED):
        return gap
    kind = "." if mark in _ENDING else '"' if mark in _ENCLOSING else ","
    return max(kind, gap, key=_BREAKS.index)


def _word(word: str, gap: str) -> list[_Piece]:
    case = LOWER if not word[0].isupper() else STARTS if gap == "." else CAPITAL
    if case and len(word) > 1 and word.isupper():
        case = UPPER
    lower = word.casefold()
    if not case and lower.isalnum():
        return [(lower, case, gap)]
    contracted = _CONTRACTED.match(lower)
    if contracted:
        return [(contracted[1], case, gap), ("not", LOWER, "")]
    lower = lower.removesuffix("'s").replace("'", "")
    # "us" is a word of its own.
    if word == "US":
        lower = "usa"
    elif case and word.isupper() and (numeral := roman(word)):
        # Told from the words that look alike when the neighbours are known.
        lower = f"{lower}\0{numeral}"
    return [(lower, case, gap)]


def _one_spelling(
    pieces: list[_Piece], index: int, before: list[_Piece]
) -> tuple[int, str]:
    """Return how many pieces make up the next word and how it is written."""
    word, _, gap = pieces[index]
    last = before[-1][0] if before else ""
    if "\0" in word:
        letters, _, numeral = word.partition("\0")
        # "Charles I", not "Paris, I think".
        return 1, numeral if last.isalpha() and not gap else letters
    if word[0].isdigit() or word in NUMBER_WORDS:
        used, number = read_number(_following(pieces, index))
        if used:
            return used, number
    if last.replace(".", "").isdigit():
        following = _following(pieces, index)
        if word in UNITS:
            return (
                2 if UNITS[word] == "pound" and following[1:2] == ["sterling"] else 1
            ), UNITS[word]
        if following[:2] == ["per", "cent"]:
            return 2, "percent"
        if word == "in" and len(before) > 1 and before[-2][0] == "ft":
            return 1, "inch"
        if word == "b" and (era := "".join(following[:3])).startswith("bc"):
            return (3 if era == "bce" else 2), "bc"
    if word in ORDINALS:
        return 1, ORDINALS[word]
    if word in ("united", "u"):
        for length in (4, 3, 2):
            phrase = tuple(_following(pieces, index)[:length])
            if phrase in PHRASES:
                return length, PHRASES[phrase]
    return 1, SPELLINGS.get(word, word)


def _following(pieces: list[_Piece], index: int) -> list[str]:
    """Return the words from ``index`` on, as many as a number or a phrase may have."""
    return [piece[0] for piece in pieces[index : index + 12]]


_SCALES = {
    "hundred": 100,
    "thousand": 10**3,
    "million": 10**6,
    "billion": 10**9,
    "trillion": 10**12,
}
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
_SPELLED = re.compile(
    r"(?<=\w)[\s-](plus|positive|minus|negative|sharp)\b", re.IGNORECASE
)
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
    return str(
        sum(
            -one if one < after else one
            for one, after in zip(values, [*values[1:], 0], strict=True)
        )
    )


def read_number(words: Sequence[str]) -> tuple[int, str]:
    """Read the number that begins ``words``: how many words it takes and its digits; ``(0, "")`` without one.

    "126", "one hundred and twenty-six" and "2.5 million" are numbers; "1990s" and "3rd" stay as they are.
    """
    first = words[0]
    if _DIGITS.fullmatch(first):
        if len(first) > _MOST_DIGITS or (
            first[0] == "0" and first != "0" and not first.startswith("0.")
        ):
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
            room = (
                10 if NUMBER_WORDS[word] >= 20 and NUMBER_WORDS[word] % 10 == 0 else 0
            )
        elif word in _SCALES and used:
            if word == "hundred":
                current, room = current * 100, 100
            else:
                total, current, room = total + current * _SCALES[word], 0, 1000
        elif (
            word != "and"
            or words[used - 1] not in _SCALES
            or NUMBER_WORDS.keys().isdisjoint(words[used + 1 : used + 2])
        ):
            break
        used += 1
    return used, str(total + current)


def format_decimal(value: Decimal) -> str:
    """Write a number without exponent and without zeros at the end of its decimals."""
    text = format(value, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text
