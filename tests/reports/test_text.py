from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_kbrel.reports.text import cells, difference, fit, interval, number, one_line, pad, signed, spoken


@given(st.text(st.characters(codec=None)), st.integers(0, 40))
def test_one_line_is_one_line_of_harmless_characters(text: str, limit: int) -> None:
    shown = one_line(text, limit)
    assert not any(unicodedata.category(char) in {"Cc", "Cs", "Zl", "Zp"} for char in shown)
    assert not set(shown) & set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\ufeff")
    assert not limit or len(shown) <= limit
    assert one_line(shown) == shown


def test_ordinary_text_of_all_scripts_is_left_alone() -> None:
    for text in ("Łódź", "東京", "القاهرة", "می\u200cخواهم", "👩\u200d🔬", "O'Neil & Söhne"):
        assert one_line(text) == text


def test_escapes_are_readable() -> None:
    assert one_line("a\nb\t\x1b[0m\u202e\ud800\x9b") == r"a\nb\t\x1b[0m\u202e\ud800\x9b"
    assert spoken("  \n ") == "(nothing)"


@pytest.mark.parametrize(
    ("value", "digits", "zero", "shown"),
    [
        (0.5834, 3, True, "0.583"),
        (0.5834, 2, False, ".58"),
        (-0.5834, 2, False, "-.58"),
        (1.0, 2, False, "1.00"),
        (10.04, 2, False, "10.04"),
        (-0.0001, 3, True, "0.000"),
        (None, 3, True, "–"),
        (float("nan"), 3, True, "–"),
        (float("inf"), 3, True, "–"),
    ],
)
def test_numbers(value: float | None, digits: int, zero: bool, shown: str) -> None:
    assert number(value, digits, zero=zero) == shown


def test_differences_carry_their_sign() -> None:
    assert [signed(value) for value in (0.0312, -0.0312, 0.0, -0.0001, None, float("nan"))] == [
        "+0.031", "-0.031", "=", "0.000", "", "",
    ]  # fmt: skip
    assert difference(-0.11, 0.0) == "[-0.110, 0.000]"
    assert interval(0.1, None) == ""


@given(st.text(max_size=30), st.integers(1, 40))
def test_fitting_and_padding_count_terminal_columns(text: str, width: int) -> None:
    fitted = fit(one_line(text), width)
    assert cells(fitted) <= width
    assert cells(pad(fitted, width)) == width


def test_wide_characters_take_two_columns() -> None:
    assert cells("東京") == 4
    assert cells("e\u0301") == 1
    assert fit("東京都", 4) == "東…"
