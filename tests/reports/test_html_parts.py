"""The pieces of the page, each from both sides: what is drawn, coloured, counted and left out."""

import base64
import hashlib
import re
from dataclasses import replace

import pytest

from pytest_kbrel.reports.html.page import (
    anchors,
    report_html,
)
from tests.reports.conftest import change


@pytest.mark.parametrize("more", [0, 1])
def test_a_list_that_is_cut_says_how_many_are_left_out(more, small_run, make_case):
    lost = tuple(
        replace(change(at), fact_id=f"f{at}", relation=f"P{at}")
        for at in range(12 + more)
    )
    errors = ("e",) * (10 + more)
    case = make_case("monitor", "P1", "fail", (), errors=errors, lost=lost)
    page = report_html(replace(small_run, cases=(case,), problems=("p",) * (50 + more)))
    assert (page.count("<li>error: e</li>"), page.count("<li>p</li>")) == (10, 50)
    for words in ("<li>and 1 more</li>", "1 more problem in", "1 more relation in"):
        assert (words in page) is bool(more)


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
