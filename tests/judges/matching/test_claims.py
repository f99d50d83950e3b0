"""Chatty answers are judged by what they state as the answer, not by what they mention beside it."""

from __future__ import annotations

import pytest

from pytest_kbrel.judges.rules import judge

WHERE = "In which country is London?"
CAPITAL = "What is the capital of Ecuador?"
WRITER = "Who wrote Hamlet?"
LANGUAGE = "What language do people in Australia speak?"
# By its country: what each of these answers states.
STATED = [
    (
        CAPITAL,
        "Quito",
        "Sure! The capital of Ecuador is Quito. It is known for its churches.",
    ),
    (
        CAPITAL,
        "Quito",
        "Sure! The capital of Ecuador is Quito, while Guayaquil is the largest city.",
    ),
    (CAPITAL, "Quito", "The capital of Ecuador is **Quito**."),
    (CAPITAL, "Quito", "**Quito**"),
    (CAPITAL, "Quito", "__Quito__"),
    (CAPITAL, "Quito", "`Quito`"),
    (CAPITAL, "Quito", "Great question! The capital of Ecuador is Quito."),
    (CAPITAL, "Quito", "Answer: Quito"),
    (CAPITAL, "Quito", "**Answer:** Quito"),
    (CAPITAL, "Quito", "Final answer: Quito"),
    (CAPITAL, "Quito", "The answer is: Quito."),
    (CAPITAL, "Quito", "What is the capital of Ecuador? Quito."),
    (
        CAPITAL,
        "Quito",
        "What is the capital of Ecuador? The capital of Ecuador is Quito.",
    ),
    (CAPITAL, "Quito", "Question: What is the capital of Ecuador?\nAnswer: Quito"),
    (CAPITAL, "Quito", "- Quito"),
    (CAPITAL, "Quito", "1. Quito"),
    (CAPITAL, "Quito", "# Quito\n\nQuito is the capital of Ecuador."),
    (
        CAPITAL,
        "Quito",
        "- Capital: Quito\n- Largest city: Guayaquil\n- Currency: US dollar",
    ),
    (CAPITAL, "Quito", "Capital of Ecuador: Quito"),
    (CAPITAL, "Quito", "City that is the capital of Ecuador: Quito"),
    (CAPITAL, "Quito", "Quito, the capital of Ecuador, lies at 2,850 metres."),
    (
        CAPITAL,
        "Quito",
        "Quito, the capital of Ecuador, is the second largest city after Guayaquil.",
    ),
    (CAPITAL, "Quito", "Quito. It is not the largest city; that is Guayaquil."),
    (CAPITAL, "Quito", "The capital of Ecuador is Quito, not Guayaquil."),
    (CAPITAL, "Quito", "Not Guayaquil, but Quito."),
    (
        CAPITAL,
        "Quito",
        "Many people think it is Guayaquil, but the capital of Ecuador is Quito.",
    ),
    (CAPITAL, "Quito", "It is Quito. Guayaquil is bigger, though."),
    (CAPITAL, "Quito", "The capital of Ecuador is Quito (population: 1.8 million)."),
    (CAPITAL, "Quito", "As far as I know, it's Quito."),
    (
        CAPITAL,
        "Quito",
        "Ecuador is a country in South America that borders Peru. Its capital is Quito.",
    ),
    (
        CAPITAL,
        "Quito",
        "Let me think. Ecuador is a country in South America. Its capital is Quito.",
    ),
    (
        CAPITAL,
        "Quito",
        "Quito\n\nExplanation: Quito has been the capital since 1830. Guayaquil is a port.",
    ),
    (CAPITAL, "Quito", r"\boxed{Quito}"),
    (
        WHERE,
        "United Kingdom",
        "London is in England, which is part of the United Kingdom.",
    ),
    (WHERE, "England", "London is in England, which is part of the United Kingdom."),
    (
        WHERE,
        "United Kingdom",
        "London is located in England, a country of the United Kingdom.",
    ),
    (
        WHERE,
        "United Kingdom",
        "London is in the United Kingdom, which consists of England and three others.",
    ),
    (WHERE, "United Kingdom", "London, England, United Kingdom"),
    (
        WRITER,
        "William Shakespeare",
        "It was written by William Shakespeare, the playwright, around 1600.",
    ),
    (
        WRITER,
        "William Shakespeare",
        "William Shakespeare wrote Hamlet. He also wrote Macbeth and Othello.",
    ),
    (
        WRITER,
        "William Shakespeare",
        "That would be William Shakespeare, a contemporary of Ben Jonson.",
    ),
    (
        WRITER,
        "William Shakespeare",
        "Hamlet is by William Shakespeare. Laurence Olivier played him in 1948.",
    ),
    (
        WRITER,
        "Mark Twain",
        "Hamlet was written by Samuel Clemens, better known as Mark Twain.",
    ),
    (
        WRITER,
        "Mark Twain",
        "Hamlet was written by Samuel Clemens, whose pen name was Mark Twain.",
    ),
    (LANGUAGE, "English", "People in Australia speak English."),
    (LANGUAGE, "English language", "People in Australia speak English."),
    (
        LANGUAGE,
        "English",
        "English. Many people also speak Mandarin, Arabic or Vietnamese at home.",
    ),
]
MENTIONED = [
    (
        CAPITAL,
        "Quito",
        "The capital of Ecuador is Guayaquil. Quito is another large city.",
    ),
    (
        CAPITAL,
        "Quito",
        "The capital of Ecuador is Guayaquil, which is larger than Quito.",
    ),
    (
        CAPITAL,
        "Quito",
        "The capital of Ecuador is Guayaquil, the largest city after Quito.",
    ),
    (CAPITAL, "Quito", "Guayaquil, not far from Quito."),
    (
        CAPITAL,
        "Quito",
        "Sure! The capital of Ecuador is Guayaquil. It is larger than Quito.",
    ),
    (CAPITAL, "Quito", "Guayaquil. Quito was the capital before."),
    (
        CAPITAL,
        "Quito",
        "The capital of Ecuador is Guayaquil, although many people believe it is Quito.",
    ),
    (
        CAPITAL,
        "Quito",
        "Many people think it is Quito, but the capital of Ecuador is Guayaquil.",
    ),
    (CAPITAL, "Quito", "**Guayaquil** is the capital; Quito is in the mountains."),
    (
        CAPITAL,
        "Quito",
        "Guayaquil is the capital of Ecuador, and Quito is its second city.",
    ),
    (CAPITAL, "Quito", "- Capital: Guayaquil\n- Other cities: Quito, Cuenca"),
    (CAPITAL, "Quito", "- Largest city: Quito\n- Capital: Guayaquil"),
    (CAPITAL, "Quito", "- Quito\n- Guayaquil\n- Cuenca"),
    (CAPITAL, "Quito", "1. Quito\n2. Guayaquil\n3. Cuenca"),
    (CAPITAL, "Quito", "Capital of Ecuador: Guayaquil, Cuenca, Quito"),
    (CAPITAL, "Quito", "Guayaquil\n\nExplanation: Guayaquil replaced Quito in 1830."),
    (CAPITAL, "Quito", "Guayaquil (formerly Quito)"),
    (
        CAPITAL,
        "Quito",
        "Answer: Guayaquil. Explanation: Quito is only the second city.",
    ),
    (CAPITAL, "Quito", "Unlike Quito, Guayaquil is the capital of Ecuador."),
    (CAPITAL, "Quito", "Great question! It is Guayaquil, about 270 km from Quito."),
    (WHERE, "France", "London is in England, which was at war with France."),
    (
        WHERE,
        "United Kingdom",
        "London is in France, which is a neighbour of the United Kingdom.",
    ),
    (
        WHERE,
        "United Kingdom",
        "London is in Canada, which was once part of the United Kingdom.",
    ),
    (
        WHERE,
        "United Kingdom",
        "London is in Ireland, which left the United Kingdom in 1922.",
    ),
    (
        WHERE,
        "United Kingdom",
        "London is in Ireland, though many believe it lies in the United Kingdom.",
    ),
    (WHERE, "England", "London is in France, which lies across the sea from England."),
    (
        WHERE,
        "Scotland",
        "London is in the United Kingdom, which consists of England, Scotland and Wales.",
    ),
    (
        WRITER,
        "William Shakespeare",
        "Hamlet was written by Ben Jonson, a contemporary of William Shakespeare.",
    ),
    (
        WRITER,
        "William Shakespeare",
        "Ben Jonson wrote Hamlet. William Shakespeare acted in it.",
    ),
    (
        WRITER,
        "William Shakespeare",
        "Hamlet was written by Ann Lee. Some say it was William Shakespeare.",
    ),
    (
        WRITER,
        "William Shakespeare",
        "Ann Lee, often confused with William Shakespeare, wrote it.",
    ),
    (
        WRITER,
        "William Shakespeare",
        "Hamlet was written by Ann Lee, like William Shakespeare a poet.",
    ),
    (
        LANGUAGE,
        "English",
        "People in Australia speak French, but English is taught in schools.",
    ),
    (
        LANGUAGE,
        "English",
        "People in Australia speak French. English is spoken in New Zealand.",
    ),
]


