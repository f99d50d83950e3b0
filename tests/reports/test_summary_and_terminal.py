"""The summary and the terminal, line by line: what stands where, and what is left out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from pytest_kbrel.records import (
    CaseResult,
    Correlation,
    GateResult,
    MetricValue,
    Run,
    Share,
    Unmatched,
    Waiver,
)
from pytest_kbrel.reports import view
from pytest_kbrel.reports.markdown import markdown_text, summary_markdown
from pytest_kbrel.reports.terminal import table_lines, terminal_lines
from tests.reports.conftest import change
from tests.reports.test_attributions import attribution

Make = Callable[..., CaseResult]


def value(**more: Any) -> MetricValue:
    return MetricValue(
        **{"name": "accuracy", "better": "higher", "value": 0.5, "n": 9, **more}
    )


def gate(**more: Any) -> GateResult:
    given = {
        "metric": "accuracy",
        "rule": "min",
        "bound": 0.5,
        "verdict": "fail",
        "reason": "why",
    }
    return GateResult(**{**given, **more})


def texts(run: Run, width: int = 100) -> list[str]:
    return [text for text, _ in terminal_lines(run, width=width, verbosity=1)]


# Each by itself: whoever leaves one out of the list leaves markup in the summary.
@pytest.mark.parametrize("char", ["\\", "`", "*", "_", "[", "]", "|", "~", "$"])
def test_each_character_of_markup_is_escaped_wherever_it_stands(char: str) -> None:
    shown = {"\\": "\\\\"}.get(char, f"\\{char}")
    assert markdown_text(f"a{char}b{char}") == f"a{shown}b{shown}"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        *((f"{char} a {char} b", f"\\{char} a {char} b") for char in "#+-"),
        ("> a > b", r"\&gt; a &gt; b"),
        ("1. a 1. b", r"1\. a 1. b"),
        ("12) a", r"12\) a"),
        ("https://x", r"https:\/\/x"),
        ("a // b", "a // b"),
        ("www.x.y", r"www\.x.y"),
        ("& < > @", "&amp; &lt; &gt; &#64;"),
        ("plain (text) 1.5, 'q' \"r\"!", "plain (text) 1.5, 'q' \"r\"!"),
    ],
)
def test_what_is_markup_at_the_beginning_only_is_escaped_there(
    text: str, shown: str
) -> None:
    assert markdown_text(text) == shown


def lines_of(run: Run) -> list[str]:
    return summary_markdown(run).split("\n")


def test_the_summary_of_one_case(small_run: Run, make_case: Make) -> None:
    gates = (
        gate(verdict="pass", metric="pfd"),
        gate(rule="max_drop", p=0.0, p_sidak=0.5),
        gate(metric="ird", verdict="inconclusive", reason="a | b"),
    )
    case = make_case(
        "monitor",
        "P1",
        "fail",
        (
            value(low=0.0, high=1.0, delta=0.0),
            value(name="pfd", value=0.0),
            value(name="ird", value=None, low=0.1),
        ),
        gates=gates,
        n=0,
        errors=("e",) * 11,
        waiver=Waiver(
            owner="Ann", reason="known", expires="2026-12-31", case="monitor[P1]"
        ),
        integrity=(
            Share(name="empty", value=3, total=9, limit=0.5),
            Share(name="x", value=0, total=9, limit=1),
        ),
        unmatched=Unmatched(added=("a",)),
        lost=(change(1),),
    )
    run = replace(
        small_run, cases=(case,), baseline="", problems=("b", "a"), complete=False
    )
    figures = r"pfd 0.000<br>ird –<br>accuracy 0.500 \[0.000, 1.000\] (=)"
    sure = "p &lt; 0.001; over the whole run: Šidák p = 0.500 (decides)"
    assert lines_of(run) == [
        "## Knowledge gates: invalid",
        "",
        "**reference:overconfident**: 1 fail (1 waived).",
        "",
        "**1 fact lost, 0 gained; it is head; worst P30.**",
        "",
        "### Problems",
        "",
        "- partial run: not every case of its suites was selected and soundly decided",
        "- a",
        "- b",
        "",
        "### Why",
        "",
        r"- **fail, waived** monitor\[P1\]: accuracy: why",
        "",
        r"### monitor\[P1\]: fail, waived",
        "",
        rf"- accuracy max\_drop 0.5: **fail**: why ({sure})",
        r"- ird min 0.5: **inconclusive**: a \| b",
        *["- error: e"] * 10,
        "- waived until 2026-12-31 by Ann: known",
        "- responses: 3 of 9 empty (at most 50 %)",
        "- compared without 1 fact not in the baseline",
        "",
        "<details><summary>1 fact lost</summary>",
        "",
        "| question | expected | old answer | new answer | anchor | from |",
        "|---|---|---|---|---|---|",
        r"| On which continent is country 1? | Asia | Asia | Africa | 0\.950 → 0.850 (-0.100) | P30, head |",
        "",
        "</details>",
        "",
        "| verdict | case | n | metrics |",
        "|---|---|--:|---|",
        rf"| **fail, waived** | monitor\[P1\] | 0 | {figures} |",
        "",
        "### About this run",
        "",
        "- compared without 1 fact not in the baseline",
        "",
    ]


@pytest.mark.parametrize(
    ("baseline", "noted"),
    [("", False), ("prod", False), ("published/monitor/vicuna-7b", True)],
)
def test_gates_that_a_paper_left_unjudged_are_counted(
    baseline: str, noted: bool, small_run: Run, make_case: Make
) -> None:
    case = make_case(
        "monitor", "P1", "no baseline", (), gates=(gate(verdict="no baseline"),)
    )
    run = replace(small_run, cases=(case,), baseline=baseline)
    note = "nothing published to compare with: 1 gate not judged"
    assert (f"- {note}" in lines_of(run)) is noted
    assert (note in texts(run)) is noted
    assert (
        "no baseline given (--kb-baseline): 1 gate not judged" in texts(run)
    ) is not baseline


def test_what_no_fact_of_a_table_has_needs_no_column(
    small_run: Run, make_case: Make
) -> None:
    bare = replace(
        change(1), old_probability=None, new_probability=None, relation="", bucket=""
    )
    for lost, head in (
        ((bare,), "| question | expected | old answer | new answer |"),
        (
            (bare, change(2)),
            "| question | expected | old answer | new answer | anchor | from |",
        ),
        (
            (replace(bare, bucket="tail"),),
            "| question | expected | old answer | new answer | from |",
        ),
    ):
        run = replace(
            small_run, cases=(make_case("monitor", "P1", "pass", (), lost=lost),)
        )
        lines = lines_of(run)
        at = lines.index(head)
        assert lines[at + 1] == "|" + "---|" * (head.count("|") - 1)
        assert (
            lines[at - 2]
            == f"<details><summary>{len(lost)} fact{'s' * (len(lost) > 1)} lost</summary>"
        )


def test_the_summary_has_correlations_and_what_moved_answers(
    small_run: Run, make_case: Make
) -> None:
    case = make_case(
        "monitor", "P1", "pass", (), attributions=(attribution(),), gained=(change(1),)
    )
    pair = tuple(
        Correlation(x="a", y="b", method=method, over="slices", r=0.5, p=0.0, n=3)  # type: ignore[arg-type]
        for method in ("pearson", "spearman")
    )
    lines = lines_of(
        replace(small_run, cases=(case,), correlations=pair, problems=("p",))
    )
    at = lines.index(r"### monitor\[P1\]: pass")
    assert lines[at:] == [
        r"### monitor\[P1\]: pass",
        "",
        "<details><summary>1 fact gained</summary>",
        *lines[at + 3 : at + 8],
        "</details>",
        "",
        "What moved the answers about the worst facts:",
        "",
        "- Paris (after a wrong context, Oslo. What is the capital of France?): France +3.000, Os -1.500, "
        "␣ +0.500",
        "",
        "| verdict | case | n | metrics |",
        "|---|---|--:|---|",
        r"| pass | monitor\[P1\] | 120 |  |",
        "",
        "### Correlations over slices",
        "",
        "- a and b: Pearson 0.500 (p &lt; 0.001), Spearman 0.500 (p &lt; 0.001), n = 3",
        "",
    ]


@pytest.mark.parametrize("n", [10, 11])
def test_ten_facts_are_shown_in_the_summary_and_three_in_the_terminal(
    n: int, small_run: Run, make_case: Make
) -> None:
    lost = tuple(replace(change(1), fact_id=f"f{at}") for at in range(n))
    run = replace(
        small_run,
        cases=(make_case("monitor", "P1", "pass", (), lost=lost, gained=lost[:3]),),
    )
    lines = lines_of(run)
    assert (
        f"<details><summary>{n} facts lost{' (the first 10)' * (n == 11)}</summary>"
        in lines
    )
    assert "<details><summary>3 facts gained</summary>" in lines
    assert sum(line.startswith("| On which") for line in lines) == 10 + 3
    shown = texts(run, 100)
    assert sum(line.startswith("  lost    On which") for line in shown) == 3
    assert f"  lost    {n - 3} more in report.html and report.json" in shown
    assert sum(line.startswith("  gained  On which") for line in shown) == 3
    assert not any("gained" in line and "more in" in line for line in shown)


def test_an_aggregate_shows_its_differences(small_run: Run, make_case: Make) -> None:
    metrics = (
        value(
            name="monitor",
            value=0.25,
            low=0.0,
            high=0.5,
            delta=0.0,
            delta_low=0.0,
            delta_high=0.0,
        ),
        value(name="pfd", delta=0.0, delta_low=-0.1, delta_high=0.1),
        value(name="ird", delta=0.0, delta_low=0.0, delta_high=0.1),
        value(name="anchor_prob", delta=-0.5),
        value(name="accuracy", value=None, note="no fact"),
        value(name="accuracy_max"),
    )
    pooled = make_case(
        "pooled",
        "all",
        "pass",
        (
            value(name="m", delta=0.5, delta_low=0.0, delta_high=0.0),
            value(name="a_name_of_thirty_characters_xy", value=None, note="a\nb"),
            value(name="changed", delta=-0.1, paired=9, note="undefined\nwithout"),
            value(name="unchanged", delta=0.0, note="unchanged in every fact"),
            value(name="alone", n=1, note="n < 2"),
            value(name="sure", low=0.0, high=1.0, note="no spread"),
        ),
        aggregate=True,
    )
    lines = texts(replace(small_run, cases=(pooled,)))
    assert lines[lines.index("  pooled[all]  measured") + 1 :][:6] == [
        "    m                              0.500 +0.500 [0.000, 0.000]",
        r"    a_name_of_thirty_characters_xy – a\nb",
        r"    changed                        0.500 -0.100 no interval (undefined\nwithout)",
        "    unchanged                      0.500 =",
        "    alone                          0.500 no interval (1 fact)",
        "    sure                           0.500 [0.000, 1.000]",
    ]
    overall = make_case(
        "monitor",
        "overall",
        "fail",
        metrics,
        aggregate=True,
        gates=(gate(metric="ird"),),
    )
    failed = make_case(
        "pooled", "overall", "invalid", (), aggregate=True, errors=("it is broken",)
    )
    lines = texts(replace(small_run, cases=(overall, failed)))
    at = lines.index("Over all slices")
    assert lines[at : at + 9] == [
        "Over all slices",
        "  pooled[overall]  invalid",
        "    it is broken",
        "  monitor[overall]  fail",
        "    monitor          0.250 [0.000, 0.500] =",
        "    pfd              0.500 = [-0.100, +0.100]",
        "    ird              0.500 = [0.000, +0.100]",
        "    anchor_prob      0.500 -0.500",
        "    accuracy         – no fact",
    ]
    assert not any("accuracy_max" in line for line in lines)


@pytest.mark.parametrize(
    ("verdict", "markup"),
    [
        ("pass", {}),
        ("fail", {"red": True, "bold": True}),
        ("invalid", {"red": True, "bold": True}),
        ("not run", {"yellow": True, "bold": True}),
        ("not comparable", {"yellow": True, "bold": True}),
        ("no baseline", {"yellow": True}),
        ("inconclusive", {"yellow": True}),
    ],
)
def test_each_verdict_has_its_colour(
    verdict: str, markup: dict[str, bool], small_run: Run, make_case: Make
) -> None:
    case = make_case("monitor", "P1", verdict, (value(),))
    run = replace(small_run, cases=(case,))
    lines = terminal_lines(run, width=100, verbosity=1)
    (row,) = (marks for text, marks in lines if text.startswith("  P1 "))
    assert row == markup
    head = (
        {"green": True, "bold": True} if verdict == "pass" else {**markup, "bold": True}
    )
    shown = {"pass": "passed", "fail": "failed"}.get(verdict, verdict)
    assert (f"{shown.upper()}: 1 {shown}", head) in lines
    if verdict not in ("pass", "not run"):
        assert (f"{shown.upper()}  monitor[P1]", markup) in lines
    given = Waiver(
        owner="Ann", reason="known", expires="2026-12-31", case="monitor[P1]"
    )
    waived = replace(run, cases=(replace(case, waiver=given),))
    (row,) = (
        marks
        for text, marks in terminal_lines(waived, width=100, verbosity=1)
        if text.startswith("  P1 ")
    )
    excused = verdict not in ("pass", "invalid", "not run")
    assert row == ({"yellow": True} if excused else markup)


def test_what_the_terminal_says_of_a_run_without_a_baseline(
    small_run: Run, make_case: Make
) -> None:
    assert small_run.model is not None
    case = make_case("monitor", "P1", "pass", (value(),), lost=(change(1),))
    model = replace(small_run.model, dtype="", device="c\nu")
    run = replace(
        small_run,
        cases=(case,),
        baseline="",
        model=model,
        problems=("b", "a"),
        recorded="runs/x",
    )
    lines = terminal_lines(run, width=100, verbosity=1, written_to="x" * 120)
    assert [text for text, _ in lines] == [
        "MONITOR",
        "  slice    n  accuracy↑  verdict",
        "  P1     120      0.500  pass",
        "",
        "Lost and gained facts",
        "  lost    On which continent is country 1? Asia; said Asia → Africa; anchor 0.950 → 0.850 (-0.100);",
        "    P30, head",
        "",
        "INVALID: 1 passed",
        r"model    reference:overconfident (c\nu, raw prompts)",
        "changes  1 fact lost, 0 gained; it is head; worst P30",
        "decided again over runs/x, the model was not asked",
        # In the order in which they arose: what follows from another one comes after it.
        "problem: b",
        "problem: a",
        f"reports written to {'x' * 120}",
    ]
    marks = dict(lines)
    assert marks["problem: a"] == {"red": True, "bold": True}
    assert marks["changes  1 fact lost, 0 gained; it is head; worst P30"] == {
        "bold": True
    }
    assert (marks["MONITOR"], marks["  P1     120      0.500  pass"]) == (
        {"bold": True},
        {},
    )


def test_facts_that_were_only_gained_are_told_with_what_is_known_of_them(
    small_run: Run, make_case: Make
) -> None:
    bare = replace(
        change(1), old_probability=None, new_probability=None, relation="", bucket=""
    )
    case = make_case("monitor", "P1", "pass", (value(),), gained=(bare,))
    lines = texts(replace(small_run, cases=(case,)))
    at = lines.index("Lost and gained facts")
    assert lines[at : at + 3] == [
        "Lost and gained facts",
        "  gained  On which continent is country 1? Asia; said Asia → Africa",
        "",
    ]
    assert "Lost and gained facts" not in texts(
        replace(small_run, cases=(replace(case, gained=()),))
    )


def test_the_first_reason_is_told_however_long_it_is(
    small_run: Run, make_case: Make
) -> None:
    long = gate(verdict="inconclusive", reason="word " * 50)
    cases = tuple(
        make_case(
            "monitor",
            f"P{at}",
            "inconclusive",
            (),
            gates=(replace(long, bound=at / 10),),
        )
        for at in range(2)
    )
    lines = texts(replace(small_run, cases=cases), 30)
    at = lines.index("Inconclusive")
    assert lines[at + 1].startswith("  monitor[P0]: accuracy min 0")
    reasons = lines[at + 1 : lines.index("", at)]
    assert len(reasons) > 9
    assert reasons[-1] == "  and 1 more gate; report.htm…"
    assert not any("P1" in line for line in reasons)


def test_why_a_figure_has_no_value_stands_in_its_place(
    small_run: Run, make_case: Make
) -> None:
    metrics = (
        value(name="monitor", value=0.0, note="n < 2"),
        value(name="pfd", value=None, note="no fact"),
    )
    overall = make_case("monitor", "overall", "pass", metrics, aggregate=True)
    lines = texts(replace(small_run, cases=(overall,)))
    at = lines.index("  monitor[overall]  measured")
    assert lines[at + 1 : at + 3] == [
        "    monitor          0.000 no interval (n < 2)",
        "    pfd              – no fact",
    ]


def test_waivers_and_soundness_have_their_lines(
    small_run: Run, make_case: Make
) -> None:
    given = Waiver(
        owner="Ann", reason="known", expires="2026-12-31", case="monitor[P1]"
    )
    case = make_case(
        "monitor", "P1", "fail", (value(),), waiver=given, n=9,
        integrity=(
            Share(name="empty", value=3, total=9, limit=0.5),
            Share(name="truncated", value=9, total=9, limit=0.5, broken=True),
            Share(name="x", value=0, total=9, limit=0.5),
        ),
    )  # fmt: skip
    run = replace(small_run, cases=(case,), complete=False)
    assert texts(run) == [
        "MONITOR",
        "  slice  n  accuracy↑  verdict",
        "  P1     9      0.500  waived",
        "  responses of P1: 3 of 9 empty (at most 50 %); 9 of 9 cut short (at most 50 %)",
        "",
        "PASSED: 1 failed (1 waived)",
        "model    reference:overconfident (float32, cpu, raw prompts) against baseline reference",
        "partial run: not every case of its suites was selected and soundly decided",
        "",
        "WAIVER  monitor[P1]: fail, waived until 2026-12-31 by Ann: known",
    ]


TABLE = {
    100: """\
