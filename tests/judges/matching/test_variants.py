"""Other ways of writing an accepted answer: the accepting side of each rule and its refused neighbour."""

from __future__ import annotations

import pytest

from pytest_kbrel.judges.matching.variants import list_items, without_parentheses
from pytest_kbrel.judges.rules import is_variant, judge

WHO = "Who wrote the novel?"
WHICH = "Which is it?"
WHERE = "Where was the treaty signed?"
FILM = "Which film won?"


def verdict(question, gold, answer):
    result = judge(answer, [gold], question)
    return result.rule if result.label == "correct" else result.label


SPELLED = [
    ("Super Bowl", "Superbowl", "spelling"),
    ("A1 B", "A1B", "wrong"),
    ("A1 BC", "A1BC", "spelling"),
    # Digits that are written together are another number.
    ("12 34", "1234", "wrong"),
    # Double letters and umlauts, in words that are long enough.
    ("Antonella Rocca", "Antonela Roca", "wrong"),
    ("Antonella Roccas", "Antonela Rocas", "spelling"),
    ("Müllers", "Muellers", "spelling"),
    ("Müller", "Mueller", "spelling"),
    ("Hanna", "Hana", "wrong"),
    ("Hannah", "Hanah", "spelling"),
    ("Antonella", "Antonello", "wrong"),
    ("Straße", "Strasse", "equal"),
    ("Œuvre", "Oeuvre", "spelling"),
    ("Ærø", "Aero", "spelling"),
    ("Łódź", "Lodz", "spelling"),
    ("Đặng", "Dang", "spelling"),
    ("Þór", "Thor", "spelling"),
    ("İzmir", "Izmir", "spelling"),
    ("Kadıköy", "Kadikoy", "spelling"),
    ("Mount Ida", "Mt Ida", "spelling"),
    ("Saint Ives", "St. Ives", "spelling"),
    ("Mister Bean", "Mr Bean", "spelling"),
    ("Doctor Who", "Dr. Who", "spelling"),
    ("Professor X-ray", "Prof X-ray", "spelling"),
    ("Town Centre", "Town Center", "spelling"),
    ("Globe Theatre", "Globe Theater", "spelling"),
    ("The Colour Purple", "Color Purple", "spelling"),
    ("Pearl Harbour", "Pearl Harbor", "spelling"),
    ("Civil Defence", "Civil Defense", "spelling"),
    ("Earl Grey", "Earl Gray", "spelling"),
    ("Ali versus Frazier", "Ali vs. Frazier", "spelling"),
    ("Salt & Pepper", "salt and pepper", "spelling"),
    ("United States of America", "U.S.", "spelling"),
    ("U.S.A.", "United States", "spelling"),
    ("United Kingdom", "U.K.", "spelling"),
    ("United Nations", "U.N.", "wrong"),
    ("US", "us", "equal"),
    ("USA", "us", "wrong"),
]


@pytest.mark.parametrize(("gold", "answer", "expected"), SPELLED)
def test_spelling(gold, answer, expected):
    assert verdict(WHICH, gold, answer) == expected


