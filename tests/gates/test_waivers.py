"""What waivers do to a decided case."""

from __future__ import annotations

from typing import Any

from pytest_kbrel.records import Table, Unmatched, Waiver
from tests.gates.tables import answers, case, decided, gate

DROP = gate("accuracy", "max_drop", 0.02)
SLICE = "head_to_tail[world-head]"


def waiver(**more: Any) -> Waiver:
    return Waiver(
        **{
            "owner": "Ann",
            "reason": "known",
            "expires": "2026-12-31",
            "line": 9,
            **more,
        }
    )


def facts(*numbers: int, **more: Any) -> tuple[Waiver, ...]:
    return tuple(waiver(fact=f"Q{number:03}", **more) for number in numbers)


def test_a_waived_fact_is_neither_added_nor_unasked() -> None:
    result = decided(
        case(DROP, waivers=facts(0, 30)),
        answers("+" * 30, prefix="Q"),
        Table(columns=answers("").columns, rows=answers("+" * 31).rows[1:]),
    )
    assert result.unmatched == Unmatched(waived=("Q000", "Q030"))


def test_a_case_whose_facts_are_all_waived_has_nothing_to_compare() -> None:
    result = decided(case(DROP, waivers=facts(0, 1)), answers("--"), answers("++"))
    assert result.verdict == "not comparable"
    assert result.gates[0].reason.startswith(
        f"{SLICE}: all facts are waived, and none is left to compare; allowed: "
    )
