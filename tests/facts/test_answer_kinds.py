"""The kind of an answer, by its text and by what its question asks for; answer types of facts."""

from __future__ import annotations

import pytest

from pytest_kbrel.facts.answer_kinds import answer_type_of, kind_of
from pytest_kbrel.records import Fact, Relation


def sort(
    answer: str | None, question: str = "", answer_type: str = "", *, cased: bool = True
) -> str:
    return kind_of(answer, question, answer_type, cased=cased).sort


def cells(table: str) -> list[list[str]]:
    return [[cell.strip() for cell in row.split("|")] for row in table.splitlines()]


SORTS = """\
1969 | when did they land | year
in 1969 | when did they land | year
44 BC | in which year did he die | year
first published in 1890 | when did it come out | year
July 20, 1969 | when did they land | date
the 90s | when was it popular | date
the 19th century | when was it built | date
Saturday | when is it shown | date
After World War II | when was it introduced | date
at sunset | when is it sung | other
1500 | how many ships were there | number
1500 |  | year
seven | how many seas are there | number
Twenty-seven | how many changes were made | number
585 (HD) | what channel is it on | number
8 bytes | how many does it hold | quantity
20-year period | how long did it take | quantity
$2.18 billion | how much did it earn | quantity
1% | what percentage is it | quantity
a week | how long does it last | quantity
Ann Lee | who wrote it | person
50 Cent | who sings it | person
Ann Lee | actor who plays the king | person
Ann Lee |  | person
his brother | who is he talking about | other
Dhaka, Bangladesh | which seat did it have | place
Utah | where was it filmed | place
Lake Superior | what is it called | place
Romania | In what country is Vale? | place
a bank | where do you get one | other
7 Rings | which song came first | title
Help! | what album is it on | title
Yes | do you need one | yes/no
Yes | what do you say when you win | name
epithelium | what is it made of | other
Hinduism | What is the religion of Rama? | name
"""


@pytest.mark.parametrize(
    ("answer", "question", "expected"),
    cells(SORTS),
)
def test_a_sort_is_told_by_answer_and_question(
    answer: str, question: str, expected: str
) -> None:
    assert sort(answer, question) == expected


KEYWORDS = """\
In what country is Vale? | country
What is the religion of Rama? | religion
What is Ann Lee's occupation? | occupation
What profession does Ann Lee have? | occupation
What genre is Chicago? | genre
Who was the director of Vale? | director
who sang it | sang
Who is it? |
which film won the prize | film
what type of dog was it | dog
what is the name of the song | song
what is the scientific name for a calf |
how many seas are there |
where was it filmed |
 |
"""


@pytest.mark.parametrize(
    ("question", "keyword"),
    cells(KEYWORDS),
)
def test_the_word_a_question_asks_by(question: str, keyword: str) -> None:
    assert kind_of("Some Thing", question).keyword == keyword


def test_a_known_type_goes_before_the_questions_words() -> None:
    assert sort("Ann Lee", "What is it?", "person") == "person"
    assert sort("Vale", "What is it?", "location") == "place"
    assert sort("1984", "which book is it", "time") == "year"
    # A reader takes it for a time by its looks.
    assert sort("1500", "how many ships were there", "time") == "number"


def fact(answer: str | None, answer_type: str = "") -> Fact:
    return Fact(
        id="f", relation="r", subject="s", object=answer, answer_type=answer_type
    )  # type: ignore[arg-type]


def relation(answer_type: str = "") -> Relation:
    return Relation(id="r", label="r", domain="d", frames=(), answer_type=answer_type)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        *(
            (text, "time")
            for text in ("1066", "2019", "c. 1850", "44 BC", "the 1960s", "1990's")
        ),
        *(
            (text, "time")
            for text in (
                "5 March 2031",
                "March 5, 2031",
                "July 1969",
                "June",
                "4th of July",
            )
        ),
        *(
            (text, "time")
            for text in (
                "1969-07-20",
                "20/07/1969",
                "the 19th century",
                "5th century BC",
            )
        ),
        *(
            (text, "number")
            for text in (
                "7",
                "3.5",
                "1,000,000",
                "-4",
                "12 %",
                "40 percent",
                "3 million",
            )
        ),
        *((text, "number") for text in ("$ 5", "299 792 458", "900", "2500")),
        *(
            (text, "other")
            for text in (
                "Paris",
                "seven",
                "Apollo 11",
                "May Day",
                "2 Fast",
                "U2",
                "",
                "1st",
            )
        ),
        (None, "other"),
    ],
)
def test_looks(answer: str | None, expected: str) -> None:
    assert answer_type_of(fact(answer), relation()) == expected
