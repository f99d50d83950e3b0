"""One answer against all that is accepted: which rule finds it, and what forbids it, case by case."""

from __future__ import annotations

import pytest

from pytest_kbrel.judges.rules import judge

AUTHOR = "Who wrote the novel?"
ONE = "Which one won the prize?"
FILM = "Which film won the prize?"
MAKER = "Which company built the engine?"
PLACE = "Where was the treaty signed?"
BOTH = "Are both rivers in Asia?"
KEEP = "What does the shepherd keep?"
LAMPHUN = "What is the capital of Lamphun?"
TWO = "Which two cities are meant?"

# By subject: the question, what is accepted, the answer, and the rule that tells.
CASES = {
    "yes and no in a gold with a remark": [
        (BOTH, "yes (both)", "Yes, they are.", "yes or no"),
        (BOTH, "yes (both)", "No, only one is.", "no rule"),
    ],
    "another spelling of a name that is denied": [
        (AUTHOR, "John Keats", "It was J. Keats.", "initials"),
        (AUTHOR, "John Keats", "It was not J. Keats.", "negated"),
    ],
    "a surname beside another name": [
        (AUTHOR, "William Shakespeare", "The playwright Shakespeare", "surname"),
        (
            AUTHOR,
            "William Shakespeare",
            "Marlowe is greater than Shakespeare.",
            "no rule",
        ),
    ],
    "words that are pieced together": [
        (ONE, "Basketball", "Basket Ball", "spelling"),
        (ONE, "Rock n Roll", "RocknRoll", "spelling"),
        (ONE, "Run to That Hill", "RunToThatHill", "spelling"),
        (ONE, "Rock Me Now", "Rockmenow", "spelling"),
        (ONE, "Rockmenow", "Rock Me Now", "spelling"),
        (ONE, "Rock Now", "Rockmenow", "no rule"),
        (ONE, "Run to That Sun", "RunToThatSun", "spelling"),
    ],
    "a firm of three letters": [
        (MAKER, "IBM", "It was the firm IBM Corp.", "company"),
    ],
    # "Paris, France" is another town than "Paris, Texas"; a clause or a nation behind both tells none apart.
    "the qualifier of a place": [
        (PLACE, "Paris, Texas", "Paris, France", "no rule"),
        (PLACE, "Paris, Texas", "It was signed in Paris, on the river.", "qualifier"),
        (PLACE, "Paris, Texas", "Paris, Texas, USA", "qualifier"),
    ],
    # What stands behind "Orion" may say that another is meant than the film.
    "the qualifier in parentheses": [
        (ONE, "Orion (film)", "It was Orion (Danish film).", "qualifier"),
        (ONE, "Orion (film)", "It was Orion (Danish band).", "no rule"),
        (ONE, "Orion (film)", "It was Orion (Alien), film.", "no rule"),
        (ONE, "Orion (film)", "It was Orion (Danish band), film.", "no rule"),
        (ONE, "Orion (film)", "It was Orion in Denmark.", "no rule"),
        (ONE, "Orion (film)", "It was Orion again.", "qualifier"),
        (ONE, "Orion (film)", "It was Orion in.", "qualifier"),
        (ONE, "Orion (film)", "It was Orion. Sydney liked it.", "qualifier"),
        (ONE, "Orion (film)", "It was Orion (1990).", "qualifier"),
        (ONE, "Orion (film)", "It was Orion (By Lee).", "qualifier"),
        (
            "Which Danish one won?",
            "Orion (film)",
            "It was Orion (Danish).",
            "qualifier",
        ),
        # Small letters describe, unless the whole answer is in them and they are few.
        (ONE, "Orion (film)", "It was Orion (band).", "qualifier"),
        (ONE, "Orion (film)", "it was orion (big danish band)", "no rule"),
        (ONE, "Orion (film)", "it was orion (big old danish band)", "qualifier"),
        (
            ONE,
            ["Orion (film)", "Orión (bright star)"],
            "It is Orion (star of winter).",
            "qualifier",
        ),
    ],
    "one for many in a sentence": [
        (KEEP, "goats", "It keeps a small goat there.", "plural"),
        (KEEP, ["ox", "goats"], "It keeps a small goat there.", "plural"),
        (KEEP, "goats", "It keeps a small Goat there.", "plural"),
        (KEEP, "Goats", "It keeps a small goat there.", "plural"),
        (KEEP, "Goats", "It keeps a small Goat there.", "no rule"),
        # The name of a work or a person is not put into the singular.
        (FILM, "Goats", "It is about a small goat there.", "no rule"),
        (
            "Who eats grass there?",
            "goats",
            "It is surely a small goat there.",
            "plural",
        ),
        (
            "Who eats grass there?",
            "Goats",
            "It is surely a small goat there.",
            "no rule",
        ),
    ],
    "what the question says already": [
        (LAMPHUN, "Lamphun", "It is Lamphun.", "contained"),
        (LAMPHUN, "Lamphun", "The mayor is in Lamphun.", "echo"),
        (
            "Is the capital of Lamphun big or small?",
            "Lamphun",
            "Lamphun is big.",
            "echo",
        ),
        ("Elle or Vogue: which is older?", "Vogue", "Vogue is older.", "contained"),
        ("Elle or Vogue: which is older?", "Elle", "Vogue is older.", "no rule"),
        ("Is it Vogue or", "Vogue", "Vogue is it there", "contained"),
    ],
    # All items must stand within twice the words of the gold and two.
    "a list whose items are apart": [
        (TWO, "Paris and London", "London lies far off and there is Paris", "list"),
        (
            TWO,
            "Paris and London",
            "London lies far off and there it is Paris",
            "no rule",
        ),
        (TWO, "Paris and London", "Now they say that it is London and Paris", "list"),
    ],
}


@pytest.mark.parametrize("subject", CASES)
def test_the_rule_that_tells(subject):
    rows = CASES[subject]
    result = [
        judge(answer, [gold] if isinstance(gold, str) else gold, question).rule
        for question, gold, answer, _ in rows
    ]
    assert list(zip(result, rows, strict=True)) == [(row[-1], row) for row in rows]


def test_what_is_asked_for_may_be_told_and_else_the_question_tells():
    # A last name alone answers where a person is asked for.
    answer, accepted = "Shakespeare", ["William Shakespeare"]
    assert (
        judge(answer, accepted, "Of whom is it?", answer_type="person").rule
        == "surname"
    )
    assert judge(answer, accepted, "Whose is it?").rule == "surname"
    assert (
        judge(
            answer, accepted, "The long play was at first written by which German?"
        ).rule
        == "surname"
    )
    assert (
        judge(
            answer, accepted, "The long play was at first written in which German?"
        ).rule
        == "no rule"
    )
    assert (
        judge(answer, accepted, "Who wrote it?", answer_type="work").rule == "no rule"
    )
    assert judge(answer, accepted, "What is it?").rule == "no rule"
