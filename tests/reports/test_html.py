"""The page of a run: its markup is its own, hostile text does nothing, lists are cut, and plots draw figures."""

import base64
import hashlib
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from pytest_kbrel.records import MetricValue
from pytest_kbrel.reports.html.page import LARGEST, anchors, report_html
from pytest_kbrel.reports.html.plots import forest
from pytest_kbrel.reports.view import View
from tests.reports.conftest import case, change, gate, many, metric, rich, small

VOID = {"meta", "br", "input"}
ATTRIBUTES = {
    "lang", "charset", "name", "content", "http-equiv", "class", "scope", "title", "data-of", "open",
    "viewbox", "preserveaspectratio", "aria-hidden", "x", "y", "width", "height",
    "id", "href", "type", "aria-expanded", "aria-controls", "aria-sort", "aria-label", "aria-labelledby",
    "aria-live", "d", "cx", "cy", "r", "role", "hidden", "tabindex", "colspan", "data-verdict", "placeholder",
    "value",
}  # fmt: skip


class Page(HTMLParser):
    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.tags = []
        self.attributes = set()
        self.open = []
        self.text = []
        self.links = []
        self.ids = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attrs}
        self.links += [value or "" for name, value in attrs if name == "href"]
        self.ids += [value or "" for name, value in attrs if name == "id"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] not in ("style", "script"):
            self.text.append(data)


@pytest.mark.parametrize("name", ["rich_run", "hostile_run", "empty_run", "big_run"])
def test_the_page_is_well_formed_and_holds_nothing_but_its_own_markup(name, request):
    text = report_html(request.getfixturevalue(name))
    page = Page(text)
    assert page.open == []
    assert not {"img", "link", "iframe", "object", "form"} & set(page.tags)
    assert page.tags.count("script") == 1
    assert all(link.startswith("#") for link in page.links)
    assert page.attributes <= ATTRIBUTES
    assert len(page.ids) == len(set(page.ids))
    assert {link[1:] for link in page.links} <= set(page.ids)
    assert not re.search(r"url\(|@import|https?://", text.split("</style>")[0])
    assert text.startswith('<!doctype html>\n<html lang="en">')
    # Line breaks are the page's own and those of prompts.
    assert not re.search(
        "[\x00-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]",
        text,
    )
    assert max(map(len, page.text)) <= 700
    assert len(text.encode("utf-8")) < LARGEST


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
    assert 'id="plots"' not in page


@pytest.mark.slow
def test_a_large_page_is_cut_and_says_how_much():
    count = 1000
    text = report_html(many(count))
    assert len(text.encode("utf-8")) < LARGEST
    assert Page(text).open == []
    left, *_ = re.findall(r"(\d+) more slices? in report.json", text)
    assert text.count('<tbody class="case"') == count - int(left) >= 500


def test_lists_that_are_cut_say_how_many_are_left_out():
    lost = tuple(
        replace(change(at), fact_id=f"f{at}", relation=f"P{at}") for at in range(60)
    )
    one = case("monitor", "P0", "fail", (), errors=("e",) * 11, lost=lost)
    cases = [replace(one, id=f"monitor[P{at}]", slice=f"P{at}") for at in range(12)]
    page = report_html(replace(small(), cases=tuple(cases), problems=("p",) * 51))
    assert page.count("<li>p</li>") == 50
    assert page.count("<li>error: e</li>") == 12 * 10
    for words in (
        "<li>and 1 more</li>",
        "problem in report.json",
        "48 more relations in",
        "<h4>60 facts lost, 50 of them here",
        "<summary>2 more cases not passed",
    ):
        assert words in page
    differences = report_html(many(30)).partition('id="plots"')[2].split("<details>", 1)
    assert differences[0].count('<td class="forest">') == 25


def test_failed_cases_come_first_and_numbers_are_sorted_by_value():
    verdicts = {
        "P10": "pass",
        "P9": "pass",
        "P101": "fail",
        "P20": "inconclusive",
        "P2": "fail",
    }
    cases = [case("monitor", part, verdict, ()) for part, verdict in verdicts.items()]
    cases += [
        case("head_to_tail", "a-head", "invalid", ()),
        case("reliability", "known", "pass", ()),
    ]
    page = report_html(replace(small(), cases=tuple(cases)))
    order = ["P2", "P101", "P20", "P9", "P10"]
    assert re.findall('<tbody class="case" id="monitor-(.*?)"', page) == order
    titles = re.findall("<h3 id=.group.*?>(.*?)</h3>", page)
    assert titles == ["MONITOR", "Head-to-Tail", "Reliable KB, known"]


