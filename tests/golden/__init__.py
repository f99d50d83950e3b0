"""Published figures to check metric code against."""

from __future__ import annotations

import csv
from pathlib import Path


def rows_of(name: str) -> list[dict[str, str]]:
    """Return the rows of one of the CSV files beside this module, without its comment line."""
    lines = Path(__file__).with_name(name).read_text(encoding="utf-8").splitlines()
    return list(csv.DictReader(line for line in lines if not line.startswith("#")))