@pytest.mark.parametrize(
    ("question", "gold", "answer"), STATED, ids=[row[2] for row in STATED]
)
def test_a_chatty_answer_is_right_by_what_it_states(question, gold, answer):
    assert judge(answer, [gold], question).label == "correct"


@pytest.mark.parametrize(
    ("question", "gold", "answer"), MENTIONED, ids=[row[2] for row in MENTIONED]
)
def test_a_chatty_answer_is_wrong_where_it_states_another_thing(question, gold, answer):
    assert judge(answer, [gold], question).label == "wrong"


@pytest.mark.parametrize(
    "answer",
    [
        # Nothing is stated before them, or it is stated of another verb.
        "Hamlet was performed by Ann Lee and was written by Bob Ray.",
        "Hamlet is a song by Ann Lee. The words are those of Bob Ray.",
        "Hamlet is set in Denmark. Bob Ray is the writer.",
        "According to Ann Lee, Hamlet is the work of Bob Ray.",
        "In Denmark, Hamlet was written by Bob Ray.",
        "Sure. Bob Ray.",
        "Sure. The words are those of Bob Ray.",
        "Author of Hamlet: Bob Ray",
        "Several Poets wrote plays. Hamlet is by Bob Ray.",
        "Bob Rays wrote Hamlet. Bob Ray was a poet.",
    ],
)
def test_what_takes_up_no_question_states_nothing(answer):
    assert judge(answer, ["Bob Ray"], WRITER).label == "correct"


@pytest.mark.parametrize(
    ("answer", "rule"),
    [
        ("the palace is in rome, which is larger than oslo", "contained"),
        ("The palace is in Rome, which is larger than Oslo", "aside"),
        ("The palace is in the hills of Oslo", "contained"),
        ("The palace is in Rome, including Oslo", "contained"),
        ("The palace is in Rome, near the centre of Oslo", "aside"),
        ("The palace was built by Rome, which is larger than Oslo", "contained"),
    ],
)
def test_only_names_are_told_apart(answer, rule):
    assert judge(answer, ["Oslo"], "Where is the palace?").rule == rule
