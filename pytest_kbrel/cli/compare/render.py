"""Text and JSON of ``kbrel compare``: models, their figures side by side, and runs paired fact by fact."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from pytest_kbrel import __version__
from pytest_kbrel.catalogue.verdicts import SEVERITY
from pytest_kbrel.cli.compare.models import ComparedModel, FigureTable, run_settings
from pytest_kbrel.cli.compare.pairing import PairedRun
from pytest_kbrel.printing import format_table, pad, wrap
from pytest_kbrel.records import NOT_KNOWN, CaseResult, Change, MetricValue
from pytest_kbrel.reports import phrases
from pytest_kbrel.reports.cases import case_title
from pytest_kbrel.reports.changes import changed_facts, examples
from pytest_kbrel.reports.comparison import Scatter
from pytest_kbrel.reports.formatting import (
    answer_text,
    count,
    difference,
    expected_text,
    number,
    one_line,
    p_value,
    signed,
)
from pytest_kbrel.reports.view import key_figures
from pytest_kbrel.serialization import to_wire

SCHEMA_VERSION = 1
SHOWN_FACTS = 5
_CELL = 7
_FIGURE_KEYS = (
    "better",
    "baseline",
    "value",
    "delta",
    "delta_low",
    "delta_high",
    "p",
    "paired",
    "note",
)
_CASE_KEYS = (
    *("aggregate", "verdict", "n", "waiver", "expired", "gates"),
    *("lost", "gained", "unmatched", "errors"),
)
# The least widths of a row: name, baseline, candidate, difference, its interval, p.
_WIDTHS = (0, 8, 7, 7, 19, 11)


def report_json(
    models: Sequence[ComparedModel],
    tables: Sequence[FigureTable],
    scatters: Sequence[Scatter],
    pairs: Sequence[PairedRun],
) -> str:
    """Return everything as the text of a JSON file."""
    wire = {
        "schema_version": SCHEMA_VERSION,
        "kbrel_version": __version__,
        "models": [{"name": model.name, "about": model.about} for model in models],
        "cases": [
            {
                "id": table.case,
                "figures": dict(table.rows),
                "differing": table.differing,
            }
            for table in tables
        ],
        "correlations": [
            {"within": one.within, **to_wire(of)}
            for one in scatters
            for of in (one.pearson, one.spearman)
        ],
        "paired": paired_json(pairs),
    }
    return (
        json.dumps(to_wire(wire), indent=1, ensure_ascii=True, allow_nan=False) + "\n"
    )


def model_lines(models: Sequence[ComparedModel]) -> Iterator[str]:
    """Yield the number and name of each model, with the settings of its run that differ."""
    for at, (model, settings) in enumerate(
        zip(models, run_settings(models), strict=True), start=1
    ):
        yield f"{at:>3}  {one_line(model.name)}  ({one_line(model.about, 120)})"
        if settings:
            yield f"     {one_line(settings)}"


def figure_lines(
    models: Sequence[ComparedModel],
    tables: Sequence[FigureTable],
    scatters: Sequence[Scatter],
    width: int,
) -> Iterator[str]:
    """Yield the tables of figures and the correlations over the models."""
    for table in tables:
        yield ""
        yield from _table(table, len(models), width)
    yield ""
    yield from _correlated(scatters)


def _table(table: FigureTable, models: int, width: int) -> Iterator[str]:
    """Yield a table, in as many parts as the width demands; with two models also their difference."""
    first = max(len(name) for name, _ in table.rows) + 2
    a_line = max(1, (width - first) // (_CELL + 1))
    yield one_line(table.title)
    if table.differing:
        yield f"  not alike: {one_line(table.differing)}"
    for start in range(0, models, a_line):
        shown = range(start, min(start + a_line, models))
        heads = [str(model + 1) for model in shown] + (["2 - 1"] if models == 2 else [])
        rows = [["", *heads]]
        for name, values in table.rows:
            cells = [number(values[model]) for model in shown]
            if models == 2:
                a, b = values
                cells.append(signed(None if a is None or b is None else b - a))
            rows.append([f"  {one_line(name)}", *cells])
        yield from format_table(
            rows, least=(0, _CELL, *(_CELL + 1 for _ in heads[1:])), gap=""
        )


def coefficients(scatter: Scatter) -> str:
    """Return both coefficients of correlation with their p-values."""
    both = [
        f"{one.method} {number(one.r)} ({p_value(one.p)})"
        for one in (scatter.pearson, scatter.spearman)
    ]
    return f"{', '.join(both)}, n = {scatter.pearson.n}"


def _correlated(scatters: Sequence[Scatter]) -> Iterator[str]:
    yield "Correlations over models"
    lines = [one for one in scatters if one.pearson.r is not None]
    width = max((len(one.within) for one in lines), default=0)
    for one in lines:
        pearson = one.pearson
        note = f" ({pearson.note})" if pearson.note else ""
        head = f"{pad(one_line(one.within), width)}  {pearson.x}, {pearson.y}"
        yield f"  {head}: {coefficients(one)}{note}"
    # Of two models every pair of every case has the same to say.
    reasons = Counter(
        one.pearson.note.partition(";")[0] for one in scatters if one.pearson.r is None
    )
    for reason, times in reasons.items():
        yield f"  {count(times, 'pair')} of figures: {reason}"
    if not scatters:
        yield "  none: no two models have two figures that the papers correlate"


def paired_lines(pairs: Sequence[PairedRun], width: int) -> Iterator[str]:
    """Yield the lines about each candidate."""
    for paired in pairs:
        run = paired.run
        yield ""
        how = f"paired {paired.unit} by {paired.unit}"
        yield f"{paired.number} against 1, {how}: {one_line(paired.name)}"
        if run.differences:
            yield from wrap(
                f"differs: {'; '.join(map(one_line, run.differences))}", width, "  "
            )
        for case in run.cases:
            yield ""
            yield from _case_lines(paired, case, width)
        yield ""
        yield from _changes(paired, width)
    if pairs:
        yield ""
        yield from wrap(
            "p is one-sided (worse); Holm: corrected for all figures of all these cases; fail of a gate: "
            "corrected for the cases of all candidates (Šidák)",
            width,
            "",
        )


def summary_lines(pairs: Sequence[PairedRun]) -> Iterator[str]:
    """Yield what became of each candidate, a line each."""
    if pairs:
        yield ""
    for paired in pairs:
        yield f"{paired.number} against 1: {_verdicts(paired)}; {_changed(paired)}"


def _changed(paired: PairedRun) -> str:
    changes = changed_facts(paired.run)
    return f"{count(len(changes.lost), paired.unit)} lost, {len(changes.gained)} gained"


def paired_json(pairs: Sequence[PairedRun]) -> list[dict[str, Any]]:
    """Return every candidate's cases as JSON's own types."""
    return [
        {
            "baseline": paired.run.baseline,
            "candidate": paired.name,
            "differences": list(paired.run.differences),
            "fails": paired.fails,
            "cases": [_case_json(paired, case) for case in paired.run.cases],
        }
        for paired in pairs
    ]


def _case_json(paired: PairedRun, case: CaseResult) -> dict[str, Any]:
    figures = {
        value.name: {
            **{key: getattr(value, key) for key in _FIGURE_KEYS},
            "p_holm": paired.p_holm.get((case.nodeid, value.name)),
        }
        for value in case.metrics
    }
    wire: dict[str, Any] = to_wire(
        {
            "id": case.nodeid,
            **{key: getattr(case, key) for key in _CASE_KEYS},
            "obstacle": paired.obstacles.get(case.nodeid, ""),
            "figures": figures,
        }
    )
    return wire


def _case_lines(paired: PairedRun, case: CaseResult, width: int) -> Iterator[str]:
    """Yield a case's figures that tell most or have gates, then what stands in the way, then its gates."""
    shown = {of.name for of in key_figures(case)}
    shown |= {gate.metric for gate in case.gates}
    values = [value for value in case.metrics if value.name in shown]
    facts = max((value.paired for value in values), default=0)
    judged = case.gates or case.expired or case.verdict == "invalid"
    verdict = f": {phrases.verdict_words(case, paired.run)}" if judged else ""
    yield f"{one_line(case_title(case))}, {count(facts, paired.unit)} paired{verdict}"
    for error in case.errors if case.verdict == "invalid" else ():
        yield from wrap(one_line(error, 300), width)
    if waiver := phrases.waiver(case, paired.run):
        yield from wrap(waiver, width)
    if values:
        number_ = str(paired.number)
        heads = ("", "1", number_, f"{number_} - 1", " 95 % interval", "", "")
        rows = [heads, *(_figure(paired, case, value) for value in values)]
        yield from format_table(rows, left=(0, 4, 5, 6), least=_WIDTHS, gap=" ")
    obstacle = paired.obstacles.get(case.nodeid, "")
    if obstacle:
        yield from wrap(one_line(obstacle, 600), width)
    for gate in case.gates:
        rule = f"{phrases.gate_name(gate)}: {gate.verdict}"
        repeated = (
            gate.verdict == "pass"
            or case.verdict == "invalid"
            or f"{gate.verdict}: " in obstacle
        )
        yield from wrap(
            rule if repeated else f"{rule}: {one_line(gate.reason, 600)}", width
        )


