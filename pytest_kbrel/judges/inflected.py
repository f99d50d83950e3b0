"""Accepted answers in the cases of Russian nouns, and behind the prefixes of Arabic."""

from __future__ import annotations

import re

# The last letters of a noun in the nominative, and what may stand in their place: singular only.
_RUSSIAN = (
    ("ия", ("ия", "ии", "ию", "ией")),
    ("ие", ("ие", "ия", "ию", "ием", "ии")),
    ("ая", ("ая", "ой", "ую")),
    ("яя", ("яя", "ей", "юю")),
    ("ое", ("ое", "ого", "ому", "ым", "ом")),
    ("ый", ("ый", "ого", "ому", "ым", "ом")),
    ("ий", ("ий", "ия", "ию", "ием", "ии", "ого", "ому", "им", "ом", "его", "ему", "ем")),
    ("й", ("й", "я", "ю", "ем", "е")),
    ("а", ("а", "ы", "и", "е", "у", "ой")),
    ("я", ("я", "и", "е", "ю", "ей")),
    ("ь", ("ь", "я", "ю", "ем", "е", "и", "ью")),
)
_CONSONANT = re.compile(r"[бвгджзклмнпрстфхцчшщ]$", re.IGNORECASE)
_CASES = ("", "а", "у", "ом", "ем", "е")
_CYRILLIC = re.compile(r"[а-яА-ЯёЁ-]+")
_ARABIC = re.compile(r"[\u0621-\u064a ]+")
_LEAST_STEM = 3
_LEAST_ARABIC = 4


def inflected_pattern(gold: str, language: str) -> str:
    """Return an expression for ``gold`` in the forms of a sentence; empty where nothing safe is known.

    Russian: the cases of the singular by the ending of each word, so that Niger is not found in Nigeria.
    Arabic: "and", "in", "for" and "as", which are written together with the word.
    """
    if language == "ru":
        words = gold.split()
        if not words or not all(_CYRILLIC.fullmatch(word) for word in words):
            return ""
        forms = [_russian(word) for word in words]
        return rf"(?<!\w){' '.join(forms)}(?!\w)" if all(forms) else ""
    if language == "ar" and _ARABIC.fullmatch(gold) and len(gold) >= _LEAST_ARABIC:
        joined = f"|لل{re.escape(gold[2:])}" if gold.startswith("ال") else ""
        return rf"(?<!\w)(?:[وبلكف]{re.escape(gold)}{joined})(?!\w)"
    return ""


def _russian(word: str) -> str:
    for ending, forms in _RUSSIAN:
        if word.lower().endswith(ending):
            stem = word[: -len(ending)]
            return f"{re.escape(stem)}(?:{'|'.join(forms)})" if len(stem) >= _LEAST_STEM else ""
    if _CONSONANT.search(word) and len(word) >= _LEAST_STEM:
        return f"{re.escape(word)}(?:{'|'.join(_CASES)})"
    return re.escape(word)
