"""Scripts: letters that are written in more than one way, signs of a word, and words without spaces."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

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
    return "".join(str(unicodedata.digit(sign)) if sign.isdecimal() else sign for sign in folded)


def is_unspaced(text: str) -> bool:
    """Tell whether a text has letters of a script without spaces between words."""
    return bool(_UNSPACED_LETTER.search(text))


def has_no_case(word: str) -> bool:
    """Tell whether a word is in a script without capitals."""
    return word.lower() == word.upper()


def unspaced_pattern(texts: Sequence[str]) -> str:
    """Return an expression for any of ``texts``, the longest first.

    Katakana ends where another script begins, so that a name in it is none inside a longer one.
    """
    found = []
    for text in sorted(set(texts), key=len, reverse=True):
        if not is_unspaced(text):
            continue
        before = f"(?<![{_KATAKANA}])" if _KATAKANA_LETTER.match(text[0]) else ""
        behind = f"(?![{_KATAKANA}])" if _KATAKANA_LETTER.match(text[-1]) else ""
        found.append(f"{before}{re.escape(text)}{behind}")
    return "|".join(found)
