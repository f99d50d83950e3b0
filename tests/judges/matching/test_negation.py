"""What takes an answer back, or points from it to another thing, word by word."""

from __future__ import annotations

import pytest

from pytest_kbrel.judges.rules import judge

CAPITAL = "What is the capital of France?"
FOUNDER = "Who founded the company?"
PLACE = "Where was the treaty signed?"
NEGATIONS = "not never neither nor no without except unlike cannot excluding"
FALSE = "wrong incorrect false untrue mistaken"
RELATIONS = """
    wife husband spouse widow widower father mother parent parents son sons daughter daughters child
    children brother brothers sister sisters sibling cousin uncle aunt nephew niece grandson
    granddaughter grandfather grandmother stepson stepfather stepmother friend girlfriend boyfriend
    partner student pupil teacher rival enemy assistant secretary colleague successor predecessor
    descendant ancestor
    """
RELATED = """
    married marry marries born family related relative relationship taught teach succeed succeeded
    preceded replaced replace royal dating date dated
    """
DIRECTIONS = """
    north south east west northeast northwest southeast southwest northern southern eastern western
    """


def rule(question, gold, answer):
    return judge(answer, [gold], question).rule


@pytest.mark.parametrize("word", NEGATIONS.split())
def test_a_denial_before_an_answer(word):
    assert rule(CAPITAL, "Paris", f"It is {word} Paris.") == "negated"
    assert rule(CAPITAL, "Paris", f"It is {word} the big city Paris") == "negated"
    # Of another clause, of another word, or in the question as well.
    assert rule(CAPITAL, "Paris", f"It is {word} Lyon but Paris.") == "contained"
    assert rule(CAPITAL, "Paris", f"It is {word} 5, it is Paris.") == "contained"
    assert (
        rule(f"Which city is {word} there?", "Paris", f"There is {word} Paris.")
        == "contained"
    )


@pytest.mark.parametrize("word", ["doubt", "only", "other"])
def test_what_is_no_denial(word):
    assert (
        rule(CAPITAL, "Paris", f"There is no {word} city: it is Paris") == "contained"
    )
    assert rule(CAPITAL, "Paris", f"There is no {word} Paris") == "contained"
    assert rule("Which symphony is it?", "Eroica", "It is No. 3 Eroica") == "contained"


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("Paris not", "negated"),
        ("Paris is not it", "negated"),
        ("Paris is surely never it", "negated"),
        ("Paris is most surely not it", "contained"),
        ("Paris is it, not so big", "contained"),
        ("Paris is nothing else", "contained"),
    ],
)
def test_a_denial_behind_an_answer(answer, expected):
    assert rule(CAPITAL, "Paris", answer) == expected


@pytest.mark.parametrize(
    "words",
    [
        *(
            "rather than",
            "instead of",
            "other than",
            "apart from",
            "anything but",
            "everything but",
            "all but",
        ),
        "far from",
    ],
)
def test_a_denial_of_two_words(words):
    assert rule(CAPITAL, "Paris", f"It is {words} Paris") == "negated"
    assert rule(CAPITAL, "Paris", f"{words} Lyon, it is Paris") == "contained"
    other = words.split()[1]
    assert rule(CAPITAL, "Paris", f"It is {other} Paris") == "contained"


@pytest.mark.parametrize("verb", ["is", "was", "are", "were", "would", "seems"])
@pytest.mark.parametrize("word", FALSE.split())
def test_an_answer_that_is_called_false(verb, word):
    assert rule(CAPITAL, "Paris", f"Paris {verb} {word}") == "negated"
    assert rule(CAPITAL, "Paris", f"Paris {verb} be {word}") == "negated"
    assert rule(CAPITAL, "Paris", f"Paris {verb} be very {word}") == "contained"
    assert rule(CAPITAL, "Paris", f"Paris {verb} right, Lyon {word}") == "contained"
    assert (
        rule(f"Which town {verb} {word}?", "Paris", f"Paris {verb} {word}")
        == "contained"
    )


def test_what_is_not_wrong_is_right():
    assert rule("Which is not wrong?", "Paris", "Paris is not wrong") == "contained"
    assert rule("Which town is not here?", "Paris", "Paris is not wrong") == "contained"


@pytest.mark.parametrize("word", FALSE.split())
def test_a_statement_that_is_called_false(word):
    assert rule(CAPITAL, "Paris", f"It is {word} that it is Paris") == "negated"
    assert rule(CAPITAL, "Paris", f"It is {word} to say Paris") == "negated"
    assert rule(CAPITAL, "Paris", f"It is {word} about Paris") == "contained"
    assert (
        rule(
            f"Of which town is it {word} that it is big?",
            "Paris",
            f"It is {word} that of Paris",
        )
        == "contained"
    )


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("I doubt that it is Paris", "negated"),
        ("We doubt it is Paris", "negated"),
        ("I really doubt it is Paris", "negated"),
        ("They doubt it is Paris", "contained"),
        ("I do not doubt that it is Paris", "contained"),
        ("I know, in doubt it is Paris", "contained"),
    ],
)
def test_a_doubt(answer, expected):
    assert rule(CAPITAL, "Paris", answer) == expected


