import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_kbrel.reports.formatting import (
    answer_text,
    bound,
    count,
    difference,
    expected_text,
    interval,
    number,
    one_line,
    p_value,
    signed,
    thousands,
)

PLAIN = ("Łódź", "東京", "القاهرة", "می\u200cخواهم", "👩\u200d🔬", "O'Neil & Söhne")
HIDDEN = set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\ufeff")


@given(st.text(st.characters(codec=None)) | st.sampled_from(PLAIN), st.integers(0, 40))
def test_one_line_is_one_line_of_harmless_characters(text, limit):
    shown = one_line(text, limit)
    kinds = {unicodedata.category(char) for char in shown}
    assert not kinds & {"Cc", "Cs", "Zl", "Zp"}
    assert not set(shown) & HIDDEN
    assert not limit or len(shown) <= limit
    assert one_line(shown) == shown
    if text in PLAIN and not limit:
        assert shown == text


@pytest.mark.parametrize(
    ("shown", "told"),
    [
        (number(0.5834), "0.583"),
        (number(-0.5834, 2, zero=False), "-.58"),
        (number(0.9996, zero=False), "1.000"),
        (number(-0.0001), "0.000"),
        (number(None), "–"),
        (number(float("nan")), "–"),
        (one_line("abcde", 4), "abc…"),
        (one_line("a\nbc", 4), r"a\n…"),
        (one_line("\xad\x7f\xff\u2028\U000e0001"), r"\xad\x7fÿ\u2028\ue0001"),
        (answer_text(" Oslo\n") + expected_text(" Oslo\n"), "OsloOslo"),
        (answer_text(" \t") + expected_text(""), "(nothing)(no answer exists)"),
        (interval(-0.1, 0.0), "[-0.100, 0.000]"),
        (difference(-0.1, 0.25), "[-0.100, +0.250]"),
        (difference(0.0, 0.25), "[0.000, +0.250]"),
        (interval(None, 0.1) + difference(0.1, None), ""),
        (p_value(0.000999), "p < 0.001"),
        (p_value(0.001), "p = 0.001"),
        (p_value(None), ""),
        (bound(0.0) + bound(1 / 3), "00.333333"),
        (count(0, "fact") + count(1, "fact"), "0 facts1 fact"),
        (thousands("13275") + thousands("off\x1b") + thousands("٣"), r"13,275off\x1b٣"),
        (signed(0.0312) + signed(-0.0312), "+0.031-0.031"),
        (signed(0.0) + signed(-0.0001) + signed(None), "=0.000"),
    ],
)
def test_numbers_and_words(shown, told):
    assert shown == told
