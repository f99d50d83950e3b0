"""SimpleQA and SimpleQA Verified, by rows made up in their form."""

from __future__ import annotations

import pytest

from pytest_kbrel.errors import SuiteError
from tests.facts.readers.conftest import Read

PLAIN = "metadata,problem,answer\n"
VERIFIED = "original_index,problem,answer,topic,answer_type,multi_step,requires_reasoning,urls\n"


def verified(index: int, problem: str, answer: str, kind: str) -> str:
    return f'{index},{problem},"{answer}",Geography,{kind},No,No,"https://a.example,https://b.example"\n'


def test_the_table_of_simpleqa(read_text: Read) -> None:
    about = (
        "\"{'topic': 'Art', 'answer_type': 'Person', 'urls': ['https://a.example/O\\'Neill', 'https://b']}\""
    )
    text = PLAIN + f"{about},Who painted the Vale mural?,Mira Holt\n" + ",Who made it?,Jo\n"
    result = read_text("simpleqa", "simple_qa_test_set.csv", text)
    assert result.errors == []
    assert [(f.object, f.question, f.answer_type, f.dataset) for f in result.facts] == [
        ("Mira Holt", "Who painted the Vale mural?", "person", "simpleqa"),
        ("Jo", "Who made it?", "", "simpleqa"),
    ]
    assert result.facts[0].subject == result.facts[0].question
    assert result.facts[0].id.startswith("simpleqa:")
    assert (result.relation.id, result.relation.label, result.relation.frames) == ("simpleqa", "SimpleQA", ())


def test_the_table_of_simpleqa_verified(read_text: Read) -> None:
    text = VERIFIED + verified(
        17,
        "How many people live in Vale?",
        "120k (acceptable range: anything between 118k and 122k)",
        "Number",
    )
    text += verified(4, "On what day did Vale open?", "May 3, 1985", "Date") + verified(
        5, "Where is it?", "Ulm", "Place"
    )
    result = read_text("simpleqa", "simpleqa_verified.csv", text)
    assert [(f.id, f.object, f.answer_range, f.answer_type) for f in result.facts] == [
        ("17", "120k", (118_000.0, 122_000.0), "number"),
        ("4", "May 3, 1985", None, "time"),
        ("5", "Ulm", None, "location"),
    ]
    assert {f.dataset for f in result.facts} == {"simpleqa-verified"}
    assert result.relation.label == "SimpleQA Verified"


@pytest.mark.parametrize(
    ("answer", "told", "within"),
    [
        ("120,000 (acceptable range: anything between 118,000 and 122,000)", "120,000", (118e3, 122e3)),
        ("168 acres (acceptable range: anything between 166 and 170 acres)", "168 acres", (166, 170)),
        ("33.77 (Acceptable Range: anything between 33.7 and 33.8).", "33.77", (33.7, 33.8)),
        ("-3.5 (acceptable range: anything between -3.6 and -3.4)", "-3.5", (-3.6, -3.4)),
        (
            "$1.2 million (acceptable range: anything between 1.1 and 1.3 million)",
            "$1.2 million",
            (1.1e6, 1.3e6),
        ),
        ("1985 (acceptable range: between 1983 and 1987)", "1985", (1983, 1987)),
        ("9 km2 (acceptable range: anything between 8 km2 and 10 km2)", "9 km2", (8, 10)),
        ("1985 (with an acceptable range from 1983 to 1987)", "1985", (1983, 1987)),
        ("40 (acceptable range: anything between 38–42)", "40", (38, 42)),
        ("5 km (acceptable range: anything between 4.9 km and 5.1 km)", "5 km", (4.9, 5.1)),
    ],
)
def test_a_range_is_read_from_the_note_behind_the_answer(
    answer: str, told: str, within: tuple[float, float], read_text: Read
) -> None:
    (fact,) = read_text("simpleqa", "q.csv", VERIFIED + verified(1, "How much?", answer, "Number")).facts
    assert (fact.object, fact.answer_range) == (told, pytest.approx(within))


@pytest.mark.parametrize(
    ("told", "ends"),
    [
        ("5 feet 4 inches", "5 feet 3 inches and 5 feet 5 inches"),
        ("12 May 1990", "10 May 1990 and 14 May 1990"),
        ("3:45", "3:40 and 3:50"),
    ],
)
def test_ends_of_several_numbers_are_no_range(told: str, ends: str, read_text: Read) -> None:
    answer = f"{told} (acceptable range: anything between {ends})"
    (fact,) = read_text("simpleqa", "q.csv", VERIFIED + verified(1, "How much?", answer, "Number")).facts
    assert (fact.object, fact.answer_range) == (told, None)


def test_another_answer_in_brackets_is_an_alias(read_text: Read) -> None:
    (fact,) = read_text(
        "simpleqa", "q.csv", VERIFIED + verified(1, "What was he?", "Miner (or collier)", "Other")
    ).facts
    assert (fact.object, fact.aliases) == ("Miner", ("collier",))
    (fact,) = read_text("simpleqa", "q.csv", VERIFIED + verified(1, "Which?", "Vale (Ulm)", "Other")).facts
    assert (fact.object, fact.aliases) == ("Vale (Ulm)", ())


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (
            verified(1, "Q?", "5 (acceptable range: anything between few and many)", "Number"),
            "a range must be of two numbers",
        ),
        (
            verified(1, "Q?", "5 (acceptable range: anything between 6 and 4)", "Number"),
            "must begin with its lower end",
        ),
        (
            verified(1, "Q?", "(acceptable range: anything between 4 and 6)", "Number"),
            "'answer' must say more",
        ),
        (
            verified(1, "Q?", "5", "Colour"),
            "'answer_type' must be one of number, person, time, location, other",
        ),
        ("1,,5,Art,Number,No,No,u\n", "the key 'problem' is missing"),
    ],
)
def test_a_row_that_cannot_be_read_is_an_error(row: str, message: str, read_text: Read) -> None:
    result = read_text("simpleqa", "q.csv", VERIFIED + row)
    (error,) = result.errors
    assert "q.csv:2: " in error
    assert message in error


@pytest.mark.parametrize("about", ["{'topic'", "[1]", "__import__('os')", "7"])
def test_metadata_is_a_dictionary_and_is_never_run(about: str, read_text: Read) -> None:
    (error,) = read_text("simpleqa", "q.csv", PLAIN + f'"{about}",Who?,Jo\n').errors
    assert "'metadata' must be a dictionary such as {'topic': 'Art', 'answer_type': 'Date'}, found" in error


def test_another_table_is_refused(read_text: Read) -> None:
    with pytest.raises(
        SuiteError, match=r"not SimpleQA's header: the key 'problem' is missing; found: question"
    ):
        read_text("simpleqa", "q.csv", "question,answer\nWho?,Jo\n")
