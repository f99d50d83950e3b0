"""Dates and periods in a text, form by form and word by word."""

from __future__ import annotations

import pytest

from pytest_kbrel.judges.text.dates import (
    Date,
    as_dates,
    as_period,
    dates_in,
    finest,
    periods_in,
)

MONTHS = [
    *(
        ("January", 1),
        ("February", 2),
        ("March", 3),
        ("April", 4),
        ("May", 5),
        ("June", 6),
        ("July", 7),
    ),
    *(
        ("August", 8),
        ("September", 9),
        ("October", 10),
        ("November", 11),
        ("December", 12),
    ),
    *(
        ("Jan", 1),
        ("Feb", 2),
        ("Mar", 3),
        ("Apr", 4),
        ("Jun", 6),
        ("Jul", 7),
        ("Aug", 8),
        ("Sep", 9),
    ),
    *(("Sept", 9), ("Oct", 10), ("Nov", 11), ("Dec", 12)),
]


@pytest.mark.parametrize(("name", "month"), MONTHS)
def test_every_month_by_its_name_and_short(name, month):
    day = Date(year=2031, month=month, day=5)
    for text in (
        f"5 {name} 2031",
        f"{name.upper()} 5, 2031",
        f"{name}. 5th 2031",
        f"5{name.lower()} 2031",
    ):
        assert as_dates(text) == (day,)
    assert as_dates(f"{name} 2031") == (Date(year=2031, month=month),)


def ymd(year, month=0, day=0, unit=""):
    return Date(year=year, month=month, day=day, unit=unit)


FORMS = [
    ("2031-03-05", ymd(2031, 3, 5)),
    ("2031/3/5", ymd(2031, 3, 5)),
    ("2031.03.05", ymd(2031, 3, 5)),
    ("25/12/1999", ymd(1999, 12, 25)),
    ("12/25/1999", ymd(1999, 12, 25)),
    ("25-12-1999", ymd(1999, 12, 25)),
    ("25.12.1999", ymd(1999, 12, 25)),
    ("03/03/1999", ymd(1999, 3, 3)),
    ("the 5th of March, 2031", ymd(2031, 3, 5)),
    ("5 March of 2031", ymd(2031, 3, 5)),
    ("1st March 2031", ymd(2031, 3, 1)),
    ("2nd March 2031", ymd(2031, 3, 2)),
    ("3rd March 2031", ymd(2031, 3, 3)),
    ("31 March 2031", ymd(2031, 3, 31)),
    ("5 March", ymd(0, 3, 5)),
    ("March 5", ymd(0, 3, 5)),
    ("March the 5th, 2031", ymd(2031, 3, 5)),
    ("March 5 of 2031", ymd(2031, 3, 5)),
    ("March 3rd", ymd(0, 3, 3)),
    ("March, 2031", ymd(2031, 3)),
    ("March of 2031", ymd(2031, 3)),
    ("5 March 793", ymd(793, 3, 5)),
    ("5 March 844 BC", ymd(-844, 3, 5)),
    ("the 1960s", ymd(1960, unit="decade")),
    ("19th century", ymd(19, unit="century")),
    ("21st century", ymd(21, unit="century")),
    ("22nd century", ymd(22, unit="century")),
    ("3rd-century", ymd(3, unit="century")),
    ("the nineteenth century", ymd(19, unit="century")),
    ("the nineteenth CENTURY", ymd(19, unit="century")),
    ("Third-century", ymd(3, unit="century")),
    ("5th century BC", ymd(-5, unit="century")),
    ("1066", ymd(1066)),
    ("2999", ymd(2999)),
    ("44 BC", ymd(-44)),
    ("44 B.C.", ymd(-44)),
    ("44 b. c.", ymd(-44)),
    ("44 BCE", ymd(-44)),
    ("44 B.C.E.", ymd(-44)),
    ("8000 BC", ymd(-8000)),
    ("1066 AD", ymd(1066)),
    ("1066 A.D.", ymd(1066)),
    ("1066 CE", ymd(1066)),
    ("1066 C.E.", ymd(1066)),
]


@pytest.mark.parametrize(("text", "date"), FORMS)
def test_a_date_in_each_of_its_forms(text, date):
    assert as_dates(text) == (date,)
    assert as_dates(f" {text}! ") == (date,)
    assert dates_in(f"It was so ({text}).") == (date,)


