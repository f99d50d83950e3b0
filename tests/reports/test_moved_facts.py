"""How the fact that moved a figure of MONITOR is shown, on the first screen and in the message of a case."""

from dataclasses import replace

from pytest_kbrel.records import GateResult, MetricValue, MovedFact, Place
from pytest_kbrel.reports.terminal import terminal_lines

PERU = Place(
    fact_id="Q585",
    cell="negative2:0",
    prompt="Peru. Where is Oslo?",
    answer=" Peru",
    probability=0.031,
)


def fact(metric="monitor", **more):
    given = {
        **{"metric": metric, "place": PERU, "expected": "Norway", "column": "ird"},
        **{"now": 0.633, "before": 0.012, "anchor": 0.982},
    }
    return MovedFact(**(given | more))


def gates(verdict="fail"):
    rest = {
        "rule": "max_drop",
        "bound": 0.05,
        "verdict": verdict,
        "observed": 0.2,
        "reasons": (),
    }
    return tuple(
        GateResult(metric=metric, **rest) for metric in ("monitor", "accuracy")
    )


def monitor(delta=0.2):
    return MetricValue(
        name="monitor",
        better="lower",
        value=0.4 + delta,
        n=9,
        baseline=0.4,
        delta=delta,
        paired=9,
    )


def test_an_overall_figure_shows_the_fact_of_the_case_that_got_worse_most(
    make_case, small_run
):
    members = [
        make_case(
            "monitor", "P1", "pass", (monitor(0.01),), moved=(fact(expected="Chile"),)
        ),
        make_case("monitor", "P2", "pass", (monitor(0.04),), moved=(fact(),)),
    ]
    overall = make_case(
        "monitor",
        "overall",
        "fail",
        (monitor(0.1),),
        gates=gates()[:1],
        aggregate=True,
        members=("monitor[P1]", "monitor[P2]"),
    )
    lines = [
        text
        for text, _ in terminal_lines(
            replace(small_run, cases=(*members, overall)), width=100
        )
    ]
    (shown,) = [line for line in lines if line.startswith("    such as, ")]
    assert "(right: Norway)" in shown
