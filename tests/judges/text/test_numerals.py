"""Numbers in words and digits, Roman numerals, and the signs that tell two numbers apart."""

from __future__ import annotations

from decimal import Decimal

import pytest

from pytest_kbrel.judges.rules import judge
from pytest_kbrel.judges.text.tokens import (
    ORDINALS,
    format_decimal,
    has_other_sign,
    read_number,
    roman,
    signs_of,
)

# What stands behind the number is not part of it; a Roman numeral and an ordinal are read elsewhere.
READ = [
    ("zero", 1, "0"),
    ("one", 1, "1"),
    ("two", 1, "2"),
    ("three", 1, "3"),
    ("four", 1, "4"),
    ("five", 1, "5"),
    ("six", 1, "6"),
    ("seven", 1, "7"),
    ("eight", 1, "8"),
    ("nine", 1, "9"),
    ("ten", 1, "10"),
    ("eleven", 1, "11"),
    ("twelve", 1, "12"),
    ("thirteen", 1, "13"),
    ("fourteen", 1, "14"),
    ("fifteen", 1, "15"),
    ("sixteen", 1, "16"),
    ("seventeen", 1, "17"),
    ("eighteen", 1, "18"),
    ("nineteen", 1, "19"),
    ("twenty one", 2, "21"),
    ("thirty two", 2, "32"),
    ("forty three", 2, "43"),
    ("fifty four", 2, "54"),
    ("sixty five", 2, "65"),
    ("seventy six", 2, "76"),
    ("eighty seven", 2, "87"),
    ("ninety nine", 2, "99"),
    ("one hundred", 2, "100"),
    ("two hundred and five", 4, "205"),
    ("two hundred five", 3, "205"),
    ("one thousand", 2, "1000"),
    ("two thousand five", 3, "2005"),
    ("two hundred thousand and one", 5, "200001"),
    ("three million two thousand", 4, "3002000"),
    ("one billion", 2, "1000000000"),
    ("one trillion", 2, "1000000000000"),
    ("7 hundred", 2, "700"),
    ("7 thousand", 2, "7000"),
    ("2.5 million", 2, "2500000"),
    ("2.5 billion", 2, "2500000000"),
    ("2.5 trillion", 2, "2500000000000"),
    ("2 hundred thousand", 3, "200000"),
    ("0 million", 2, "0"),
    ("2.50", 1, "2.5"),
    ("0.50", 1, "0.5"),
    # Two numbers side by side are not one.
    ("twenty ten", 1, "20"),
    ("twenty eleven", 1, "20"),
    ("eleven one", 1, "11"),
    ("one two", 1, "1"),
    ("twenty one two", 2, "21"),
    ("nineteen ninety", 1, "19"),
    ("twenty and five", 1, "20"),
    ("one hundred or five", 2, "100"),
    ("one hundred and boats", 2, "100"),
    ("one hundred and", 2, "100"),
    ("ten five", 1, "10"),
    ("one zero", 1, "1"),
    ("seven boats", 1, "7"),
    ("7 boats", 1, "7"),
    # No number, or one that stays as it is written.
    ("hundred boats", 0, ""),
    ("million", 0, ""),
    ("and", 0, ""),
    ("boats", 0, ""),
    ("007", 1, "007"),
    ("00", 1, "00"),
    ("1234567890123456.0", 1, "1234567890123456"),
    ("12345678901234567.0", 1, "12345678901234567.0"),
    ("1234567890123456789 million", 1, "1234567890123456789"),
]


@pytest.mark.parametrize(
    ("text", "used", "digits"), READ, ids=[text for text, *_ in READ]
)
def test_a_number_is_read_as_far_as_it_goes(text, used, digits):
    assert read_number(text.split()) == (used, digits)


def test_ordinals_in_words_are_written_as_ordinals_in_digits():
    assert dict(ORDINALS) == {
        "first": "1st",
        "second": "2nd",
        "third": "3rd",
        "fourth": "4th",
        "fifth": "5th",
        "sixth": "6th",
        "seventh": "7th",
        "eighth": "8th",
        "ninth": "9th",
        "tenth": "10th",
        "eleventh": "11th",
        "twelfth": "12th",
        "thirteenth": "13th",
        "fourteenth": "14th",
        "fifteenth": "15th",
        "sixteenth": "16th",
        "seventeenth": "17th",
        "eighteenth": "18th",
        "nineteenth": "19th",
        "twentieth": "20th",
    }