def test_a_day_whose_order_is_open_has_both_readings():
    assert as_dates("04/05/2010") == (ymd(2010, 5, 4), ymd(2010, 4, 5))


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "Paris",
            "3031",
            "999",
            "12",
            "1965s",
            "32 March 2031",
            "13/13/1999",
            "2031-13-05",
            "2031-03-32",
        ),
        *(
            "25/12/99",
            "1066 people",
            "44 Bc1",
            "44 bicycles",
            "1998 and 1999",
            "March",
            "Marching 5, 2031",
        ),
        *(
            "19th centuries ago",
            "5 March 44 BC",
            "first",
            "nineteenth floor",
            "2031-03-05-06",
        ),
    ],
)
def test_what_is_no_date(text):
    assert as_dates(text) == ()


@pytest.mark.parametrize(
    "text",
    [
        *(
            "$1998",
            "£1998",
            "€1998",
            "x1998",
            "a-1998",
            "1/1998",
            "5.1998",
            "5,1998",
            "1998%",
            "1998x",
            "1998.5",
        ),
        *("1998,5", "19985", "_1998"),
    ],
)
def test_digits_that_belong_to_something_else_are_no_year(text):
    assert dates_in(f"It was {text}, then.") == ()


@pytest.mark.parametrize(
    "lead",
    [
        *(
            "in",
            "on",
            "at",
            "around",
            "circa",
            "c.",
            "ca.",
            "about",
            "approximately",
            "since",
            "the",
            "year",
        ),
        *("season", "of", "by", "in the year", "C."),
    ],
)
def test_a_small_word_may_stand_before_a_date(lead):
    assert as_dates(f"{lead} 1998") == (ymd(1998),)
    assert as_period(f"{lead} 1998–2001") == (1998, 2001)


def test_no_other_word_may_stand_before_a_date():
    assert as_dates("opened 1998") == ()
    assert as_period("opened 1998–2001") is None


DENIED = [
    *(
        "not in",
        "never in",
        "no longer in",
        "it cannot be in",
        "it wasn't in",
        "it wasn’t in",
        "it was NOT in",
    ),
    *(
        "before",
        "after",
        "prior to",
        "earlier than",
        "later than",
        "sooner than",
        "other than",
        "until",
        "till",
    ),
    *(
        "up to",
        "except",
        "1997 or",
        "before the",
        "before in",
        "after maybe",
        "until possibly",
        "before on the",
    ),
]
AFFIRMED = [
    *(
        "not in May but in",
        "not only in",
        "it did not open until",
        "it did not open till",
        "not just in",
    ),
    *(
        "not here, but",
        "not here. It was",
        "not here; it was",
        "not here: it was",
        "not here! It was",
    ),
    *(
        "not here? It was",
        "(not here)",
        "not here\nit was",
        "a knot in",
        "in",
        "beforehand in",
        "oriole",
    ),
]


@pytest.mark.parametrize("before", DENIED)
def test_a_date_that_is_denied_or_a_bound_does_not_count(before):
    assert ymd(1998) not in dates_in(f"{before} 1998")
    assert (1998, 2001) not in periods_in(f"{before} 1998-2001")


@pytest.mark.parametrize("before", AFFIRMED)
def test_a_date_that_is_affirmed_counts(before):
    assert ymd(1998) in dates_in(f"{before} 1998")
    assert (1998, 2001) in periods_in(f"{before} 1998-2001")


def test_a_denial_stands_behind_what_affirms():
    assert dates_in("But it did not open in 1998.") == ()
    assert dates_in("It did not open but in 1998.") == (ymd(1998),)


def test_a_period_behind_one_that_does_not_count():
    assert periods_in("not from 1980 to 1984, but from 1985 to 1993") == ((1985, 1993),)
    assert periods_in("1980 and 1984, then 1985 to 1993") == ((1985, 1993),)


def test_a_denial_reaches_eighty_characters():
    assert dates_in("not " + "x" * 75 + " 1998") == ()
    assert dates_in("not " + "x" * 78 + " 1998") == (ymd(1998),)


