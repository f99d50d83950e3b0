"""Published figures to check metric code against, and what is made from them.

``python -m tests.golden.publish`` writes ``baselines/published`` anew from these tables.
"""

from __future__ import annotations

import csv
from pathlib import Path


def rows_of(name: str) -> list[dict[str, str]]:
    """Return the rows of one of the CSV files beside this module, without its comment line."""
    lines = Path(__file__).with_name(name).read_text(encoding="utf-8").splitlines()
    return list(csv.DictReader(line for line in lines if not line.startswith("#")))


def figures_of(name: str, table: int) -> list[tuple[dict[str, str], float]]:
    """Return the rows of one table of a paper, each with its figure, corrected where it is a misprint."""
    return [
        (row, float(row.get("corrected") or row["value"]))
        for row in rows_of(name)
        if row["table"] == str(table)
    ]
