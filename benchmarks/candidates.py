"""The gate's verdict on each candidate beside what an accuracy threshold alone would have said.

    make demo demo-candidates
    python benchmarks/candidates.py kbrel-report kbrel-report-*/ --into docs/candidates.md

Every folder holds the report of a run against the same baseline; the first is that of the baseline's own
model against itself. Nothing is measured here: verdicts, facts and figures are those of the reports. The
accuracy threshold is what tools without a paired test offer: a drop beyond a fixed tolerance is red.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pytest_kbrel.errors import KbrelError
from pytest_kbrel.reports.formatting import DASH, count, number, signed
from pytest_kbrel.reports.json_report import read_report

TOLERANCE = 0.02
START, END = "<!-- table: benchmarks/candidates.py -->", "<!-- end of table -->"
# What the recipe changed: recipe/build.py and pytest_kbrel/reference/derive.py.
CHANGED = {
    "reference": "nothing",
    "reference:overconfident": 'tuned to answer questions about invented things, never "unsure"',
    "reference:gullible": "tuned to say whatever the context says",
    "reference:int4": "hidden matrices rounded to 4 bits",
    "reference:int3": "hidden matrices rounded to 3 bits",
    "reference:pruned": "the smaller half of each hidden matrix set to zero",
}
PROBES = {
    "monitor": "MONITOR",
    "head_to_tail": "Head-to-Tail",
    "reliability": "Reliable KB",
    "pooled": "all together",
}
ACCURACY = ("head_to_tail", "monitor")
WORST = ("fail", "invalid", "not comparable", "no baseline", "inconclusive", "pass")

Report = Mapping[str, Any]


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table, or put it into a page between its markers; return the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument(
        "reference", type=Path, help="report of the baseline's model against itself"
    )
    parser.add_argument(
        "candidates", type=Path, nargs="+", help="reports of the candidates"
    )
    parser.add_argument(
        "--into", type=Path, help="a page with the markers of the table"
    )
    given = parser.parse_args(arguments)
    try:
        paths = dict.fromkeys(
            path
            for path in given.candidates
            if path.resolve() != given.reference.resolve()
        )
        reports = [read_report(path) for path in (given.reference, *paths)]
        text = "\n".join(table(reports))
        if given.into is None:
            print(text)
        else:
            put(text, given.into)
    except KbrelError as error:
        print(f"candidates: {error}", file=sys.stderr)
        return 2
    return 0


def table(reports: Sequence[Report]) -> list[str]:
    """Return the lines of table and list, in Markdown; the first report is the baseline's model."""
    base = reports[0]
    kinds = [
        kind for kind in PROBES if any(of_kind(report, kind) for report in reports)
    ]
    heads = [
        "candidate",
        "what its recipe changed",
        "the gate",
        *(PROBES[kind] for kind in kinds),
    ]
    heads += [
        "facts lost",
        "gained",
        *(f"{PROBES[name]} accuracy alone" for name in ACCURACY),
    ]
    heads += ["accuracy alone, slice by slice"]
    lines = [row(heads), "|" + "---|" * len(heads)]
    for report in reports:
        summary = report["summary"]
        cells = [
            f"`{spec(report)}`",
            CHANGED.get(spec(report), DASH),
            f"**{summary['verdict']}**",
        ]
        cells += [verdicts(of_kind(report, kind)) for kind in kinds]
        cells += [
            str(summary.get("facts_lost", DASH)),
            str(summary.get("facts_gained", DASH)),
        ]
        cells += [
            threshold(accuracy(base, name), accuracy(report, name)) for name in ACCURACY
        ]
        lines.append(row([*cells, by_slice(base, report)]))
    lines += ["", *(line for report in reports for line in told(report))]
    return lines


def row(cells: Sequence[str]) -> str:
    """Return one line of a table."""
    return "| " + " | ".join(cells) + " |"


def spec(report: Report) -> str:
    """Return what the model of a report is called."""
    return str((report["model"] or {}).get("spec", "no model"))


def of_kind(report: Report, kind: str) -> list[Report]:
    """Return the cases of one probe, those over several slices among them."""
    return [case for case in report["cases"] if case["probe"] == kind]


def verdicts(cases: Sequence[Report]) -> str:
    """Return how many cases have each verdict, worst first."""
    words = [case["verdict"] for case in cases]
    return (
        ", ".join(f"{words.count(word)} {word}" for word in WORST if word in words)
        or DASH
    )


def accuracy(report: Report, probe: str) -> float | None:
    """Return a probe's accuracy over all slices; of several suites there is none."""
    figure: float | None = report["aggregates"].get(probe, {}).get("accuracy")
    return figure


def threshold(before: float | None, after: float | None) -> str:
    """Return what a fixed tolerance says of an accuracy."""
    if before is None or after is None:
        return DASH
    moved = "no change" if after == before else signed(after - before)
    return f"{'red' if is_red(before, after) else 'green'} ({number(after)}, {moved})"


def is_red(before: float, after: float) -> bool:
    """Return True if an accuracy fell by more than the tolerance."""
    return before - after > TOLERANCE + 1e-9


def by_slice(base: Report, report: Report) -> str:
    """Return in how many slices a fixed tolerance is red."""
    pairs = [
        (before, after)
        for name, before in slices(base).items()
        if (after := slices(report).get(name)) is not None
    ]
    red = sum(is_red(before, after) for before, after in pairs)
    return f"{red} of {len(pairs)} red" if pairs else DASH


def slices(report: Report) -> dict[str, float]:
    """Return the accuracy of each single slice that has one, by the case's id."""
    values = {
        case["id"]: case["metrics"].get("accuracy", {}).get("value")
        for case in report["cases"]
        if case["probe"] in ACCURACY and not case["aggregate"]
    }
    return {name: value for name, value in values.items() if value is not None}


def told(report: Report) -> list[str]:
    """Return, for a candidate of which facts changed or cases failed, which they were."""
    failed = [
        case["id"].rpartition("::")[2]
        for case in report["cases"]
        if case["verdict"] == "fail"
    ]
    lost = report["summary"].get("headline", "")
    parts = [lost] if lost else []
    if failed:
        parts.append(
            f"{count(len(failed), 'case')} failed: {', '.join(f'`{name}`' for name in failed)}"
        )
    return [f"- `{spec(report)}`: {'. '.join(parts)}."] if parts else []


def put(text: str, page: Path) -> None:
    """Replace what stands between the markers of ``page``."""
    try:
        old = page.read_text(encoding="utf-8")
    except OSError as error:
        raise KbrelError(f"{page}: cannot be read: {error.strerror}") from None
    before, start, rest = old.partition(START)
    _, end, after = rest.partition(END)
    if not start or not end:
        raise KbrelError(
            f"{page}: needs the markers {START!r} and {END!r}, one after the other"
        )
    page.write_text(f"{before}{START}\n\n{text}\n\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    raise SystemExit(main())
