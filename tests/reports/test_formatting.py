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


@given(st.text(st.characters(codec=None)), st.integers(0, 40))
def test_one_line_is_one_line_of_harmless_characters(text, limit):
    shown = one_line(text, limit)
    assert not any(
        unicodedata.category(char) in {"Cc", "Cs", "Zl", "Zp"} for char in shown
    )
    assert not set(shown) & set(
        "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\ufeff"
    )
    assert not limit or len(shown) <= limit
    assert one_line(shown) == shown


def test_ordinary_text_of_all_scripts_is_left_alone():
    for text in (
        "Łódź",
        "東京",
        "القاهرة",
        "می\u200cخواهم",
        "👩\u200d🔬",
        "O'Neil & Söhne",
    ):
        assert one_line(text) == text


@pytest.mark.parametrize(
    ("value", "digits", "zero", "shown"),
    [
        (0.5834, 3, True, "0.583"),
        (0.5834, 2, False, ".58"),
        (-0.5834, 2, False, "-.58"),
        (0.9996, 3, False, "1.000"),
        (0.0, 2, False, ".00"),
        (-float("inf"), 3, True, "–"),
        (-0.0001, 3, True, "0.000"),
        (None, 3, True, "–"),
        (float("nan"), 3, True, "–"),
    ],
)
def test_numbers(value, digits, zero, shown):
    assert number(value, digits, zero=zero) == shown


@pytest.mark.parametrize(
    ("text", "limit", "shown"),
    [
        ("abcde", 4, "abc…"),
        ("ab", 1, "…"),
        ("", 3, ""),
        ("a\nbc", 4, r"a\n…"),
        ("\xad\x7f\xff\u0600", 0, "\\xad\\x7fÿ\\u0600"),
        ("\u2028\u2029\ufeff\u200b", 0, r"\u2028\u2029\ufeff\u200b"),
        ("\U000e0001", 0, r"\ue0001"),
    ],
)
def test_how_a_text_comes_onto_one_line(text, limit, shown):
    assert one_line(text, limit) == shown


@pytest.mark.parametrize(
    ("text", "limit", "answer", "expected"),
    [(" Oslo\n", 0, "Oslo", "Oslo"), (" \t", 0, "(nothing)", "(no answer exists)")],
)
def test_a_blank_is_told_in_words(text, limit, answer, expected):
    assert (answer_text(text, limit), expected_text(text, limit)) == (answer, expected)


@pytest.mark.parametrize(
    ("low", "high", "plain", "signs"),
    [
        (0.1, 0.25, "[0.100, 0.250]", "[+0.100, +0.250]"),
        (-0.1, 0.0, "[-0.100, 0.000]", "[-0.100, 0.000]"),
        (None, 0.1, "", ""),
    ],
)
def test_an_interval_needs_both_ends(low, high, plain, signs):
    assert (interval(low, high), difference(low, high)) == (plain, signs)


@pytest.mark.parametrize(
    ("p", "shown"), [(None, ""), (0.000999, "p < 0.001"), (0.001, "p = 0.001")]
)
def test_a_p_value_is_never_nought(p, shown):
    assert p_value(p) == shown


@pytest.mark.parametrize(
    ("value", "shown"), [(0.0, "0"), (0.02, "0.02"), (1 / 3, "0.333333")]
)
def test_a_bound_is_written_as_in_the_suite(value, shown):
    assert bound(value) == shown


@pytest.mark.parametrize(("n", "shown"), [(0, "0 facts"), (1, "1 fact")])
def test_one_is_no_plural(n, shown):
    assert count(n, "fact") == shown


@pytest.mark.parametrize(
    ("digits", "shown"), [("13275", "13,275"), ("off\x1b", r"off\x1b"), ("٣", "٣")]
)
def test_whole_numbers_have_separators_of_thousands(digits, shown):
    assert thousands(digits) == shown


def test_differences_carry_their_sign():
    assert [signed(value) for value in (0.0312, -0.0312, 0.0, -0.0001, None, float("nan"))] == [
        "+0.031", "-0.031", "=", "0.000", "", "",
    ]  # fmt: skip
    assert difference(-0.11, 0.0) == "[-0.110, 0.000]"
    assert interval(0.1, None) == ""
