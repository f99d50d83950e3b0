"""``report.html`` of a run: what its template is filled with, and how much of that fits into 3 MB."""

from __future__ import annotations

import base64
import functools
import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.resources import files
from itertools import chain, count
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from pytest_kbrel.catalogue.metrics import CHANGE_METRICS, METRICS, SHOWN_ONLY
from pytest_kbrel.records import CaseResult, MetricValue, Run, Table
from pytest_kbrel.reports import formatting, phrases, reasons, view
from pytest_kbrel.reports.changes import (
    changed_facts,
    changes_headline,
    fact_cells,
    fact_columns,
)
from pytest_kbrel.reports.html.cases import worst_facts
from pytest_kbrel.reports.html.distributions import fact_plots
from pytest_kbrel.reports.html.plots import Published, figure_plots, forest
from pytest_kbrel.reports.html.svg import Scale

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

_LONGEST = 160
_LONGEST_PROMPT = 4000
# The page in bytes, and to which part of their room its lists are cut until it is no larger.
LARGEST = 3_000_000
_PARTS_OF_ROOM = (1.0, 0.85, 0.6, 0.3, 0.1)
# What the details of all cases may take, and which part of it is for those that passed in any case.
_DETAILS, _LEAST_PASSING = 1_500_000, 400_000
_METRICS = {**METRICS, **CHANGE_METRICS, **SHOWN_ONLY}


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
    plots = [*figure_plots(run, published), *fact_plots(run, baseline)]
    worst = worst_facts(run, responses)
    return fitted("report", _data(run) | {"plots": plots, "worst_facts": worst})


def fitted(template: str, data: dict[str, Any]) -> str:
    """Return a page filled with ``data``, its lists cut so that it stays below :data:`LARGEST` bytes."""
    page, text = environment().get_template(f"{template}.html.j2"), ""
    for part in _PARTS_OF_ROOM:
        text = page.render(
            data | {"size_limit": lambda size, part=part: SizeLimit(int(size * part))}
        )
        if len(text.encode("utf-8", "replace")) < LARGEST:
            break
    return text


