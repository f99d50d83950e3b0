"""A text as words in one spelling, with their capitals and with what stands between them."""

from __future__ import annotations

import pytest

from pytest_kbrel.judges.matching.parsing import (
    is_number,
    quantity,
    read_answer,
    read_gold,
    read_question,
    singular,
)
from pytest_kbrel.judges.text.tokens import read_words


def words(text):
    return " ".join(read_words(text).words)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # numbers
        ("1,234", "1234"),
        ("1,234,567.5", "1234567.5"),
        ("1 234 567", "1234567"),
        ("1.234.567", "1234567"),
        ("1.234", "1.234"),
        ("1,23", "1 23"),
        ("1234,567", "1234 567"),
        ("12 345 67", "12345 67"),
        ("1 234.5", "1 234.5"),
        ("1990s", "1990s"),
        ("3rd", "3rd"),
        ("3RD", "3rd"),
        ("4thly", "4 thly"),
        # money
        ("$5", "5 dollar"),
        ("$5.", "5 dollar"),
        ("US$5", "5 dollar"),
        ("A$ 5", "5 dollar"),
        ("C$5", "5 dollar"),
        ("NZ$5", "5 dollar"),
        ("€5", "5 euro"),
        ("£5", "5 pound"),
        ("$1,234.50", "1234.5 dollar"),
        ("$5 thousand", "5000 dollar"),
        ("$5 million", "5000000 dollar"),
        ("$5 Billion", "5000000000 dollar"),
        ("$5 trillion", "5000000000000 dollar"),
        ("$5bn", "5000000000 dollar"),
        ("$5m", "5000000 dollar"),
        ("$5K", "5000 dollar"),
        ("$5 men", "5 dollar men"),
        ("5 pounds sterling", "5 pound"),
        ("5 GBP", "5 pound"),
        ("5 pounds sterling then", "5 pound then"),
        ("5 euros sterling", "5 euro sterling"),
        ("pounds sterling", "pounds sterling"),
        # letters
        ("Ärger ØRE łódź Đà ðþæœıß", "arger ore lodz da dthaeoeiss"),
        ("ŁÐÞÆŒİ", "ldthaeoei"),
        (
            "so\u00adft null\u200b width\u200c joined\u200d up\u2060 mark\ufeff",
            "soft null width joined up mark",
        ),
        ("ﬁve Ⅷ", "5 viii"),
        ("が", "が"),
        # articles
        ("the cat and a dog or an ox", "cat and dog or ox"),
        ("The Cat", "cat"),
        ("The A Team", "a team"),
        ("The The", "the"),
        ("A. Lee", "a lee"),
        ("AN ox", "an ox"),
        # contractions and possessives
        ("isn't wasn’t arenʼt weren`t", "is not was not are not were not"),
        ("don't doesn't didn't", "do not does not did not"),
        ("hasn't haven't hadn't", "has not have not had not"),
        ("wouldn't couldn't shouldn't", "would not could not should not"),
        ("can't won't", "ca not wo not"),
        ("ain't mustn't", "aint mustnt"),
        ("Ann's O'Brien’s dogs'", "ann obrien dogs"),
        # ampersands and percent
        ("salt & pepper", "salt and pepper"),
        ("& pepper", "pepper"),
        ("5% 5 % %", "5 percent 5 percent percent"),
        ("5 per cent", "5 percent"),
        ("five per cent", "5 percent"),
        ("5 per cent then", "5 percent then"),
        ("per cent", "per cent"),
        ("% of all", "percent of all"),
        # units and eras behind a number
        ("5 km", "5 km"),
        ("5km", "5 km"),
        ("km", "km"),
        ("5 kilometres", "5 km"),
        ("2.5 kilometres", "2.5 km"),
        ("kilometres", "kilometres"),
        ("6 ft 1 in", "6 ft 1 inch"),
        ("6ft 1in", "6 ft 1 inch"),
        ("6 ft 1 in tall", "6 ft 1 inch tall"),
        ("1 in", "1 in"),
        ("44 B.C.", "44 bc"),
        ("44 b.c.e.", "44 bc"),
        ("44 B.C. then", "44 bc then"),
        ("44 B.C.E. then", "44 bc then"),
        ("44 BCE", "44 bc"),
        ("44 B. Lee", "44 b lee"),
        ("44 CE", "44 ad"),
        # ordinals and phrases
        ("the first and twentieth", "1st and 20th"),
        ("United States of America", "usa"),
        ("United States of America then", "usa then"),
        ("the United States", "usa"),
        ("U.S.A. U.S. US us", "usa usa usa us"),
        ("United Kingdom U.K. UK", "uk uk uk"),
        ("United Nations", "united nations"),
        # Roman numerals behind a name
        ("Charles II", "charles 2"),
        ("Rocky III", "rocky 3"),
        ("II Charles", "ii charles"),
        ("Charles, I think", "charles i think"),
        ("5 II", "5 ii"),
        ("Charles ii", "charles ii"),
        ("Charles XXXXIX", "charles 49"),
        ("Super Bowl XXXVIII", "super bowl 38"),
        ("Super Bowl XLII", "super bowl 42"),
        ("XL Charles", "xl charles"),
        ("", ""),
        ("!?", ""),
        (". Paris", "paris"),
    ],
)
def test_words_are_in_one_spelling(text, expected):
    assert words(text) == expected


