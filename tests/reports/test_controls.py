"""What a metric is held against stands beside it in every report."""

from __future__ import annotations

from dataclasses import replace

from pytest_kbrel.records import MetricValue, Run
from pytest_kbrel.reports.html import report_html
from pytest_kbrel.reports.markdown import summary_markdown
from pytest_kbrel.reports.terminal import terminal_lines


def control(name: str, value: float | None) -> MetricValue:
    return MetricValue(name=name, better="higher", value=value, n=12)


def with_controls(run: Run) -> Run:
    more = (
        control("cr_control_majority", 0.083),
        control("c_correct_control_random", 0.2),
        control("c_correct_control_shuffled", 0.146),
        control("nccr_control_random", None),
    )
    return replace(
        run,
        cases=tuple(
            replace(case, metrics=(*case.metrics, *more)) if case.slice == "seen-zero-shot" else case
            for case in run.cases
        ),
    )


def test_the_terminal_has_them_below_the_table(small_run: Run) -> None:
    lines = [text for text, _ in terminal_lines(with_controls(small_run), width=100)]
    at = next(number for number, line in enumerate(lines) if line.startswith("  controls of"))
    assert (
        lines[at] == "  controls of seen-zero-shot: cr 0.083 majority; c_correct 0.200 random, 0.146 shuffled"
    )
    assert lines[at - 1].startswith("  seen-zero-shot")
    assert sum("controls of" in line for line in lines) == 1


def test_a_narrow_terminal_wraps_them(small_run: Run) -> None:
    lines = [text for text, _ in terminal_lines(with_controls(small_run), width=40)]
    assert all(len(line) <= 40 for line in lines)
    assert "0.146" in " ".join(lines)


def test_the_summary_has_them_beside_each_metric(small_run: Run) -> None:
    text = summary_markdown(with_controls(small_run))
    assert "(controls: random 0.200, shuffled 0.146)" in text
    assert "controls" not in summary_markdown(small_run)


def test_the_page_has_them_among_all_figures(small_run: Run) -> None:
    page = report_html(with_controls(small_run))
    assert "c_correct_control_shuffled" in page
