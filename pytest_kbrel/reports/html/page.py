"""``report.html`` of a run: what its templates are filled with, in at most 3 MB."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from itertools import islice
from pathlib import Path
from statistics import fmean
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from pytest_kbrel.records import (
    CaseResult,
    Change,
    Exchange,
    Failed,
    Generated,
    Outcome,
    Run,
    Scored,
    Table,
    record,
)
from pytest_kbrel.reports.changes import examples
from pytest_kbrel.reports.formatting import end_of, ordered, suites
from pytest_kbrel.reports.html.plots import Plot, Published, Scale, forest, plots
from pytest_kbrel.reports.reasons import failed_first
from pytest_kbrel.reports.rendering import filled, source
from pytest_kbrel.reports.view import View
from pytest_kbrel.store.lines import from_line, numbered

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


@cache
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


# So many facts of a case are looked up; fewer where the run has many cases.
_MOST_FACTS, _ALL_FACTS = 6, 1500
_LONGEST = 200
_MOST_PLACES = 40
_ROLE_KEY = b', "role": '


@record
class Asked:
    """One question about a fact: ``part`` says in which frame and context, ``right`` is None if unknown.

    ``probability`` is the mean probability of the tokens of the right answer where it was scored, and else
    that of the model's own answer.
    """

    part: str
    prompt: str
    answer: str
    probability: float | None
    right: bool | None


@dataclass
class WorstFact:
    """A fact that speaks against the model, what changed if it was lost, and what was asked about it."""

    row: Outcome
    columns: Sequence[str]
    change: Change | None = None
    exchanges: list[Exchange] = field(default_factory=list)

    @cached_property
    def asked(self) -> list[Asked]:
        """What was asked in each place, the score and the answer of one place as one."""
        places: dict[str, list[Exchange]] = {}
        for exchange in self.exchanges:
            place = exchange.ask.role.removesuffix("/score")
            # A wording's role is wording2/answer.
            if ":" in place:
                place = place.removesuffix("/answer")
            places.setdefault(place, []).append(exchange)
        first = islice(places.items(), _MOST_PLACES)
        return [self._in_place(place, of_place) for place, of_place in first]

    def _in_place(self, place: str, exchanges: Sequence[Exchange]) -> Asked:
        values = dict(zip(self.columns, self.row.values, strict=False))
        right, prompt = values.get(f"cell:{place}"), exchanges[0].ask.request.prompt
        if right is None:
            # Instructions and examples before the question are the same for all facts.
            prompt = prompt[max(0, prompt.rfind(self.row.question)) :]
        if place == "answer":
            right = float(self.row.label == "correct")
        answer, probability = "", None
        for response in (exchange.response for exchange in exchanges):
            if isinstance(response, Failed):
                answer, right = answer or f"failed: {response.error}", None
            elif isinstance(response, Generated):
                answer = response.text
                probability = probability or response.probability
            elif isinstance(response, Scored) and response.probabilities:
                probability = fmean(response.probabilities)
        return Asked(
            part=part_words(place),
            prompt=end_of(prompt, _LONGEST),
            answer=answer,
            probability=probability,
            right=None if right is None else bool(right),
        )


def worst_facts(view: View, responses: Path | None) -> dict[str, list[WorstFact]]:
    """Return the worst facts of each case by node id; without ``responses`` no questions are listed.

    Facts that were lost come first, then those that are wrong. Of the responses only the lines of these are
    read as JSON: a run may have hundreds of thousands.
    """
    most = max(1, min(_MOST_FACTS, _ALL_FACTS // max(1, len(view.slices))))
    worst = {case.nodeid: _chosen(case, most) for case in view.slices}
    if responses is None or not responses.is_file():
        return worst
    # As to_line begins a line.
    by_start = {
        json.dumps({"case": case, "fact": fact.row.fact_id})[:-1].encode("ascii"): fact
        for case, facts in worst.items()
        for fact in facts
    }
    with responses.open("rb") as stream:
        for _, line in numbered(stream, responses):
            fact = by_start.get(line[: line.find(_ROLE_KEY)])
            if fact is None:
                continue
            try:
                exchange = from_line(line)
            except ValueError:
                continue
            # Others are those of judges and of the model that is compared with.
            if not exchange.ask.to:
                fact.exchanges.append(exchange)
    return worst


def _chosen(case: CaseResult, most: int) -> list[WorstFact]:
    """Return a case's worst facts, with what changed of those that were lost."""
    columns, rows = case.table.columns, {row.fact_id: row for row in case.table.rows}
    lost = {of.fact_id: of for of in examples(case.lost) if of.fact_id in rows}
    by = next((name for name in ("term", "answer_prob") if name in columns), "")
    at = columns.index(by) if by else -1
    # The term of MONITOR is large for a fact whose probability depends on frame and context.
    others = [
        row
        for row in rows.values()
        if by == "term" or row.label in ("wrong", "outdated")
    ]
    others.sort(key=lambda row: (-row.values[at] if by else 0.0, row.fact_id))
    chosen = dict.fromkeys((*lost, *(row.fact_id for row in others)))
    return [
        WorstFact(rows[fact], columns, lost.get(fact)) for fact in islice(chosen, most)
    ]


def part_words(place: str) -> str:
    """Return in words where a question stands: ``frame 2``, ``after wrong context 1``, ``options 3``."""
    kind, _, at = place.partition(":")
    number = int(at) + 1 if at.isdecimal() else 1
    framed = f", frame {number}" if number > 1 else ""
    if kind.startswith("negative"):
        return f"after wrong context {kind.removeprefix('negative')}{framed}"
    words = {
        "positive": f"after the right answer{framed}",
        "none": f"frame {number}",
        "choice": f"options {number}",
    }
    return words.get(kind, place)