slice                                       n     pfd↓     accuracy↑  verdict
P1                                        120  0.500 =  0.500 -0.250  pass
P22222222222222222222222222222222222222…  120      –    0.500         a long verdict""",
    83: """\
slice                                       n     pfd    accuracy  verdict
P1                                        120  .500 =  .500 -.250  pass
P22222222222222222222222222222222222222…  120     –    .500        a long verdict""",
    80: """\
slice                                       n    pfd  accuracy  verdict
P1                                        120  .50 =  .50 -.25  pass
P22222222222222222222222222222222222222…  120    –    .50       a long verdict""",
    77: """\
slice           n    pfd  accuracy  verdict
P1            120  .50 =  .50 -.25  pass
P2222222222…  120    –    .50       a long verdict""",
    49: """\
slice           n  pfd  verdict
P1            120  .50  pass
P2222222222…  120    –  a long verdict""",
    37: """\
slice           n  verdict
P1            120  pass
P2222222222…  120  a long verdict""",
    31: """\
slice           n  verdict
P1            120  pass
P2222222222…  120  a long verd…""",
}


@pytest.mark.parametrize("width", TABLE)
def test_the_widest_table_that_fits_is_taken(
    width: int, small_run: Run, make_case: Make
) -> None:
    metrics = (value(delta=-0.25), value(name="pfd", better="lower", delta=0.0))
    cases = (
        make_case("monitor", "P1", "pass", metrics),
        make_case("monitor", f"P{'2' * 44}", "fail", (value(),)),
    )
    (group,) = view.groups(replace(small_run, cases=cases))
    lines = table_lines(group, ["pass", "a long verdict"], width)
    # Whichever case lacks a figure.
    turned = replace(group, cases=group.cases[::-1], labels=group.labels[::-1])
    (head, _), (one, _), (two, _) = table_lines(
        turned, ["a long verdict", "pass"], width
    )
    assert [head, two, one] == [text for text, _ in lines]
    assert [case for _, case in lines] == [None, *cases]
    assert "\n".join(text for text, _ in lines) == TABLE[width]
    # However wide the terminal is, a line has a hundred columns.
    assert table_lines(group, ["pass", "a long verdict" * 9], 300)[2][0].endswith("…")


def test_the_arrows_go_first(small_run: Run, make_case: Make) -> None:
    cases = (
        make_case(
            "head_to_tail",
            "P" * 40,
            "pass",
            (value(name="hallucination", better="lower"),),
        ),
    )
    (group,) = view.groups(replace(small_run, cases=cases))

    def heading(width: int) -> str:
        return table_lines(group, ["inconclusive"], width)[0][0]

    full = len(table_lines(group, ["inconclusive"], 100)[1][0])
    assert heading(full).endswith("  n  hallucination↓  verdict")
    assert heading(full - 1).endswith("  n  hallucination  verdict")
    alone = replace(group, metrics=(), labels=("a",))
    assert table_lines(alone, ["pass"], 100)[1][0] == "a      120  pass"
