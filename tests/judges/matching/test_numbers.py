"""Golds that are a date, a period or a number: units, bounds, signs and rounding, word by word."""

from __future__ import annotations

import pytest

from pytest_kbrel.judges.matching.numbers import begins_with_yes_or_no
from pytest_kbrel.judges.matching.parsing import read_answer, read_question
from pytest_kbrel.judges.rules import judge

MANY = "How many islands does the group have?"
COST = "How much did it cost?"
TALL = "How tall is the tower?"
WHEN = "When did the bridge open?"
BOTH = "Are both rivers in Asia?"


def verdict(question, gold, answer):
    result = judge(answer, [gold] if isinstance(gold, str) else gold, question)
    return result.rule if result.label == "correct" else result.label


# One name of a unit and the others.
UNITS = [
    ("km", "kilometre kilometres kilometer kilometers"),
    ("m", "metre metres meter meters"),
    ("cm", "centimetre centimetres centimeter centimeters"),
    ("mm", "millimetre millimetres millimeter millimeters"),
    ("mile", "miles mi"),
    ("ft", "foot feet"),
    ("inch", "inches"),
    ("yard", "yards yd"),
    ("kg", "kilogram kilograms kilogramme kilogrammes"),
    ("g", "gram grams gramme grammes"),
    ("pound", "pounds lb lbs gbp"),
    ("litre", "litres liter liters l"),
    ("ml", "millilitre millilitres milliliter milliliters"),
    ("second", "seconds sec secs"),
    ("minute", "minutes min mins"),
    ("hour", "hours hr hrs"),
    ("day", "days"),
    ("week", "weeks"),
    ("month", "months"),
    ("year", "years yr yrs"),
    ("percent", "pct %"),
    ("dollar", "dollars usd"),
    ("euro", "euros eur"),
    ("degree", "degrees"),
    ("celsius", "Celsius"),
    ("fahrenheit", "Fahrenheit"),
    ("acre", "acres"),
    ("hectare", "hectares ha"),
    ("tonne", "tonnes ton tons"),
    ("watt", "watts"),
]


@pytest.mark.parametrize(("unit", "names"), UNITS)
def test_a_unit_by_each_of_its_names(unit, names):
    for name in names.split():
        for gold, answer in (
            (f"5 {unit}", f"about 5 {name}"),
            (f"5 {name}", f"It is 5 {unit}."),
        ):
            assert verdict(COST, gold, answer) == "number"
    # Of "5 m" one may be left open: metres or millions.
    others = [other for other, _ in UNITS if other not in (unit, "m")]
    for other in others:
        assert verdict(COST, f"5 {unit}", f"5 {other}") == "wrong"


MULTIPLES = (
    "dozen dozens score scores gross pair pairs lakh lakhs crore crores percent th ths"
)


@pytest.mark.parametrize("word", MULTIPLES.split())
def test_a_number_by_itself_is_no_multiple_and_no_part(word):
    assert verdict(MANY, "126", f"126 {word}") == "wrong"
    assert verdict(MANY, "126", f"It has 126 {word} of them.") == "wrong"
    assert verdict(MANY, "126", f"126, {word}") == (
        "wrong" if word == "percent" else "number"
    )


@pytest.mark.parametrize("word", ["islands", "isles", "of them", "small ones"])
def test_a_number_by_itself_may_count_anything(word):
    assert verdict(MANY, "126", f"126 {word}") == "number"


@pytest.mark.parametrize("sign", "¥₹₽₩₪₺₫฿₦₱₴£€")
def test_the_sign_of_another_currency(sign):
    assert verdict(COST, "£5 million", sign + "5 million") == (
        "equal" if sign == "£" else "wrong"
    )
    assert verdict(COST, "$5 million", f"{sign}5 million") == "wrong"
    assert verdict(COST, "$5 million", "$5 million") == "equal"


CODES = (
    "eur gbp chf jpy cny inr rub krw aud cad nzd sek nok dkk pln brl mxn zar try rs rmb"
)


@pytest.mark.parametrize("code", CODES.split())
def test_the_code_of_another_currency(code):
    for text in (
        f"{code.upper()} 5 million",
        f"{code} 5 million",
        f"5 million {code.upper()}",
    ):
        assert verdict(COST, "$5 million", text) == "wrong"


@pytest.mark.parametrize(
    ("gold", "answer"),
    [
        ("$5 million", "USD 5 million"),
        ("£5 million", "GBP 5 million"),
        ("£5 million", "It cost 5 million pounds."),
        ("£5 million", "It cost 5 million pounds sterling."),
        ("5 million pounds sterling", "It cost £5 million."),
        ("€5 million", "EUR 5 million"),
        ("$5 million", "5 million US dollars"),
        ("$5 million", "5 million USA dollars"),
        ("5 tonnes", "5 metric tonnes"),
        ("5 hours", "5 full hours"),
        ("5 hours", "5 whole hours"),
    ],
)
def test_the_own_code_or_kind_of_a_unit(gold, answer):
    assert verdict(COST, gold, answer) == "number"


