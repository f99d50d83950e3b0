"""The verdicts on gates, cases and runs: which is worse, which fail a run, and how a terminal shows them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

from pytest_kbrel.records import Judgement, record

Fails = Literal["always", "compared", "strict", "never"]


@record
class VerdictKind:
    """A verdict: when it makes the run fail (exit code 1), and its markup in pytest's terminal.

    It fails always, ``compared``: only where a blessed run or a model was given to compare with, or
    ``strict``: only where the user wants it (``--kb-inconclusive=fail``). ``shown`` is what the
    terminal calls it: the words that pytest has for its own outcomes.
    """

    name: Judgement
    shown: str
    fails: Fails
    markup: dict[str, bool]


# Worst first.
_TABLE: tuple[tuple[Judgement, str, Fails, str], ...] = (
    ("fail", "failed", "always", "red bold"),
    ("invalid", "invalid", "always", "red bold"),
    ("not run", "not run", "always", "yellow bold"),
    ("not comparable", "not comparable", "always", "yellow bold"),
    ("no baseline", "no baseline", "compared", "yellow"),
    ("inconclusive", "inconclusive", "strict", "yellow"),
    ("pass", "passed", "never", "green"),
)
VERDICTS: Mapping[Judgement, VerdictKind] = {
    name: VerdictKind(
        name=name,
        shown=shown,
        fails=fails,
        markup=dict.fromkeys(markup.split(), True),
    )
    for name, shown, fails, markup in _TABLE
}
SEVERITY: tuple[Judgement, ...] = tuple(VERDICTS)


def worst(verdicts: Iterable[Judgement]) -> Judgement:
    """Return the worst of the verdicts; ``pass`` where there is none."""
    return min(verdicts, key=SEVERITY.index, default="pass")


def failing(*, compared: bool, strict: bool = False) -> set[Judgement]:
    """Return the verdicts that make a run fail."""
    when = {"always", "compared" if compared else "", "strict" if strict else ""}
    return {name for name, verdict in VERDICTS.items() if verdict.fails in when}
