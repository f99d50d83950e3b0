"""What is shared with what, as a small tree that a person can read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from pytest_kbrel.reports.text import count, one_line

if TYPE_CHECKING:
    from pytest_kbrel.models.sharing import Group, Row

# Of each kind so many are shown, so that a tree fits on a page or two.
_GROUPS, _ROWS, _BRANCHES, _DEPTH = 8, 2, 5, 3
_TEXT = 60

Decode = Callable[[Sequence[int]], str]


def tree_lines(groups: Sequence[Group], decode: Decode) -> Iterator[str]:
    """Yield the groups, those with most rows first, their rows, and what branches in these."""
    order = sorted(groups, key=lambda group: -sum(len(row.tokens) for row in group.rows))
    for group in order[:_GROUPS]:
        rows = f"{count(len(group.rows), 'row')}, {count(_ends(group.rows), 'question')}"
        if group.prefix:
            yield f"{_said(group.prefix, decode)} fed once, then {rows}"
        else:
            yield f"no prefix of its own: {rows}"
        longest = sorted(group.rows, key=lambda row: -len(row.tokens))
        for row in longest[:_ROWS]:
            yield f"  row of {count(len(row.tokens), 'token')}, {count(_ends([row]), 'question')}"
            yield from _branches(row, -1, decode, "    ")
        yield from _more(len(group.rows) - _ROWS, "row", "  ")
    yield from _more(len(order) - _GROUPS, "group", "")


def _ends(rows: Sequence[Row]) -> int:
    return sum(len(row.places) for row in rows)


def _branches(row: Row, parent: int, decode: Decode, indent: str, depth: int = 1) -> Iterator[str]:
    """Yield what follows a place of the row, where only one token does together with what follows that."""
    starts = [place for place, of in enumerate(row.parents) if of == parent]
    for start in starts[:_BRANCHES]:
        end, following = start, _behind(row, start)
        stretch = [row.tokens[start]]
        while len(following) == 1:
            end = following[0]
            stretch.append(row.tokens[end])
            following = _behind(row, end)
        branching = f", then {len(following)} branches" if following else ""
        yield f"{indent}{_said(stretch, decode)}{branching}"
        if following and depth < _DEPTH:
            yield from _branches(row, end, decode, indent + "  ", depth + 1)
    yield from _more(len(starts) - _BRANCHES, "branch", indent)


def _behind(row: Row, place: int) -> list[int]:
    return [later for later, of in enumerate(row.parents) if of == place]


def _said(tokens: Sequence[int], decode: Decode) -> str:
    text = one_line(decode(tokens))
    if len(text) > _TEXT:
        text = f"{text[: _TEXT // 2]} … {text[-_TEXT // 2 :]}"
    return f'"{text}" ({count(len(tokens), "token")})'


def _more(number: int, noun: str, indent: str) -> Iterator[str]:
    if number > 0:
        plural = "es" if noun.endswith("ch") else "s"
        yield f"{indent}and {number} more {noun}{plural if number > 1 else ''}"