@pytest.mark.parametrize(
    ("word", "digits"),
    [
        ("I", "1"),
        ("II", "2"),
        ("III", "3"),
        ("IV", "4"),
        ("V", "5"),
        ("VI", "6"),
        ("VIII", "8"),
        ("IX", "9"),
        ("X", "10"),
        ("XIV", "14"),
        ("XIX", "19"),
        ("XXIII", "23"),
        ("XXXXIX", "49"),
        ("IIII", ""),
        ("VV", ""),
        ("VX", ""),
        ("IIX", ""),
        ("XXXXX", ""),
        ("XL", "40"),
        ("XLVIII", "48"),
        ("XLX", ""),
        ("L", ""),
        ("xi", ""),
        ("MIX", ""),
        ("", ""),
    ],
)
def test_a_roman_numeral_up_to_49_is_read(word, digits):
    assert roman(word) == digits


@pytest.mark.parametrize(
    ("text", "signs"),
    [
        ("1.5", "."),
        ("1,234", ","),
        ("3/4", "/"),
        ("5:15", ":"),
        ("1,234.5", ",."),
        ("-5", "-"),
        ("+5", "+"),
        ("\u22125", "-"),
        ("-.5", "-"),
        ("it is -5", "-"),
        ("126%", "%"),
        ("126 %", "%"),
        ("18+", "+"),
        ("-5%", "-%"),
        # Such marks tell nothing apart.
        ("Paris", ""),
        ("5.", ""),
        (".5", ""),
        ("3, 4", ""),
        ("3 , 4", ""),
        ("a.5", ""),
        ("7,b", ""),
        ("1-2", ""),
        ("a-5", ""),
        ("(3)-5", ""),
        ("[3]-5", ""),
        ("3.-5", ""),
        ("- 5", ""),
        ("-a5", ""),
        ("5+x", ""),
        ("50%off", ""),
        ("x %", ""),
    ],
)
def test_the_signs_of_a_number(text, signs):
    assert "".join(signs_of(text)) == signs


@pytest.mark.parametrize(
    ("text", "signs"),
    [
        ("C++", ("++",)),
        ("C#", ("#",)),
        ("O-", ("-",)),
        ("AB+", ("+",)),
        ("Vitamin C", ()),
        # A longer word is no grade, and a hyphen that ties two words is no sign.
        ("ABC+", ()),
        ("A-b", ()),
        ("C-x", ()),
    ],
)
def test_the_signs_of_a_grade(text, signs):
    assert signs_of(text) == signs


@pytest.mark.parametrize(
    ("text", "gold", "other"),
    [
        ("C#", "C", True),
        ("C", "C#", True),
        ("C sharp", "C", True),
        ("It is C plus plus", "C", True),
        ("O positive", "O-", True),
        ("O-positive", "O-", True),
        ("O POSITIVE", "O-", True),
        ("O negative", "O+", True),
        ("A minus", "A", True),
        ("A plus", "A", True),
        ("C#", " C ", True),
        ("C", "C", False),
        ("C sharp", "C#", False),
        ("C Sharp", "C#", False),
        ("C plus plus", "C++", False),
        ("O positive", "O+", False),
        ("O negative", "O-", False),
        ("A minus", "A-", False),
        ("A\u2212", "A-", False),
        # Both are named, or another thing is.
        ("C# and C", "C", False),
        ("D#", "C", False),
        ("AC#", "C", False),
        ("Cat", "C#", False),
        ("Cats are positive", "C", False),
        ("CDE+", "CDE", False),
    ],
)
def test_a_letter_with_another_sign_is_another_thing(text, gold, other):
    assert has_other_sign(text, gold) is other


@pytest.mark.parametrize(
    ("gold", "answer", "expected"),
    [
        ("Henry IX", "Henry 9", "correct"),
        ("Henry IX", "Henry the Ninth", "correct"),
        ("Henry XIV", "Henry 14", "correct"),
        ("Henry VI", "Henry IV", "wrong"),
        ("Henry XI", "Henry IX", "wrong"),
        ("Henry XX", "Henry XXI", "wrong"),
        ("12,000", "twelve thousand", "correct"),
        ("12,000", "twelve hundred", "wrong"),
        ("205", "two hundred and five", "correct"),
        ("205", "two hundred and fifty", "wrong"),
        ("250", "two hundred and five", "wrong"),
        ("3rd", "third", "correct"),
        ("3rd", "thirteenth", "wrong"),
    ],
)
def test_a_number_written_otherwise_is_that_number_and_no_other(gold, answer, expected):
    assert judge(answer, (gold,), "Which is it?").label == expected


def test_a_number_is_written_in_digits():
    assert format_decimal(Decimal("1E+6")) == "1000000"
    assert format_decimal(Decimal("2.50")) == "2.5"
    assert format_decimal(Decimal("250")) == "250"
