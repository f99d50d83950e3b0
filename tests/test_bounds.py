"""What a number may be that somebody states, and how a message shows one that may not."""

from __future__ import annotations

import pytest

from pytest_kbrel.bounds import COUNT, PRICE, SEED, SHARE, Bounds, shown


@pytest.mark.parametrize("value", [1, 1000])
def test_both_ends_are_within(value):
    assert value in COUNT


@pytest.mark.parametrize(
    "value",
    [
        0,
        1001,
        -1,
        pytest.param(10**5000, id="huge"),
        1.0,
        True,
        "1",
        None,
        float("nan"),
    ],
)
def test_what_is_not_such_a_whole_number(value):
    assert value not in COUNT


@pytest.mark.parametrize("value", [1e-9, 0.5, 1, 1.0])
def test_the_least_may_be_left_out(value):
    assert value in SHARE


@pytest.mark.parametrize(
    "value", [0, -0.0, 1.001, 10**400, float("inf"), float("nan"), True]
)
def test_what_is_no_share(value):
    assert value not in SHARE


def test_bounds_in_words():
    assert str(COUNT) == "a whole number from 1 to 1,000"
    assert str(SHARE) == "a number above 0 and up to 1"
    assert str(PRICE) == "a number from 0 to 1,000,000"
    assert str(Bounds(0.25, 1e300, whole=False)) == "a number from 0.25 to 1e+300"


@pytest.mark.parametrize(("text", "value"), [("1", 1), ("007", 7), ("1000", 1000)])
def test_a_text_is_read_as_a_whole_number(text, value):
    assert COUNT.integer(text) == value


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0",
        "1001",
        "+1",
        "-1",
        "1.0",
        "1e2",
        "0x10",
        "1_0",
        " 1",
        "1\n",
        "\u0661",
        "nan",
        "1:30",
        "9" * 5000,
    ],
)
def test_a_text_that_is_no_such_whole_number(text):
    with pytest.raises(
        ValueError, match=r"^found .*; allowed: a whole number from 1 to 1,000$"
    ) as caught:
        COUNT.integer(text)
    assert len(str(caught.value)) < 130


@pytest.mark.parametrize(
    ("text", "value"),
    [("0.15", 0.15), (".5", 0.5), ("2.", 2), ("1e3", 1000), ("-0", 0)],
)
def test_a_text_is_read_as_a_number(text, value):
    assert repr(PRICE.number(text)) == repr(float(value))


@pytest.mark.parametrize(
    "text",
    ["", ".", "nan", "inf", "1e400", "1_0", "0x1", "1e9", "-0.1", "9" * 5000, "1,5"],
)
def test_a_text_that_is_no_such_number(text):
    with pytest.raises(
        ValueError, match=r"^found .*; allowed: a number from 0 to 1,000,000$"
    ):
        PRICE.number(text)


def test_the_largest_seed_is_what_others_take_too():
    assert 2**63 - 1 in SEED
    assert 2**63 not in SEED


def test_long_values_are_shown_by_their_beginning():
    assert shown("x" * 61) == repr("x" * 57 + "...")
    assert shown(12) == "12"
    assert shown(10**5000) == "a number of about 5,000 digits"