@pytest.mark.parametrize(
    ("question", "gold", "answer", "expected"),
    [
        # numeral
        (WHO, "Charles V", "Charles the Fifth", "numeral"),
        (WHO, "Charles V", "Charles 5th", "numeral"),
        (WHICH, "Super Bowl XLII", "Super Bowl 42", "spelling"),
        (WHICH, "Super Bowl XLII", "Super Bowl XLIII", "wrong"),
        (WHO, "Charles V", "Charles 5", "spelling"),
        (WHO, "Charles V", "Charles the Sixth", "wrong"),
        (WHICH, "5th", "5", "wrong"),
        # qualifier in parentheses or brackets
        (FILM, "Orion (film)", "Orion", "qualifier"),
        (FILM, "Orion [1999]", "Orion", "qualifier"),
        (FILM, "Orion (film) (1999)", "Orion", "qualifier"),
        (FILM, "(500) Days", "Days", "qualifier"),
        (FILM, "(500)", "500", "equal"),
        # behind the comma of a place
        (WHERE, "Brighton, East Sussex", "Brighton", "qualifier"),
        (WHICH, "Brighton, East Sussex", "Brighton", "wrong"),
        (WHERE, "Brighton, Hove, East Sussex", "Brighton", "wrong"),
        (WHERE, "brighton, East Sussex", "Brighton", "wrong"),
        (WHERE, "Brighton, near the sea", "Brighton", "wrong"),
        (WHERE, "Brighton, East Sussex", "East Sussex", "wrong"),
        # surname and given names turned round
        (WHO, "Hess, Rudolf", "Rudolf Hess", "qualifier"),
        (WHO, "Hess, Rudolf Walter", "Rudolf Walter Hess", "qualifier"),
        (WHO, "van Gogh, Vincent", "Vincent van Gogh", "qualifier"),
        (WHO, "Rudolf Hess", "Hess, Rudolf", "qualifier"),
        (WHO, "Rudolf Hess", "Hess, Rudolf, Berlin", "wrong"),
        (WHO, "Hess, Rudolf Walter Richard", "Rudolf Walter Richard Hess", "qualifier"),
        # Without a comma nothing is turned round.
        (WHICH, "Boat House", "House Boat", "wrong"),
        # title
        (WHO, "Ann Lee", "Queen Ann Lee", "title"),
        (FILM, "Ann Lee", "Dr Ann Lee Jr", "title"),
        (WHO, "Queen Ann Lee", "King Ann Lee", "wrong"),
        (WHO, "The Queen", "King", "wrong"),
        (FILM, "Dr Who", "Who", "wrong"),
        # company
        (WHICH, "Siemens", "Siemens AG", "company"),
        (WHICH, "Siemens AG", "Siemens", "company"),
        (WHICH, "Siemens AG", "Siemens Ltd.", "company"),
        (WHICH, "Siemens and Co", "Siemens", "company"),
        (WHICH, "Siemens and Halske", "Siemens", "wrong"),
        (WHICH, "Real Madrid CF", "Real Madrid C.F.", "spelling"),
        (WHICH, "Real Madrid C.F.", "Real Madrid", "company"),
        (WHICH, "Real Madrid F.C.", "Real Madrid", "company"),
        (WHICH, "Milan F.C.", "Milan", "company"),
        (WHICH, "Gorky Park Moscow F.C.", "Gorky Park Moscow", "company"),
        (WHICH, "Group", "Company", "wrong"),
        # plural
        ("Which animal is it?", "goats", "a goat", "plural"),
        ("Which animal is it?", "wild ponies", "wild pony", "plural"),
        ("Which animal is it?", "foxes", "fox", "plural"),
        ("Which animal is it?", "bus", "bu", "wrong"),
        ("Which family is it?", "Adams", "It is Adam", "wrong"),
        ("Who is it?", "Adams", "Adam", "wrong"),
        (FILM, "Aliens", "Alien", "wrong"),
        (FILM, "Handmaid's Tale", "Handmaids Tale", "plural"),
        (FILM, "aliens", "alien", "plural"),
        # name
        (WHO, "Richard Charles Rodgers", "Richard Rodgers", "name"),
        ("Which party was it?", "Richard Charles Rodgers", "Richard Rodgers", "wrong"),
        ("Which party was it?", "Richard Rodgers", "R. Rodgers", "initials"),
        ("Who wrote the tale?", "the lame horse", "t. horse", "wrong"),
        # surname
        (WHO, "William Shakespeare", "Shakespeare", "surname"),
        (WHICH, "William Shakespeare", "Shakespeare", "wrong"),
        (
            "Who was the son of Shakespeare?",
            "Hamnet Shakespeare",
            "Shakespeare",
            "wrong",
        ),
        (WHO, "william shakespeare", "Shakespeare", "wrong"),
        # nation
        ("What is her nationality?", "Canada", "Canadian", "nation"),
        ("What is her nationality?", "Canadian", "Canada", "nation"),
        ("What is her nationality?", "Ivory Coast", "Ivorian", "nation"),
        ("What is her nationality?", "Canada", "American", "wrong"),
        ("What is it?", "Canada", "Canadian", "wrong"),
        ("What is it?", "Academy of Canada", "Canadian Academy", "nation"),
        ("What is it?", "Canada Academy", "Canadian Academy", "nation"),
        ("What is it?", "Academy in Canada", "Canadian Academy", "wrong"),
        ("What is it?", "of Canada", "Canadian", "wrong"),
        # question's word
        ("What language is it?", "Spanish language", "Spanish", "question's word"),
        ("Which is it?", "Spanish language", "Spanish", "wrong"),
        (
            "What language is it?",
            "Portuguese language",
            "Brazilian Portuguese",
            "question's word",
        ),
        ("What language is it?", "Portuguese language", "Old Portuguese", "wrong"),
        (
            "What tongue language is it?",
            "Portuguese language",
            "Very Brazilian Portuguese",
            "wrong",
        ),
        (
            "Which award prize medal was it?",
            "Nobel award prize medal",
            "Nobel",
            "wrong",
        ),
        ("Which symphony of the cycle is it?", "Symphony 9", "9", "question's word"),
        (
            "Which movement of the symphony is it?",
            "the ninth symphony movement",
            "the ninth",
            "wrong",
        ),
        (
            "Which apollo mission rocket flight is it?",
            "Apollo mission flight 13",
            "13",
            "question's word",
        ),
        ("What is the currency of Japan?", "Japanese yen", "yen", "question's word"),
        ("What is the currency of Peru?", "Japanese yen", "yen", "wrong"),
        (
            "Which museum in Japan is it?",
            "Museum of Japanese Modern Folk Art",
            "Modern Folk Art",
            "question's word",
        ),
        # the telling half of a name
        ("Which city is it?", "Mexico City", "Mexico", "wrong"),
        ("Which city is it?", "New York City", "New York", "question's word"),
        ("Which city is it?", "Carson City", "Carson", "wrong"),
        ("Which bridge is it?", "London Bridge", "London", "wrong"),
        ("Which bridge is it?", "Texas Bridge", "Texas", "wrong"),
        ("Which bridge is it?", "Kenya Bridge", "Kenya", "wrong"),
        ("Which bridge is it?", "Tower Bridge", "Tower", "question's word"),
        ("Which bridge is it?", "Kenya bridge", "Kenya", "question's word"),
        ("Which island is it?", "Sicily Island", "Sicily", "question's word"),
        ("What of Jersey City?", "New Jersey", "New", "wrong"),
        ("Which bridge is it?", "Nova Scotia Bridge", "Nova Scotia", "wrong"),
        ("Which bridge is it?", "Nova Scotia bridge", "Nova Scotia", "question's word"),
        (
            "Which province is it?",
            "Nova Scotia Province",
            "Nova Scotia",
            "question's word",
        ),
        # part
        (WHICH, "Nobel Peace Prize medal", "Nobel Peace Prize", "part"),
        (WHICH, "Nobel Peace Prize Medal", "Nobel Peace Prize", "part"),
        (WHICH, "Ode to Joy", "Ode Joy", "part"),
        (WHICH, "Nobel Peace Prize medal", "Peace Nobel Prize", "wrong"),
        (WHICH, "Nobel Peace Prize medal", "Nobel Prize", "wrong"),
        (WHICH, "Great Nobel Peace Prize", "Nobel Peace Prize", "wrong"),
        (WHICH, "Nobel Peace Prize 1998", "Nobel Peace Prize", "wrong"),
        (WHICH, "Peace, Prize, medal, Nobel", "Peace Prize medal", "wrong"),
        (
            "Which Nobel Peace Prize is it?",
            "Nobel Peace Prize medal",
            "Nobel Peace Prize",
            "wrong",
        ),
        (WHO, "Ann Bea Carla Lee", "Bea Carla Lee", "wrong"),
    ],
)
def test_a_rule_and_its_refused_neighbour(question, gold, answer, expected):
    assert verdict(question, gold, answer) == expected