@functools.cache
def environment() -> Environment:
    """Return the environment of the templates: it escapes all text, and they see the filters below."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    made = Environment(
        loader=FunctionLoader(_dense), autoescape=True, undefined=StrictUndefined
    )
    made.filters |= {
        "at": lambda value: f"{value:.1f}".removesuffix(".0"),
        "bound": formatting.bound,
        "line": lambda words, limit=_LONGEST: formatting.one_line(words, limit),
        "lines": _prompt_lines,
        "number": formatting.number,
        "p_value": formatting.p_value,
        "count_of": formatting.count,
        "signed": formatting.signed,
        "answer": formatting.answer_text,
        "end": formatting.end_of,
        "expected": formatting.expected_text,
        "reason": reasons.case_reason,
        "meaning": _meaning,
    }
    made.globals |= {
        "columns_of": fact_columns,
        "fact_cells": fact_cells,
        "difference": formatting.difference,
        "interval": formatting.interval,
        "metric": view.metric,
        "names_of": _names,
        "phrases": phrases,
        "view": view,
        "scale": Scale,
        "size_limit": SizeLimit,
        # One that stays as it is where the others are made smaller.
        "fixed_limit": SizeLimit,
        "scale_of": scale_of,
    }
    return made


def _source(name: str) -> str:
    folder = files("pytest_kbrel.reports.html") / "templates"
    return (folder / name).read_text(encoding="utf-8")


def _dense(name: str) -> str:
    """Return a template without line breaks and their indentation; a blank line is one line break."""
    return re.sub(
        r"\n\s*", lambda gap: "\n" if gap[0].count("\n") > 1 else "", _source(name)
    )


@functools.cache
def script() -> tuple[Markup, Markup]:
    """Return the script of the page, and the source of it that its policy allows, by its digest."""
    from markupsafe import Markup

    text = _source("page.js")
    digest = base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode(
        "ascii"
    )
    return Markup(text), Markup(f"'sha256-{digest}'")


class SizeLimit:
    """Number of bytes (``remaining``) that lists on the page may still take."""

    def __init__(self, remaining: int) -> None:
        self.remaining = remaining

    def take(
        self,
        render: Callable[..., str],
        items: Iterable[Any],
        *more: Any,
        least: int = 1,
    ) -> list[str]:
        """Return ``render(item, *more)`` of the first items that fit, but ``least`` of them at least.

        Once an item did not fit, nothing fits any more: rendering what is left out takes time.
        """
        parts: list[str] = []
        for item in items:
            if len(parts) >= least and self.remaining <= 0:
                break
            part = render(item, *more)
            size = len(part.encode("utf-8", "replace"))
            if len(parts) >= least and size > self.remaining:
                self.remaining = min(0, self.remaining)
                break
            parts.append(part)
            self.remaining -= size
        return parts


# The sections that a case's name must not take.
_SECTIONS = (
    "why",
    "facts",
    "about",
    "overall",
    "plots",
    "cases",
    "all",
    "models",
    "correlations",
)


def anchors(run: Run) -> dict[str, str]:
    """Return the id of each case on the page by node id: ``monitor-P37``; with several suites its name too.

    Only ASCII letters, digits and ``._-`` are in it: it stands in links.
    """
    by_case, taken = dict[str, str](), set(_SECTIONS)
    short = len({case.suite for case in run.cases}) == 1
    for case in view.ordered(run):
        called = case.id if short else case.nodeid
        name = re.sub("[^A-Za-z0-9._-]+", "-", called[:_LONGEST]).strip("-") or "case"
        numbers = (f"{name}-{number}" for number in count(2))
        by_case[case.nodeid] = next(
            one for one in chain([name], numbers) if one not in taken
        )
        taken.add(by_case[case.nodeid])
    return by_case


def _data(run: Run) -> dict[str, Any]:
    """Return what the templates show of ``run``; an empty list has no section."""
    slices, ordered, groups = view.slices(run), view.ordered(run), view.groups(run)
    return {
        "run": run,
        "script": script(),
        "names": view.names(run),
        "anchors": anchors(run),
        "deciding": reasons.deciding(run),
        "model": view.model_name(run),
        "sentence": changes_headline(run),
        "problems": [*filter(None, [phrases.partial_note(run)]), *sorted(run.problems)],
        "aggregates": view.aggregates(run),
        "moved": changed_facts(run),
        "waived": [case for case in ordered if case.waiver is not None],
        "groups": [
            (
                group,
                [(name, view.better(group.cases, name)) for name in group.metrics],
                sorted(group.labelled, key=lambda one: reasons.failed_first(one[0])),
            )
            for group in sorted(
                groups,
                key=lambda group: min(map(reasons.failed_first, group.cases))[0],
            )
        ],
        "words": [word for word, cases in view.verdict_counts(run).items() if cases],
        "forest": forest(run),
        "room": _room(slices),
        "measured": [
            (group, _names(case.metrics for case in group.cases))
            for group in groups
            if any(case.metrics for case in group.cases)
        ],
        "checked": [case for case in ordered if case.integrity],
    }


def _meaning(metric: str) -> str:
    """Return the first sentence on what a metric is; empty for a name that is none of a metric."""
    about = _METRICS[metric].about if metric in _METRICS else ""
    return about.partition(". ")[0].removesuffix(".")


def _room(cases: Sequence[CaseResult]) -> dict[str, int]:
    """Return the bytes of details: of the facts of one case and of all cases, by whether they passed."""
    passed = sum(case.verdict == "pass" for case in cases)
    failed = len(cases) - passed
    all_failing = min(_DETAILS - _LEAST_PASSING, 60_000 * failed)
    return {
        "failing": min(40_000, 600_000 // max(1, failed)),
        "passing": min(12_000, 350_000 // max(1, passed)),
        "all_failing": all_failing,
        "all_passing": _DETAILS - all_failing,
    }


def _names(records: Iterable[Iterable[Any]]) -> list[str]:
    """Return the names of the metrics or shares of several cases, each once."""
    return list(dict.fromkeys(record.name for of_case in records for record in of_case))


def scale_of(value: MetricValue) -> Scale:
    """Return the scale of a value's bar in percent: 0 to 1, or from -1, and further only where it is."""
    known = (value.value, value.low, value.high, value.baseline)
    ends = [end for end in known if end is not None]
    lowest = min([0.0, *ends])
    start = min(lowest, -1.0) if lowest < 0 else 0.0
    return Scale(start, max([1.0, *ends]), 0, 100)


def _prompt_lines(prompt: str) -> str:
    lines = prompt[:_LONGEST_PROMPT].split("\n")
    return "\n".join(map(formatting.one_line, lines)) + (
        "\n…" if len(prompt) > _LONGEST_PROMPT else ""
    )
