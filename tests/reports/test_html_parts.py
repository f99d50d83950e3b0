"""The pieces of the page, each from both sides: what is drawn, coloured, counted and left out."""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import replace

import pytest

from pytest_kbrel.records import MetricValue, Unmatched
from pytest_kbrel.reports.html.page import (
    SizeLimit,
    anchors,
    render,
    report_html,
    scale_of,
)
from tests.reports.conftest import change, macro


def value(**more):
    return MetricValue(
        **{"name": "accuracy", "better": "higher", "value": 0.5, "n": 9, **more}
    )


@pytest.mark.parametrize(
    ("values", "scale"),
    [
        ([], (0.0, 1.0)),
        ([value(value=-0.01)], (-1.0, 1.0)),
        ([value(baseline=-1.5)], (-1.5, 1.0)),
        ([value(high=1.25)], (0.0, 1.25)),
        ([value(baseline=2.0)], (0.0, 2.0)),
    ],
)
def test_a_scale_reaches_as_far_as_its_values(values, scale):
    assert scale_of(values) == scale


# Many of these lists are cut: the last that fits is shown, and the next is counted.
@pytest.mark.parametrize("more", [0, 1])
def test_lists_are_cut_where_they_are_said_to_be(more, small_run, make_case):
    ids = tuple(f"f{at}" for at in range(20 + more))
    case = make_case(
        "monitor",
        "P1",
        "fail",
        (),
        unmatched=Unmatched(added=ids),
        errors=("e",) * (10 + more),
    )
    notes = macro("cases", "remarks", small_run)(case)
    assert (
        re.findall("and .* more, in report.json", notes)
        == ["and 1 more, in report.json"] * more
    )
    assert "f19" in notes
    page = report_html(replace(small_run, cases=(case,), problems=("p",) * (50 + more)))
    assert (page.count("<li>error: e</li>"), re.findall("<li>and .*? more</li>", page)) == (
        10, ["<li>and 1 more</li>"] * more,
    )  # fmt: skip
    assert (page.count("<li>p</li>"), "1 more problem in report.json" in page) == (
        50,
        bool(more),
    )

    lost = tuple(
        replace(change(at), fact_id=f"f{at}", relation=f"P{at}")
        for at in range(12 + more)
    )
    changed = render(
        "changes",
        replace(small_run, cases=(make_case("monitor", "P1", "fail", (), lost=lost),)),
    )
    assert changed.count('data-of="lost"') == 2 + 12
    assert ("1 more relation in report.json" in changed) is bool(more)
    ten = lost[: 10 + more]
    changed = render(
        "changes",
        replace(small_run, cases=(make_case("monitor", "P1", "fail", (), gained=ten),)),
    )
    assert (
        changed.count('data-of="old answer"'),
        ", the first 10 of them; all are" in changed,
    ) == (10, bool(more))
    table = macro("cases", "facts_of_case", small_run)(
        (lost * 5)[: 50 + more], "lost", SizeLimit(10**6)
    )
    assert (table.count('data-of="old answer"'), ", 50 of them here;" in table) == (
        50,
        bool(more),
    )


def test_a_browser_is_told_to_fetch_nothing_and_to_run_the_pages_own_script(empty_run):
    page = report_html(empty_run)
    (code,) = re.findall("<script>(.*?)</script>", page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; "
    )
    policy += "form-action 'none'; base-uri 'none'"
    assert f'<meta http-equiv="Content-Security-Policy" content="{policy}">' in page
    assert "<!--" not in code
    assert '<meta charset="utf-8">' in page


def test_failed_cases_come_first_and_numbers_are_sorted_by_value(small_run, make_case):
    verdicts = {
        "P10": "pass",
        "P9": "pass",
        "P101": "fail",
        "P20": "inconclusive",
        "P2": "fail",
    }
    cases = tuple(
        make_case("monitor", part, verdict, ()) for part, verdict in verdicts.items()
    )
    page = report_html(replace(small_run, cases=cases))
    assert re.findall('<tbody class="case" id="monitor-(.*?)"', page) == [
        "P2",
        "P101",
        "P20",
        "P9",
        "P10",
    ]
    assert page.count('aria-expanded="false"') == page.count(" hidden><td") == 5


def test_each_case_has_a_link_of_its_own(small_run, make_case):
    names = ("P1", "P/1", "P 1", "é", "<b>")
    cases = tuple(make_case("monitor", name, "pass", ()) for name in names)
    ids = anchors(replace(small_run, cases=cases))
    assert sorted(ids.values()) == [
        "monitor",
        "monitor-P-1",
        "monitor-P-1-2",
        "monitor-P1",
        "monitor-b",
    ]
    two = tuple(
        make_case("monitor", "P1", "pass", (), suite=f"suites/{name}.kb.yaml")
        for name in "ab"
    )
    assert sorted(anchors(replace(small_run, cases=two)).values()) == [
        "suites-a.kb.yaml-monitor-P1", "suites-b.kb.yaml-monitor-P1",
    ]  # fmt: skip
    odd = make_case("test", "why", "invalid", (), id="why")
    assert list(anchors(replace(small_run, cases=(odd,))).values()) == ["why-2"]