@pytest.mark.parametrize(
    "rate", ["per", "h", "hr", "hour", "s", "sec", "squared", "cubed"]
)
def test_a_rate_or_a_power_is_another_unit(rate):
    assert verdict(TALL, "5 km", f"5 km {rate}") == "wrong"
    assert verdict(TALL, "5 km", f"5 km, {rate}") == "wrong"
    assert verdict(f"How many km {rate} is it?", "5 km", f"5 km {rate}") == "number"


@pytest.mark.parametrize(
    "word", ["under", "below", "above", "beyond", "exceeding", "beneath", "within"]
)
def test_a_bound_of_one_word(word):
    assert verdict(MANY, "126", f"{word} 126") == "wrong"
    assert verdict(MANY, "126", f"It has {word} 126 islands.") == "wrong"


BOUNDS = [
    "more than",
    "less than",
    "fewer than",
    "greater than",
    "other than",
    "at least",
    "at most",
    "up to",
]


@pytest.mark.parametrize("words", [*BOUNDS, "half of", "part of", "out of"])
def test_a_bound_or_share_of_two_words(words):
    assert verdict(MANY, "126", f"{words} 126") == "wrong"
    assert verdict(MANY, "126", f"It has {words} 126 islands.") == "wrong"


def test_a_gold_that_is_a_bound_itself():
    assert verdict(MANY, "at least 126", "It has at least 126 islands.") == "number"
    assert verdict(MANY, "at least 126", "It has at most 126 islands.") == "wrong"


@pytest.mark.parametrize(
    "answer",
    ["all of 126", "the number 126", "than 126", "least 126", "rather more: 126"],
)
def test_what_is_no_bound(answer):
    assert verdict(MANY, "126", answer) == "number"


@pytest.mark.parametrize("gold", ["-5", "\u22125", "\u20135"])
def test_a_negative_number_is_written_in_several_ways(gold):
    for answer in (
        "It was -5 then",
        "it was minus 5",
        "It was negative 5.",
        "It was \u22125",
        "it is minus five",
    ):
        assert verdict("How cold was it?", gold, answer) == "number"
    for answer in ("It was 5.", "five", "(5)"):
        assert verdict("How cold was it?", gold, answer) == "wrong"


@pytest.mark.parametrize("answer", ["b-5", "(b)-5", "[b]-5", "b.-5"])
def test_a_hyphen_or_a_word_elsewhere_makes_no_negative_number(answer):
    assert verdict("How warm was it?", "5", answer) == "number"


ABOUT = "about around approximately roughly nearly almost some circa over"


@pytest.mark.parametrize("word", ABOUT.split())
def test_a_number_may_be_rounded_behind_a_word_that_says_so(word):
    assert verdict(MANY, "4,613", f"{word} 4,600") == "rounded"
    assert verdict(MANY, "4,613", f"{word} 4,610") == "rounded"
    assert verdict(MANY, "4,613", f"{word} 4,700") == "wrong"
    # One significant digit is too few.
    assert verdict(MANY, "4,613", f"{word} 5,000") == "wrong"


@pytest.mark.parametrize(
    ("gold", "answer", "expected"),
    [
        ("4,613", "only 4,600", "wrong"),
        ("4,650", "about 4,700", "rounded"),
        ("4,650", "about 4,600", "rounded"),
        ("4,651", "about 4,600", "wrong"),
        ("4,600", "about 4,613", "wrong"),
        ("4,613", "about 4,613.4", "wrong"),
        ("3.14159", "about 3.14", "rounded"),
        ("3.14159", "about 3.15", "wrong"),
        # A large number is round without a word.
        ("9,876", "9,900", "wrong"),
        ("10,049", "10,000", "wrong"),
        ("12,345", "12,000", "rounded"),
        ("12,345", "12,300", "rounded"),
        ("12,345", "12,400", "wrong"),
        ("12,345", "12,346", "wrong"),
    ],
)
def test_rounding(gold, answer, expected):
    assert verdict(MANY, gold, answer) == expected


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("In 1898 it had 12 islands.", "number"),
        ("In 1998 it had 12 islands.", "number"),
        ("In 2018 it had 12 islands.", "number"),
        ("In 1798 it had 12 islands.", "wrong"),
        ("In 198 it had 12 islands.", "wrong"),
        ("On 5 May it had 12 islands.", "number"),
        ("On May 5 it had 12 islands.", "number"),
        ("On the 5th it had 12 islands.", "number"),
        ("It had 5 bays and 12 islands.", "wrong"),
        ("It had 1998 metres and 12 islands.", "wrong"),
    ],
)
def test_the_year_or_the_day_before_a_number_is_passed_over(answer, expected):
    assert verdict(MANY, "12", answer) == expected


