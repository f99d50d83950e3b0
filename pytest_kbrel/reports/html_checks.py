"""What the page says of the ground under the figures: waivers, soundness of responses, facts left out."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_kbrel.records import CaseResult, Run, Share
from pytest_kbrel.reports import notes, selection
from pytest_kbrel.reports.html_parts import left_out, text, within, word

SHOWN_IDS = 20
# What the two lists may take, so that a page of thousands of cases stays below five megabytes.
_WAIVER_BYTES = 200_000
_SHARE_BYTES = 400_000


def waivers_page(run: Run) -> Iterator[str]:
    """Yield the section on waivers: nothing where no case has one."""
    cases = [case for case in selection.ordered(run) if case.waiver is not None]
    if not cases:
        return
    names = selection.names(run)
    every = (
        f'<li>{word(case.verdict)} <span class="name">{text(names[case.nodeid])}</span>: '
        f"{text(notes.waiver(case, run), 600)}</li>"
        for case in cases
    )
    items = within(every, _WAIVER_BYTES)
    yield f"<h2>Waivers</h2><ul>{''.join(items)}</ul>{left_out(len(cases) - len(items), 'waiver')}"


def checks_page(run: Run) -> Iterator[str]:
    """Yield the table of what share of each case's responses was sound: nothing where nothing was counted."""
    cases = [case for case in selection.ordered(run) if case.integrity]
    if not cases:
        return
    names = selection.names(run)
    columns = list(dict.fromkeys(share.name for case in cases for share in case.integrity))
    head = "".join(f'<th scope="col" class="num">{text(name)}</th>' for name in columns)
    shares = [{share.name: share for share in case.integrity} for case in cases]
    every = (
        f'<tr><th scope="row">{text(names[case.nodeid])}</th>'
        f"{''.join(_cell(found.get(name)) for name in columns)}</tr>"
        for case, found in zip(cases, shares, strict=True)
    )
    rows = within(every, _SHARE_BYTES)
    yield (
        "<details><summary>Soundness of responses</summary>"
        '<p class="soft small">How many of a case\'s facts or replies, and what the suite allows. Beyond it '
        "a case is invalid. below_random: informative answers right, beside the share of random answers.</p>"
        f'<div class="wide"><table class="small"><thead><tr><th scope="col">case</th>{head}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>{left_out(len(cases) - len(rows), 'case')}</details>"
    )


def case_notes(case: CaseResult, run: Run) -> str:
    """Return what to know of a case beside its gates: waiver, soundness, facts left out, settings."""
    items = [notes.waiver(case, run)] if case.waiver is not None else []
    items += [f"responses: {notes.share(share)}" for share in notes.noteworthy(case)]
    for why, ids in notes.unmatched_lists(case.unmatched):
        shown = ", ".join(ids[:SHOWN_IDS])
        more = f" and {len(ids) - SHOWN_IDS} more, in report.json" if len(ids) > SHOWN_IDS else ""
        items.append(f"{len(ids)} compared with nothing, {why}: {shown}{more}")
    listed = "".join(f"<li>{text(item, 600)}</li>" for item in items)
    settings = ", ".join(f"{name} {value}" for name, value in case.settings)
    asked = f'<p class="soft small">asked with {text(settings, 300)}</p>' if settings else ""
    return (f"<ul>{listed}</ul>" if listed else "") + asked


def _cell(share: Share | None) -> str:
    if share is None:
        return "<td></td>"
    tone = " broken" if share.broken else ""
    limit = notes.limit(share)
    return f'<td class="num{tone}">{notes.counted(share)}<br><span class="ci">{limit}</span></td>'
