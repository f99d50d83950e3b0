"""``kbrel compare`` on one screen: which lines are shown, in what width, and what is counted instead."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from pytest_kbrel.cli.compare.brief import LEAST_LINES, brief_lines
from pytest_kbrel.cli.compare.models import (
    ComparedModel,
    case_of,
    correlated_points,
    family_of,
    figure_tables,
    size_in,
)
from pytest_kbrel.cli.compare.side_by_side import side_by_side
from pytest_kbrel.printing import cells
from pytest_kbrel.records import Run
from tests.made_comparisons import comparison_of
from tests.reports import conftest as runs

SCREENS = {
    60: """
  1  runs/prod     baseline
  2  runs/monday   1 fail, 1 inconclusive; 7 lost, 1 gained
     monitor[P30]: accuracy: significantly worse than
       reference and by more than the tolerance
  3  runs/tuesday  4 pass; 0 lost, 1 gained

MONITOR, all slices  n      monitor↓  verdict
2 overall            2  0.401 +0.010
3 overall            2  0.411 +0.010
MONITOR    n   monitor  anchor_prob  accuracy  verdict
2 P30    120  .41 +.03     .70 -.02  .51 -.07  fail
2 P17    120  .39    =     .75  .00  .61    =  pass
3 P17    120  .40    =     .76  .00  .62    =  pass
3 P30    120  .42 +.03     .71 -.02  .52 -.07  pass
Head-to-Tail    n  accuracy  hallucination  verdict
2 open-tail   120  .21 -.02       .50 +.01  inconclusive
3 open-tail   120  .22 -.02       .51 +.01  pass
Reliable KB, known    n        cr        wr  verdict
2 known-zero-shot   120  .60 +.01  .30 +.01
3 known-zero-shot   120  .61 +.01  .31 +.01
Reliable KB, unseen    n    ur↑  c_wrong↓   iur↑  verdict
2 unseen-zero-shot   120  0.700         –  0.900
and 1 more line; -v has all, --html FILE a page
""",
    80: """
  1  runs/prod     baseline
  2  runs/monday   gates: 1 fail, 1 inconclusive, 2 pass; 7 lost, 1 gained
     monitor[P30]: accuracy: significantly worse than reference and by more than
       the tolerance
  3  runs/tuesday  gates: 4 pass; 0 lost, 1 gained

MONITOR, all slices  n      monitor↓  verdict
2 overall            2  0.401 +0.010
3 overall            2  0.411 +0.010
MONITOR    n     monitor     pfd         ird  anchor_prob    accuracy  verdict
2 P30    120  .412 +.031  .300 =  .250 -.010   .701 -.020  .512 -.071  fail
2 P17    120  .390     =  .280 =  .200     =   .750 +.004  .610     =  pass
3 P17    120  .400     =  .290 =  .210     =   .760 +.004  .620     =  pass
3 P30    120  .422 +.031  .310 =  .260 -.010   .711 -.020  .522 -.071  pass
Head-to-Tail    n     accuracy↑  hallucination↓      missing↓  verdict
2 open-tail   120  0.210 -0.020    0.500 +0.010  0.290 +0.010  inconclusive
3 open-tail   120  0.220 -0.020    0.510 +0.010  0.300 +0.010  pass
Reliable KB, known    n        cr        wr       ncr  c_correct  verdict
2 known-zero-shot   120  .60 +.01  .30 +.01  .30 +.01   .80 +.01
3 known-zero-shot   120  .61 +.01  .31 +.01  .31 +.01   .81 +.01
Reliable KB, unseen    n    ur↑  c_wrong↓   iur↑  verdict
2 unseen-zero-shot   120  0.700         –  0.900
and 1 more line; -v has all, --html FILE a page
""",
    120: """
  1  runs/prod (base)                       baseline
  2  runs/monday (reference:overconfident)  gates: 1 fail, 1 inconclusive, 2 pass; 7 lost, 1 gained
     monitor[P30]: accuracy: significantly worse than reference and by more than the tolerance
  3  runs/tuesday (reference:int4)          gates: 4 pass; 0 lost, 1 gained