@pytest.mark.parametrize(
    ("question", "answer", "expected"),
    [
        ("How many of 12 rounds did they win?", "Of 12 rounds they won 7.", "number"),
        (
            "How many of 12 rounds did they win?",
            "Of 12 rounds they won 12, then 7.",
            "wrong",
        ),
        (
            "How many of 12 rounds in 12 years did they win?",
            "12 rounds, 12 years, 7 wins",
            "number",
        ),
        ("How many rounds did they win?", "Of 12 rounds they won 7.", "wrong"),
    ],
)
def test_the_numbers_of_the_question_are_passed_over_as_often_as_it_has_them(
    question, answer, expected
):
    assert verdict(question, "7", answer) == expected


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("7 or 8", "wrong"),
        ("7 to 8", "wrong"),
        ("7 and 8", "wrong"),
        ("7-8", "wrong"),
        ("7 km or 8 km", "wrong"),
        ("7, 8", "wrong"),
        ("7, 8 and 9", "wrong"),
        ("7, 8 or 9", "wrong"),
        ("7, 8 of them small", "number"),
        ("7 with 8", "number"),
        ("7 (8 before)", "number"),
    ],
)
def test_a_number_among_others(answer, expected):
    assert verdict(MANY, "7", answer) == expected


@pytest.mark.parametrize("word", ["percent", "percentage"])
def test_a_percentage_must_be_called_one_unless_it_is_asked_for(word):
    assert verdict(f"What {word} is forest?", "26%", "about 26") == "number"
    assert verdict("How much is forest?", "26%", "about 26") == "wrong"
    assert verdict("How much is forest?", "26%", "about 26 percent") == "number"
    assert verdict("How much is forest?", "26%", "26, about a percent") == "wrong"


SUBJECTS = (
    "it he she they we i you this that these those there both neither only not because"
)


@pytest.mark.parametrize("subject", SUBJECTS.split())
def test_yes_and_no_may_begin_a_sentence_about_the_matter(subject):
    assert verdict(BOTH, "no", f"No {subject} is in Asia") == "yes or no"
    assert verdict(BOTH, "yes", f"Yes {subject} is in Asia") == "yes or no"
    assert verdict(BOTH, "yes", f"No {subject} is in Asia") == "wrong"


@pytest.mark.parametrize(
    "answer",
    [
        "No river is",
        "No more",
        "Of course no river",
        "No, well, yes",
        "No. Yes!",
        "Not so",
        "no way",
    ],
)
def test_what_is_no_plain_no(answer):
    assert verdict(BOTH, "no", answer) == "wrong"


def test_a_yes_may_stand_inside_a_plain_no():
    assert verdict(BOTH, "no", "No, the yes vote lost") == "yes or no"
    assert verdict(BOTH, ["yes", "Paris"], "It is Paris") == "contained"


@pytest.mark.parametrize("word", ["date", "day", "birthday", "dates"])
def test_who_asks_for_the_day_gets_the_day(word):
    question = f"What is the {word} of the opening?"
    for answer in ("in 2010", "in September 2010"):
        assert verdict(question, "8 September 2010", answer) == "wrong"
        assert verdict(WHEN, "8 September 2010", answer) == "date"
    assert verdict(question, "8 September 2010", "on 8 September") == "wrong"
    assert verdict(question, "September 2010", "in September 2010") == "date"


@pytest.mark.parametrize(
    ("gold", "answer", "expected"),
    [
        ("5 April 2010", "on 04/05/2010", "date"),
        ("4 May 2010", "on 04/05/2010", "date"),
        ("6 April 2010", "on 04/05/2010", "wrong"),
        ("4 April 2010", "on 04/04/2010", "date"),
        ("7 April 2010", "on 4 May 2010, then 7 April 2010", "wrong"),
        ("4 May 2010", "on 4 May 2010, then 7 April 2010", "date"),
        # Where a day is asked for, an earlier year alone does not count.
        (
            "8 September 2010",
            "In 2009 it was built; it opened on 8 September 2010",
            "date",
        ),
        ("2009", "In 2009, and not on 8 September 2010", "date"),
        ("2010", "In 2009 it was built; it opened in 2010", "wrong"),
        ("September 2010", "It was in September", "wrong"),
        ("14 July", "It was in July", "wrong"),
        ("14 July", "It was on 14 July 1789", "date"),
        ("14 July", "It was on 15 July", "wrong"),
        ("2010", "It was from 2004 to 2009, in 2010", "date"),
        ("2009", "It was from 2004 to 2009", "wrong"),
        # A day contradicts another day of the same year.
        (["8 September 2010", "2010"], "on 9 September 2010", "wrong"),
        (["8 September 2010", "2010"], "in 2010", "date"),
        (["8 September 2010", "2010"], "in September 2010", "date"),
        (["8 September 2011", "2010"], "on 9 September 2010", "date"),
        (["8 September 2010", "9 September 2010"], "on 9 September 2010", "date"),
    ],
)
def test_the_first_date_of_an_answer_counts(gold, answer, expected):
    assert verdict(WHEN, gold, answer) == expected


