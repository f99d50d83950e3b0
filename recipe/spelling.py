"""Spellings of names."""

from __future__ import annotations

import unicodedata


def fold(text: str) -> str:
    """Return ``text`` without accents, as it is typed on a keyboard that has none."""
    table = str.maketrans(
        {
            "ø": "o",
            "Ø": "O",
            "ı": "i",
            "ł": "l",
            "Ł": "L",
            "đ": "d",
            "Đ": "D",
            "Ð": "D",
            "ß": "ss",
            "’": "'",
        }
    )
    plain = unicodedata.normalize("NFKD", text.translate(table))
    return "".join(char for char in plain if not unicodedata.combining(char))
