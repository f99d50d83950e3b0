"""What stands beside the figures, in all outputs."""

from dataclasses import replace

import pytest

from pytest_kbrel.reports.html.page import report_html
from pytest_kbrel.reports.json_report import report_dict
from pytest_kbrel.reports.markdown import summary_markdown
from pytest_kbrel.reports.terminal import terminal_lines
from tests.reports.test_html import Page


def terminal(run, width=100):
    return "\n".join(text for text, _ in terminal_lines(run, width=width, verbosity=1))


def page(run):
    return " ".join(" ".join(Page(report_html(run)).text).split())


@pytest.mark.parametrize("write", [terminal, summary_markdown, page])
def test_every_output_says_how_facts_are_asked_otherwise(write, rich_run):
    first, *others = rich_run.cases
    noted = replace(
        first, notes=tuple(f"{n} of 9 facts: otherwise" for n in range(1, 8))
    )
    text = " ".join(
        write(replace(rich_run, cases=(noted, *others))).replace("\\", "").split()
    )
    assert "]: 1 of 9 facts: otherwise" in text
    assert "5 of 9 facts: otherwise" in text
    # Many of them would push the figures out of sight.
    assert "6 of 9 facts" not in text
    assert "2 more notes on how facts are asked, in report.json" in text
    assert (
        report_dict(replace(rich_run, cases=(noted, *others)))["cases"]
        != report_dict(rich_run)["cases"]
    )
