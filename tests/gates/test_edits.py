"""Figures of edits that hold the model against what the baseline knew."""

from __future__ import annotations

from pytest_kbrel.probes.edits import COLUMNS
from pytest_kbrel.records import EditsSettings, Table
from tests.gates.tables import case, decided, gate, only, outcome, value

# By mark: right, and the condition that it must meet in the baseline.
MARKS = {"+": (1, 1), "-": (0, 0), "!": (1, 0)}


def table(marks: str, **more) -> Table:
    rows = [
        outcome(f"Q{at}", (*MARKS[mark], *[0] * 6), "wrong", **more)
        for at, mark in enumerate(marks)
    ]
    return Table(columns=COLUMNS, rows=tuple(rows))


def keeping(*gates):
    settings = EditsSettings()
    return case(*gates, probe="edits", slice="keep", settings=settings)


def test_only_what_the_baseline_had_right_counts():
    result = decided(
        keeping(gate("contained", "min", 0.5)), table("+-++"), table("++!")
    )
    assert (value(result, "contained").value, value(result, "contained").n) == (0.5, 2)
    assert only(result).verdict == "pass"
    # The last of them is new, and the baseline was not asked it.
    assert result.notes[0].startswith("2 of 4 facts left out")
    # What is kept of the case is as it was measured.
    assert result.table.columns == COLUMNS


def test_where_the_baseline_knew_nothing_the_gate_is_open():
    result = decided(keeping(gate("contained", "min", 0.5)), table("++"), table("--"))
    assert only(result).verdict == "inconclusive"


def test_what_cannot_be_compared_is_not_contained():
    before = table("++", prompt_digest="asked otherwise")
    of = keeping(gate("contained", "min", 0.5), gate("accuracy", "min", 0.5))
    contained, accuracy = decided(of, table("++"), before).gates
    assert (contained.verdict, accuracy.verdict) == ("not comparable", "pass")
