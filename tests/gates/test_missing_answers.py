"""Empty answers count against a model in its gates, and in no figure."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pytest_kbrel.records import Outcome, Table
from tests.gates.tables import answers, case, consistency, decided, gate, outcome

UNSEEN = {"probe": "reliability", "slice": "unseen-zero-shot"}
KNOWN = {"probe": "reliability", "slice": "known-zero-shot"}


def blank(table: Table, *at: int) -> Table:
    """The table with these rows as they are of an empty answer."""

    def emptied(row: Outcome) -> Outcome:
        values = dict.fromkeys(table.columns, 0.0)
        values |= {name: 1.0 for name in ("missing", "uninformative") if name in values}
        return replace(
            row, answer=" ", label="uninformative", values=tuple(values.values())
        )

    rows = (emptied(row) if n in at else row for n, row in enumerate(table.rows))
    return replace(table, rows=tuple(rows))


def dated(table: Table) -> Table:
    """The table with its last answer outdated."""
    rows = (
        replace(row, values=(*row.values, float(row is table.rows[-1])))
        for row in table.rows
    )
    return Table(columns=(*table.columns, "outdated"), rows=tuple(rows))


@pytest.mark.parametrize(
    ("of", "table", "wanted", "value"),
    [
        ({}, dated(answers("+" * 9 + "-")), gate("outdated", "max", 0.05), 0.0),
        ({}, answers("+" * 9 + "-"), gate("hallucination", "max", 0.05), 0.0),
        (UNSEEN, consistency([("?", 0)] * 9 + [("-", 1)]), gate("ur", "min", 0.95), 1.0),
        (KNOWN, consistency([("+", 1)] * 9 + [("+", 0)]), gate("c_correct", "min", 0.95), 1.0),
        (KNOWN, consistency([("-", 0)] * 9 + [("-", 1)]), gate("c_wrong", "max", 0.05), 0.0),
    ],
)  # fmt: skip
def test_an_empty_answer_is_no_better_than_the_one_it_may_have_been(
    of: dict[str, Any], table: Table, wanted: Any, value: float
) -> None:
    asked = case(wanted, **of)
    assert decided(asked, table).verdict == "fail"
    empty = decided(asked, blank(table, 9))
    assert empty.verdict == "fail"
    assert empty.gates[0].reason.endswith("with the empty answers counted against it")
    figure = next(one for one in empty.metrics if one.name == wanted.metric)
    assert figure.value == value


def test_what_was_empty_before_too_is_no_loss() -> None:
    asked = case(gate("hallucination", "max_drop", 0.05))
    before, after = blank(answers("+" * 40), 3), blank(answers("+" * 40), 3, 4, 5, 6)
    assert decided(asked, before, before).verdict == "pass"
    assert decided(asked, after, before).verdict != "pass"


def test_a_reply_that_picks_no_option_does_not_leave_a_wrong_answer() -> None:
    columns = (
        "wrong",
        "uninformative",
        "consistency_wrong",
        "choices",
        "choices_unread",
    )
    columns = ("correct", *columns, "consistency_correct")

    def table(kept: float, unread: float) -> Table:
        rows = [
            outcome(f"Q{n}", (0, 1, 0, kept, 4, unread, 0), "wrong") for n in range(10)
        ]
        return Table(columns=columns, rows=tuple(rows))

    asked = case(gate("iur", "min", 0.4), **UNSEEN)
    assert decided(asked, table(0.75, 0)).verdict == "fail"
    assert decided(asked, table(0.5, 1)).verdict == "fail"
    assert decided(asked, table(0.5, 0)).verdict == "pass"