MONITOR, all slices  n      monitor↓  verdict
2 overall            2  0.401 +0.010
3 overall            2  0.411 +0.010
MONITOR    n      monitor↓     pfd↓          ird↓  anchor_prob↑     accuracy↑  verdict
2 P30    120  0.412 +0.031  0.300 =  0.250 -0.010  0.701 -0.020  0.512 -0.071  fail
2 P17    120  0.390      =  0.280 =  0.200      =  0.750 +0.004  0.610      =  pass
3 P17    120  0.400      =  0.290 =  0.210      =  0.760 +0.004  0.620      =  pass
3 P30    120  0.422 +0.031  0.310 =  0.260 -0.010  0.711 -0.020  0.522 -0.071  pass
Head-to-Tail    n     accuracy↑  hallucination↓      missing↓  verdict
2 open-tail   120  0.210 -0.020    0.500 +0.010  0.290 +0.010  inconclusive
3 open-tail   120  0.220 -0.020    0.510 +0.010  0.300 +0.010  pass
Reliable KB, known    n          cr          wr         ncr   c_correct         nccr  verdict
2 known-zero-shot   120  .600 +.010  .300 +.010  .300 +.010  .800 +.010  -.200 +.010
3 known-zero-shot   120  .610 +.010  .310 +.010  .310 +.010  .810 +.010  -.190 +.010
Reliable KB, unseen    n    ur↑  c_wrong↓   iur↑  verdict
2 unseen-zero-shot   120  0.700         –  0.900
3 unseen-zero-shot   120  0.710         –  0.910
-v has all, --html FILE a page
""",
}


def better() -> Run:
    """The small run with every case passed and a little more right."""
    run = runs.small()
    cases = [
        replace(
            case,
            verdict="pass",
            gates=tuple(replace(gate, verdict="pass") for gate in case.gates),
            lost=(),
        )
        for case in moved(run, 0.01).cases
    ]
    return replace(run, cases=tuple(cases), model=runs.fingerprint("reference:int4"))


def moved(run: Run, by: float) -> Run:
    cases = [
        replace(
            case,
            metrics=tuple(
                value if value.value is None else replace(value, value=value.value + by)
                for value in case.metrics
            ),
        )
        for case in run.cases
    ]
    return replace(run, cases=tuple(cases))


def hundreds(count: int) -> Run:
    return replace(runs.many(count), model=runs.fingerprint("many"))


@pytest.mark.parametrize("width", SCREENS)
def test_the_screen_is_exactly_this(width: int) -> None:
    comparison = comparison_of(
        {"runs/monday": runs.small(), "runs/tuesday": better()}, first="runs/prod"
    )
    lines = brief_lines(comparison, width, 24)
    assert "\n".join(lines) == SCREENS[width].strip("\n")


@pytest.mark.parametrize("models", [1, 3, 12])
def test_it_is_one_screen_whatever_the_run(models: int) -> None:
    candidates = {
        f"a/long/path/to/the/run/{at}": moved(runs.rich(), at / 1000)
        for at in range(models - 1)
    }
    comparison = comparison_of({"hundreds": hundreds(60), **candidates})
    for width, height in itertools.product((60, 80, 120), (10, 24, 50)):
        lines = brief_lines(comparison, width, height)
        # The next prompt takes a line.
        assert len(lines) < max(height, LEAST_LINES)
        assert max(map(cells, lines)) <= width
        assert "more lines" in lines[-1]


def test_what_failed_comes_first_and_what_is_left_out_is_counted() -> None:
    lines = brief_lines(
        comparison_of({"hundreds": hundreds(60), "good": better()}), 80, 24
    )
    shown = [line for line in lines if line.endswith(" waived")]
    # The failures of one model are waived, and the other one's cases pass.
    assert len(shown) >= 10
    counted = int(lines[-1].split()[1])
    assert counted == 60 + len(better().cases) - len(shown)
    assert f"{60 - len(shown)} waived" in lines[-1]


def test_notes_on_models_leave_room_for_cases() -> None:
    notes = [f"quantisation ('int{at}' and '')" for at in range(12)]
    candidates = {
        f"m{at}": replace(
            moved(runs.rich(), at / 1000), differences=(note, "dtype ('a' and 'b')")
        )
        for at, note in enumerate(notes)
    }
    lines = brief_lines(comparison_of(candidates), 80, 24)
    assert len(lines) < 24
    assert 1 <= sum("differs:" in line for line in lines) <= 6
    same = {
        name: replace(run, differences=("dtype ('a' and 'b')",))
        for name, run in candidates.items()
    }
    assert (
        sum("differs:" in line for line in brief_lines(comparison_of(same), 80, 24))
        == 1
    )


def test_twins_have_no_lines_and_share_one_that_names_them() -> None:
    comparison = comparison_of({"a": runs.small(), "b": runs.small(), "c": better()})
    lines = brief_lines(comparison, 100, 50)
    assert "     the same in all figures: 3 as 2" in lines
    assert not any(line.startswith(("3 ", "  3 ")) for line in lines)
    assert any(line.startswith("4 P30") for line in lines)


def test_models_with_the_same_figures_that_lost_other_facts_are_no_twins() -> None:
    run = runs.small()
    first, *rest = run.cases
    other = replace(run, cases=(replace(first, lost=first.lost[1:]), *rest))
    comparison = comparison_of({"a": run, "b": other})
    assert [side.same_as for side in comparison.sides] == [0, 0, 0]
    assert [side.same_as for side in comparison_of({"a": run, "b": run}).sides] == [
        0,
        0,
        2,
    ]


def test_a_label_stands_behind_the_slice() -> None:
    run = runs.small()
    first, *rest = run.cases
    assert first.id == "monitor[P30]"
    named = replace(first, label="continent\x1b[31m")
    comparison = comparison_of({"a": replace(run, cases=(named, *rest))})
    lines = brief_lines(comparison, 100, 50)
    assert any(line.startswith("2 P30 continent\\x1b[31m ") for line in lines)


def test_an_invalid_case_says_so() -> None:
    run = runs.small()
    broken = replace(
        run.cases[0], verdict="invalid", metrics=(), gates=(), errors=("no answers",)
    )
    lines = brief_lines(
        comparison_of({"a": replace(run, cases=(broken, *run.cases[1:]))}), 100, 50
    )
    (line,) = [line for line in lines if line.startswith("2 P30")]
    assert line.endswith(" invalid")


OVERALL = ("", "monitor[overall]")


def unpaired(count: int) -> list[ComparedModel]:
    return [
        ComparedModel(
            name=f"published/x/{at}",
            about="",
            cases={
                OVERALL: case_of(
                    OVERALL,
                    {"monitor": 0.1 * at, "accuracy": 0.9 - 0.1 * at**1.5},
                )
            },
            spec=f"Small {at}B",
        )
        for at in range(1, count + 1)
    ]


@pytest.mark.parametrize(("count", "shown"), [(4, False), (5, True)])
def test_correlations_are_shown_where_an_order_of_the_models_can_be_significant(
    count: int, shown: bool
) -> None:
    models = unpaired(count)
    reasons = dict.fromkeys(
        range(1, count + 1), "a paper's figures have no facts behind them"
    )
    comparison = side_by_side(
        models, figure_tables(models), correlated_points(models), {}, reasons
    )
    text = "\n".join(brief_lines(comparison, 100, 24))
    assert ("spearman -1.000 (p = 0.017)" in text) == shown
    # What is so of all models is not said of each.
    assert "paper" not in text


@pytest.mark.parametrize(
    ("name", "size", "family"),
    [
        ("Llama-2-7b", 7_000_000_000, "llama-2"),
        ("Flan-T5 0.08B", 80_000_000, "flan-t5"),
        ("bloomz-560m", 560_000_000, "bloomz"),
        ("OPT-2b7", 2_700_000_000, "opt"),
        ("Falcon-Instruct (40B)", 40_000_000_000, "falcon-instruct"),
        ("hf/org/Qwen2.5-0.5B-Instruct", 500_000_000, "qwen2.5-instruct"),
        ("ChatGPT", 0, "ChatGPT"),
        ("llama3-8bit", 0, "llama3-8bit"),
        ("7b", 7_000_000_000, "7b"),
    ],
)
def test_size_and_family_by_a_models_name(name: str, size: int, family: str) -> None:
    assert (size_in(name), family_of(name)) == (size, family)
