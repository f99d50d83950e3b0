"""Pages in a browser: they open from disk, sort, filter, follow links, and are usable without a mouse."""

import functools
import re
from dataclasses import replace
from itertools import pairwise

import pytest

from pytest_kbrel.reports.html.comparison import comparison_html
from pytest_kbrel.reports.html.page import report_html
from tests.browser import needs_browser
from tests.made_comparisons import comparison_of
from tests.reports import conftest as runs
from tests.reports.conftest import case, metric, with_facts

pytestmark = [pytest.mark.slow, needs_browser]


def green():
    passed = [one for one in runs.small().cases if one.verdict == "pass"]
    return replace(runs.small(), cases=tuple(passed), exit_status=0)


def red():
    run = with_facts(runs.rich())
    return replace(run, cases=(replace(run.cases[0], waiver=None), *run.cases[1:]))


def five_hundred():
    """500 cases of which 100 failed, numbered as slices are: their names sort otherwise than texts do."""
    run = runs.many(500)
    run = replace(run, cases=tuple(replace(one, waiver=None) for one in run.cases))
    sound = runs.small().cases[1]
    cases = [
        one if at % 5 == 0 else replace(sound, id=one.id, slice=one.slice)
        for at, one in enumerate(run.cases)
    ]
    return replace(run, cases=tuple(cases))


def sortable():
    values = {"P10": 0.5, "P2": 0.9, "P101": 0.25, "P1": None}
    cases = tuple(
        case("monitor", name, "pass", (metric("accuracy", at),))
        for name, at in values.items()
    )
    failed = replace(
        case("monitor", "P3", "fail", (metric("accuracy", 0.75),)),
        lost=(runs.change(1),),
    )
    return replace(runs.small(), cases=(*cases, failed))


RUNS = {
    "green": green,
    "red": red,
    "500 cases": five_hundred,
    "hostile": runs.hostile,
    "sortable": sortable,
}
PAGES = [*(name for name in RUNS if name != "sortable"), "three models"]


@pytest.fixture(scope="module")
def page_of(tmp_path_factory):
    """The file with a page, made once."""
    folder = tmp_path_factory.mktemp("pages")

    @functools.cache
    def made(name):
        path = folder / f"{name}.html"
        if name == "three models":
            three = {"good": green(), "bad": red(), "worse": runs.rich()}
            page = comparison_html(comparison_of(three))
        else:
            page = report_html(RUNS[name]())
        path.write_text(page, encoding="utf-8")
        return path

    return made


@pytest.fixture
def show(browser, page_of):
    def opened(name, link="", *, width=1200, dark=False):
        browser.open(page_of(name), link, width=width, dark=dark)
        return browser

    return opened


WIDE = (
    "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
)
UNFOLD = """
document.querySelectorAll('details').forEach(one => { one.open = true });
document.querySelectorAll('tbody.case').forEach(one => { one.rows[1].hidden = false });
"""
# Drawings have no room beside them: a text beyond their edge cannot be read.
CLIPPED = """
return [...document.querySelectorAll('svg.plot text')].filter(text => {
  const box = text.getBBox(), room = text.ownerSVGElement.viewBox.baseVal;
  const right = box.x + box.width, below = box.y + box.height;
  return box.x < -1 || right > room.width + 1 || box.y < -1 || below > room.height + 1;
}).map(text => text.ownerSVGElement.getAttribute('aria-label') + ': ' + text.textContent);
"""


@pytest.mark.parametrize("name", PAGES)
def test_it_opens_from_disk_without_an_error_or_a_request(name, show):
    page = show(name)
    requests = page.requests()
    assert (len(requests), requests[0].partition(":")[0]) == (1, "file")
    assert page.run("return performance.getEntriesByType('resource').length") == 0
    # The page's own script has run.
    assert page.run("return !document.getElementById('filter').hidden")
    assert page.errors() == []
    assert page.run(CLIPPED) == []
    # A telephone needs no scrolling sideways, folded or not.
    page = show(name, width=375)
    assert page.run(WIDE) <= 0
    page.run(UNFOLD)
    assert page.run(WIDE) <= 0


def names(page):
    """Return the names of the cases that are shown, in their order."""
    return page.run(
        "const buttons = document.querySelectorAll('tbody.case:not([hidden]) button.open');"
        "return [...buttons].map(button => button.textContent.trim())"
    )


