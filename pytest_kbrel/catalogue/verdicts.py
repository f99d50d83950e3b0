"""The verdicts on gates, cases and runs: which is worse, which fail a run, and how a terminal shows them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

from pytest_kbrel.records import Judgement, record


@record
class VerdictKind:
    """A verdict: when it makes the run fail (exit code 1), and its markup in pytest's terminal.

    It fails always, ``compared``: only where a blessed run or a model was given to compare with, or
    ``strict``: only where the user wants it (``--kb-inconclusive=fail``). ``shown`` is what the
    terminal calls it: the words that pytest has for its own outcomes.
    """

    name: Judgement
    shown: str
    fails: Literal["always", "compared", "strict", "never"]
    markup: dict[str, bool]


VERDICTS: Mapping[Judgement, VerdictKind] = {
    verdict.name: verdict
    for verdict in (
        # Worst first.
        VerdictKind(
            name="fail",
            shown="failed",
            fails="always",
            markup={"red": True, "bold": True},
        ),
        VerdictKind(
            name="invalid",
            shown="invalid",
            fails="always",
            markup={"red": True, "bold": True},
        ),
        VerdictKind(
            name="not run",
            shown="not run",
            fails="always",
            markup={"yellow": True, "bold": True},
        ),
        VerdictKind(
            name="not comparable",
            shown="not comparable",
            fails="always",
            markup={"yellow": True, "bold": True},
        ),
        VerdictKind(
            name="no baseline",
            shown="no baseline",
            fails="compared",
            markup={"yellow": True},
        ),
        VerdictKind(
            name="inconclusive",
            shown="inconclusive",
            fails="strict",
            markup={"yellow": True},
        ),
        VerdictKind(name="pass", shown="passed", fails="never", markup={"green": True}),
    )
}
SEVERITY: tuple[Judgement, ...] = tuple(VERDICTS)


def worst(verdicts: Iterable[Judgement]) -> Judgement:
    """Return the worst of the verdicts; ``pass`` where there is none."""
    return min(verdicts, key=SEVERITY.index, default="pass")


def failing(*, compared: bool, strict: bool = False) -> set[Judgement]:
    """Return the verdicts that make a run fail."""
    when = {"always", "compared" if compared else "", "strict" if strict else ""}
    return {name for name, verdict in VERDICTS.items() if verdict.fails in when}
