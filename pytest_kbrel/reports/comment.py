"""The comment on a pull request: one screen of a run, which is replaced when the gate runs again."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator, Sequence

from pytest_kbrel.records import CaseResult, Change, Judgement, Run
from pytest_kbrel.reports import phrases, reasons, view
from pytest_kbrel.reports.changes import changed_facts, changes_headline
from pytest_kbrel.reports.formatting import answer_text, count, expected_text
from pytest_kbrel.reports.markdown import markdown_text

# GitHub refuses comments of more than 65,536 characters.
LARGEST = 65_000
_CASES = 40
_FACTS = 100
_NOTES = 10
_WIDTH = 160
_REASON = 300
# So much is left for the lines that say how many rows were cut.
_SPARE = 1_000
_NAME = re.compile(r"[A-Za-z0-9._-]{1,60}")
_LINK = re.compile(r"https?://[A-Za-z0-9._~:/?#@!$&*+,;=%-]{1,500}")
_COMMIT = re.compile(r"[0-9a-f]{7,64}")

_MEANING: dict[Judgement, str] = {
    "pass": "Every gate passed.",
    "fail": "At least one gate failed.",
    "inconclusive": "No gate failed, but the facts are too few to rule out a loss that is not allowed.",
    "invalid": "The run or its responses are not sound, so they decide nothing.",
    "not run": "The session stopped before all cases were asked.",
    "not comparable": (
        "Candidate and baseline were not asked in the same way, so they were not compared. This is no "
        "judgement of the model: bless a new baseline, or undo what differs."
    ),
    "no baseline": "Some gates compare with a baseline, and there is none for them: they are undecided.",
}
_SHARD = "This is one shard of a run. Nothing is decided before all shards are joined."

# GitHub links mentions, issues and addresses after Markdown was read: only a character in between stops that.
_REFERENCE = re.compile(
    r"&#64;(?=\S)|(?<!&)#(?=\d)|(?<=\bGH)-(?=\d)|:(?=\\/\\/)", re.IGNORECASE
)


def comment_text(text: str, limit: int = _WIDTH) -> str:
    """Return ``text`` so that a comment shows it as it is: no markup, no HTML, no link and no mention.

    Hashes of commits, which GitHub links, and codes of emoji are not escaped.
    """
    return _REFERENCE.sub(r"\g<0>&#8203;", markdown_text(text, limit))


def marker(name: str) -> str:
    """Return the first line of a comment, by which the next run finds it.

    ``name`` tells the comments of several gates on one pull request apart. Raises ``ValueError`` on a name
    that is not made of letters, digits, dots, dashes and underscores.
    """
    if name and not _NAME.fullmatch(name):
        raise ValueError(
            f"found {name!r}; allowed: up to 60 letters, digits, '.', '-' and '_'"
        )
    return f"<!-- pytest-kbrel{f': {name}' if name else ''} -->"


def link_target(text: str) -> str:
    """Return the address of a page; raises ``ValueError`` on what is none."""
    if text and not _LINK.fullmatch(text):
        raise ValueError(
            f"found {text!r}; allowed: an address that begins with https:// or http://"
        )
    return text


def commit_id(text: str) -> str:
    """Return the id of a commit; raises ``ValueError`` on what is none."""
    if text and not _COMMIT.fullmatch(text):
        raise ValueError(f"found {text!r}; allowed: 7 to 64 hexadecimal digits")
    return text


def comment_markdown(
    run: Run, *, name: str = "", link: str = "", commit: str = "", limit: int = LARGEST
) -> str:
    """Return the comment on ``run``: verdict, age of the baseline, what failed, was lost, is open.

    It has at most ``limit`` characters: rows are left out where they do not fit, and a line says how many.
    """
    head = [*_head(run, name, commit), *_notes(run)]
    tail = _tail(link)
    room = limit - _SPARE - _length("\n".join([*head, *tail]))
    body: list[str] = []
    for lines, rows, most, close in _sections(run):
        room -= _length("\n".join([*lines, *close])) + 1
        shown: list[str] = []
        for row in rows[:most]:
            room -= _length(row) + 1
            if room < 0:
                break
            shown.append(row)
        if not shown:
            continue
        rest = len(rows) - len(shown)
        more = [] if not rest else ["", f"and {rest} more, in `report.html`"]
        body += [*lines, *shown, *more, *close, ""]
    return "\n".join([*head, *body, *tail]).rstrip() + "\n"


def _length(text: str) -> int:
    """Return the number of characters as browsers count them: some of Unicode's are two."""
    return len(text.encode("utf-16-le", "replace")) // 2


