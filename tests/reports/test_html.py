import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from pytest_kbrel.reports.html.page import LARGEST, report_html

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


@pytest.mark.parametrize(
    "name", ["small_run", "rich_run", "hostile_run", "empty_run", "big_run"]
)
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


def test_hostile_text_is_shown_but_does_nothing(hostile_run):
    text = report_html(hostile_run)
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert not re.search(
        "[\x00-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]",
        text,
    )
    assert "\\x1b[31mred" in text
    assert "\\u202eright-to-left" in text
    text.encode("utf-8")


def test_a_very_long_answer_is_cut(hostile_run):
    assert max(map(len, Page(report_html(hostile_run)).text)) <= 700


def test_a_hundred_failing_cases_stay_below_a_megabyte_and_a_half(big_run):
    text = report_html(big_run)
    assert len(text.encode("utf-8")) < 1_500_000
    assert text.count("<h4>60 facts lost, ") == 100
    assert text.count('<tbody class="case"') == 100


@pytest.mark.slow
def test_a_page_of_five_hundred_cases_has_them_all(many_cases):
    text = report_html(many_cases(500))
    assert len(text.encode("utf-8")) < LARGEST
    assert text.count('<tbody class="case"') == 500
    assert "Its details did not fit" not in text
    # The others open to less.
    assert 100 < text.count("The page has no room for more of it") < 400
    assert Page(text).open == []


@pytest.mark.slow
def test_a_page_of_thousands_of_cases_stays_below_three_megabytes(many_cases):
    text = report_html(many_cases(3000))
    assert len(text.encode("utf-8")) < LARGEST
    assert Page(text).open == []
    assert len(re.findall(r"\d+ more (?:slice|case|waiver)s in report.json", text)) == 5


def test_at_most_fifty_facts_a_case_are_listed(hostile_run):
    listed = re.findall(
        "60 facts lost, ([0-9]+) of them here", report_html(hostile_run)
    )
    assert 10 < max(map(int, listed)) <= 50


def test_the_table_with_the_worst_verdict_comes_first(small_run):
    words = {"P30": "pass", "open-tail": "inconclusive", "unseen-zero-shot": "fail"}
    cases = tuple(
        replace(one, verdict=words.get(one.slice, "pass")) for one in small_run.cases
    )
    groups = re.findall(
        "<h3 id=.group.*?>(.*?)</h3>", report_html(replace(small_run, cases=cases))
    )
    assert groups == [
        "Reliable KB, unseen",
        "Head-to-Tail",
        "MONITOR",
        "Reliable KB, known",
    ]


def test_of_many_reasons_the_first_ten_are_open(many_cases):
    page = report_html(many_cases(12))
    (why,) = re.findall(
        r'<section aria-labelledby="why">(.*?)</section>', page, re.DOTALL
    )
    first, rest = why.split("<details>")
    assert (first.count("<li>"), rest.count("<li>")) == (10, 2)
    assert "<summary>2 more cases not passed</summary>" in rest


def test_each_case_can_unfold_its_prompt_with_its_lines_and_nothing_else(small_run):
    hostile = "line one\n</pre><script>\x1b\n\u202eline three"
    failed, passed, *_ = small_run.cases
    cases = (replace(failed, prompt=hostile), replace(passed, prompt="x" * 4001))
    text = report_html(replace(small_run, cases=cases))
    assert (
        "<pre>line one\n&lt;/pre&gt;&lt;script&gt;\\x1b\n\\u202eline three</pre>"
        in text
    )
    assert f"<pre>{'x' * 4000}\n…</pre>" in text
    assert text.index("The first prompt, as the model read it") < text.index("xxx")
    assert Page(text).open == []
    assert "first prompt" not in report_html(small_run)
