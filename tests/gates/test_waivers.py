"""What waivers do to a decided case."""

from __future__ import annotations

from typing import Any

from pytest_kbrel.records import CaseResult, Table, Unmatched, Waiver
from tests.gates.tables import answers, case, decided, gate

BEFORE = "+" * 40 + "-" * 10
AFTER = "-" * 8 + BEFORE[8:]
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


def under(*waivers: Waiver, after: str = AFTER, **more: Any) -> CaseResult:
    return decided(case(DROP, waivers=waivers), answers(after), answers(BEFORE), **more)


def test_a_waived_fact_is_in_the_figures_and_in_no_comparison() -> None:
    plain, result = under(), under(*facts(0, 1, 2, 3, 4, 5, 6, 49))
    assert (plain.verdict, result.verdict) == ("fail", "inconclusive")
    assert [change.fact_id for change in result.lost] == ["Q007"]
    value, open_value = result.metrics[0], plain.metrics[0]
    assert (value.value, value.low, value.n) == (open_value.value, open_value.low, 50)
    assert (value.paired, value.baseline, value.delta) == (42, 33 / 42, -1 / 42)
    assert result.unmatched == Unmatched(
        waived=(*(f"Q{n:03}" for n in range(7)), "Q049")
    )
    assert result.waiver is None
    assert not result.waived


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


def test_a_waived_case_keeps_its_verdict_and_says_so() -> None:
    result = under(waiver(case=SLICE))
    assert (result.verdict, result.waived) == ("fail", True)
    assert result.waiver is not None
    assert (result.waiver.owner, result.gates[0].verdict) == ("Ann", "fail")


def test_unsound_responses_are_never_waived() -> None:
    table = Table(columns=answers("").columns, rows=answers(BEFORE, answer=" ").rows)
    result = decided(case(DROP, waivers=(waiver(case=SLICE),)), table, answers(BEFORE))
    assert (result.verdict, result.waived) == ("invalid", False)
    late = waiver(case=SLICE, expired=True)
    assert (
        decided(case(DROP, waivers=(late,)), table, answers(BEFORE)).verdict
        == "invalid"
    )
