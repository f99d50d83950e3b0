"""Bounds of every number that a user states in a file, a flag or an argument.

Every reader of such a number asks this table, so that a bound stands in one place. Upper bounds are far
beyond what anybody uses: they stop a slip of the finger, or a hostile file, before it costs
hours or all memory.

This module is loaded in every pytest run of every project that has the plugin installed.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

# What a message shows of a value.
_SHOWN = 60
_WHOLE = re.compile(r"-?[0-9]{1,30}")
_NUMBER = re.compile(
    r"[-+]?([0-9]{1,30}([.][0-9]{0,30})?|[.][0-9]{1,30})([eE][-+]?[0-9]{1,3})?"
)


@dataclass(frozen=True, slots=True)
class Bounds:
    """The least and the most that a number may be, both included unless ``above`` leaves the least out."""

    least: float
    most: float
    whole: bool = True
    above: bool = False

    def __contains__(self, value: object) -> bool:
        """Return True if ``value`` is such a number; ``True`` and ``False`` are none."""
        if isinstance(value, bool) or not isinstance(
            value, int if self.whole else (int, float)
        ):
            return False
        # Of NaN no comparison holds.
        return value <= self.most and (
            value > self.least if self.above else value >= self.least
        )

    def __str__(self) -> str:
        """Return in words what is allowed."""
        kind = "a whole number" if self.whole else "a number"
        start = (
            f"above {_plain(self.least)} and up"
            if self.above
            else f"from {_plain(self.least)}"
        )
        return f"{kind} {start} to {_plain(self.most)}"

    def integer(self, text: str) -> int:
        """Read a whole number in ASCII digits; raises ``ValueError`` with what was found and is allowed."""
        value = int(text) if _WHOLE.fullmatch(text) else None
        if value is None or value not in self:
            raise ValueError(f"found {shown(text)}; allowed: {self}")
        return value

    def number(self, text: str) -> float:
        """Read a number in ASCII digits; raises ``ValueError`` with what was found and is allowed."""
        value = float(text) if _NUMBER.fullmatch(text) else None
        if value is None or value not in self:
            raise ValueError(f"found {shown(text)}; allowed: {self}")
        # Minus zero is zero, but would be printed with its sign.
        return value + 0.0


def shown(value: object) -> str:
    """Return a value as a message shows it: ``repr``, of long texts and numbers only the beginning."""
    if isinstance(value, int) and abs(value) >= 10**_SHOWN:
        # Python refuses to print thousands of digits.
        return f"a number of about {round(value.bit_length() * math.log10(2)):,} digits"
    text = value if isinstance(value, str) else repr(value)
    cut = text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."
    return repr(cut) if isinstance(value, str) else cut


def _plain(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) or value >= 1000 else f"{value:g}"


# In suites, and where a flag means the same.
SEED = Bounds(0, 2**63 - 1)
LIMIT = Bounds(1, 1_000_000_000)
SHARE = Bounds(0, 1, whole=False, above=True)
SHARE_OR_NONE = Bounds(0, 1, whole=False)
COUNT = Bounds(1, 1_000)
NEW_TOKENS = Bounds(1, 1_000_000)
DISTRACTORS = Bounds(4, 1_000)
# Each of 20 kinds of them has some 900 different questions.
UNSEEN = Bounds(1, 10_000)
SHOTS = Bounds(0, 10_000)
# The most of a figure that has no upper end of its own.
FIGURE = 1_000_000_000_000
POPULARITY = Bounds(0, 1e300, whole=False)

# Flags of pytest.
FLAG_SEED = Bounds(-(2**63), 2**63 - 1)
BATCH = Bounds(1, 1_000_000_000)
FACTS = Bounds(0, 1_000_000)
TOP_K = Bounds(0, 64)
SHARDS = Bounds(1, 10_000)
PRICE = Bounds(0, 1_000_000, whole=False)


# Arguments of models.
TOKENS = Bounds(1, 100_000_000)
TOKENS_TOTAL = Bounds(1, 1_000_000_000_000)
COST = Bounds(0, 1_000_000_000, whole=False, above=True)
TOKEN_ID = Bounds(0, 1_000_000_000)
REQUESTS = Bounds(1, 10_000)
SECONDS = Bounds(0, 86_400, whole=False, above=True)
RETRIES = Bounds(0, 1_000)
DEVICES = Bounds(1, 1_024)
SEQUENCES = Bounds(1, 1_000_000)
DELAY = Bounds(0, 3_600, whole=False)

# Options of the command kbrel.
YEAR = Bounds(0, 9_999)
CAP = Bounds(1, 999_999)


def limit_value(text: str) -> int | float:
    """Read a number of facts (at least 1) or a fraction (above 0, at most 1); else ``ValueError``."""
    try:
        return LIMIT.integer(text) if text.isdecimal() else SHARE.number(text)
    except ValueError:
        raise ValueError(
            f"found {shown(text)}; allowed: {LIMIT}, of facts, or a fraction above 0 and up to 1"
        ) from None
