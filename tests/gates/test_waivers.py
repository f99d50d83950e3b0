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


def test_a_waiver_that_is_not_needed_is_kept_with_the_case() -> None:
    result = under(waiver(case=SLICE), after=BEFORE)
    assert (result.verdict, result.waived, result.waiver is None) == (
        "pass",
        False,
        False,
    )


def test_unsound_responses_are_never_waived() -> None:
    table = Table(columns=answers("").columns, rows=answers(BEFORE, answer=" ").rows)
    result = decided(case(DROP, waivers=(waiver(case=SLICE),)), table, answers(BEFORE))
    assert (result.verdict, result.waived) == ("invalid", False)
    late = waiver(case=SLICE, expired=True)
    assert (
        decided(case(DROP, waivers=(late,)), table, answers(BEFORE)).verdict
        == "invalid"
    )


def test_an_expired_waiver_fails_a_case_that_passes_its_gates() -> None:
    late = waiver(case=SLICE, expired=True)
    result = under(late, after=BEFORE)
    assert (result.verdict, result.waived, result.expired) == ("fail", False, (late,))
    assert {gate.verdict for gate in result.gates} == {"pass"}
    assert result.errors == ()


def test_an_expired_waiver_of_a_fact_fails_the_case_and_excuses_nothing() -> None:
    late = facts(0, 1, 2, expired=True)
    result = under(*late, *facts(3))
    assert (result.verdict, result.expired) == ("fail", late)
    assert "Q000" in {change.fact_id for change in result.lost}
    assert result.unmatched.waived == ("Q003",)


def test_an_expired_waiver_of_a_fact_outweighs_the_waiver_of_its_case() -> None:
    result = under(*facts(0, expired=True), waiver(case=SLICE))
    assert (result.verdict, result.waived) == ("fail", False)
    assert result.waiver is not None
    assert result.waiver.fact == "Q000"