def test_a_text_is_read_up_to_2000_characters():
    assert len(read_words("x " * 2000).words) == 1000


LOWER, STARTS, CAPITAL, UPPER = 0, 1, 2, 3


def test_articles_are_kept_where_nothing_else_is_left():
    read = read_words("the")
    assert (read.words, read.cases, read.breaks) == (("the",), (LOWER,), (".",))
    read = read_words("The, a")
    assert (read.words, read.cases, read.breaks) == (
        ("the", "a"),
        (STARTS, LOWER),
        (".", ","),
    )


def test_a_stop_behind_an_amount_ends_the_sentence():
    for text, breaks in [
        ("$5 then it", [".", "", "", ""]),
        ("$5. Then it", [".", "", ".", ""]),
        ("€1,000. Then it", [".", "", ".", ""]),
    ]:
        assert list(read_words(text).breaks) == breaks


@pytest.mark.parametrize(
    ("text", "cases"),
    [
        ("It is Ann from USA", [STARTS, LOWER, CAPITAL, LOWER, UPPER]),
        ("it. Is", [LOWER, STARTS]),
        ("it, Is", [LOWER, CAPITAL]),
        ("it\nIs", [LOWER, STARTS]),
        ("it! Is? It; Is… It", [LOWER, STARTS, STARTS, STARTS, STARTS]),
        ("USA", [UPPER]),
        ("X", [STARTS]),
        ("an X", [CAPITAL]),
        ("Isn't", [STARTS, LOWER]),
        ("5 Km", [LOWER, CAPITAL]),
        ("Dr. Ann", [STARTS, CAPITAL]),
    ],
)
def test_capitals(text, cases):
    assert list(read_words(text).cases) == cases


ABBREVIATED = "mr mrs ms dr st prof rev jr sr capt gen col maj lt sen gov no vs mt ft inc ltd co corp c x"


@pytest.mark.parametrize("word", ABBREVIATED.split())
def test_a_stop_behind_an_abbreviation_ends_no_sentence(word):
    for text in (f"the {word}. lee", f"the {word.title()}. Lee"):
        assert read_words(text).breaks[-1] == ""
    assert read_words(f"the {word}y. lee").breaks[-1] == "."
    assert read_words(f"the {word}! lee").breaks[-1] == "."


@pytest.mark.parametrize("mark", "-‐‑'’ʼ`&*_%+#@°")
def test_some_marks_tie(mark):
    assert read_words(f"bb {mark} c").breaks[-1] == ""


@pytest.mark.parametrize("mark", '"“”„‘«»‹›()[]{}')
def test_some_marks_enclose(mark):
    assert read_words(f"b {mark}c").breaks[-1] == '"'


@pytest.mark.parametrize("mark", ".!?;\n…")
def test_some_marks_end_a_sentence(mark):
    assert read_words(f"bb{mark}c").breaks[-1] == "."


@pytest.mark.parametrize("mark", ",:/|–—=<>~^")
def test_other_marks_part(mark):
    assert read_words(f"bb{mark}c").breaks[-1] == ","


def test_the_strongest_of_several_marks_counts():
    assert [
        read_words(f"bb{marks}c").breaks[-1]
        for marks in (").(", '",', "(,", "-)", "()")
    ] == [*(".", ",", ",", '"', '"')]
    # What stands before an article stands before its word.
    assert read_words("bb, the c").breaks[-1] == ","


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        *(
            ("goats", "goat"),
            ("ponies", "pony"),
            ("foxes", "fox"),
            ("buzzes", "buzz"),
            ("dishes", "dish"),
        ),
        *(
            ("churches", "church"),
            ("classes", "class"),
            ("horses", "horse"),
            ("ties", "tie"),
            ("pies", "pie"),
        ),
        *(
            ("bus", "bus"),
            ("gas", "gas"),
            ("glass", "glass"),
            ("virus", "virus"),
            ("basis", "basis"),
        ),
        *(("flies", "fly"), ("berries", "berry")),
        *(
            ("goat", "goat"),
            ("eggs", "egg"),
            ("cars", "car"),
            ("as", "as"),
            ("axis", "axis"),
        ),
    ],
)
def test_the_singular_of_a_word(word, expected):
    assert singular(word) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("5", ("5", "")),
        ("5 km", ("5", "km")),
        ("about 5 km", ("5", "km")),
        ("around 5", ("5", "")),
        ("approximately 5", ("5", "")),
        ("roughly 5", ("5", "")),
        ("nearly 5", ("5", "")),
        ("almost 5", ("5", "")),
        ("some 5", ("5", "")),
        ("circa 5", ("5", "")),
        ("over 5", ("5", "")),
        ("at least 5", ("5", "")),
        ("full 5", ("5", "")),
        ("whole 5", ("5", "")),
        ("total 5", ("5", "")),
        ("exactly 5", ("5", "")),
        ("zero", ("0", "")),
        ("under 5", None),
        ("5 boats", None),
        ("5 km 3", None),
        ("km", None),
        ("about", None),
        ("3rd", None),
        ("", None),
    ],
)
def test_a_gold_that_is_a_number(text, expected):
    assert quantity(read_words(text).words) == expected


