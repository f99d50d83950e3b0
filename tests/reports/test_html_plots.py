"""The plots: what they draw of known figures and facts, and that there are none where nothing is known."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from pytest_kbrel.records import (
    CaseResult,
    GateResult,
    MetricValue,
    Outcome,
    Run,
    Table,
)
from pytest_kbrel.reports.html.distributions import box_of, fact_plots
from pytest_kbrel.reports.html.page import render, report_html
from pytest_kbrel.reports.html.plots import figure_plots, forest
from pytest_kbrel.reports.html.sources import PublishedModel, Sources
from pytest_kbrel.reports.html.svg import (
    Drawing,
    Plot,
    Scale,
    cut,
    scale_over,
    spread,
)

Make = Callable[..., CaseResult]
MONITOR = (
    "kept",
    "anchor",
    "cell:positive:0",
    "cell:none:0",
    "cell:none:1",
    "cell:negative1:0",
)
ANSWERS = ("correct", "answered", "answer_prob")


def outcome(fact: str, *values: float, expected: str = "Asia") -> Outcome:
    return Outcome(
        fact_id=fact, question=f"Q{fact} <b>", expected=expected, answer="a", label="correct", values=values,
        prompt_digest="d",
    )  # fmt: skip


def value(name: str, at: float) -> MetricValue:
    return MetricValue(name=name, better="higher", value=at, n=9, baseline=at)


def monitored(shift: float = 0.0) -> Table:
    """Ten facts with anchors from 0.05 to 0.95, and one that was left out."""
    rows = [
        outcome(f"P30:{at}", 1.0, at / 10 + 0.05 + shift, 1.0, at % 2, 0.0, 1.0)
        for at in range(10)
    ]
    return Table(
        columns=MONITOR, rows=(*rows, outcome("out", 0.0, 0.99, 0.0, 0.0, 0.0, 0.0))
    )


def answered() -> Table:
    sure = (0.95, 0.95, 0.95, 0.95, 0.15, 0.15)
    right = (1.0, 1.0, 1.0, 0.0, 0.0, 0.0)
    rows = [outcome(f"h{at}", right[at], 1.0, sure[at]) for at in range(6)]
    return Table(columns=ANSWERS, rows=(*rows, outcome("missing", 0.0, 0.0, 0.5)))


def with_facts(run: Run) -> Run:
    """The run with outcomes of a MONITOR case and of a Head-to-Tail case."""
    first, second, third, *rest = run.cases
    return replace(
        run,
        cases=(
            replace(first, table=monitored()),
            second,
            replace(third, table=answered()),
            *rest,
        ),
    )


def plots_of(run: Run, **sources: Any) -> dict[str, Plot]:
    of = Sources(**sources)
    return {
        plot.name: plot
        for plot in (*figure_plots(run, of.published), *fact_plots(run, of.baseline))
    }


def test_a_run_without_figures_has_no_plots(empty_run: Run, make_case: Make) -> None:
    assert plots_of(empty_run) == {}
    assert "Plots" not in render("plots", empty_run)
    broken = make_case("monitor", "P1", "invalid", ())
    assert plots_of(replace(empty_run, cases=(broken,))) == {}


def test_the_plots_of_a_run_and_their_names(rich_run: Run) -> None:
    run = with_facts(rich_run)
    nodeid = run.cases[0].nodeid
    plots = plots_of(run, baseline={nodeid: monitored(0.01)})
    assert list(plots) == [
        "buckets",
        "framing",
        "monitor",
        "anchors",
        "pairs",
        "boxes",
        "calibration",
    ]
    page = report_html(run, Sources(baseline={nodeid: monitored(0.01)}))
    assert re.findall('<figure id="plot-(.*?)"', page) == list(plots)
    assert page.count('role="img" aria-label="') == len(plots)


# Better is to the right whatever the metric; the tolerance lies to the left.
@pytest.mark.parametrize(
    ("better", "rule", "bound", "at", "ends", "allowed"),
    [
        ("higher", "max_drop", 0.05, -0.1, (-0.2, -0.05), -0.05),
        ("lower", "max_drop", 0.05, 0.1, (0.05, 0.2), -0.05),
        ("higher", "min", 0.9, -0.1, (-0.2, -0.05), None),
    ],
)
def test_differences_are_turned_towards_what_is_better(
    better: str,
    rule: str,
    bound: float,
    at: float,
    ends: Any,
    allowed: Any,
    small_run: Run,
    make_case: Make,
) -> None:
    moved = MetricValue(
        name="x",
        better=better,
        value=0.4,
        n=9,
        baseline=0.5,
        delta=-0.1,
        delta_low=-0.2,
        delta_high=-0.05,
    )  # type: ignore[arg-type]
    gate = GateResult(metric="x", rule=rule, bound=bound, verdict="fail", reason="why")  # type: ignore[arg-type]
    case = make_case("monitor", "P1", "fail", (moved,), gates=(gate,))
    (row,) = forest(replace(small_run, cases=(case,))).rows
    assert (row.at, (row.low, row.high)) == (at, ends)
    assert row.allowed == (None if allowed is None else pytest.approx(allowed))
    assert row.tone == ("none" if rule == "min" else "fail")
    assert row.words == "-0.100 [-0.200, -0.050]"


def test_failed_differences_come_first_and_lead_to_their_cases(small_run: Run) -> None:
    rows = forest(small_run).rows
    assert [row.tone for row in rows][:2] == ["fail", "inconclusive"]
    assert {row.tone for row in rows[2:]} == {"none"}
    table = render("plots", small_run)
    assert table.index('href="#monitor-P30"') < table.index(
        'href="#head_to_tail-open-tail"'
    )
    # Only a gate's verdict has a colour, not the sign of a difference.
    assert (
        re.findall('<rect class="(fail|pass|inconclusive|none)"', table)[:4]
        == ["fail"] * 2 + ["inconclusive"] * 2
    )


def test_many_differences_are_folded_and_then_cut(
    many_cases: Callable[[int], Run],
) -> None:
    page = render("plots", many_cases(100))
    first, rest = page.split("<details>", 1)
    assert first.count('<td class="forest">') == 25
    assert rest.count('<td class="forest">') > 100
    assert re.search(r"\d+ more differences in report.json", page)


def test_shares_of_buckets_are_weighted_by_their_facts(
    small_run: Run, make_case: Make
) -> None:
    def bucket(part: str, n: int, *shares: float) -> CaseResult:
        values = tuple(
            value(name, share)
            for name, share in zip(
                ("accuracy", "hallucination", "missing"), shares, strict=True
            )
        )
        return make_case("head_to_tail", part, "pass", values, n=n)

    cases = (
        bucket("a-head", 30, 1.0, 0.0, 0.0),
        bucket("b-head", 10, 0.0, 0.5, 0.5),
        bucket("b-tail", 10, 0.2, 0.3, 0.5),
    )
    plot = plots_of(replace(small_run, cases=cases))["buckets"]
    shares = [row[:5] for row in plot.rows]
    assert shares == [
        ("head", "40", "0.750", "0.125", "0.125"),
        ("tail", "10", "0.200", "0.300", "0.500"),
        ("a head", "30", "1.000", "0.000", "0.000"),
        ("b head", "10", "0.000", "0.500", "0.500"),
        ("b tail", "10", "0.200", "0.300", "0.500"),
    ]
    assert plot.rows[0][5:] == plot.rows[0][2:5]
    # Three shares of the run and as many of the baseline a row, and the three of the legend.
    assert plot.drawing.count("<rect") == 5 * 6 + 3
    only = plots_of(replace(small_run, cases=cases[1:2]))["buckets"]
    assert [row[0] for row in only.rows] == ["head"]


def test_relations_are_drawn_with_marks_of_the_baseline(small_run: Run) -> None:
    plots = plots_of(small_run)
    for name in ("framing", "monitor"):
        drawing = plots[name].drawing
        assert (drawing.count('class="before"'), drawing.count('class="point ')) == (
            2,
            2,
        )
        assert 'class="point fail"' in drawing
    assert [row[:3] for row in plots["monitor"].rows] == [
        ("P30", "0.412", "0.381"),
        ("P17", "0.390", "0.390"),
    ]
    assert plots["framing"].heads == (
        "relation",
        "PFD",
        "baseline's",
        "IRD",
        "baseline's",
    )
    assert plots["framing"].rows == (
        ("P30", "0.300", "0.300", "0.250", "0.260"),
        ("P17", "0.280", "0.280", "0.200", "0.200"),
    )


def test_every_plot_has_its_numbers_as_a_table_and_says_of_how_many(
    small_run: Run, rich_run: Run
) -> None:
    run = with_facts(rich_run)
    nodeid = run.cases[0].nodeid
    plots = plots_of(run, baseline={nodeid: monitored(0.01)})
    assert [name for name, plot in plots.items() if not plot.rows] == []
    assert {
        name: plot.note
        for name, plot in plots.items()
        if not re.search(r"\d", plot.note)
    }.keys() == {"buckets"}
    assert plots["anchors"].note.startswith("20 % of 10 facts (baseline 20 % of 10) ")
    assert "10 facts" in plots["pairs"].note
    assert "4 combinations" in plots["boxes"].note
    assert "2 relations" in plots["framing"].note


def test_published_models_stand_behind_the_run_in_the_same_setting(
    small_run: Run, make_case: Make
) -> None:
    members = ("reliability[seen-four-shot]",)
    values = (value("ncr", 0.1), value("ur", 0.2))
    overall = make_case(
        "reliability", "overall", "fail", values, aggregate=True, members=members
    )
    models = tuple(
        PublishedModel(
            name=f"{setting} <model>", setting=setting, figures={"ncr": 0.3, "ur": 0.4}
        )
        for setting in ("zero-shot", "four-shot")
    )
    plots = plots_of(replace(small_run, cases=(overall,)), published=models)
    assert list(plots) == ["published-ncr-four-shot"]
    plot = plots["published-ncr-four-shot"]
    assert plot.drawing.count('class="paper"') == 1
    assert "four-shot &lt;model&gt;: 0.300, 0.400" in plot.drawing
    assert plot.rows[0] == ("this run", "0.100", "0.200")


def test_the_distribution_of_anchors_counts_kept_facts(small_run: Run) -> None:
    run = with_facts(small_run)
    plot = plots_of(run, baseline={run.cases[0].nodeid: monitored(-0.05)})["anchors"]
    assert plot.note.startswith(
        "20 % of 10 facts (baseline 20 % of 10) have a probability of 0.8 or more"
    )
    assert [row[1] for row in plot.rows] == ["0.100"] * 10
    assert plot.drawing.count('class="bar"') == 20
    assert 'class="outline"' in plot.drawing
    assert 'class="outline"' not in plots_of(run)["anchors"].drawing


def test_a_point_a_fact_and_the_lost_ones_are_named(small_run: Run) -> None:
    run = with_facts(small_run)
    plot = plots_of(run, baseline={run.cases[0].nodeid: monitored(0.02)})["pairs"]
    # Seven of the ten were lost; the one that was left out is not drawn.
    assert plot.drawing.count('class="lost"') == 7
    (dots,) = re.findall('class="facts" d="(.*?)"', plot.drawing)
    assert dots.count("h0") == 3
    assert "QP30:0 &lt;b&gt; 0.070 to 0.050" in plot.drawing
    assert "pairs" not in plots_of(run)
    assert [row for row in plot.rows if row[1] != "0"] == [("within 0.05", "10", "7")]
    fallen = plots_of(run, baseline={run.cases[0].nodeid: monitored(0.2)})["pairs"]
    assert [row for row in fallen.rows if row[1] != "0"] == [
        ("fell by 0.05 to 0.2", "10", "7")
    ]
    assert sum(int(row[1]) for row in fallen.rows) == 10


def test_boxes_are_over_frames_and_contexts(small_run: Run) -> None:
    plot = plots_of(with_facts(small_run))["boxes"]
    assert plot.rows == (
        ("after right answer", *("1.000",) * 5, "–"),
        ("no context", "0.000", "0.125", "0.250", "0.375", "0.500", "–"),
        ("after wrong answer", *("1.000",) * 5, "–"),
        ("P30", "0.000", "0.375", "0.750", "1.000", "1.000", "–"),
    )


def test_the_reliability_diagram_is_of_answers_to_questions_that_have_one(
    small_run: Run,
) -> None:
    run = with_facts(small_run)
    plot = plots_of(run)["calibration"]
    assert [row for row in plot.rows if row[1] != "0"] == [
        ("0.1 to 0.2", "2", "0.150", "0.000", "–"),
        ("0.9 to 1.0", "4", "0.950", "0.750", "–"),
    ]
    unseen = Table(columns=ANSWERS, rows=(outcome("u", 0.0, 1.0, 0.9, expected=""),))
    only = replace(run, cases=(replace(run.cases[2], table=unseen),))
    assert "calibration" not in plots_of(only)


def test_boxes_interpolate_between_values() -> None:
    assert box_of([4.0, 1.0, 2.0, 3.0]) == (1.0, 1.75, 2.5, 3.25, 4.0)
    assert box_of([0.5]) == (0.5,) * 5


def test_scales_keep_to_their_ends() -> None:
    scale = Scale(0, 2, 10, 20)
    assert [scale(value) for value in (-1, 0, 1, 2, 9)] == [10, 10, 15, 20, 20]
    assert Scale(0, 1, 0, 1).marks() == pytest.approx([0, 0.2, 0.4, 0.6, 0.8, 1.0])
    assert Scale(0.31, 0.33, 0, 1).marks() == pytest.approx(
        [0.31, 0.315, 0.32, 0.325, 0.33]
    )
    assert (
        scale_over([0.5], 0, 1).low,
        scale_over([0.2, 0.7], 0, 1, whole=True).high,
    ) == (0.45, 1.0)


def test_places_are_spread_where_they_are_too_close() -> None:
    assert spread([10.0, 50.0], 12, 0, 100) == [10, 50]
    assert spread([10.0, 11.0, 12.0], 12, 0, 100) == [10, 22, 34]
    assert spread([-5.0, 99.0, 100.0], 12, 0, 100) == [0, 88, 100]
    assert spread([], 12, 0, 100) == []


def test_drawings_escape_what_they_are_told() -> None:
    drawing = Drawing(10, '"><script>\x1b')
    drawing.text(0, 0, "<b>")
    drawing.circle(1, 1, 1, "point", "</title><script>")
    text = drawing.markup()
    assert 'aria-label="&quot;&gt;&lt;script&gt;\\x1b"' in text
    assert "<b>" not in text
    assert "<script" not in text
    assert cut("x" * 99, 68) == "x" * 9 + "…"
