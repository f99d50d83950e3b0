from __future__ import annotations

import dataclasses
import math

import pytest

from pytest_kbrel.gates import integrity
from pytest_kbrel.records import Table
from pytest_kbrel.wire import to_wire
from tests.gates.tables import HEAD_TO_TAIL, answers, case, decided, gate, outcome


def test_sound_responses_pass() -> None:
    assert integrity(answers("+-?"), ()) == ()


@pytest.mark.parametrize(
    ("table", "errors", "message"),
    [
        (answers("+"), ["Q7 (answer): out of memory"], "1 fact without usable responses: Q7 (answer): out"),
        (answers("+"), ["a", "b", "c", "d", "e"], "5 facts without usable responses: a; b; c; and 2 more"),
        (answers(""), (), "no fact was measured"),
        (Table(columns=HEAD_TO_TAIL, rows=answers("+").rows * 2), (), "1 fact measured more than once"),
        (answers("-----", answer=" \n"), (), "5 of 5 answers are empty"),
        (
            answers("++-", truncated=True),
            (),
            "3 of 3 answers are cut short; allowed: at most 50%: raise max_new",
        ),
    ],
)
def test_unsound_responses_are_invalid_in_words(table: Table, errors: list[str], message: str) -> None:
    assert integrity(table, errors)[0].startswith(message)
    result = decided(case(gate("accuracy", "min", 0.0)), table, errors=errors)
    assert result.verdict == "invalid"
    assert result.metrics == ()
    assert [g.verdict for g in result.gates] == ["invalid"]
    assert message in result.gates[0].reason


def test_a_value_that_is_no_number_is_counted_and_does_not_travel() -> None:
    rows = (*answers("++").rows, outcome("QX", (1, 0, math.nan, 0), "correct"))
    result = decided(case(gate("accuracy", "min", 0.0)), Table(columns=HEAD_TO_TAIL, rows=rows))
    assert result.errors == ("values that are no number for 1 of 3 facts (first: QX); allowed: none",)
    assert (result.n, len(result.table.rows)) == (3, 2)
    to_wire(result)


def test_half_of_the_answers_may_be_empty() -> None:
    rows = (*answers("?", prefix="A", answer="").rows, *answers("+").rows)
    assert integrity(Table(columns=HEAD_TO_TAIL, rows=rows), ()) == ()


def test_half_of_the_answers_may_be_cut_short_and_are_counted() -> None:
    rows = (*answers("-?", prefix="A", truncated=True).rows, *answers("+-").rows)
    result = decided(case(gate("accuracy", "min", 0.0)), Table(columns=HEAD_TO_TAIL, rows=rows))
    assert (result.verdict, result.truncated) == ("pass", 2)
    broken = decided(case(), answers("++-", truncated=True))
    assert (broken.verdict, broken.truncated) == ("invalid", 3)


def judged(unread: int, of: int) -> Table:
    rows = answers("+" * of).rows
    rules = ["unparsable"] * unread + ["judge"] * (of - unread)
    return Table(
        columns=HEAD_TO_TAIL,
        rows=tuple(dataclasses.replace(row, rule=rule) for row, rule in zip(rows, rules, strict=True)),
    )


def test_a_judge_whose_replies_cannot_be_read_decides_nothing() -> None:
    assert integrity(judged(1, 10), ()) == ()
    (said,) = integrity(judged(2, 10), ())
    assert said.startswith("2 of 10 replies of the judge cannot be read; allowed: at most 10%")


@pytest.mark.parametrize(("unread", "sound"), [(10, True), (11, False)])
def test_choices_that_are_not_made_are_no_consistency(unread: int, sound: bool) -> None:
    rows = tuple(dataclasses.replace(row, values=(20, unread)) for row in answers("--").rows)
    table = Table(columns=("choices", "choices_unread"), rows=rows)
    assert (integrity(table, ()) == ()) is sound