@pytest.mark.parametrize(
    ("word", "number"),
    [
        ("5", True),
        ("5.5", True),
        ("5.5.5", False),
        ("5a", False),
        ("a5", False),
        ("½", False),
    ],
)
def test_a_number_is_digits_with_one_stop_at_most(word, number):
    assert is_number(word) is number


def test_a_gold_is_a_date_or_a_period_or_a_number_or_a_text():
    gold = {
        text: read_gold(text)
        for text in ("1998", "1985-1993", "5 km", "Paris", "in Paris", "In Paris", "in")
    }
    assert [bool(one.dates) for one in gold.values()] == [True, *[False] * 6]
    assert [one.period for one in gold.values()] == [None, (1985, 1993), *[None] * 5]
    assert [one.number for one in gold.values()] == [
        None,
        None,
        ("5", "km"),
        *[None] * 4,
    ]
    assert [one.is_text for one in gold.values()] == [*[False] * 3, *[True] * 4]
    assert [one.words for one in gold.values()][3:] == [
        ("paris",),
        ("paris",),
        ("in", "paris"),
        ("in",),
    ]


@pytest.mark.parametrize(
    "word", ["in", "on", "at", "as", "by", "to", "from", "for", "of", "with"]
)
def test_a_small_word_before_a_gold_need_not_be_given(word):
    assert read_gold(f"{word} Paris").words == ("paris",)
    assert read_gold(f"{word.title()} Paris").words == (word, "paris")
    assert read_gold(word).words == (word,)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        *(
            ("Ann Lee", True),
            ("Ludwig van Beethoven", True),
            ("Salt and Pepper", True),
            ("ann lee", False),
        ),
        *(("Ann lee", False), ("van der", False), ("", False)),
    ],
)
def test_a_gold_is_a_name_where_all_but_tying_words_have_a_capital(text, name):
    assert read_gold(text).is_name is name


PERSONS = """
    who whom whose author writer actor actress singer director producer composer screenwriter
    president king queen scientist physicist player footballer musician artist painter poet inventor
    founder person man woman wife husband father mother son daughter brother sister character
    explorer politician novelist comedian minister mayor leader astronaut philosopher architect
    """
PLACES = "where city town country place located village capital county state born"
WORKS = "film movie novel book song album series show play game opera band poem story episode title"


def test_the_words_of_a_question_say_what_it_asks_for():
    for word in PERSONS.split():
        assert read_question(f"Which {word} is it?").asks_person
    for word in PLACES.split():
        assert read_question(f"Which {word} is it?").asks_place
    for word in WORKS.split():
        assert read_question(f"Which {word} is it?").asks_work
    for lead in ("by what", "by which"):
        assert read_question(f"It was done {lead} American?").asks_person
        assert not read_question(f"It was done {lead} animal?").asks_person
    assert not read_question("It was done for which American?").asks_person
    plain = read_question("Which animal is it?")
    assert [plain.asks_person, plain.asks_place, plain.asks_work] == [
        False,
        False,
        False,
    ]


def test_a_known_answer_type_goes_before_the_words():
    assert read_question("Which animal is it?", "person").asks_person
    assert not read_question("Who is it?", "other").asks_person
    assert read_question("Which animal is it?", "location").asks_place
    assert not read_question("Where is it?", "other").asks_place


@pytest.mark.parametrize("word", ["mountain", "mountains", "peak", "summit", "volcano"])
def test_a_question_about_mountains_has_their_short_form(word):
    assert read_question(f"Which {word} is it?").has("mt")
    assert not read_question("Which hill is it?").has("mt")


def test_a_question_has_its_words_in_the_singular_too():
    question = read_question("Which goats and goats are Canadian, of Peru?")
    assert question.has("goat")
    assert question.has("none", "goats")
    assert not question.has("none", "cows")
    assert question.nations == {"canada", "peru"}
    assert [date.year for date in read_question("What was in 1998?").dates] == [1998]


@pytest.mark.parametrize(
    ("answer", "cased"),
    [
        *(
            ("it is Paris", True),
            ("Paris", False),
            ("paris hilton", False),
            ("PARIS HILTON", False),
        ),
        *(("Paris is it so well", True), ("Paris is it so", False), ("5 Paris", True)),
    ],
)
def test_an_answer_is_cased_where_its_capitals_tell_something(answer, cased):
    assert read_answer(answer, read_question("q")).cased is cased


FRAMES = (
    "is was are were be been being has have had did does do by called named known who"
)


def test_an_answer_is_bare_where_nothing_frames_it_and_it_takes_up_no_question():
    question = read_question("Which small town lies there?")
    for word in FRAMES.split():
        assert not read_answer(f"Paris {word} Rome", question).bare
    assert read_answer("Paris, a town", question).bare
    assert not read_answer("Paris, a small town", question).bare
    fresh = read_answer("Paris towns, big", question).fresh
    assert fresh == (True, False, True)
