"""What moved the answers about the worst facts, token by token, in words."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_kbrel.records import CaseResult
from pytest_kbrel.reports.formatting import one_line, signed

SHOWN_TOKENS = 3
_BLANKS = {" ": "␣", "\n": "↵", "": "∅"}


def attribution_lines(case: CaseResult) -> Iterator[str]:
    """Yield, for each attribution, its prompt and the tokens that moved the answer most, in plain words."""
    for found in case.attributions:
        strongest = sorted(zip(found.tokens, found.scores, strict=True), key=lambda pair: -abs(pair[1]))
        told = ", ".join(f"{shown_token(token)} {signed(score)}" for token, score in strongest[:SHOWN_TOKENS])
        yield f"{found.target} ({where(found.role)}, {one_line(found.prompt, 160)}): {told}"


def where(role: str) -> str:
    """Say in words in which cell a prompt stands."""
    return "after a wrong context" if role.startswith("negative") else "without context"


def shown_token(token: str) -> str:
    """Return a token without the blanks around it, cut; a sign for one of blanks alone."""
    stripped = one_line(token.strip(), 60)
    return stripped or _BLANKS.get(token[:1], "␣")
