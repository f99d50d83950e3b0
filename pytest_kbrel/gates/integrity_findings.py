"""One finding about responses: a share, held against its limit, and the words for it."""

from __future__ import annotations

from pytest_kbrel.records import Integrity, Share, Table, record

# A share that is exactly the limit is within it, whatever the product of limit and total rounds to.
ROUNDING = 1e-9


@record
class Finding:
    """A share, and what is said of it where it is beyond its limit."""

    share: Share
    says: str


def most(
    limits: Integrity, name: str, value: int, total: int, found: str, remedy: str = "", *, fewest: int = 0
) -> Finding:
    """Hold a share against the limit ``name``, above which it breaks; never with fewer than ``fewest``."""
    limit: float = getattr(limits, name)
    broken = total >= fewest and value > limit * total + ROUNDING
    allowed = f"at most {percent(limit)}" if limit else "none"
    return Finding(
        share=Share(name=name, value=value, total=total, limit=limit, broken=broken),
        says=f"{found}; allowed: {allowed}{f': {remedy}' if remedy else ''}",
    )


def column(table: Table, name: str) -> list[float]:
    """Return the values of one column, one a fact; none where the table lacks it."""
    if name not in table.columns:
        return []
    place = table.columns.index(name)
    return [row.values[place] for row in table.rows]


def percent(share: float) -> str:
    """Return a share (0..1) in percent, to three digits."""
    return f"{100 * share:.3g}%"


def count(n: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun."""
    return f"{n} {noun if n == 1 else plural or noun + 's'}"