@pytest.mark.parametrize(
    "word", ["Actually", "Wait", "Sorry", "Correction", "Oops", "No"]
)
def test_the_next_sentence_may_correct_an_answer(word):
    assert rule(CAPITAL, "Paris", f"Paris. {word}, it is Lyon.") == "negated"
    assert rule(CAPITAL, "Paris", f"Paris? {word}, Lyon.") == "negated"
    expected = "negated" if word == "No" else "contained"
    assert rule(CAPITAL, "Paris", f"It is Paris. {word}, it is so.") == expected
    assert rule(CAPITAL, "Paris", f"It is Paris. {word}!") == "contained"


@pytest.mark.parametrize(
    "answer", ["It is Paris. No town is so big.", "It is Paris. Certainly, it is big."]
)
def test_the_next_sentence_may_go_on(answer):
    assert rule(CAPITAL, "Paris", answer) == "contained"


@pytest.mark.parametrize("word", ["featuring", "feat", "starring", "unlike"])
def test_what_an_answer_is_beside(word):
    expected = "negated" if word == "unlike" else "beside"
    assert rule(FOUNDER, "Ann Lee", f"It is by Bob Ray {word} Ann Lee") == expected
    assert (
        rule(f"Who is it {word}?", "Ann Lee", f"It is by Bob Ray {word} Ann Lee")
        == "contained"
    )


@pytest.mark.parametrize("word", RELATIONS.split())
def test_a_relation_of_a_person_is_another_person(word):
    assert rule(FOUNDER, "Ann Lee", f"the {word} of Ann Lee") == "beside"
    assert (
        rule(FOUNDER, "Ann Lee", f"It was founded by the {word} of Ann Lee.")
        == "beside"
    )
    assert rule(FOUNDER, "Ann Lee", f"Ann Lee's {word}") == "beside"
    assert (
        rule(FOUNDER, "Ann Lee", f"It was Ann Lee, a {word} of the king.")
        == "contained"
    )
    # Asked for a relation, an answer may take it up from the other end.
    question = f"Who is the {word} of Ruth?"
    assert rule(question, "Ann Lee", "Ruth is the daughter of Ann Lee.") == "contained"


@pytest.mark.parametrize("word", RELATED.split())
def test_where_relations_are_asked_for_an_answer_may_name_one(word):
    assert (
        rule(f"Who {word} Ruth?", "Ann Lee", "Ruth is the pupil of Ann Lee.")
        == "contained"
    )


def test_what_belongs_to_a_person_is_another_thing_unless_it_is_a_work():
    assert rule(FOUNDER, "Ann Lee", "Ann Lee's lawyer founded it.") == "beside"
    assert rule(FOUNDER, "Bob James", "Bob James' lawyer founded it.") == "beside"
    assert rule(FOUNDER, "Ann Lee", "Ann Lee founded it.") == "contained"
    assert (
        rule("Which one founded the town?", "Ann Lee", "Ann Lee's lawyer founded it.")
        == "contained"
    )


WORKS = "film movie novel book song album series show play game opera band poem story episode title"


@pytest.mark.parametrize("word", WORKS.split())
def test_a_work_of_a_person_is_that_persons(word):
    for text in (word, f"best {word}", f"very best {word}"):
        assert (
            rule("Who made it?", "Ann Lee", f"It is Ann Lee's {text}.") == "contained"
        )
    assert (
        rule("Who made it?", "Ann Lee", f"It is Ann Lee's lawyer in his {word}.")
        == "beside"
    )


@pytest.mark.parametrize("word", ["near", "outside", "beyond", "opposite"])
def test_what_is_away_from_a_place(word):
    assert rule(PLACE, "Paris", f"{word} Paris") == "beside"
    assert rule(PLACE, "Paris", f"It was signed {word} Paris.") == "beside"
    assert rule(f"What is it {word}?", "Paris", f"It is {word} Paris.") == "contained"
    assert rule(PLACE, "Paris", f"It is {word}: Paris") == "contained"


OF_NAME = [
    "former",
    "formerly",
    "old",
    "original",
    "originally",
    "previously",
    "was",
    "were",
    "called",
    "named",
]


