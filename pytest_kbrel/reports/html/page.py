"""``report.html`` of a run: what its templates are filled with, in at most 3 MB."""

from __future__ import annotations

import base64
import functools
import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from pytest_kbrel.records import Run, Table
from pytest_kbrel.reports.cases import ordered, suites
from pytest_kbrel.reports.html.plots import Published, forest, plots
from pytest_kbrel.reports.html.svg import Plot, Scale
from pytest_kbrel.reports.html.worst_facts import worst_facts
from pytest_kbrel.reports.reasons import failed_first
from pytest_kbrel.reports.rendering import filled, source
from pytest_kbrel.reports.view import View

if TYPE_CHECKING:
    from markupsafe import Markup

# The page in bytes.
LARGEST = 3_000_000
_LONGEST_NAME = 160
# The sections that a case's name must not take.
_SECTIONS = [
    "why",
    "facts",
    "about",
    "overall",
    "plots",
    "cases",
    "all",
    "models",
    "correlations",
]


def report_html(
    run: Run,
    *,
    baseline: Mapping[str, Table] = MappingProxyType({}),
    responses: Path | None = None,
    published: Published = MappingProxyType({}),
) -> str:
    """Return the page of ``run``, self-contained; everything a model or a file says is escaped.

    ``baseline`` are the outcomes of the baseline by node id, ``responses`` is the file with the recorded
    responses of the run, ``published`` are models of a paper; what is missing has no plot and no list. Lists
    are cut so that the page stays below :data:`LARGEST` bytes.
    """
    view = View(run)
    tables = [
        (group, sorted(group.labelled, key=lambda of: failed_first(of[0])))
        for group in view.groups
    ]
    tables.sort(key=lambda table: failed_first(table[1][0][0])[0])
    data = {
        "run": run,
        "view": view,
        "anchors": anchors(run),
        "groups": tables,
        "forest": forest(view),
        "plots": plots(view, baseline, published),
        "worst_facts": worst_facts(view, responses),
    }
    return fitted("report", data)


def fitted(template: str, data: dict[str, Any]) -> str:
    """Return a page filled with ``data``, its lists cut so that it stays below :data:`LARGEST` bytes."""
    shared = {"script": script(), "plot": Plot, "scale": Scale}
    return filled(f"{template}.html.j2", shared | data, LARGEST)


@functools.cache
def script() -> tuple[Markup, Markup]:
    """Return the script of the page, and the source of it that its policy allows, by its digest."""
    from markupsafe import Markup

    text = source("page.js")
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return Markup(text), Markup(f"'sha256-{digest}'")


def anchors(run: Run) -> dict[str, str]:
    """Return the id of each case on the page by node id: ``monitor-P37``; with several suites its name too.

    Only ASCII letters, digits and ``._-`` are in it: it stands in links.
    """
    by_case: dict[str, str] = {}
    taken = set(_SECTIONS)
    for case in ordered(run):
        called = case.id if len(suites(run)) < 2 else case.nodeid
        name = re.sub("[^A-Za-z0-9._-]+", "-", called[:_LONGEST_NAME]).strip("-")
        while not name or name in taken:
            name = f"{name or 'case'}-{len(taken)}"
        taken.add(name)
        by_case[case.nodeid] = name
    return by_case