@pytest.mark.parametrize(
    ("gold", "answer", "expected"),
    [
        ("1985–1993", "It was from 1985 to 1993.", "period"),
        ("1985–1993", "It was from 1985 to 1992.", "wrong"),
        ("1985–1993", "It was from 1984 to 1993.", "wrong"),
        ("1985–1993", "It was from 1980 to 1983, then from 1985 to 1993.", "wrong"),
        ("1985–1993", "It was from 1985 to 1993, then from 1995 to 1997.", "period"),
        ("1985-present", "It is since 1985, from 1985 to now", "period"),
        ("1985-present", "It was from 1985 to 1993", "wrong"),
    ],
)
def test_the_first_period_of_an_answer_counts(gold, answer, expected):
    assert verdict("When was it in use?", gold, answer) == expected


@pytest.mark.parametrize("word", ["when", "year"])
def test_an_event_that_has_a_year_in_its_name_answers_when(word):
    question = f"In which {word} was it?"
    assert verdict(question, "2004 opening season", "It was in 2004.") == "date"
    assert verdict(question, "2004 opening season", "It was in 2005.") == "wrong"
    assert verdict("Which was it?", "2004 opening season", "It was in 2004.") == "wrong"
    assert verdict(question, "2004 or 2005 season", "It was in 2004.") == "wrong"
    assert verdict(question, "8 May season", "It was on 8 May.") == "wrong"


COLD = "How cold is it?"
BURNED = "It burned down on 8 September 2010. When was it open again?"

# By subject: the question, what is accepted, the answer, and the rule that accepts it or what the answer is.
CASES = {
    # A year without a day says nothing of a day without a year.
    "dates of which each says another part": [
        (WHEN, "8 September", "On 8 September 2010.", "date"),
        (WHEN, "8 September", "In 2010.", "wrong"),
        (WHEN, "8 September", "In September 2010.", "wrong"),
        (WHEN, ["9 October", "8 September 2010"], "On 8 September.", "date"),
        (
            BURNED,
            ["9 October 2010", "2010"],
            "It burned down on 8 September 2010 and was open again in 2010.",
            "date",
        ),
    ],
    "a year beside the number": [
        (MANY, "4,613", "In 1998 it had 4,613 islands.", "number"),
        (MANY, "4,613", "In 1998 it had 4,713 islands.", "wrong"),
        # What is asked for may look like a year.
        (MANY, "1,987", "about 1,990", "rounded"),
        (TALL, "1997.6 km", "about 1998 km", "rounded"),
        (MANY, "7", "8, then 7 by March", "wrong"),
    ],
    "a number that is denied": [
        (MANY, "126", "126 is wrong.", "wrong"),
        (MANY, "126", "126 it is not", "wrong"),
    ],
    "what stands behind a number": [
        (TALL, "5 km", "It is 5 (km) tall.", "number"),
        (TALL, "5 km", "It is 5 (miles) tall.", "wrong"),
        (TALL, "5 km", "It is 5, people say.", "number"),
        (TALL, "5 km", "It is 5 in all.", "number"),
        (TALL, "5 km", "It is 5 tall.", "number"),
        (TALL, "5 km", "It is 5 people.", "wrong"),
        (COST, "$5 million", "5 million US", "wrong"),
    ],
    "numbers below zero": [
        (COLD, "-126", "It is -126.", "number"),
        (COLD, "-1,260", "It is -1,260.", "number"),
        (COLD, "-1,260", "It is minus 1,260.", "number"),
        (COLD, "126", "It is -126.", "wrong"),
        (COLD, "1,260", "It is -1,260.", "wrong"),
    ],
}


@pytest.mark.parametrize("subject", CASES)
def test_a_figure_and_what_stands_around_it(subject):
    rows = CASES[subject]
    result = [verdict(question, gold, answer) for question, gold, answer, _ in rows]
    assert list(zip(result, rows, strict=True)) == [(row[-1], row) for row in rows]


def test_one_word_says_yes_plainly():
    assert begins_with_yes_or_no(read_answer("Yes", read_question("")), "yes")
    assert not begins_with_yes_or_no(read_answer("Yes", read_question("")), "no")
