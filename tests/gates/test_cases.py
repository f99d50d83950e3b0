"""What a case's result keeps of the case, and what stands in the way of its comparison."""

from __future__ import annotations

import dataclasses
from dataclasses import replace
from typing import Any

import pytest

from pytest_kbrel.gates import fact_changes, part_result
from pytest_kbrel.gates.cases import compare_case
from pytest_kbrel.gates.measurement import pair
from pytest_kbrel.records import (
    CaseResult,
    Digest,
    Fact,
    HeadToTailSettings,
    Integrity,
    Share,
    Table,
    Unmatched,
    Waiver,
)
from tests.gates.tables import (
    HEAD_TO_TAIL,
    MONITOR,
    answers,
    case,
    comparison,
    decided,
    gate,
    model,
    outcome,
    run_of,
)

DROP = gate("accuracy", "max_drop", 0.02)


@pytest.mark.parametrize(
    ("marks", "errors", "verdict"),
    [("++-", (), "pass"), ("++-", ("Q9: gone",), "invalid")],
)
def test_what_is_known_of_a_case_stays_with_its_result(
    marks: str, errors: tuple[str, ...], verdict: str
) -> None:
    table = Table(
        columns=HEAD_TO_TAIL,
        rows=(*answers(marks).rows, *answers("+", prefix="T", truncated=True).rows),
    )
    waiver = Waiver(
        owner="Ann", reason="known", expires="2026-12-31", case="head_to_tail[x-tail]"
    )
    of = case(
        gate("accuracy", "min", 0.1),
        slice="x-tail",
        waivers=(waiver,),
        settings=HeadToTailSettings(max_new_tokens=7),
        notes=("1 of 4 facts: otherwise",),
    )
    result = decided(of, table, errors=errors)
    assert dataclasses.replace(
        result, metrics=(), gates=(), integrity=()
    ) == CaseResult(
        id="head_to_tail[x-tail]",
        suite="suites/world.kb.yaml",
        probe="head_to_tail",
        slice="x-tail",
        verdict=verdict,  # type: ignore[arg-type]
        n=4,
        duration=0.0,
        truncated=1,
        metrics=(),
        gates=(),
        table=table,
        settings=(("max_new_tokens", "7"), ("prompt", "few-shot")),
        notes=("1 of 4 facts: otherwise",),
        waiver=waiver,
        errors=("1 fact without usable responses: Q9: gone; allowed: none",)
        if errors
        else (),
    )
    asked = 4 + len(errors)
    assert result.integrity[0] == Share(
        name="answered", value=4, total=asked, limit=0.5
    )
    (judged,) = result.gates
    assert (judged.metric, judged.rule, judged.bound, judged.line) == (
        "accuracy",
        "min",
        0.1,
        7,
    )
    if errors:
        assert judged.reason == f"not judged: {result.errors[0]}"


def test_a_recorded_case_is_compared_with_a_run_of_the_same_tokenizer_unless_said_otherwise() -> (
    None
):
    of = decided(case(), answers("++", prompt_digest=digest()))

    def reason(before: Table | None, **more: Any) -> str:
        return compare_case(of, [DROP], comparison(of, before, **more)).gates[0].reason

    other = answers("++", prompt_digest=digest(prompts="f" * 8))
    assert (
        "the token ids of the prompts on 2 of 2 facts (first: Q000); allowed: "
        in reason(other)
    )
    assert "(first: Q000): another tokenizer; allowed: " in reason(
        other, model=model(tokenizer_digest="y")
    )
    assert reason(None, baseline=run_of()) == f"{LACKS}{AGAIN}"


def digest(**parts: str) -> str:
    given = {
        "prompts": "a" * 8,
        "settings": "b" * 8,
        "accepted": "c" * 8,
        "draws": "d" * 8,
        **parts,
    }
    return str(Digest(bos=0, count=1, **given))


CASE = "head_to_tail[world-head]"
LACKS = f"the baseline has no case {CASE}"
AGAIN = ": bless a run of all suites anew"
ALLOWED = "allowed: what the baseline was asked, or bless a run that was asked this"
OTHER = {"model": model(decoding="beams")}


