"""The lines of a plan about its gates."""

from __future__ import annotations

from typing import Any

from pytest_kbrel.gates.power import GatePower
from pytest_kbrel.planning.plan import Plan, PlannedCase, RequestCounts
from pytest_kbrel.planning.render import plan_lines
from pytest_kbrel.planning.requests import Range


def power(slice_: str, **more: Any) -> GatePower:
    given: dict[str, Any] = {
        "metric": "accuracy",
        "rule": "max_drop",
        "bound": 0.08,
        "n": 120,
        "mde": 0.121,
    }
    return GatePower(
        case=f"s.kb.yaml::head_to_tail[{slice_}]",
        **{**given, **more},
    )


def lines(*powers: GatePower) -> list[str]:
    families = (("s.kb.yaml", 20),)
    return plan_lines(
        Plan(
            cases=(),
            participants=(),
            powers=powers,
            families=families,
            probe_seconds=0.0,
        )
    )


def test_slices_with_few_groups_of_answers_are_named_once_with_what_helps() -> None:
    printed = lines(
        power("a", groups=5.6),
        power("a", metric="hallucination", groups=5.6),
        power("b", groups=8.0),
    )
    start = next(i for i, line in enumerate(printed) if "fewer than 8 groups" in line)
    assert printed[start + 1 : start + 2] == [
        "  head_to_tail[a]: 120 facts count as 5.6"
    ]
    assert "cluster: fact" in printed[start + 2]
    assert not any("groups" in line for line in lines(power("b", groups=8.0)))


def test_in_a_narrow_terminal_a_row_that_is_too_wide_begins_with_a_line_of_its_own() -> (
    None
):
    powers = (
        power("geography+culture-head", mde=None, note="the baseline has no such case"),
        power("b"),
    )
    case = PlannedCase(
        suite="s.kb.yaml",
        id="reliability[unseen-zero-shot]",
        title="reliability[unseen-zero-shot]",
        facts=200,
        counts=RequestCounts(
            calls=Range(low=5000, high=70000, about=31000.0),
            new=Range(low=5000, high=70000, about=31000.0),
            read=Range(low=50000, high=700000, about=310000.0),
            written=Range(low=0, high=0),
            scored=Range(low=0, high=0),
        ),
    )
    plan = Plan(
        cases=(case,),
        participants=(),
        powers=powers,
        families=(("s.kb.yaml", 20),),
        probe_seconds=0.0,
    )
    wide = plan_lines(plan)
    assert any("about 31,000 (5,000 to 70,000)" in line for line in wide)
    assert max(map(len, wide)) > 100
    printed = plan_lines(plan, 80)
    assert max(map(len, printed)) <= 80
    row = "reliability[unseen-zero-shot] 200 about 31,000 about 31,000 about 310,000"
    assert row in [" ".join(line.split()) for line in printed]
    at = printed.index("accuracy in head_to_tail[geography+culture-head]")
    assert printed[at + 1].split()[:3] == ["120", "max_drop", "0.08"]
    assert max(map(len, plan_lines(plan, 60))) <= 64


def test_a_relation_has_its_label() -> None:
    zero = Range(low=0, high=0)
    counts = RequestCounts(calls=zero, new=zero, read=zero, written=zero, scored=zero)
    case = PlannedCase(
        suite="s.kb.yaml",
        id="head_to_tail[P36]",
        title="head_to_tail[P36 capital]",
        facts=9,
        counts=counts,
    )
    plan = Plan(
        cases=(case,),
        participants=(),
        powers=(power("P36"),),
        families=(("s.kb.yaml", 1),),
        probe_seconds=0.0,
    )
    printed = plan_lines(plan)
    assert any(line.startswith("head_to_tail[P36 capital]  ") for line in printed)
    assert any(
        line.startswith("accuracy in head_to_tail[P36 capital]  ") for line in printed
    )
