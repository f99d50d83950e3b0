"""What moved the answers about the worst facts: prompts whose every token carries its score."""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from itertools import groupby

from pytest_kbrel.records import Attribution, CaseResult, Run
from pytest_kbrel.reports import selection
from pytest_kbrel.reports.html_parts import said, text
from pytest_kbrel.reports.text import count, number, one_line, signed

SHOWN_TOKENS = 3
# What all of them may take together, so that a page stays below a megabyte.
_ROOM = 300_000
# The strongest colour: darker, and the letters on it would be hard to read.
_DARKEST = 0.45
_BLANKS = {" ": "␣", "\n": "↵", "": "∅"}

_LEGEND = (
    '<p class="soft small">Each token of a prompt with its share, in nats, in the log-probability of the '
    'right answer: <span class="tok up" style="--w:.45">above zero</span> it made the answer more likely, '
    '<span class="tok down" style="--w:.45">below zero</span> less. Integrated gradients; the shares add up '
    "to what the whole prompt changed, but for the error stated.</p>"
)


def attribution_page(run: Run) -> Iterator[str]:
    """Yield the section of the page: nothing where nothing was attributed."""
    cases = [case for case in selection.slices(run) if case.attributions]
    if not cases:
        return
    yield f"<h2>What moved the answers about the worst facts</h2>{_LEGEND}"
    names, room = selection.names(run), _ROOM
    for case in cases:
        blocks: list[str] = []
        for _, group in groupby(case.attributions, key=lambda found: found.fact_id):
            block = _fact(list(group))
            room -= len(block.encode("utf-8", "replace"))
            if room < 0:
                break
            blocks.append(block)
        left = len({found.fact_id for found in case.attributions}) - len(blocks)
        more = f"<p>{count(left, 'more fact')} in report.json.</p>" if left else ""
        yield (
            f'<details><summary><span class="name">{text(names[case.nodeid])}</span></summary>'
            f"{''.join(blocks)}{more}</details>"
        )


def attribution_lines(case: CaseResult) -> Iterator[str]:
    """Yield, for each attribution, its prompt and the tokens that moved the answer most, in plain words."""
    for found in case.attributions:
        strongest = sorted(zip(found.tokens, found.scores, strict=True), key=lambda pair: -abs(pair[1]))
        told = ", ".join(f"{_shown(token)} {signed(score)}" for token, score in strongest[:SHOWN_TOKENS])
        yield f"{found.target} ({where(found.role)}, {one_line(found.prompt, 160)}): {told}"


def where(role: str) -> str:
    """Say in words in which cell a prompt stands."""
    return "after a wrong context" if role.startswith("negative") else "without context"


def _fact(group: Sequence[Attribution]) -> str:
    prompts = "".join(map(_prompt, group))
    fact = f'<span class="soft small">{text(group[0].fact_id)}</span>'
    return f"<h3>{said(group[0].target)} {fact}</h3>{prompts}"


def _prompt(found: Attribution) -> str:
    strongest = max((abs(score) for score in found.scores), default=0.0) or 1.0
    tokens = "".join(
        _token(token, score, abs(score) / strongest)
        for token, score in zip(found.tokens, found.scores, strict=True)
    )
    return (
        f'<p class="small"><span class="soft">{where(found.role)}: log-probability of the answer '
        f"{number(found.log_probability)}, error {number(found.error)}</span></p>"
        f'<p class="tokens">{tokens}</p>'
    )


def _token(token: str, score: float, share: float) -> str:
    tone = "down" if score < 0 else "up"
    weight = f"{_DARKEST * share:.2f}"
    return (
        f'<span class="tok {tone}" style="--w:{weight}"><bdi>{html.escape(_shown(token), quote=True)}</bdi>'
        f"<small>{signed(score, 2) if score else number(score, 2)}</small></span>"
    )


def _shown(token: str) -> str:
    stripped = one_line(token.strip(), 60)
    return stripped or _BLANKS.get(token[:1], "␣")
