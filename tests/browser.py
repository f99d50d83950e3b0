"""Headless Chromium for the tests of pages: started once a process, and asked what a page did."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

# Chrome first: where both are installed, as on GitHub's runners, chromedriver is made for Chrome.
_PROGRAM = next(
    filter(None, map(shutil.which, ("google-chrome", "chromium", "chromium-browser"))),
    None,
)
_DRIVER = shutil.which("chromedriver")
_FLAGS = (
    *(
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--no-first-run",
    ),
    *(
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--disable-quic",
    ),
)
# Not where other packages are: pytest would import trio, which selenium needs, at each of its starts (by a
# plugin of anyio), and the tests start it many times.
_PACKAGES = Path(sys.prefix, "browser")
_AXE = _PACKAGES / "axe_core_python" / "axe.min.js"
_ABSENT = [
    *(
        []
        if (_PACKAGES / "selenium").is_dir() and _AXE.is_file()
        else ["selenium and axe-core (make test)"]
    ),
    *(["Chromium (Debian: apt-get install chromium)"] if _PROGRAM is None else []),
    *(
        ["chromedriver (Debian: apt-get install chromium-driver)"]
        if _DRIVER is None
        else []
    ),
]
needs_browser = pytest.mark.skipif(
    bool(_ABSENT),
    reason=f"pages are opened in a browser only with: {', '.join(_ABSENT)}",
)


class Browser:
    """Chromium without a window, with its profile in ``folder``; nothing is downloaded for it."""

    def __init__(self, folder: Path) -> None:
        sys.path.append(str(_PACKAGES))
        from selenium import webdriver

        options = webdriver.ChromeOptions()
        options.binary_location = str(_PROGRAM)
        for flag in (*_FLAGS, f"--user-data-dir={folder}"):
            options.add_argument(flag)
        options.set_capability(
            "goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"}
        )
        self.driver = webdriver.Chrome(
            options=options, service=webdriver.ChromeService(str(_DRIVER))
        )
        # A long page keeps axe-core busy for half a minute where other tests run beside it.
        self.driver.set_script_timeout(180)

    def close(self) -> None:
        """End the browser and its driver."""
        self.driver.quit()

    def open(
        self, page: Path, link: str = "", *, width: int = 1200, dark: bool = False
    ) -> None:
        """Open a file in a window of ``width`` pixels, light or dark, and forget what was noted."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.driver.execute_cdp_cmd(
            "Emulation.setEmulatedMedia", {"media": "", "features": [scheme]}
        )
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        self.driver.get("about:blank")
        for log in ("browser", "performance"):
            self.driver.get_log(log)
        self.driver.get(page.as_uri() + link)

    def paper(self, *, dark: bool = False) -> None:
        """Show the page as it is printed, to a reader whose screen is light or dark."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.driver.execute_cdp_cmd(
            "Emulation.setEmulatedMedia", {"media": "print", "features": [scheme]}
        )

    def run(self, script: str, *arguments: object) -> Any:
        """Return what a script returns that is run in the page."""
        return self.driver.execute_script(script, *arguments)

    def settle(self) -> None:
        """Wait until the page has drawn what was done last."""
        self.driver.execute_async_script(
            "requestAnimationFrame(() => requestAnimationFrame(arguments[0]))"
        )

    def press(self, *keys: str) -> None:
        """Press keys one after the other, wherever the focus is."""
        for key in keys:
            self.driver.switch_to.active_element.send_keys(key)

    def errors(self) -> Sequence[str]:
        """Return what the console has shown since the page was opened, or since it was asked last."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def requests(self) -> Sequence[str]:
        """Return the addresses that were asked for since then, the page's own first."""
        events: Iterable[dict[str, Any]] = (
            json.loads(entry["message"])["message"]
            for entry in self.driver.get_log("performance")
        )
        return [
            event["params"]["request"]["url"]
            for event in events
            if event["method"] == "Network.requestWillBeSent"
        ]

    def faults(self) -> Sequence[tuple[str, str, list[str]]]:
        """Return what axe-core finds against WCAG 2 A and AA that is serious: rule, impact, elements."""
        self.run(_AXE.read_text(encoding="utf-8"))
        chosen = {
            "resultTypes": ["violations"],
            "runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"],
        }
        violations = self.driver.execute_async_script(
            "axe.run(document, arguments[0]).then(result => arguments[1](result.violations))",
            chosen,
        )
        return [
            (
                fault["id"],
                fault["impact"],
                [node["html"][:160] for node in fault["nodes"][:5]],
            )
            for fault in violations
            if fault["impact"] in ("serious", "critical")
        ]