@pytest.mark.parametrize("word", OF_NAME)
def test_a_former_name_counts_where_it_is_asked_for(word):
    assert (
        rule(f"What {word} name has it?", "Saab", "It is formerly Saab.") == "contained"
    )
    assert rule("What name has it?", "Saab", "It is formerly Saab.") == "beside"


@pytest.mark.parametrize("word", ["similar", "close", "next", "adjacent"])
def test_what_is_like_or_close_to_another_thing(word):
    assert rule(PLACE, "Paris", f"in a town {word} to Paris") == "beside"
    assert (
        rule(f"What is it {word} to?", "Paris", f"It is {word} to Paris.")
        == "contained"
    )
    assert rule(PLACE, "Paris", "They came to Paris.") == "contained"


@pytest.mark.parametrize("word", DIRECTIONS.split())
def test_a_place_told_from_another_is_not_that_other(word):
    assert rule(PLACE, "Paris", f"{word} of Paris") == "beside"
    assert rule(PLACE, "Paris", f"It was signed 2 days {word} of Paris.") == "beside"
    assert (
        rule(f"What is it {word} of?", "Paris", f"It is {word} of Paris.")
        == "contained"
    )
    for lead in ("in", "to"):
        assert (
            rule("Which country is it in?", "France", f"{lead} the {word} of France")
            == "contained"
        )


SURROUNDINGS = "suburb suburbs outskirts neighbor neighbour neighborhood neighbourhood"


@pytest.mark.parametrize("word", SURROUNDINGS.split())
def test_the_surroundings_of_a_place(word):
    assert rule(PLACE, "Paris", f"in a {word} of Paris") == "beside"
    assert (
        rule(f"Of what is it a {word}?", "Paris", f"It is a {word} of Paris.")
        == "contained"
    )
    assert rule(PLACE, "Paris", "in the town of Paris") in (
        "contained",
        "question's word",
    )


@pytest.mark.parametrize(
    "word", ["km", "kilometres", "miles", "metres", "feet", "away", "far"]
)
def test_a_distance_from_a_place(word):
    assert rule(PLACE, "Paris", f"20 {word} from Paris") == (
        "negated" if word == "far" else "beside"
    )
    assert (
        rule("How far away is it, and from where?", "Paris", "He came from Paris.")
        == "contained"
    )


@pytest.mark.parametrize("mark", "'’ʼ`´′")
def test_an_apostrophe_is_written_in_several_ways(mark):
    assert rule(CAPITAL, "Paris", f"It isn{mark}t Paris.") == "negated"
    assert rule("When was it?", "1998", f"It wasn{mark}t in 1998.") == "no rule"
    assert rule(FOUNDER, "Ann Lee", f"Ann Lee{mark}s lawyer") == "beside"
    assert rule(CAPITAL, "Hawai'i", f"It is hawai{mark}i") == "contained"


DENIALS = [
    # A question about another thing before the answer, and a question behind that wants a yes, deny nothing.
    ("Is it false that it was Lyon? It is Paris.", "contained"),
    ("It is Paris and nothing else, is it not", "contained"),
    ("They were wrong to say Lyon, Paris it is", "contained"),
    # "No" as a clause of its own corrects what stands before it, however far.
    ("Paris, no, Lyon", "negated"),
    ("Paris, it is so, no, Lyon", "negated"),
    ("Paris it may be, no, Lyon", "negated"),
    # A doubt denies, and who does not doubt says it.
    ("I doubt it is Paris", "negated"),
    ("I really doubt that it is Paris", "negated"),
    ("I do not doubt that it is Paris", "contained"),
    ("without doubt it is Paris", "contained"),
]


def test_what_takes_an_answer_back():
    result = [rule(CAPITAL, "Paris", answer) for answer, _ in DENIALS]
    assert list(zip(result, DENIALS, strict=True)) == [
        (row[-1], row) for row in DENIALS
    ]


CAPITAL_OF_PERU = "What is the capital of Peru?"
COUNTRY = "Which country is it?"
BURMA = ["Myanmar (Burma)"]
LIMA = ["Lima"]

