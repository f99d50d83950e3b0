from __future__ import annotations

from dataclasses import replace

import jsonschema
import pytest

from pytest_kbrel.records import GateResult, MetricValue
from pytest_kbrel.reports.html.page import report_html
from pytest_kbrel.reports.json_report import report_dict, schema
from pytest_kbrel.reports.markdown import summary_markdown
from pytest_kbrel.reports.terminal import failure_text, terminal_lines

PUBLISHED = "published/head-to-tail/chatgpt"


@pytest.fixture
def unpaired(small_run):
    value = MetricValue(
        name="accuracy", better="higher", value=0.2, low=0.1, high=0.3, n=50, baseline=0.5, delta=-0.3,
        delta_low=-0.4, delta_high=-0.2, p=0.001, unpaired=True,
    )  # fmt: skip
    gate = GateResult(
        metric="accuracy", rule="max_drop", bound=0.1, verdict="fail",
        reason="accuracy fell (unpaired, against a published figure: ours, Table 11)",
    )  # fmt: skip
    lacking = replace(
        gate, metric="missing", verdict="no baseline", reason="ours prints no missing"
    )
    first, *rest = (case for case in small_run.cases if not case.aggregate)
    cases = (
        replace(
            first, verdict="fail", metrics=(value,), gates=(gate,), lost=(), gained=()
        ),
        *(
            replace(case, verdict="no baseline", gates=(lacking,), lost=(), gained=())
            for case in rest[:1]
        ),
    )
    return replace(small_run, baseline=PUBLISHED, cases=cases)


def test_an_unpaired_difference_says_so_everywhere(unpaired):
    report = report_dict(unpaired)
    jsonschema.validate(report, schema())
    metrics = {
        name: of for case in report["cases"] for name, of in case["metrics"].items()
    }
    assert metrics["accuracy"]["unpaired"] is True
    terminal = "\n".join(
        text for text, _ in terminal_lines(unpaired, width=100, verbosity=1)
    )
    assert (
        "the baseline is what a paper prints: differences from it are unpaired"
        in terminal
    )
    assert "nothing published to compare with: 1 gate not judged" in terminal
    for text in (report_html(unpaired), summary_markdown(unpaired)):
        assert "(published figures, unpaired)" in text
    failed = next(case for case in unpaired.cases if case.verdict == "fail")
    message = " ".join(failure_text(failed, baseline_name=PUBLISHED).split())
    assert (
        "difference -0.300 [-0.400, -0.200] unpaired, from a published figure (p = 0.001)"
        in message
    )
    assert (
        "reason accuracy fell (unpaired, against a published figure: ours, Table 11)"
        in message
    )
