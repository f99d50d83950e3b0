"""The comment on a pull request: one screen of a run, which is replaced when the gate runs again."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from pytest_kbrel.errors import KbrelError
from pytest_kbrel.records import Judgement, Run
from pytest_kbrel.reports import reasons, view
from pytest_kbrel.reports.bounded import Part, bounded_text
from pytest_kbrel.reports.changes import changed_facts
from pytest_kbrel.reports.formatting import count
from pytest_kbrel.reports.markdown import (
    fact_table,
    headlines,
    markdown_text,
    problems,
    why,
)

# GitHub refuses comments of more than 65,536 characters.
LARGEST = 65_000
_CASES = 40
_FACTS = 100
_NOTES = 10
_WIDTH = 160
_REASON = 300
_WHERE = " in `report.html`"
# What a user may state of a comment: its form, and that in words.
_STATED = {
    "name": (
        r"[A-Za-z0-9._-]{1,60}",
        "up to 60 letters, digits, '.', '-' and '_'",
    ),
    "link": (
        r"https?://[A-Za-z0-9._~:/?#@!$&*+,;=%-]{1,500}",
        "an address that begins with https:// or http://",
    ),
    "commit": (r"[0-9a-f]{7,64}", "7 to 64 hexadecimal digits"),
}

_MEANING: dict[Judgement, str] = {
    "pass": "Every gate passed.",
    "fail": (
        "At least one gate failed. Next: mend the candidate. If the loss is meant, bless this run: "
        "download its reports, `pytest SUITES --kb-from-run=kbrel-report --kb-baseline-update=NAME`, and "
        "commit `baselines/NAME`."
    ),
    "inconclusive": (
        "No gate failed, but the facts are too few to rule out a loss that is not allowed. Next: ask more "
        "facts (`limit` in the suite), or merge."
    ),
    "invalid": (
        "The run or its responses are not sound, so they decide nothing. Next: change what the cases below "
        "name, and run again."
    ),
    "not run": (
        "The session stopped before all cases were asked. Next: run the job again; what was answered is "
        "not asked again."
    ),
    "not comparable": (
        "Candidate and baseline were not asked in the same way, so they were not compared. This is no "
        "judgement of the model: bless a new baseline, or undo what differs."
    ),
    "no baseline": (
        "Some gates compare with a baseline, and there is none for them: they are undecided. Next: bless "
        "what you ship, `pytest SUITES --kb-model=MODEL --kb-baseline-update=NAME`."
    ),
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


def comment_markdown(
    run: Run, *, name: str = "", link: str = "", commit: str = ""
) -> str:
    """Return the comment on ``run``: verdict, age of the baseline, what failed, was lost, is open.

    It has at most :data:`LARGEST` characters: rows are left out where they do not fit, and a line says how
    many. ``name`` tells the comments of several gates on one pull request apart: the next run finds its own
    by the first line. Raises :class:`KbrelError` where name, link or commit are none.
    """
    for option, text in (("name", name), ("link", link), ("commit", commit)):
        form, allowed = _STATED[option]
        if text and not re.fullmatch(form, text):
            raise KbrelError(f"--{option}: found {text!r}; allowed: {allowed}")
    verdict = view.verdict(run)
    is_open = run.shard is not None and verdict == "inconclusive"
    named = f": {name}" if name else ""
    head = [
        f"<!-- pytest-kbrel{named} -->\n## Knowledge gates: {verdict}",
        _SHARD if is_open else _MEANING[verdict],
        *headlines(run, comment_text),
        *([f"Commit `{commit[:12]}`."] if commit else []),
    ]
    where = f"[the run]({link})" if link else "the run"
    parts = [
        Part(0, "\n\n".join(head) + "\n"),
        Part(1, rows=[*_notes(run)], noun="note", most=_NOTES),
        *_sections(run),
        Part(0, f"The reports are among the artifacts of {where}."),
    ]
    shown = [part for part in parts if part.head or part.rows]
    return bounded_text(
        [replace(part, end=part.end or "", where=_WHERE) for part in shown], LARGEST
    )


def _notes(run: Run) -> Iterator[str]:
    yield from problems(run, comment_text)
    for text in run.differences:
        name = text.partition(" ")[0]
        # A candidate has other weights; of other files the digests tell a reader nothing.
        if name == "weights_digest":
            continue
        if name.endswith("_digest"):
            text = name.removesuffix("_digest")
        yield f"- differs from the baseline in: {comment_text(text, _REASON)}"


def _sections(run: Run) -> Iterator[Part]:
    cases = reasons.deciding(run)
    decided = [case for case in cases if case.verdict != "inconclusive"]
    yield Part(2, rows=[*why(decided, run, comment_text)], noun="case", most=_CASES)
    undecided = [case for case in cases if case.verdict == "inconclusive"]
    yield _folded(
        3, "Not ruled out", "", [*why(undecided, run, comment_text)], "case", _CASES
    )
    moved = changed_facts(run)
    for changes, word in ((moved.lost, "lost"), (moved.gained, "gained")):
        title = f"{count(len(changes), 'fact')} {word}"
        yield _folded(4, title, *fact_table(changes, comment_text), "fact", _FACTS)


def _folded(
    rank: int, title: str, head: str, rows: Sequence[str], noun: str, most: int
) -> Part:
    """Return rows that a reader unfolds; without any nothing."""
    if not rows:
        return Part(rank)
    head = f"<details>\n<summary>{title}</summary>\n{head}"
    return Part(rank, head, rows, "\n</details>\n", noun, most=most)