@pytest.mark.parametrize(
    "behind",
    [
        *(
            "or 1999",
            ", or 1999",
            "or in 1999",
            "or on the 5th",
            "or maybe 1999",
            "or possibly in 1999",
        ),
        *("or the year 1999", "? No", "? not so", "? Wrong", "? Actually no"),
    ],
)
def test_a_date_that_another_is_put_beside_does_not_count(behind):
    assert ymd(1998) not in dates_in(
        f"1998{behind if behind[0] in '?,' else ' ' + behind}"
    )


@pytest.mark.parametrize(
    "behind", [" or so", " or thereabouts, in May", "? Yes", "? November"]
)
def test_a_date_that_nothing_is_put_beside_counts(behind):
    assert dates_in(f"1998{behind}") == (ymd(1998),)


@pytest.mark.parametrize("tie", [", ", "; ", " & ", " and ", ", and ", " ; and "])
def test_years_in_a_list_do_not_count(tie):
    assert dates_in(f"1998{tie}1999") == ()
    assert dates_in(f"1998{tie}1999{tie}2000") == ()
    # One year again, a number of something and a day make no list.
    assert dates_in(f"1998{tie}1998") == (ymd(1998), ymd(1998))
    assert dates_in(f"1998{tie}1999 people")[0] == ymd(1998)
    assert dates_in(f"5 March 1998{tie}1999") == (ymd(1998, 3, 5),)


@pytest.mark.parametrize(
    ("text", "period"),
    [
        ("1985-1993", (1985, 1993)),
        ("1985 – 1993", (1985, 1993)),
        ("1985—1993", (1985, 1993)),
        ("1985‒1993", (1985, 1993)),
        ("1985/1993", (1985, 1993)),
        ("1985 to 1993", (1985, 1993)),
        ("1985 until 1993", (1985, 1993)),
        ("1985 till 1993", (1985, 1993)),
        ("1985 through 1993", (1985, 1993)),
        ("from 1985 to 1993", (1985, 1993)),
        ("From 1985 TO 1993.", (1985, 1993)),
        ("between 1985 and 1993", (1985, 1993)),
        ("1997–98", (1997, 1998)),
        ("2007/08", (2007, 2008)),
        ("1985-present", (1985, 0)),
        ("1985 to now", (1985, 0)),
    ],
)
def test_a_period_in_each_of_its_forms(text, period):
    assert as_period(text) == as_period(f" {text}, ") == period
    assert periods_in(f"It was in use {text}.") == (period,)


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "1985",
            "1985 and 1993",
            "from 1985",
            "1985-3",
            "985-1993",
            "1985-1993-05",
            "1985-12-05",
        ),
        *("1985-1993, 1995-1997", "3985-4993", "1985-199"),
    ],
)
def test_what_is_no_period(text):
    assert as_period(text) is None


def test_a_text_may_name_several_periods():
    assert periods_in("1985-1993 and 1995-1997") == ((1985, 1993), (1995, 1997))


@pytest.mark.parametrize(
    ("one", "other", "agree"),
    [
        (ymd(2010, 9, 8), ymd(2010, 9, 8), True),
        (ymd(2010, 9, 8), ymd(2010), True),
        (ymd(2010, 9, 8), ymd(0, 9, 8), True),
        (ymd(2010, 9, 8), ymd(2011, 9, 8), False),
        (ymd(2010, 9, 8), ymd(2010, 8, 8), False),
        (ymd(2010, 9, 8), ymd(2010, 9, 9), False),
        (ymd(1990), ymd(1990, unit="decade"), False),
        (ymd(19, unit="century"), ymd(19, unit="century"), True),
    ],
)
def test_dates_agree_in_all_that_both_say(one, other, agree):
    assert one.agrees(other) is agree
    assert other.agrees(one) is agree


def test_a_date_is_as_fine_as_it_has_parts():
    assert [
        ymd(*parts).fineness
        for parts in ((0,), (2010,), (2010, 9), (0, 9, 8), (2010, 9, 8))
    ] == [
        0,
        1,
        2,
        2,
        3,
    ]


def test_the_finest_dates_are_those_that_no_other_says_better():
    day, year, other = ymd(2010, 9, 8), ymd(2010), ymd(2011)
    assert finest([year, day, other]) == (day, other)
    assert finest([year, day, other], [day]) == (year, other)
    assert finest([year, year]) == (year, year)