def enter(page, selector, value):
    page.run(
        "const field = document.querySelector(arguments[0]); field.value = arguments[1];"
        "field.dispatchEvent(new Event('input', {bubbles: true}))",
        selector,
        value,
    )


COUNTED = "return document.querySelector('#filter output').textContent"
WORDS = "return [...document.querySelectorAll('#filter option')].map(option => option.value)"
VERDICTS = "return [...document.querySelectorAll('tbody.case:not([hidden])')].map(one => one.dataset.verdict)"


@pytest.mark.parametrize("name", ["red", "three models"])
def test_cases_are_filtered_by_verdict_and_by_words(name, show):
    page = show(name)
    everyone, shown = names(page), page.run(VERDICTS)
    # A verdict is in the list if a case of any table or an aggregate has it; of models, one may have none.
    every, *words = page.run(WORDS)
    assert every == ""
    assert set(shown) - {""} <= set(words)
    for word in words:
        enter(page, "#filter select", word)
        assert page.run(VERDICTS) == [one for one in shown if one == word]
        assert page.run(COUNTED) == f"{shown.count(word)} of {len(shown)} cases"
    enter(page, "#filter select", "")
    wanted = everyone[len(everyone) // 2]
    enter(page, "#filter input", wanted.upper())
    # Of the others those whose details have it stay too: a name is part of other names.
    assert wanted in names(page)
    enter(page, "#filter input", "no case has these words")
    assert (names(page), page.run(COUNTED)) == ([], f"0 of {len(everyone)} cases")
    groups = "return [...document.querySelectorAll('section.group')]"
    assert page.run(f"{groups}.every(one => one.hidden)")
    enter(page, "#filter input", "")
    assert names(page) == everyone


def test_the_search_finds_names_and_questions(show):
    page = show("sortable")
    enter(page, "#filter input", "p10")
    assert names(page) == ["P10", "P101"]
    enter(page, "#filter input", "On which continent is country 1?")
    assert names(page) == ["P3"]


# The numbers of each column of each table, empty where a cell has none, and a click on a column's heading.
COLUMNS = """
return [...document.querySelectorAll('table.cases')].map(table =>
  [...table.tHead.rows[0].cells].map((head, column) => head.classList.contains('num')
    ? [...table.tBodies].map(body => body.rows[0].cells[column].textContent.trim()) : null))
"""
CLICK = "document.querySelectorAll('table.cases')[arguments[0]].tHead.rows[0].cells[arguments[1]]"
CLICK += ".querySelector('button').click()"


@pytest.mark.parametrize("name", ["500 cases", "three models"])
def test_every_column_of_numbers_sorts_by_value(name, show):
    page = show(name)
    first = names(page)
    columns = page.run(COLUMNS)
    for at, table in enumerate(columns):
        for column in [
            number for number, cells in enumerate(table) if cells is not None
        ]:
            for sign in (1, -1):
                page.run(CLICK, at, column)
                values = [
                    sign * float(match[0])
                    if (match := re.match(r"-?[\d.]+", cell))
                    else float("inf")
                    for cell in page.run(COLUMNS)[at][column]
                ]
                assert all(one <= other for one, other in pairwise(values))
            page.run(CLICK, at, column)
    assert names(page) == first


def test_names_sort_by_their_numbers_and_what_has_no_value_stays_below(show):
    page = show("sortable")
    orders = []
    heads = page.run(COLUMNS)[0]
    (accuracy,) = [at for at, cells in enumerate(heads) if cells and "0.900" in cells]
    for column in (accuracy, accuracy, accuracy, 0):
        page.run(CLICK, 0, column)
        orders.append(names(page))
    assert orders == [
        ["P101", "P10", "P3", "P2", "P1"],
        ["P2", "P3", "P10", "P101", "P1"],
        ["P3", "P1", "P2", "P10", "P101"],
        ["P1", "P2", "P3", "P10", "P101"],
    ]
    head = "return document.querySelector('th[aria-sort=ascending]').innerText.trim()"
    assert page.run(head) == "slice"


OPEN = "return [...document.querySelectorAll('tr.more')].filter(r => !r.hidden).map(r => r.id)"
TOP = "return document.getElementById(arguments[0]).getBoundingClientRect().top"


@pytest.mark.parametrize("name", ["500 cases", "three models"])
def test_a_link_opens_its_case_and_scrolls_to_it(name, show):
    page = show(name)
    ids = page.run(
        "return [...document.querySelectorAll('tbody.case')].map(one => one.id)"
    )
    for wanted in (ids[0], ids[-1]):
        page = show(name, f"#{wanted}")
        page.settle()
        assert page.run(OPEN) == [f"{wanted}.more"]
        assert page.run("return document.activeElement.closest('tbody').id") == wanted
        assert 0 <= page.run(TOP, wanted) < 900
    # Those of the list of reasons lead to their cases too, where they are none of an aggregate.
    links = page.run(
        "return [...document.querySelectorAll('.reasons a')].map(one => one.hash.slice(1))"
    )
    for link in [one for one in links if one in ids][1:2]:
        show(name).run(
            "document.querySelector('.reasons a[href=\"#' + arguments[0] + '\"]').click()",
            link,
        )
        page.settle()
        assert page.run(OPEN) == [f"{link}.more"]
        assert 0 <= page.run(TOP, link) < 900


def test_a_link_shows_its_case_even_where_it_is_filtered_out(show):
    page = show("sortable", "#monitor-P10")
    enter(page, "#filter input", "P101")
    page.run("location.hash = '#monitor-P3'")
    page.settle()
    assert page.run(OPEN) == ["monitor-P3.more", "monitor-P10.more"]
    assert len(names(page)) == 5
    nothing = show("sortable", "#%E0%A4%A")
    assert nothing.errors() == []
    assert nothing.run(OPEN) == []


# What can have the focus, in the order of the page, where it is shown.
REACHABLE = """
const all = document.querySelectorAll('a[href], button, input, select, summary, [tabindex="0"]');
const shown = [...all].filter(one => one.checkVisibility({visibilityProperty: true}));
return shown.map(one => one.outerHTML.slice(0, 99));
"""
WATCH = """
window.reached = [];
document.addEventListener('focusin', event => {
  const style = getComputedStyle(event.target);
  window.reached.push([event.target.outerHTML.slice(0, 99), style.outlineStyle !== 'none']);
});
"""


@pytest.mark.parametrize("name", ["red", "three models"])
def test_the_keyboard_is_enough(name, show):
    keys = pytest.importorskip("selenium.webdriver.common.keys").Keys
    page = show(name)
    page.run(WATCH)
    reachable = page.run(REACHABLE)[:25]
    page.press(keys.TAB * len(reachable))
    reached = page.run("return window.reached")
    assert [element for element, _ in reached] == reachable
    assert all(outlined for _, outlined in reached)
    page.run("document.querySelector('tbody.case button.open').focus()")
    opened = page.run("return document.activeElement.getAttribute('aria-controls')")
    page.press(keys.ENTER)
    assert page.run(OPEN) == [opened]
    assert (
        page.run("return document.activeElement.getAttribute('aria-expanded')")
        == "true"
    )
    page.press(keys.SPACE)
    assert page.run(OPEN) == []


# The rows of a long table are alike, and axe-core takes half a minute for those of 500 cases.
SHORTEN = """
for (const table of document.querySelectorAll('table')) {
  [...table.tBodies].slice(8).forEach(body => body.remove());
  for (const body of table.tBodies) { [...body.rows].slice(8).forEach(row => row.remove()) }
}
"""


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("name", ["red", "three models"])
def test_axe_finds_no_serious_fault(name, dark, show):
    page = show(name, dark=dark)
    page.run(UNFOLD + SHORTEN)
    assert page.faults() == []


def test_on_paper_it_is_light_and_tables_are_tables(show):
    page = show("red", width=718, dark=True)
    display = "return getComputedStyle(document.querySelector(arguments[0])).display"
    assert page.run(display, "table.cases td") != "table-cell"
    page.paper(dark=True)
    assert page.run("return getComputedStyle(document.body).color") == "rgb(28, 32, 38)"
    for cell in ("table.cases td", "table.facts td", "table.forest td"):
        assert page.run(display, cell) == "table-cell"
    assert page.run(display, "#filter") == page.run(display, "nav") == "none"
    assert page.run(WIDE) <= 0


def test_colours_follow_the_readers_setting(show):
    colour = "return getComputedStyle(document.body).backgroundColor"
    shades = [show("green", dark=dark).run(colour) for dark in (False, True)]
    assert shades == ["rgb(247, 247, 245)", "rgb(19, 22, 27)"]
