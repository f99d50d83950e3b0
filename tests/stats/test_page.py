from __future__ import annotations

import pytest

from tests.stats.page_tables import ROOT, TABLES

TAKE_SECONDS = ("simulated_alarms", "simulated_steps_told", "betting", "facts_needed")
PAGES = [ROOT / "docs" / name for name in ("statistics.md", "gates.md")]
PAGE = " ".join(" ".join(page.read_text(encoding="utf-8") for page in PAGES).split())


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow if name in TAKE_SECONDS else ())
        for name in TABLES
    ],
)
def test_the_figures_of_the_page_are_those_that_are_computed(name: str) -> None:
    rows = list(TABLES[name]())
    assert rows
    assert [row for row in rows if row not in PAGE] == [], (
        "print them: python -m tests.stats.page_tables"
    )
