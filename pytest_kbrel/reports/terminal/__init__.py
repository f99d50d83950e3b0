"""The terminal: the first screen of a run, its full tables, and the failure message of a case."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pytest_kbrel.catalogue.verdicts import VERDICTS
from pytest_kbrel.printing import fit, printable
from pytest_kbrel.records import Run, is_published
from pytest_kbrel.reports import phrases, view
from pytest_kbrel.reports.changes import changes_headline
from pytest_kbrel.reports.formatting import count, one_line
from pytest_kbrel.reports.terminal.cases import case_lines, waiver_lines
from pytest_kbrel.reports.terminal.failure import failure_text
from pytest_kbrel.reports.terminal.lines import BOLD, PLAIN, WIDEST, Line, row, wrapped
from pytest_kbrel.reports.terminal.tables import full_tables, table_lines

# Where the text behind a label of the first screen begins.
_COLUMN = 9


def terminal_lines(
    run: Run,
    *,
    width: int,
    written_to: str = "",
    verbosity: int = 0,
    steps: Sequence[tuple[str, str]] = (),
    is_first: bool = False,
) -> list[Line]:
    """Return (text, markup) pairs for ``terminalreporter.write_line(text, **markup)``.

    They are the first screen: the verdict, the models, facts lost and gained, and the cases that did not
    pass. From a ``verbosity`` of 1 on, the full tables stand before it; below 0 each case is one line.
    ``steps`` are what can be done next: (what, command). ``is_first``: this run is a first baseline.

    No line is wider than ``width``, nor than 100 columns, but commands and the path of the reports, which
    stay whole. Every verdict is also a word.
    """
    width = max(20, min(width, WIDEST))
    lines = [
        *(full_tables(run, width) if verbosity > 0 else ()),
        *_head(run, width, verbosity, is_first=is_first),
    ]
    body = [*case_lines(run, width, brief=verbosity < 0), *waiver_lines(run, width)]
    if body:
        lines += [("", PLAIN), *body]
    fitted = [(fit(printable(text), width), markup) for text, markup in lines]
    if verbosity >= 0 and steps:
        wide = max(len(what) for what, _ in steps)
        fitted += [
            ("", PLAIN),
            *((printable(f"{what:<{wide}}  {how}"), PLAIN) for what, how in steps),
        ]
    if written_to:
        fitted.append((printable(f"reports written to {one_line(written_to)}"), PLAIN))
    return fitted


def _head(run: Run, width: int, verbosity: int, *, is_first: bool) -> Iterator[Line]:
    """Yield the verdict, the models, what changed, and what a reader must know of the run."""
    verdict = VERDICTS[view.verdict(run)]
    word, markup = verdict.shown.upper(), verdict.markup
    words: dict[str, str] = {name: kind.shown for name, kind in VERDICTS.items()}
    if is_first:
        words["no baseline"] = "not compared yet"
        if verdict.name == "no baseline":
            word, markup = "FIRST BASELINE", VERDICTS["pass"].markup
    text = f"{word}: {view.headline(run, words)}"
    yield from wrapped(text, width, "", {**markup, "bold": True})
    if run.model is not None:
        against = f" against baseline {one_line(run.baseline)}" if run.baseline else ""
        parts = (run.model.dtype, run.model.device, phrases.prompt_form(run.model))
        where = ", ".join(one_line(part) for part in parts if part)
        yield from row(
            "model", f"{one_line(run.model.title)} ({where}){against}", width, _COLUMN
        )
    yield from row("changes", changes_headline(run), width, _COLUMN, BOLD)
    yield from row("open", view.not_excluded(run), width, _COLUMN)
    for role, who in view.helper_models(run):
        yield f"{role} {one_line(who)}", PLAIN
    if is_published(run.baseline):
        yield from wrapped(
            "the baseline is what a paper prints: differences from it are unpaired",
            width,
            "",
        )
    if verbosity >= 0:
        for note in phrases.run_notes(run, brief=verbosity == 0):
            yield from wrapped(note, width, "")
    if gates := view.unjudged_count(run):
        why = (
            "nothing published to compare with"
            if run.baseline
            else "no baseline given (--kb-baseline)"
        )
        why = "nothing to compare with yet" if is_first else why
        yield f"{why}: {count(gates, 'gate')} not judged", PLAIN
    for problem in run.problems:
        yield from wrapped(
            f"problem: {one_line(problem, 600)}", width, "", VERDICTS["fail"].markup
        )
    if note := phrases.partial_note(run):
        yield from wrapped(note, width, "", VERDICTS["inconclusive"].markup)