DENIED = [
    # brackets
    (COUNTRY, BURMA, "Myanmar (Burma) is not the answer."),
    (COUNTRY, BURMA, "Myanmar (Burma) is wrong."),
    (COUNTRY, BURMA, "It is not Myanmar (Burma)."),
    (COUNTRY, BURMA, "Myanmar (also known as Burma) is not it."),
    (CAPITAL_OF_PERU, LIMA, "Lima (a city on the coast) is not the capital of Peru."),
    (CAPITAL_OF_PERU, LIMA, "It is not (Lima)."),
    (CAPITAL_OF_PERU, LIMA, "Lima (not the capital)"),
    (CAPITAL_OF_PERU, LIMA, "Lima (wrong)"),
    # quotation marks
    (CAPITAL_OF_PERU, LIMA, '"Lima" is not the capital.'),
    (CAPITAL_OF_PERU, LIMA, 'It is not "Lima".'),
    (CAPITAL_OF_PERU, LIMA, 'Not "Lima".'),
    (CAPITAL_OF_PERU, LIMA, "The capital is not called “Lima”."),
    # commas, colons and dashes
    (COUNTRY, BURMA, "Myanmar, or Burma, is not the answer."),
    (CAPITAL_OF_PERU, LIMA, "Lima, Peru, is not the capital."),
    (CAPITAL_OF_PERU, LIMA, "Lima, in Peru, is not it."),
    (CAPITAL_OF_PERU, LIMA, "Lima – a city on the coast – was never the capital."),
    (CAPITAL_OF_PERU, LIMA, "Lima, the city (on the coast), is not the capital."),
    (CAPITAL_OF_PERU, LIMA, "It is not, in fact, Lima."),
    (CAPITAL_OF_PERU, LIMA, "Lima is, in fact, not the capital."),
    (CAPITAL_OF_PERU, LIMA, "The capital is not: Lima"),
    (CAPITAL_OF_PERU, LIMA, "Lima: not the capital."),
    # another sentence
    (CAPITAL_OF_PERU, LIMA, "Lima? Not the capital."),
    (CAPITAL_OF_PERU, LIMA, "Lima; it is not the capital."),
    (CAPITAL_OF_PERU, LIMA, "Lima... not!"),
    (CAPITAL_OF_PERU, LIMA, "Lima. That is wrong."),
    (CAPITAL_OF_PERU, LIMA, "Lima is a city on the coast. It is not the capital."),
]
STATED = [
    (COUNTRY, BURMA, "Myanmar (Burma), not Laos."),
    (COUNTRY, BURMA, "It is not Laos, but Myanmar (Burma)."),
    (COUNTRY, BURMA, "Myanmar (not Laos)"),
    (CAPITAL_OF_PERU, LIMA, "Lima, not Quito"),
    (CAPITAL_OF_PERU, LIMA, 'It is "Lima", not "Quito".'),
    (CAPITAL_OF_PERU, LIMA, "It is Lima (Peru), which is not far from the sea."),
    (CAPITAL_OF_PERU, LIMA, "Lima, a city on the coast, is not far from the sea."),
    (CAPITAL_OF_PERU, LIMA, "Lima (Peru) is the capital, not Cusco."),
    (CAPITAL_OF_PERU, LIMA, "The capital is Lima, which, by the way, is not Quito."),
    (
        CAPITAL_OF_PERU,
        LIMA,
        "It is Lima, for Cusco, once the capital, is not the capital now.",
    ),
    (CAPITAL_OF_PERU, LIMA, "Lima. It is not Cusco."),
    (CAPITAL_OF_PERU, LIMA, "Lima. It is not the largest city of the continent."),
    (CAPITAL_OF_PERU, LIMA, "Cusco is not, in our time, the capital, Lima is."),
    (CAPITAL_OF_PERU, LIMA, "It is not Cusco (it is Lima)."),
    ("Who turns into a bear?", ["Beorn"], "It is Beorn, not a bear, who can change."),
    ("Is it part of Europe or Asia?", ["Asia"], "It is part of Asia, not Europe."),
    (
        "Is it part of Europe or Asia?",
        ["Asia"],
        "It is part of Asia, not part of Europe.",
    ),
    ("Who turns into a bear?", ["Beorn"], "It is Beorn. He is not a bear."),
    (CAPITAL_OF_PERU, LIMA, "Lima. It is not the capital of Chile."),
    (CAPITAL_OF_PERU, LIMA, "Cusco is not it, the city is “Lima”."),
    ("Who sang it?", ["Buddy Holly"], "“Not Fade Away” (Buddy Holly)"),
    (
        "Who wrote it?",
        ["Kazuo Ishiguro"],
        "The author of “Never Let Me Go” is Kazuo Ishiguro.",
    ),
    ("Which of them is wrong?", LIMA, "Lima (wrong)"),
    ("Which of them is wrong?", LIMA, "Lima, the capital, is wrong."),
]


@pytest.mark.parametrize(
    ("question", "golds", "answer"), DENIED, ids=[row[2] for row in DENIED]
)
def test_a_mark_does_not_hide_a_denial(question, golds, answer):
    result = judge(answer, golds, question)
    assert (result.label, result.rule) == ("wrong", "negated")


@pytest.mark.parametrize(
    ("question", "golds", "answer"), STATED, ids=[row[2] for row in STATED]
)
def test_what_denies_another_thing_denies_nothing(question, golds, answer):
    assert judge(answer, golds, question).label == "correct"
