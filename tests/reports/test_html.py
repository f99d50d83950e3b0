from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from pytest_kbrel.records import CaseResult, Run
from pytest_kbrel.reports.html.page import (
    LARGEST,
    SizeLimit,
    report_html,
)
from pytest_kbrel.reports.phrases import STOPPED

VOID = {"meta", "br", "input"}
ATTRIBUTES = {
    "lang", "charset", "name", "content", "http-equiv", "class", "scope", "title", "data-of", "open",
    "viewbox", "preserveaspectratio", "aria-hidden", "x", "y", "width", "height",
    "id", "href", "type", "aria-expanded", "aria-controls", "aria-sort", "aria-label", "aria-labelledby",
    "aria-live", "d", "cx", "cy", "r", "role", "hidden", "tabindex", "colspan", "data-verdict", "placeholder",
    "value",
}  # fmt: skip


class Page(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.attributes: set[str] = set()
        self.open: list[str] = []
        self.text: list[str] = []
        self.links: list[str] = []
        self.ids: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attrs}
        self.links += [value or "" for name, value in attrs if name == "href"]
        self.ids += [value or "" for name, value in attrs if name == "id"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] not in ("style", "script"):
            self.text.append(data)


@pytest.mark.parametrize(
    "name", ["small_run", "rich_run", "hostile_run", "empty_run", "big_run"]
)
def test_the_page_is_well_formed_and_holds_nothing_but_its_own_markup(
    name: str, request: pytest.FixtureRequest
) -> None:
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


def test_hostile_text_is_shown_but_does_nothing(hostile_run: Run) -> None:
    text = report_html(hostile_run)
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert not re.search(
        "[\x00-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]",
        text,
    )
    assert "\\x1b[31mred" in text
    assert "\\u202eright-to-left" in text
    text.encode("utf-8")


def test_a_very_long_answer_is_cut(hostile_run: Run) -> None:
    assert max(map(len, Page(report_html(hostile_run)).text)) <= 700


def test_a_hundred_failing_cases_stay_below_a_megabyte_and_a_half(big_run: Run) -> None:
    text = report_html(big_run)
    assert len(text.encode("utf-8")) < 1_500_000
    assert text.count("<h4>60 facts lost, ") == 100
    assert text.count('<tbody class="case"') == 100


@pytest.mark.slow
def test_a_page_of_five_hundred_cases_has_them_all(
    many_cases: Callable[[int], Run],
) -> None:
    text = report_html(many_cases(500))
    assert len(text.encode("utf-8")) < LARGEST
    assert text.count('<tbody class="case"') == 500
    assert "Its details did not fit" not in text
    # The others open to less.
    assert 100 < text.count("The page has no room for more of it") < 400
    assert Page(text).open == []


@pytest.mark.slow
def test_a_page_of_thousands_of_cases_stays_below_three_megabytes(
    many_cases: Callable[[int], Run],
) -> None:
    text = report_html(many_cases(3000))
    assert len(text.encode("utf-8")) < LARGEST
    assert Page(text).open == []
    assert len(re.findall(r"\d+ more (?:slice|case|waiver)s in report.json", text)) == 5


def test_of_a_list_that_is_too_long_the_first_are_kept_and_one_at_least() -> None:
    parts = ["ab", "cd", "ef"]
    assert SizeLimit(6).take(str, parts) == parts
    assert SizeLimit(5).take(str, parts) == parts[:2]
    assert SizeLimit(-1).take(str, parts) == parts[:1]
    assert SizeLimit(1).take(str, parts, least=0) == []
    assert SizeLimit(100).take(str, parts, most=2) == parts[:2]
    assert SizeLimit(100).take(str, []) == []
    assert SizeLimit(4).take(str, ["ab", "cdefg", "h"]) == ["ab"]
    assert SizeLimit(5).take("{}é{}".format, parts, "!") == ["abé!"]


def test_at_most_fifty_facts_a_case_are_listed(hostile_run: Run) -> None:
    listed = re.findall(
        "60 facts lost, ([0-9]+) of them here", report_html(hostile_run)
    )
    assert 10 < max(map(int, listed)) <= 50


def test_headings_and_header_cells_carry_the_structure(small_run: Run) -> None:
    text = report_html(small_run)
    page = Page(text)
    assert page.tags.count("h1") == 1
    assert page.tags.count("table") >= 4
    assert len(re.findall("<th scope=", text)) == page.tags.count("th")
    headings = re.findall("<h2 id=.*?>(.*?)</h2>", text)
    assert headings == [
        "Why", "Facts lost and gained", "About this run", "Over all slices", "Plots", "Cases", "All figures",
    ]  # fmt: skip
    groups = re.findall("<h3 id=.group.*?>(.*?)</h3>", text)
    assert groups == [
        "MONITOR",
        "Head-to-Tail",
        "Reliable KB, seen",
        "Reliable KB, unseen",
    ]


