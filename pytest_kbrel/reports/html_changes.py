"""The facts lost and gained on the page: all of a run at a glance, those of a case in a table."""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence

from pytest_kbrel.records import Change, Run
from pytest_kbrel.reports import changed
from pytest_kbrel.reports.html_parts import left_out, said, text, within
from pytest_kbrel.reports.text import count, spoken, wanted

SHOWN_FACTS = 50
SHOWN_OVERALL = 10
SHOWN_RELATIONS = 12
_LONGEST = 160
_ANCHOR = (
    "<abbr title=\"mean probability of the right answer's tokens after a prompt that states it (MONITOR's "
    'primary anchor)">anchor</abbr>'
)


def changes_page(run: Run) -> Iterator[str]:
    """Yield the section on all lost and gained facts: nothing where none changed."""
    found = changed.moved(run)
    if not found.lost and not found.gained:
        return
    yield '<h2>Facts lost and gained</h2><div class="parts">'
    yield _parts("bucket", found.buckets)
    yield _parts("relation", found.relations)
    yield "</div>"
    for changes, what in ((found.lost, "lost"), (found.gained, "gained")):
        if changes:
            more = ", those that moved furthest" if len(changes) > SHOWN_OVERALL else ""
            rows = [_row(change, *_known(changes)) for change in changes[:SHOWN_OVERALL]]
            yield f'<h3>{count(len(changes), "fact")} {what}{more}</h3><div class="panel">'
            yield f"{_table(rows, *_known(changes))}</div>"


def _parts(kind: str, parts: Sequence[changed.Part]) -> str:
    if not parts:
        return ""
    rows = "".join(
        f'<tr><th scope="row">{text(part.name)}</th><td class="num" data-of="lost">{part.lost}</td>'
        f'<td class="num" data-of="gained">{part.gained}</td></tr>'
        for part in parts[:SHOWN_RELATIONS]
    )
    more = left_out(max(0, len(parts) - SHOWN_RELATIONS), kind)
    head = "".join(f'<th scope="col" class="num">{name}</th>' for name in ("lost", "gained"))
    return (
        f'<div class="panel"><table class="small"><thead><tr><th scope="col">{kind}</th>{head}</tr></thead>'
        f"<tbody>{rows}</tbody></table>{more}</div>"
    )


def case_changes(changes: Sequence[Change], what: str, room: int) -> tuple[str, int]:
    """Return the table of a case's lost or gained facts, and how many bytes its rows take of ``room``.

    At least one fact is shown, whatever the room; the title says how many are left out.
    """
    if not changes:
        return "", 0
    known = _known(changes)
    rows = within((_row(change, *known) for change in changes), room, SHOWN_FACTS)
    taken = sum(len(row.encode("utf-8", "replace")) for row in rows)
    left = f", the first {len(rows)} of them; all are in report.json" if len(rows) < len(changes) else ""
    return f"<h3>{count(len(changes), 'fact')} {what}{left}</h3>{_table(rows, *known)}", taken


def _known(changes: Sequence[Change]) -> tuple[bool, bool]:
    """Tell whether the anchor of any of these facts is known, and where any is from."""
    return any(map(changed.probability, changes)), any(map(changed.place, changes))


def _row(change: Change, anchor: bool, origin: bool) -> str:
    moved = f'<td class="moved" data-of="anchor">{html.escape(changed.probability(change))}</td>'
    place = f'<td data-of="from">{text(changed.place(change))}</td>'
    return (
        f'<tr><td>{said(change.question)}</td><td data-of="expected">{said(wanted(change.expected))}</td>'
        f'<td data-of="old answer">{said(spoken(change.old_answer, _LONGEST))}</td>'
        f'<td class="new" data-of="new answer">{said(spoken(change.new_answer, _LONGEST))}</td>'
        f"{moved if anchor else ''}"
        f"{place if origin else ''}</tr>"
    )


def _table(rows: Sequence[str], anchor: bool, origin: bool) -> str:
    names = ["question", "expected", "old answer", "new answer"]
    names += ([_ANCHOR] if anchor else []) + (["from"] if origin else [])
    head = "".join(f'<th scope="col">{name}</th>' for name in names)
    body = "".join(rows)
    return f'<table class="stack facts small"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
