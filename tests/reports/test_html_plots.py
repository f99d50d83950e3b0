"""The plots: what they draw of known figures and facts, and that there are none where nothing is known."""

import re
from dataclasses import replace

import pytest

from pytest_kbrel.records import GateResult, MetricValue, Outcome, Table
from pytest_kbrel.reports.html.distributions import fact_plots
from pytest_kbrel.reports.html.page import environment, report_html
from pytest_kbrel.reports.html.plots import figure_plots, forest
from pytest_kbrel.reports.html.svg import Plot, Point
from tests.made_cases import told

MONITOR = (
    "kept",
    "anchor",
    "cell:positive:0",
    "cell:none:0",
    "cell:none:1",
    "cell:negative1:0",
)
ANSWERS = ("correct", "answered", "answer_prob")


def outcome(fact, *values, expected="Asia"):
    return Outcome(
        fact_id=fact, question=f"Q{fact} <b>", expected=expected, answer="a", label="correct", values=values,
        prompt_digest="d",
    )  # fmt: skip


def value(name, at):
    return MetricValue(name=name, better="higher", value=at, n=9, baseline=at)


def monitored(shift=0.0):
    """Ten facts with anchors from 0.05 to 0.95, and one that was left out."""
    rows = [
        outcome(f"P30:{at}", 1.0, at / 10 + 0.05 + shift, 1.0, at % 2, 0.0, 1.0)
        for at in range(10)
    ]
    return Table(
        columns=MONITOR, rows=(*rows, outcome("out", 0.0, 0.99, 0.0, 0.0, 0.0, 0.0))
    )


def answered():
    sure = (0.95, 0.95, 0.95, 0.95, 0.15, 0.15)
    right = (1.0, 1.0, 1.0, 0.0, 0.0, 0.0)
    rows = [outcome(f"h{at}", right[at], 1.0, sure[at]) for at in range(6)]
    return Table(columns=ANSWERS, rows=(*rows, outcome("missing", 0.0, 0.0, 0.5)))


def with_facts(run):
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


def plots_of(run, published=()):
    plots = (*figure_plots(run, dict(published)), *fact_plots(run, {}))
    return {plot.name: plot for plot in plots}


def drawn(plot):
    return environment().get_template("drawings.html.j2").module.figure_of(plot)


def test_a_run_without_figures_has_no_plots(empty_run, make_case):
    assert plots_of(empty_run) == {}
    assert 'id="plots"' not in report_html(empty_run)
    broken = make_case("monitor", "P1", "invalid", ())
    assert plots_of(replace(empty_run, cases=(broken,))) == {}


@pytest.mark.parametrize(
    ("better", "rule", "at", "ends", "allowed"),
    [
        ("higher", "max_drop", -0.1, (-0.2, -0.05), -0.05),
        ("lower", "max_drop", 0.1, (0.05, 0.2), -0.05),
        ("higher", "min", -0.1, (-0.2, -0.05), None),
    ],
)
def test_differences_are_turned_towards_what_is_better(
    better, rule, at, ends, allowed, small_run, make_case
):
    moved = MetricValue(
        name="x", better=better, value=0.4, n=9, baseline=0.5, delta=-0.1,
        delta_low=-0.2, delta_high=-0.05,
    )  # fmt: skip
    gate = GateResult(
        metric="x", rule=rule, bound=0.05, verdict="fail", reasons=told("why")
    )
    case = make_case("monitor", "P1", "fail", (moved,), gates=(gate,))
    ((row,), _) = forest(replace(small_run, cases=(case,)))
    assert (row.at, (row.low, row.high), row.allowed) == (at, ends, allowed)
    assert row.gate == (None if rule == "min" else gate)


def test_many_differences_are_folded_and_then_cut(many_cases):
    page = report_html(many_cases(100)).partition('id="plots"')[2]
    first, rest = page.split("<details>", 1)
    assert first.count('<td class="forest">') == 25
    assert rest.count('<td class="forest">') > 100
    assert re.search(r"\d+ more differences in report.json", page)


def test_shares_of_buckets_are_weighted_by_their_facts(small_run, make_case):
    def bucket(part, n, *shares):
        names = ("accuracy", "hallucination", "missing")
        values = tuple(map(value, names, shares))
        return make_case("head_to_tail", part, "pass", values, n=n)

    cases = (
        bucket("a-head", 30, 1.0, 0.0, 0.0),
        bucket("b-head", 10, 0.0, 0.5, 0.5),
        bucket("b-tail", 10, 0.2, 0.3, 0.5),
    )
    plot = plots_of(replace(small_run, cases=cases))["buckets"]
    assert [" ".join(row[:5]) for row in plot.rows] == [
        "head 40 0.750 0.125 0.125",
        "tail 10 0.200 0.300 0.500",
    ]
    # Three shares of the run and as many of the baseline a row, and the three of the legend.
    assert drawn(plot).count("<rect") == 2 * 6 + 3


def test_published_models_stand_behind_the_run_in_the_same_setting(
    small_run, make_case
):
    members = ("reliability[known-four-shot]",)
    values = (value("ncr", 0.1), value("ur", 0.2))
    overall = make_case(
        "reliability", "overall", "fail", values, aggregate=True, members=members
    )
    models = {
        (f"{setting} <model>", setting): {"ncr": 0.3, "ur": 0.4}
        for setting in ("zero-shot", "four-shot")
    }
    plots = plots_of(replace(small_run, cases=(overall,)), published=models)
    assert list(plots) == ["published-ncr-four-shot"]
    plot = plots["published-ncr-four-shot"]
    assert drawn(plot).count('class="point paper"') == 1
    assert "four-shot &lt;model&gt;: NCR 0.300, UR 0.400" in drawn(plot)
    row = '<th scope="row">this run</th><td>0.100</td><td>0.100</td><td>0.200</td>'
    assert row in drawn(plot)


def test_drawings_escape_what_they_are_told():
    words = '"><script>\x1b'
    points = [Point((at, at), "</title><b>", label="<b>" * 9) for at in (0, 1)]
    text = drawn(
        Plot(
            name="a", title=words, note=words, about=words, x=words, y=words,
            heads=[words], rows=[[words]], points=points,
        )
    )  # fmt: skip
    assert 'aria-label="&#34;&gt;&lt;script&gt;\\x1b"' in text
    assert not re.search("<(b|script)>|\x1b", text)
    assert ">&lt;b&gt;&lt;b&gt;&lt;b&gt;&lt;b&gt;&lt;b&gt;…</text>" in text