def _figure(paired: PairedRun, case: CaseResult, value: MetricValue) -> tuple[str, ...]:
    # Where facts have no partner, the difference is over those that have one.
    now = value.value
    if value.baseline is not None and value.delta is not None:
        now = value.baseline + value.delta
    ends = (
        difference(value.delta_low, value.delta_high) if value.delta is not None else ""
    )
    holm = paired.p_holm.get((case.nodeid, value.name))
    return (
        f"  {one_line(value.name)}",
        number(value.baseline),
        number(now),
        signed(value.delta),
        f" {ends}",
        f" {p_value(value.p)}",
        ""
        if holm is None
        else f" Holm {p_value(holm).removeprefix('p ').removeprefix('= ')}",
    )


def _changes(paired: PairedRun, width: int) -> Iterator[str]:
    changes = changed_facts(paired.run)
    yield _changed(paired)
    for word, facts in (("lost", changes.lost), ("gained", changes.gained)):
        for change in examples(facts, SHOWN_FACTS):
            yield from wrap(f"{word}: {_change(change)}", width, "  ")
        if len(facts) > SHOWN_FACTS:
            yield f"  {word}: and {len(facts) - SHOWN_FACTS} more (--json has all)"


def _change(change: Change) -> str:
    expected = (
        "" if change.expected == NOT_KNOWN else f" {expected_text(change.expected, 60)}"
    )
    return (
        f"{one_line(change.question, 120)}{expected}: "
        f"{answer_text(change.old_answer, 60)} -> {answer_text(change.new_answer, 60)}"
    )


def _verdicts(paired: PairedRun) -> str:
    gates = [gate.verdict for case in paired.run.cases for gate in case.gates]
    counts = [f"{gates.count(word)} {word}" for word in SEVERITY if word in gates]
    return f"gates: {', '.join(counts) or 'none are known'}"
