"""Spellings of names, and names inside others."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable


def fold(text: str) -> str:
    """Return ``text`` without accents, as it is typed on a keyboard that has none."""
    text = text.replace("ß", "ss").translate(str.maketrans("øØıłŁđĐÐ’", "oOilLdDD'"))
    plain = unicodedata.normalize("NFKD", text)
    return "".join(char for char in plain if not unicodedata.combining(char))


def has_words(text: str, words: str) -> bool:
    """Return True if ``words`` occur in ``text`` as whole words, whatever their accents and case."""
    return (
        re.search(
            rf"(?<!\w){re.escape(fold(words).casefold())}(?!\w)", fold(text).casefold()
        )
        is not None
    )


def saints(name: str) -> list[str]:
    """Return the other spellings of a name that begins with "Saint"."""
    spelt = re.fullmatch(r"(Saint|St\.?) (.*)", name)
    return [f"{saint} {spelt[2]}" for saint in ("Saint", "St.", "St")] if spelt else []


def other_names(answer: str, others: Iterable[str]) -> tuple[str, ...]:
    """Return ``others`` and all spellings without accents, each once and without ``answer`` itself."""
    names = {answer.casefold(): answer}
    for other in others:
        names.setdefault(other.casefold(), other)
    for name in list(names.values()):
        for spelt in (*saints(name), fold(name)):
            names.setdefault(spelt.casefold(), spelt)
    return tuple(names.values())[1:]