@pytest.mark.parametrize(
    ("before", "more", "verdict", "reason"),
    [
        (answers("++++"), {}, "pass", "did not change"),
        (None, {**OTHER, "baseline": None}, "no baseline", "no baseline was given"),
        (None, {**OTHER, "baseline": run_of()}, "no baseline", f"{LACKS}{AGAIN}"),
        (
            None,
            {"baseline": run_of(cases={"a.kb.yaml::c": None, "b.kb.yaml::c": None})},
            "no baseline",
            f"{LACKS} (it has the suite files a.kb.yaml, b.kb.yaml){AGAIN}",
        ),
        (
            None,
            {"baseline": run_of(paper="Some")},
            "no baseline",
            f"Some has no figures of {CASE}",
        ),
        (
            answers("++++", prefix="A"),
            OTHER,
            "not comparable",
            "candidate and baseline differ in decoding ('beams' and 'greedy'); allowed: a baseline that",
        ),
        (
            answers("++++", prefix="A"),
            {},
            "not comparable",
            f"{CASE}: 4 of 4 facts are not in the baseline (first: Q000), and at least half must be; {ALLOWED}",
        ),
    ],
)
def test_what_stands_in_the_way_of_a_comparison_is_told_in_this_order(
    before: Table | None, more: dict[str, Any], verdict: str, reason: str
) -> None:
    gates = [gate("accuracy", "max_drop", 0.9)]
    of = decided(case(), answers("++++"))
    (judged,) = compare_case(of, gates, comparison(of, before, **more)).gates
    assert (judged.verdict, reason in judged.reason) == (verdict, True), judged.reason


def monitor_table(*rows):
    """A MONITOR table of (right, kept, anchor), one a fact."""
    return Table(
        columns=MONITOR,
        rows=tuple(
            outcome(
                f"Q{at:03}",
                (kept, 0, 0, 0, anchor, right, right),
                "correct" if right else "wrong",
            )
            for at, (right, kept, anchor) in enumerate(rows)
        ),
    )


def test_a_fact_is_lost_or_gained_where_its_label_turned():
    lost, gained = fact_changes(case(), pair(answers("+-?+"), answers("++--")))
    assert [(c.fact_id, c.old_answer, c.new_answer) for c in lost] == [
        ("Q001", "correct Q001", "wrong Q001")
    ]
    assert [c.fact_id for c in gained] == ["Q003"]


def test_a_fact_that_was_asked_in_another_way_has_not_changed():
    before = answers("++")
    other = replace(
        before, rows=(replace(before.rows[0], prompt_digest="another"), before.rows[1])
    )
    lost, _ = fact_changes(case(), pair(answers("--"), other))
    assert [c.fact_id for c in lost] == ["Q001"]


def test_a_change_names_the_relation_and_the_bucket():
    facts = tuple(
        Fact(id=f"Q{at:03}", relation="P36", subject="x", object="y") for at in range(1)
    )
    known = case(facts=facts, buckets=(("Q000", "tail"),))
    (first, second), _ = fact_changes(known, pair(answers("--"), answers("++")))
    assert (first.relation, first.bucket) == ("P36", "tail")
    assert (second.relation, second.bucket) == ("", "")


@pytest.mark.parametrize(
    ("kept", "expected"),
    [((1, 1), (0.9, 0.25)), ((0, 1), (None, 0.25)), ((1, 0), (0.9, None))],
)
def test_the_anchor_of_a_fact_that_monitor_kept_is_told(kept, expected):
    (change,), _ = fact_changes(
        case(probe="monitor"),
        pair(monitor_table((0, kept[1], 0.25)), monitor_table((1, kept[0], 0.9))),
    )
    assert (change.old_probability, change.new_probability) == expected


@pytest.mark.parametrize(
    ("errors", "verdict"),
    [((), "inconclusive"), (("a",), "inconclusive"), (("a", "b"), "invalid")],
)
def test_a_shard_decides_nothing_but_that_too_many_responses_failed(errors, verdict):
    facts = tuple(
        Fact(id=f"Q{at}", relation="P36", subject="x", object="y") for at in range(4)
    )
    of = case(DROP, facts=facts, integrity=Integrity(errored=0.25), notes=("a note",))
    assert part_result(of, 3, errors) == CaseResult(
        id=of.id,
        suite=of.suite,
        probe=of.probe,
        slice=of.slice,
        verdict=verdict,
        n=3,
        duration=0.0,
        metrics=(),
        gates=(),
        errors=errors,
        settings=(("max_new_tokens", "32"), ("prompt", "few-shot")),
        notes=("3 of 4 facts asked here", "a note"),
    )


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