FORMS = "Inc Incorporated Ltd Limited LLC PLC Corp Corporation Co Company GmbH AG SA NV BV SpA LLP Group Holdings"


@pytest.mark.parametrize("form", [*FORMS.split(), "FC", "CF", "AFC"])
def test_the_form_of_a_company_may_be_left_off(form):
    assert verdict(WHICH, "Siemens", f"Siemens {form}.") == "company"
    assert verdict(WHICH, f"Siemens {form}", "It is Siemens") == "company"


@pytest.mark.parametrize(
    "honorific", ["Mr", "Mrs", "Ms", "Miss", "Dr", "Sir", "Dame", "Prof", "Rev", "Hon"]
)
def test_an_honorific_may_be_left_off_of_anything(honorific):
    assert verdict(FILM, f"{honorific} Chips", "Chips") == "title"


ASKED = "nationality country countries citizenship citizen nation where origin from"


@pytest.mark.parametrize("word", ASKED.split())
def test_a_people_stands_for_its_nation_where_that_is_asked_for(word):
    assert verdict(f"Of what {word} is she?", "Canada", "Canadian") == "nation"
    for language in ("language", "languages", "speak", "spoken"):
        assert (
            verdict(f"Of what {word} {language} is it?", "Canada", "Canadian")
            == "wrong"
        )


DISTINGUISHING = """
    north south east west northern southern eastern western northeast northwest southeast southwest
    central upper lower new old great greater lesser little big inner outer democratic people
    peoples equatorial anti non vice deputy assistant step grand half pseudo post pre ex former
    junior senior young younger elder last federal national inter trans sub super ultra mini micro
    mega semi counter co neo proto
    """


