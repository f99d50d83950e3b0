from __future__ import annotations

import dataclasses
import re

import pytest

from pytest_kbrel.metrics import metrics_for
from pytest_kbrel.probes import run_case
from pytest_kbrel.probes.reliability import read_distractors
from pytest_kbrel.records import Failed, ReliabilitySettings
from tests.metrics import value_of
from tests.probes.conftest import FRANCE, NORWAY, Oracle, make_case

WRITTEN = ReliabilitySettings(
    distractors_from="openai/writer", distractors=6, choices=4
)
TOWNS = tuple(f"Town {number}" for number in range(8))
KNOWN = dataclasses.replace(FRANCE, negatives=TOWNS)


class Helped(Oracle):
    """Keeps apart what the model and what its helpers are asked."""

    def __init__(self, reply, **more) -> None:
        super().__init__(**more)
        self.reply = reply
        self.asked_helper: list[tuple[str, str]] = []

    def __call__(self, requests, to=""):
        if not to:
            return super().__call__(requests)
        self.asked_helper += [(to, request.prompt) for request in requests]
        former, self.say = self.say, lambda request: self.reply
        try:
            return super().__call__(requests)
        finally:
            self.say = former


def options_in(prompt: str) -> set[str]:
    asked = prompt.rpartition("Question:")[2]
    return set(re.findall(r"^[A-E]\) (.*)$", asked, flags=re.MULTILINE))


def offered(oracle: Oracle) -> set[str]:
    prompts = [request.prompt for round_ in oracle.rounds for request in round_]
    return set().union(*(options_in(prompt) for prompt in prompts)) - {
        "Paris",
        "unsure",
    }


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("Rome\nOslo\nBern", ("Rome", "Oslo", "Bern")),
        ("1. Rome\n2) Oslo\n(3) Bern\n10: Lima", ("Rome", "Oslo", "Bern", "Lima")),
        ("1.Rome\n2.Oslo", ("Rome", "Oslo")),
        ("- Rome\n* Oslo\n• Bern\n– Lima", ("Rome", "Oslo", "Bern", "Lima")),
        ("a) Rome\n(B) Oslo", ("Rome", "Oslo")),
        ("J. R. R. Tolkien\nC. S. Lewis", ("J. R. R. Tolkien", "C. S. Lewis")),
        ('"Rome"\n“Oslo”\n`Bern`', ("Rome", "Oslo", "Bern")),
        ("Rome\n\nrome\nROME!", ("Rome",)),
        ("Paris\nParis.\nthe Paris\nRome", ("Rome",)),
        ("unsure\nRome", ("Rome",)),
        ("Sure! Here are three:\n1. Rome\n2. Oslo", ("Rome", "Oslo")),
        ("I'm sorry, I cannot provide that.", ()),
        ("Rome\nQuestion: What now?\nOslo", ("Rome",)),
        ("1.5 million\n3.14\n1984", ("1.5 million", "3.14", "1984")),
        ("A Tale of Two Cities\nSt. Helena", ("A Tale of Two Cities", "St. Helena")),
        ("", ()),
        ("Rome\n" + "x" * 500, ("Rome",)),
        (
            "1234) Rome\n1 Oslo\nzz) Bern\nz. Lima",
            ("1234) Rome", "1 Oslo", "zz) Bern", "z. Lima"),
        ),
        ("(1)2\n1. 2. Rome\nRome: the city", ("(1)2", "2. Rome", "Rome: the city")),
    ],
)
def test_what_a_reply_offers(reply: str, expected: tuple[str, ...]) -> None:
    assert read_distractors(reply, "Paris") == expected


def test_a_model_writes_them_about_its_answer() -> None:
    oracle = Helped("Rome\nOslo\nBern\nLima\nQuito\nDakar", say=lambda request: "Paris")
    table = run_case(make_case(WRITTEN, KNOWN), oracle, oracle.keep).table
    ((to, prompt),) = oracle.asked_helper
    assert to == "openai/writer"
    assert prompt.startswith("Write 6 wrong answers to the question, one a line.")
    assert prompt.endswith(
        "Question: What is the capital of France?\nAnswer: Paris\nWrong answers:"
    )
    assert offered(oracle) <= {"Rome", "Oslo", "Bern", "Lima", "Quito", "Dakar"}
    assert table.rows[0].values[3] == 1


