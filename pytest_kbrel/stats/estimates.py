"""What the statistics give: estimates and differences, and the words for what cannot be had."""

from __future__ import annotations

from dataclasses import dataclass

LEVEL = 0.95
FAMILY_LEVEL = 0.05
POWER = 0.8

# A standard error below this share of the figures themselves is rounding, not spread.
ROUNDING = 1e-12

UNDEFINED = "undefined"
TOO_FEW = "n < 2"
FRAGILE = "undefined without one of the facts"
FLAT = "no spread between the facts"
UNCHANGED = "unchanged in every fact"
SIGN_TEST = "all facts of a case moved by the same amount: p by the sign test"


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A figure with its standard error and two-sided 95 % interval; ``None`` where these cannot be had.

    ``note`` says why something is missing.
    """

    value: float | None = None
    se: float | None = None
    df: float = 0.0
    low: float | None = None
    high: float | None = None
    n: int = 0
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flips:
    """How ``n`` facts went from before to after: ``down`` from 1 to 0, ``up`` from 0 to 1, ``both`` at 1."""

    n: int
    down: int
    up: int
    both: int

    @property
    def mirrored(self) -> Flips:
        """The same with before and after exchanged."""
        return Flips(n=self.n, down=self.up, up=self.down, both=self.both)


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Candidate - baseline on the same facts.

    ``p`` is one-sided (worse), ``mde`` the drop that would be found with 80 % power. ``flips`` are the counts
    behind a difference of two rates, ``down`` being worse; ``None`` where it is no such difference.
    """

    estimate: Estimate
    p: float | None = None
    mde: float | None = None
    flips: Flips | None = None
