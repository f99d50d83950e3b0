"""What stands beside the figures, in all outputs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from pytest_kbrel.records import Run, Share
from pytest_kbrel.reports import phrases
from pytest_kbrel.reports.html.page import report_html
from pytest_kbrel.reports.json_report import comparable, report_dict
from pytest_kbrel.reports.junit import case_properties, suite_properties
from pytest_kbrel.reports.markdown import summary_markdown
from pytest_kbrel.reports.terminal import failure_text, terminal_lines
from tests.reports.test_html import Page


def terminal(run: Run, width: int = 100) -> str:
    return "\n".join(text for text, _ in terminal_lines(run, width=width, verbosity=1))


def page(run: Run) -> str:
    return " ".join(" ".join(Page(report_html(run)).text).split())


def share(name: str, value: int, limit: float = 0.5, broken: bool = False) -> Share:
    return Share(name=name, value=value, total=100, limit=limit, broken=broken)


@pytest.mark.parametrize("write", [terminal, summary_markdown, page])
def test_every_output_says_against_what_and_over_what(
    write: Callable[[Run], str], rich_run: Run
) -> None:
    text = " ".join(write(rich_run).replace("\\", "").split())
    for phrase in (
        "decided again over runs/nightly, the model was not asked",
        "differs from the baseline in: dtype (float32 and bfloat16); backend version (4.57.0 and 4.56.1)",
        "compared without 1 fact not in the baseline, 1 fact not asked in this run, 2 facts left out by a",
        "8 facts lost, 1 gained",
        "5 of the 8 are head; worst P30",
        "pooled[overall]",
        "40 of 120 cut short (at most 50 %)",
        "waived until 2026-03-01 by Ann: known since the merge",
        "waiver no longer needed, the case passes: until 2026-12-31 by Bob: was lost once",
    ):
        assert phrase in text, phrase
    # What is within half of its limit is for the table of the page and for programs.
    assert ("2 of 120" in text) == (write is page)


@pytest.mark.parametrize("write", [terminal, summary_markdown, page])
def test_every_output_says_that_a_language_has_no_rules(
    write: Callable[[Run], str], rich_run: Run
) -> None:
    settings = (("language", "de, sw (no rules)"),)
    cases = tuple(
        case if case.aggregate else replace(case, settings=settings)
        for case in rich_run.cases
    )
    text = " ".join(write(replace(rich_run, cases=cases)).replace("\\", "").split())
    assert "the judge has no rules for the language 'sw' (" in text
    assert (
        "its answers were judged by the rules for English; known are en, ar, de" in text
    )
    assert "no rules for the language" not in write(rich_run)


@pytest.mark.parametrize("write", [terminal, summary_markdown, page])
def test_every_output_says_how_facts_are_asked_otherwise(
    write: Callable[[Run], str], rich_run: Run
) -> None:
    first, *others = rich_run.cases
    noted = replace(
        first, notes=tuple(f"{n} of 9 facts: otherwise" for n in range(1, 8))
    )
    text = " ".join(
        write(replace(rich_run, cases=(noted, *others))).replace("\\", "").split()
    )
    assert "]: 1 of 9 facts: otherwise" in text
    assert "5 of 9 facts: otherwise" in text
    # Many of them would push the figures out of sight.
    assert "6 of 9 facts" not in text
    assert "2 more notes on how facts are asked, in report.json" in text
    assert (
        report_dict(replace(rich_run, cases=(noted, *others)))["cases"]
        != report_dict(rich_run)["cases"]
    )


def test_the_summary_has_the_corrected_p_values_of_what_did_not_pass(
    rich_run: Run,
) -> None:
    assert (
        "over the whole run: Šidák p = 0.012 (decides), Holm p = 0.009"
        in summary_markdown(rich_run)
    )


def test_a_failure_has_recovery_and_what_decided(rich_run: Run) -> None:
    case = rich_run.cases[0]
    gates = (case.gates[1], replace(case.gates[2], verdict="fail"))
    text = failure_text(replace(case, gates=gates), baseline_name="reference")
    assert (
        "    corrected   p = 0.012 for the gates of the case and the cases of the suite\n"
        in text
    )
    assert "    recovered   0.993 [0.981, 1.004]\n" in text
    assert (
        "  compared without 1 fact not in the baseline, 2 facts left out by a waiver\n"
        in text
    )


def test_where_it_was_recorded_and_worked_leaves_no_trace(rich_run: Run) -> None:
    assert rich_run.base is not None
    other = replace(rich_run, recorded="", base=replace(rich_run.base, device="cuda:0"))
    assert comparable(report_dict(rich_run)) == comparable(report_dict(other))


def test_junit_has_what_decides_and_what_is_waived(rich_run: Run) -> None:
    properties = dict(case_properties(rich_run.cases[0]))
    assert properties["kb_accuracy_max_drop_p_sidak"] == "0.0120"
    assert properties["kb_waiver"] == "until 2026-03-01 by Ann: known since the merge"
    assert (
        properties["kb_facts_unmatched"]
        == "1 fact not in the baseline, 2 facts left out by a waiver"
    )
    tail = dict(case_properties(rich_run.cases[2]))
    assert tail["kb_integrity_truncated"] == "40 of 120 cut short (at most 50 %)"
    assert "kb_integrity_empty" not in tail
    suite = dict(suite_properties(rich_run))
    assert suite["kb_facts"] == "8 facts lost, 1 gained; 5 of the 8 are head; worst P30"
    assert suite["kb_recorded"] == "runs/nightly"
    assert suite["kb_differences"].startswith("dtype (float32 and bfloat16); ")


def test_a_waived_failure_is_a_word_of_its_own_in_eighty_columns(rich_run: Run) -> None:
    (line,) = [
        line for line in terminal(rich_run, 80).split("\n") if line.startswith("  P30 ")
    ]
    assert line.endswith("  waived")
    assert "1 failed (1 waived), 1 inconclusive, 5 passed" in terminal(rich_run)
    marks = dict(terminal_lines(rich_run, width=80, verbosity=1))
    assert marks[line] == {"yellow": True}


def test_a_waiver_that_was_for_failures_only_is_not_used(rich_run: Run) -> None:
    case = replace(rich_run.cases[0], verdict="invalid")
    assert phrases.waiver(case, rich_run).startswith(
        "waiver not used, it is for failures only: until 2026-03"
    )


@pytest.mark.parametrize(
    ("part", "noteworthy"),
    [
        (share("truncated", 25), True),
        (share("truncated", 24), False),
        (share("truncated", 0, limit=0.0), False),
        (share("errored", 1, limit=0.0), True),
        (share("answered", 75), True),
        (share("answered", 76), False),
        (share("answered", 100, limit=1.0), False),
        (share("empty", 1, broken=True), True),
        (share("below_random", 10, limit=0.2), True),
        (share("below_random", 30, limit=0.2), False),
        (Share(name="unparsable", value=0, total=0, limit=0.1), False),
    ],
)
def test_what_is_noteworthy_of_the_responses(
    part: Share, noteworthy: bool, rich_run: Run
) -> None:
    case = replace(rich_run.cases[2], integrity=(part,))
    assert bool(phrases.noteworthy(case)) == noteworthy


def test_shares_in_words() -> None:
    assert (
        phrases.share_text(share("answered", 40))
        == "40 of 100 answered (at least 50 %)"
    )
    assert phrases.share_text(share("below_random", 3, 0.1667)) == (
        "3 of 100 informative answers right (random answers: 16.7 %)"
    )
    assert (
        phrases.share_text(share("new_thing", 3, 0.05))
        == "3 of 100 new thing (at most 5 %)"
    )