def test_what_the_model_wrote_is_counted_apart_from_what_was_filled_up(
    columns_of,
) -> None:
    oracle = Helped(
        "Rome\nTown 0",
        say=lambda request: "Paris" if "France" in request.prompt else "unsure",
    )
    fact = dataclasses.replace(NORWAY, negatives=TOWNS)
    table = run_case(make_case(WRITTEN, KNOWN, fact), oracle, oracle.keep).table
    counts = [
        {k: v for k, v in columns_of(table, row).items() if "distr" in k}
        for row in (0, 1)
    ]
    assert counts[0] == {"distractors": 6, "distractors_written": 2}
    # Nothing was offered beside an answer that says nothing.
    assert counts[1] == {"distractors": 0, "distractors_written": 0}
    plenty = Helped(
        "\n".join(f"City {n}" for n in range(9)), say=lambda request: "Paris"
    )
    table = run_case(make_case(WRITTEN, KNOWN), plenty, plenty.keep).table
    assert columns_of(table)["distractors_written"] == 6
    (metric,) = [
        m
        for m in metrics_for("reliability", "known-zero-shot", table.columns)
        if "distr" in m.name
    ]
    assert value_of(metric, [[2, 6], [0, 0]]) == pytest.approx(1 / 3)
    plain = run_case(make_case(ReliabilitySettings(), KNOWN), oracle, oracle.keep).table
    assert not any("distr" in name for name in plain.columns)


def test_fewer_than_three_is_an_error_of_the_fact_alone() -> None:
    oracle = Helped("Rome", say=lambda request: "Berlin")
    poor = dataclasses.replace(FRANCE, negatives=("Rome", "Oslo"))
    rich = dataclasses.replace(NORWAY, negatives=TOWNS)
    result = run_case(make_case(WRITTEN, poor, rich), oracle, oracle.keep)
    assert [row.fact_id for row in result.table.rows] == [rich.id]
    assert len(result.errors) == 1
    assert "P36-FR (answer): 3 distractors needed, 2 differ" in result.errors[0]


def test_how_alike_the_distractors_are_is_a_figure_of_the_case(columns_of) -> None:
    drawn = dataclasses.replace(FRANCE, negatives=("Rome", "Madrid", "Berlin12"))
    given = dataclasses.replace(NORWAY, negatives=TOWNS)
    case = make_case(ReliabilitySettings(choices=1), drawn, given)
    oracle = Oracle(say=lambda request: "unsure")
    table = run_case(
        dataclasses.replace(case, alike=((drawn.id, 2 / 3),)), oracle, oracle.keep
    ).table
    # Paris has 5 characters.
    length = (4 / 5 + 5 / 6 + 5 / 8) / 3
    rows = [dict(zip(table.columns, row.values, strict=True)) for row in table.rows]
    names = ("distractors_drawn", "distractors_alike", "distractors_length")
    assert [[row[name] for name in names] for row in rows] == [
        [1, 2 / 3, pytest.approx(length)],
        [0, 0, 0],
    ]
    metrics = {
        metric.name: metric
        for metric in metrics_for("reliability", "known-zero-shot", table.columns)
    }
    assert value_of(
        metrics["distractors_alike"], [[2 / 3, 1], [0, 0]]
    ) == pytest.approx(2 / 3)
    assert value_of(
        metrics["distractors_length"], [[length, 1], [0, 0]]
    ) == pytest.approx(length)


def test_a_writer_that_fails_for_one_fact_writes_for_the_next(columns_of) -> None:
    def say(request):
        if "wrong answers" not in request.prompt:
            return "Paris"
        return (
            Failed(error="busy")
            if "France" in request.prompt
            else "Rome\nBern\nLima\nQuito"
        )

    oracle = Oracle(say=say)
    fact = dataclasses.replace(NORWAY, negatives=TOWNS)
    result = run_case(make_case(WRITTEN, KNOWN, fact), oracle, oracle.keep)
    assert result.errors == ("P36-FR (distractors): busy",)
    assert [row.fact_id for row in result.table.rows] == ["P36-NO"]
    assert columns_of(result.table)["distractors_written"] == 4