def test_each_case_has_a_link_of_its_own_made_of_its_id():
    def ids(*cases):
        return list(anchors(replace(small(), cases=cases)).values())

    cases = [
        case("monitor", name, "pass", (), label="x")
        for name in ("P1", "P/1", "P 1", "é")
    ]
    found = ids(*cases)
    assert len(set(found)) == 4
    assert found[-2:] == ["monitor-P1", "monitor"]
    assert all(re.fullmatch(r"[\w.-]+", one, re.ASCII) for one in found)
    other = replace(cases[0], suite="b.kb.yaml")
    assert "b.kb.yaml-monitor-P1" in ids(cases[0], other)
    # The name of a section is taken.
    assert ids(case("test", "why", "invalid", (), id="why")) != ["why"]


def test_a_prompt_keeps_its_lines_and_nothing_else():
    failed, *rest = small().cases
    prompt = "one\n</pre><script>\x1b\n\u202etwo" + "x" * 4000
    page = report_html(replace(small(), cases=(replace(failed, prompt=prompt), *rest)))
    assert "<pre>one\n&lt;/pre&gt;&lt;script&gt;\\x1b\n\\u202etwoxx" in page
    assert "x\n…</pre>" in page
    assert "first prompt" not in report_html(small())


@pytest.mark.parametrize(
    ("better", "rule", "bound", "at", "ends", "allowed"),
    [
        ("higher", "max_drop", 0.05, -0.1, (-0.2, -0.05), -0.05),
        ("lower", "max_drop", 0.05, 0.1, (0.05, 0.2), -0.05),
        ("higher", "recovery", 0.9, -0.1, (-0.2, -0.05), -0.05),
        ("higher", "min", 0.05, -0.1, (-0.2, -0.05), None),
    ],
)
def test_differences_are_turned_towards_what_is_better(
    better, rule, bound, at, ends, allowed
):
    moved = MetricValue(
        name="x", better=better, value=0.4, n=9, baseline=0.5, delta=-0.1,
        delta_low=-0.2, delta_high=-0.05,
    )  # fmt: skip
    judged = gate(metric="x", rule=rule, bound=bound)
    one = case("monitor", "P1", "fail", (moved,), gates=(judged,))
    ((row,), _) = forest(View(replace(small(), cases=(one,))))
    assert (row.at, (row.low, row.high)) == (at, ends)
    assert row.allowed == (None if allowed is None else pytest.approx(allowed))
    assert row.gate == (None if rule == "min" else judged)


def numbers_below(page, plot):
    """Return the rows of the table below a plot."""
    table = (
        page.partition(f'id="plot-{plot}"')[2]
        .partition("<tbody>")[2]
        .partition("</tbody>")[0]
    )
    rows = re.findall("<tr>(.*?)</tr>", table)
    return [" ".join(re.findall("<t[hd][^>]*>(.*?)</t[hd]>", row)) for row in rows]


def test_shares_of_buckets_are_weighted_by_their_facts():
    def bucket(part, n, *shares):
        names = ("accuracy", "hallucination", "missing", "outdated")
        return case(
            "head_to_tail", part, "pass", tuple(map(metric, names, shares)), n=n
        )

    cases = (
        bucket("a-head", 30, 1.0, 0.0, 0.0),
        bucket("b-head", 10, 0.0, 0.5, 0.5),
        bucket("b-tail", 10, 0.2, 0.3, 0.5),
    )
    page = report_html(replace(small(), cases=cases))
    assert numbers_below(page, "buckets") == [
        "head 40 0.750 0.125 0.125 – – –",
        "tail 10 0.200 0.300 0.500 – – –",
    ]
    dated = bucket("c-tail", 30, 0.0, 0.0, 0.5, 0.5)
    page = report_html(replace(small(), cases=(*cases, dated)))
    assert numbers_below(page, "buckets") == [
        "head 40 0.750 – 0.125 0.125 – – – –",
        "tail 40 0.050 0.375 0.075 0.500 – – – –",
    ]
    assert "<title>now outdated 0.375</title>" in page


def test_published_models_stand_behind_the_run_in_the_same_setting():
    values = (metric("ncr", 0.1, 0.0), metric("ur", 0.2, 0.0))
    overall = case(
        "reliability",
        "overall",
        "fail",
        values,
        aggregate=True,
        members=("reliability[known-four-shot]",),
    )
    models = {
        (f"{of} <model>", of): {"ncr": 0.3, "ur": 0.4}
        for of in ("zero-shot", "four-shot")
    }
    page = report_html(replace(small(), cases=(overall,)), published=models)
    assert numbers_below(page, "published-ncr-four-shot") == [
        "this run 0.100 0.100 0.200 0.200", "four-shot &lt;model&gt; 0.300  0.400 ",
    ]  # fmt: skip


def test_text_in_a_plot_is_escaped_and_cut():
    values = (metric("pfd", 0.1), metric("ird", 0.2))
    one = replace(rich().cases[0], slice='"><script>' + "<b>" * 9, metrics=values)
    page = report_html(replace(small(), cases=(one,))).partition('id="plot-framing"')[2]
    assert "&lt;script&gt;&lt;b&gt;&lt;b…</text>" in page
    assert not re.search("<(b|script)>", page.partition("</figure>")[0])