def test_the_table_with_the_worst_verdict_comes_first(small_run: Run) -> None:
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
        "Reliable KB, seen",
    ]


def test_the_page_names_the_judge(small_run: Run) -> None:
    page = report_html(replace(small_run, settings=(("judge", "openai/<b>"),)))
    assert "<dt>judged by</dt><dd>openai/&lt;b&gt;</dd>" in page
    assert "judged by" not in report_html(small_run)


def test_a_failing_case_says_why_and_what_was_lost(small_run: Run) -> None:
    words = " ".join(" ".join(Page(report_html(small_run)).text).split())
    assert "Knowledge gates fail" in words
    assert (
        "reference:overconfident against baseline reference : 1 fail, 1 inconclusive, 4 pass."
        in words
    )
    assert (
        "accuracy max_drop 0.02 at most 0.02 worse than reference suites/world.kb.yaml:17"
        in words
    )
    assert "significantly worse than reference" in words
    assert "On which continent is country 0? Asia Asia Africa" in words
    assert "no wrong answer" in words


def test_the_verdict_is_a_word_everywhere(hostile_run: Run) -> None:
    words = "".join(Page(report_html(hostile_run)).text)
    for verdict in (
        "fail",
        "invalid",
        "not comparable",
        "no baseline",
        "inconclusive",
        "pass",
    ):
        assert verdict in words


def test_an_incomplete_run_says_so(hostile_run: Run, small_run: Run) -> None:
    item = "<li>partial run: not every case of its suites was selected and soundly decided</li>"
    assert item in report_html(hostile_run)
    assert "partial run" not in report_html(small_run)
    stopped = replace(hostile_run, problems=(*hostile_run.problems, STOPPED))
    assert f"<li>{STOPPED}</li>" in report_html(stopped)
    assert "partial run" not in report_html(stopped)


def test_the_top_says_why_and_leads_to_the_cases(small_run: Run) -> None:
    page = report_html(small_run)
    (why,) = re.findall(
        r'<section aria-labelledby="why">(.*?)</section>', page, re.DOTALL
    )
    reasons = [
        " ".join(re.sub("<.*?>", "", item).split())
        for item in re.findall("<li>(.*?)</li>", why)
    ]
    assert reasons == [
        "fail monitor[P30]: accuracy: significantly worse than reference and by more than the tolerance",
        "inconclusive head_to_tail[open-tail]: accuracy: the drop may be 0.06; 400 facts would decide",
    ]
    assert (
        page.index("</h1>")
        < page.index('id="why"')
        < page.index('id="facts"')
        < page.index('id="about"')
    )
    for link in re.findall('href="#(.*?)"', why):
        assert f'<tbody class="case" id="{link}"' in page


def test_of_many_reasons_the_first_ten_are_open(
    many_cases: Callable[[int], Run],
) -> None:
    page = report_html(many_cases(12))
    (why,) = re.findall(
        r'<section aria-labelledby="why">(.*?)</section>', page, re.DOTALL
    )
    first, rest = why.split("<details>")
    assert (first.count("<li>"), rest.count("<li>")) == (10, 2)
    assert "<summary>2 more cases not passed</summary>" in rest


def test_a_test_that_came_to_no_case_is_no_probes(
    small_run: Run, make_case: Callable[..., CaseResult]
) -> None:
    failed = make_case(
        "test", "test_it", "invalid", (), id="test_it", suite="tests/test_it.py", n=0
    )
    page = report_html(replace(small_run, cases=(*small_run.cases, failed)))
    (monitor,) = re.findall(r"<h3 id=.*?>MONITOR</h3>(.*?)</section>", page, re.DOTALL)
    assert "test_it" not in monitor
    (own,) = re.findall(
        r"<h3 id=.*?>Tests in Python</h3>(.*?)</section>", page, re.DOTALL
    )
    assert '<button type="button" class="sort">test</button>' in own
    assert ">test_it (test_it.py)</button></th>" in own
    assert page.count("<summary>Tests in Python</summary>") == 0


def test_each_case_can_unfold_its_prompt_with_its_lines_and_nothing_else(
    small_run: Run,
) -> None:
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