@pytest.mark.parametrize("word", DISTINGUISHING.split())
def test_a_word_that_tells_things_apart_may_not_be_left_out(word):
    name = f"{word.title()} Riga Water Board Works"
    assert verdict(WHICH, name, "Riga Water Board Works") == "wrong"
    assert verdict(WHICH, "Riga Water Board Works", f"It is the {name}.") == "wrong"
    assert verdict(WHICH, "riga", f"it is {word} riga") == "wrong"


def test_the_first_three_tell_things_apart_too():
    for word in ("first", "second", "third"):
        assert (
            verdict(WHICH, f"{word} Riga Water Board Works", "Riga Water Board Works")
            == "wrong"
        )


def test_what_stands_in_parentheses_is_cut_out_unless_nothing_is_left():
    assert without_parentheses("Orion (film)") == "Orion"
    assert without_parentheses("Orion [b] (c) D") == "Orion D"
    assert without_parentheses("(film)") == "(film)"
    assert without_parentheses("Orion") == "Orion"


@pytest.mark.parametrize(
    ("gold", "expected"),
    [
        ("Paris and London", (("paris",), ("london",))),
        ("Paris AND London", (("paris",), ("london",))),
        ("Paris & London", (("paris",), ("london",))),
        ("Paris, London & Rome", (("paris",), ("london",), ("rome",))),
        ("Paris; London, Rome", (("paris",), ("london",), ("rome",))),
        ("Paris; London", ()),
        ("Brandenburg", ()),
        ("Andy Sand", ()),
    ],
)
def test_the_items_of_a_list(gold, expected):
    assert list_items(gold) == expected


@pytest.mark.parametrize(
    ("gold", "answer", "variant"),
    [
        ("Brasília", "Brasilia", True),
        ("William Shakespeare", "W Shakespeare", True),
        ("William Shakespeare", "Shakespeare", False),
        ("William Shakespeare", "It was W Shakespeare", False),
        ("Shakespeare", "William Shakespeare", False),
        ("8 September 2010", "on 8 September 2010", False),
        ("126", "about 126", False),
        ("8 September 2010", "September 8, 2010", True),
        ("8 September 2010", "2010", False),
        ("8 September 2010", "9 September 2010", False),
        ("126", "one hundred and twenty-six", True),
        ("126", "127", False),
        ("126", "126 km", False),
        ("5 km", "5 kilometres", True),
        ("5 km", "5th km", False),
        ("0", "zero", True),
        ("0", "", False),
        ("1985–1993", "1985 to 1993", False),
        ("5th", "5", False),
        ("Rome, Paris, Oslo", "Paris, Oslo, Rome", False),
        # Of a form alone nothing may be left off.
        ("Group", "Company", False),
        ("F.C.", "C.F.", False),
        ("Paris", "", False),
        ("", "Paris", False),
        ("", "", False),
    ],
)
def test_the_whole_of_an_answer_is_a_variant(gold, answer, variant):
    assert is_variant(answer, ["Quito", gold], WHO) is variant


def test_a_variant_is_told_by_what_is_asked_for():
    assert is_variant("Queen Ann Lee", ["Ann Lee"], "Who is it?")
    assert not is_variant("Queen Ann Lee", ["Ann Lee"], "Which is it?")
    assert is_variant("Queen Ann Lee", ["Ann Lee"], "Which is it?", "person")
    assert not is_variant("Queen Ann Lee", ["Ann Lee"], "Who is it?", "other")
    assert not is_variant("Ann Lee", [], "Who is it?")


@pytest.mark.parametrize(
    ("gold", "question"),
    [
        ("Spanish language", "What language is it?"),
        ("Quechua", "What language is it?"),
        ("Lima Province", "Which province is it?"),
        ("8 September 2010", "When was it?"),
        ("126", "How many are there?"),
        ("Brasília", "Which is it?"),
    ],
)
@pytest.mark.parametrize(
    "sentence",
    [
        "It is {}",
        "It was {}.",
        "That would be {}",
        "the answer is {}",
        "{} I think",
        "in {}",
    ],
)
def test_a_sentence_is_no_variant_of_what_it_says(gold, question, sentence):
    assert not is_variant(sentence.format(gold), [gold], question)


def test_tying_words_of_a_gold_are_part_of_it():
    assert is_variant("It is w Bob", ["It Is W. Bob"], "Which song is it?")
