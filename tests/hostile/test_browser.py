"""A browser shows hostile text in the report's page and does nothing that it says."""

from __future__ import annotations

import http.server
import threading
from collections import Counter
from html.parser import HTMLParser

import pytest

from pytest_kbrel.reports.html.page import report_html
from tests.browser import needs_browser
from tests.reports import conftest as runs

pytestmark = [pytest.mark.slow, needs_browser]
# Each would put the word into the title, or ask the server for the file, if the browser did what it says.
ATTACKS = (
    "<script>document.title='taken'</script>",
    "<img src=x onerror=\"document.title='taken'\">",
    "</style><script>document.title='taken'</script>",
    "</title></head><body onload=document.title='taken'>",
    "</pre></td></table><svg onload=document.title='taken'>",
    '"><script>document.title="taken"</script>',
    "' onmouseover='document.title=1' style='position:fixed;inset:0",
    "<meta http-equiv=refresh content='0;url=URL/taken'>",
    "<link rel=stylesheet href=URL/taken>",
    "<iframe src=URL/taken></iframe>",
    "<base href=URL><a href=javascript:document.title='taken'>x</a>",
    "<details open ontoggle=document.title='taken'>",
    "<!--<script>",
    "]]><script>document.title='taken'</script>",
    "&lt;script&gt;document.title='taken'&lt;/script&gt;",
    "\u2028</script\u2029><script>document.title='taken'</script>",
    "<template><style>*{background:url(URL/taken)}</style></template>",
)


@pytest.fixture
def asked():
    """What a server on loopback is asked for, its address first."""
    paths: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            paths.append(self.path)
            self.send_error(404)

        def log_message(self, format: str, *args: object) -> None:
            """Print nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        paths.append(f"http://127.0.0.1:{server.server_port}")
        yield paths
        server.shutdown()


def tags(text: str) -> Counter[str]:
    """Return how often each tag is opened, but for the bodies of tables, which browsers add."""
    counts: Counter[str] = Counter()

    class Reader(HTMLParser):
        def handle_starttag(self, tag: str, attrs: object) -> None:
            counts[tag] += tag != "tbody"

    Reader().feed(text)
    return +counts


def test_no_attack_runs_or_loads_anything(tmp_path, monkeypatch, asked, browser):
    monkeypatch.setattr(
        runs, "HOSTILE", tuple(text.replace("URL", asked[0]) for text in ATTACKS)
    )
    page = tmp_path / "report.html"
    page.write_text(report_html(runs.hostile()), encoding="utf-8")
    browser.open(page)
    # What is folded would load its pictures when it is opened, and a pointer would pass over it.
    browser.run(
        "document.querySelectorAll('details').forEach(one => { one.open = true })"
    )
    browser.run(
        "document.querySelectorAll('button.open').forEach(one => { one.click() })"
    )
    browser.run(
        "document.querySelectorAll('[onmouseover]').forEach(one => { one.onmouseover() })"
    )
    browser.settle()
    assert "taken" not in browser.driver.title.partition("–")[0]
    assert browser.driver.current_url == page.as_uri()
    assert [url for url in browser.requests() if url != page.as_uri()] == []
    assert browser.errors() == []
    assert asked[1:] == []
    browser.open(page)
    assert tags(browser.driver.page_source) == tags(page.read_text(encoding="utf-8"))


def test_the_browser_would_do_what_an_attack_says(tmp_path, asked, browser):
    page = tmp_path / "page.html"
    body = f"<title>a</title>{ATTACKS[0]}<img src={asked[0]}/taken>"
    page.write_text(
        f"<!doctype html><html><head></head><body>{body}</body></html>",
        encoding="utf-8",
    )
    browser.open(page)
    assert browser.driver.title == "taken"
    assert [url for url in browser.requests() if url != page.as_uri()] == [
        f"{asked[0]}/taken"
    ]
    assert asked[1:] == ["/taken"]
