"""The page in a browser: it opens from disk, sorts, filters, follows links, and is usable without a mouse.

Chromium and its driver are needed, and the group ``browser`` of pyproject.toml. The test of accessibility
needs axe-core as well: ``npm install axe-core`` in the project's folder, or its script's path in AXE_CORE.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_kbrel.records import Run
from pytest_kbrel.reports.html.page import report_html
from tests.reports import conftest as runs
from tests.reports.conftest import case, metric
from tests.reports.test_html_plots import with_facts

webdriver = pytest.importorskip("selenium.webdriver")
BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
DRIVER = shutil.which("chromedriver")
AXE = Path(os.environ.get("AXE_CORE", Path(__file__).parents[2] / "node_modules/axe-core/axe.min.js"))
QUIET = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (BROWSER and DRIVER), reason="needs Chromium and chromedriver"),
]
Show = Callable[..., Any]


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    options = webdriver.ChromeOptions()
    options.binary_location = str(BROWSER)
    for flag in (*QUIET, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(str(DRIVER)))
    yield driver
    driver.quit()


@pytest.fixture
def show(browser: Any, tmp_path: Path) -> Show:
    def opened(run: Run, *, link: str = "", width: int = 1200, dark: bool = False) -> Any:
        path = tmp_path / "report.html"
        path.write_text(report_html(run), encoding="utf-8")
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        browser.get("about:blank")
        for log in ("browser", "performance"):
            browser.get_log(log)
        browser.get(path.as_uri() + link)
        return browser

    return opened


def green() -> Run:
    return replace(runs.small(), cases=runs.small().cases[1:2])


def undecided() -> Run:
    return replace(runs.small(), cases=runs.small().cases[1:3])


def invalid() -> Run:
    broken = case("monitor", "P1", "invalid", (), errors=("no answers",))
    return replace(runs.small(), cases=(broken,), complete=False, problems=("a worker died",))


def sortable() -> Run:
    values = {"P10": 0.5, "P2": 0.9, "P101": 0.25, "P1": None}
    cases = tuple(case("monitor", name, "pass", (metric("accuracy", at),)) for name, at in values.items())
    failed = replace(case("monitor", "P3", "fail", (metric("accuracy", 0.75),)), lost=(runs.change(1),))
    return replace(runs.small(), cases=(*cases, failed))


PAGES: dict[str, Callable[[], Run]] = {
    "green": green,
    "red": lambda: with_facts(runs.rich()),
    "undecided": undecided,
    "invalid": invalid,
    "hostile": runs.hostile,
    "500 cases": lambda: runs.many(500),
}


@pytest.mark.parametrize("name", PAGES)
def test_it_opens_from_disk_without_an_error_or_a_request(name: str, show: Show) -> None:
    page = show(PAGES[name]())
    assert page.get_log("browser") == []
    events = [json.loads(entry["message"])["message"] for entry in page.get_log("performance")]
    urls = [
        event["params"]["request"]["url"]
        for event in events
        if event["method"] == "Network.requestWillBeSent"
    ]
    assert [url for url in urls if not url.startswith("file:")] == []
    assert len(urls) <= 1
    assert page.execute_script("return performance.getEntriesByType('resource').length") == 0
    # The page's own script has run.
    assert page.execute_script(
        "return !document.getElementById('filter') || !document.getElementById('filter').hidden"
    )


def names(page: Any) -> list[str]:
    shown: list[str] = page.execute_script(
        "const buttons = document.querySelectorAll('tbody.case:not([hidden]) button.open');"
        "return [...buttons].map(button => button.textContent.trim())"
    )
    return shown


def press(page: Any, column: str) -> None:
    page.execute_script(
        "const buttons = [...document.querySelectorAll('button.sort')];"
        "buttons.find(button => button.textContent.startsWith(arguments[0])).click()",
        column,
    )


def test_columns_sort_by_number_and_names_by_their_numbers(show: Show) -> None:
    page = show(sortable())
    first = ["P3", "P1", "P2", "P10", "P101"]
    assert names(page) == first
    press(page, "accuracy")
    assert names(page) == ["P101", "P10", "P3", "P2", "P1"]
    press(page, "accuracy")
    # What has no value stays below.
    assert names(page) == ["P2", "P3", "P10", "P101", "P1"]
    press(page, "accuracy")
    assert names(page) == first
    press(page, "slice")
    assert names(page) == ["P1", "P2", "P3", "P10", "P101"]
    state = "return document.querySelector('th[aria-sort=ascending]').textContent.trim()"
    assert page.execute_script(state) == "slice"


def enter(page: Any, selector: str, value: str) -> None:
    page.execute_script(
        "const field = document.querySelector(arguments[0]); field.value = arguments[1];"
        "field.dispatchEvent(new Event('input', {bubbles: true}))",
        selector,
        value,
    )


def test_cases_are_found_by_name_verdict_and_question(show: Show) -> None:
    page = show(sortable())
    said = "return document.querySelector('#filter output').textContent"
    assert page.execute_script(said) == "5 of 5 cases"
    enter(page, "#filter input", "p10")
    assert names(page) == ["P10", "P101"]
    enter(page, "#filter input", "On which continent is country 1?")
    assert names(page) == ["P3"]
    enter(page, "#filter input", "")
    enter(page, "#filter select", "fail")
    assert (names(page), page.execute_script(said)) == (["P3"], "1 of 5 cases")
    enter(page, "#filter input", "P2")
    assert names(page) == []


OPEN = "return [...document.querySelectorAll('tr.more')].filter(r => !r.hidden).map(r => r.id)"


def test_a_link_opens_its_case_even_where_it_is_filtered_out(show: Show) -> None:
    page = show(sortable(), link="#monitor-P10")
    assert page.execute_script(OPEN) == ["monitor-P10.more"]
    assert page.execute_script("return document.activeElement.textContent.trim()") == "P10"
    enter(page, "#filter input", "P101")
    page.execute_script("location.hash = '#monitor-P3'")
    page.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(arguments[0]))")
    assert page.execute_script(OPEN) == ["monitor-P3.more", "monitor-P10.more"]
    assert len(names(page)) == 5
    nothing = show(sortable(), link="#%E0%A4%A")
    assert nothing.get_log("browser") == []
    assert nothing.execute_script(OPEN) == []


def test_the_keyboard_is_enough(show: Show) -> None:
    keys = pytest.importorskip("selenium.webdriver.common.keys").Keys
    page = show(sortable())
    reached = []
    for _ in range(40):
        page.switch_to.active_element.send_keys(keys.TAB)
        element = page.switch_to.active_element
        reached.append(element.tag_name)
        if element.get_attribute("aria-controls") == "monitor-P3.more":
            break
    assert {"a", "input", "select", "button"} <= set(reached)
    assert page.execute_script("return getComputedStyle(document.activeElement).outlineStyle") != "none"
    page.switch_to.active_element.send_keys(keys.ENTER)
    assert page.execute_script(OPEN) == ["monitor-P3.more"]
    page.switch_to.active_element.send_keys(keys.SPACE)
    assert page.execute_script(OPEN) == []


@pytest.mark.parametrize("name", ["red", "hostile"])
def test_a_telephone_needs_no_scrolling_sideways(name: str, show: Show) -> None:
    page = show(PAGES[name](), link="#monitor-P30", width=360)
    wide = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert page.execute_script(wide) <= 0


def test_colours_follow_the_readers_setting(show: Show) -> None:
    colour = "return getComputedStyle(document.body).backgroundColor"
    shades = [show(green(), dark=dark).execute_script(colour) for dark in (False, True)]
    assert shades == ["rgb(247, 247, 245)", "rgb(19, 22, 27)"]


@pytest.mark.skipif(not AXE.is_file(), reason="needs axe-core from npm")
@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("name", ["green", "red", "undecided", "invalid", "hostile"])
def test_axe_finds_no_serious_fault(name: str, dark: bool, show: Show) -> None:
    page = show(PAGES[name](), dark=dark, link="#monitor-P30")
    page.execute_cdp_cmd("Page.setBypassCSP", {"enabled": True})
    page.execute_script("document.querySelectorAll('details').forEach(one => { one.open = true })")
    page.execute_script(AXE.read_text(encoding="utf-8"))
    faults = page.execute_async_script(
        "axe.run(document, {resultTypes: ['violations']}).then(r => arguments[0](r.violations))"
    )
    serious = [
        (fault["id"], fault["impact"], [node["html"][:120] for node in fault["nodes"][:3]])
        for fault in faults
        if fault["impact"] in ("serious", "critical")
    ]
    assert serious == []


def test_a_pages_error_would_be_noticed(show: Show) -> None:
    page = show(green())
    page.execute_script("setTimeout(() => { throw new Error('x') })")
    page.execute_async_script("setTimeout(arguments[0], 50)")
    assert len(page.get_log("browser")) == 1
