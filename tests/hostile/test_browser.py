"""A browser shows hostile text in the report's page and does nothing that it says."""

from __future__ import annotations

import http.server
import shutil
import subprocess
import threading
from collections import Counter
from html.parser import HTMLParser

import pytest

from pytest_kbrel.reports.html.page import report_html
from tests.reports import conftest as runs

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
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


def shown(page, profile) -> str:
    """Return the document that the browser made of a page, after its scripts and events."""
    quiet = ("--no-first-run", "--disable-background-networking", "--disable-component-update")
    process = subprocess.run(
        [
            *(str(BROWSER), "--headless", "--no-sandbox", *quiet, "--disable-gpu", "--disable-sync"),
            *(f"--user-data-dir={profile}", "--virtual-time-budget=2000", "--dump-dom", page.as_uri()),
        ],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return process.stdout


@pytest.mark.slow
@pytest.mark.skipif(BROWSER is None, reason="needs Chromium or Chrome")
def test_no_attack_runs_or_loads_anything(tmp_path, monkeypatch, asked):
    monkeypatch.setattr(runs, "HOSTILE", tuple(text.replace("URL", asked[0]) for text in ATTACKS))
    page = tmp_path / "report.html"
    page.write_text(report_html(runs.hostile()), encoding="utf-8")
    dom = shown(page, tmp_path / "profile")
    assert "<title>taken" not in dom
    assert asked[1:] == []
    assert tags(dom) == tags(page.read_text(encoding="utf-8"))


@pytest.mark.slow
@pytest.mark.skipif(BROWSER is None, reason="needs Chromium or Chrome")
def test_the_browser_would_do_what_an_attack_says(tmp_path, asked):
    page = tmp_path / "page.html"
    body = f"<title>a</title>{ATTACKS[0]}<img src={asked[0]}/taken>"
    page.write_text(f"<!doctype html><html><head></head><body>{body}</body></html>", encoding="utf-8")
    assert "<title>taken" in shown(page, tmp_path / "profile")
    assert asked[1:] == ["/taken"]