def _head(run: Run, name: str, commit: str) -> Iterator[str]:
    verdict = view.verdict(run)
    yield from (
        marker(name),
        f"## Knowledge gates: {verdict}",
        "",
        _SHARD if run.shard and verdict == "inconclusive" else _MEANING[verdict],
        "",
    )
    model = comment_text(view.model_spec(run) or "no model")
    against = (
        f" against **{comment_text(run.baseline)}**"
        if run.baseline
        else " without a baseline"
    )
    yield from (f"**{model}**{against}{_age(run)}: {view.headline(run)}.", "")
    if sentence := changes_headline(run):
        yield from (f"**{comment_text(sentence, _REASON)}.**", "")
    if sentence := view.not_excluded(run):
        yield from (f"{comment_text(sentence, 2 * _REASON)}.", "")
    yield from _commit(commit)


def _commit(commit: str) -> Iterator[str]:
    if commit:
        yield from (f"Commit `{commit_id(commit)[:12]}`.", "")


def _age(run: Run) -> str:
    """Return how old the baseline was when the run ended: `` (blessed 12 days before, on 2026-11-11)``."""
    if not run.blessed:
        return view.baseline_note(run)
    try:
        blessed, ended = map(
            datetime.datetime.fromisoformat, (run.blessed, run.created)
        )
        # Days of the run's own time zone; of times that state none, as they are written.
        day = (
            blessed.astimezone(ended.tzinfo).date()
            if blessed.tzinfo and ended.tzinfo
            else blessed.date()
        )
        days = (ended.date() - day).days
    except (ValueError, OverflowError):
        return ""
    when = "on the same day" if days <= 0 else f"{count(days, 'day')} before"
    return f" (blessed {when}, {day.isoformat()})"


def _notes(run: Run) -> Iterator[str]:
    notes = [
        *filter(None, (phrases.partial_note(run), phrases.not_run_note(run))),
        *sorted(run.problems),
        *(f"differs from the baseline in: {text}" for text in run.differences),
    ]
    if notes:
        yield from (f"- {comment_text(note, _REASON)}" for note in notes[:_NOTES])
        if len(notes) > _NOTES:
            yield f"- and {len(notes) - _NOTES} more, in `report.html`"
        yield ""


# Lines before the rows, the rows, how many of them at most, lines after them.
_Section = tuple[Sequence[str], Sequence[str], int, Sequence[str]]


def _sections(run: Run) -> Iterator[_Section]:
    names = view.names(run)
    rows = [
        f"| **{phrases.verdict_words(case, run)}** | {comment_text(names[case.nodeid])} | {_reason(case)} |"
        for case in reasons.deciding(run)
        if case.verdict != "inconclusive"
    ]
    yield ("| verdict | case | reason |", "|---|---|---|"), rows, _CASES, ()
    yield _folded("Not ruled out", _open(run), _CASES)
    moved = changed_facts(run)
    for changes, word in ((moved.lost, "lost"), (moved.gained, "gained")):
        yield _folded(
            f"{count(len(changes), 'fact')} {word}",
            [_change(change) for change in changes],
            _FACTS,
            (
                "| question | expected | baseline | now | relation |",
                "|---|---|---|---|---|",
            ),
        )


def _folded(
    title: str, rows: Sequence[str], most: int, table: Sequence[str] = ()
) -> _Section:
    return (
        ("<details>", f"<summary>{title}</summary>", "", *table),
        rows,
        most,
        ("", "</details>"),
    )


def _open(run: Run) -> list[str]:
    return [
        f"- {comment_text(reason, 2 * _REASON)}{f' ({gates} gates)' if gates > 1 else ''}"
        for reason, gates in phrases.inconclusive_reasons(run)
    ]


def _reason(case: CaseResult) -> str:
    """Return why a case did not pass: a sentence on the gate that carries it, then errors and waivers."""
    told = [*case.errors, *phrases.expired_waivers(case)]
    # Of answers that are not sound, all gates are unjudged for the reason that the errors say.
    if not case.errors or (
        case.verdict != "invalid" and reasons.told_gate(case) is not None
    ):
        told.insert(0, reasons.case_reason(case))
    more = f"<br>and {len(told) - 2} more" if len(told) > 2 else ""
    return "<br>".join(comment_text(reason, _REASON) for reason in told[:2]) + more


def _change(change: Change) -> str:
    cells = (
        change.question,
        expected_text(change.expected, _WIDTH),
        answer_text(change.old_answer, _WIDTH),
        answer_text(change.new_answer, _WIDTH),
        view.relation_title(change.relation, change.label),
    )
    return "| " + " | ".join(map(comment_text, cells)) + " |"


def _tail(link: str) -> list[str]:
    if not link:
        return ["The reports are among the artifacts of the run."]
    return [f"The reports are among the artifacts of [the run]({link_target(link)})."]
