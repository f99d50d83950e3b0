from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_kbrel.records import Run
from pytest_kbrel.reports.markdown import markdown_text, summary_markdown


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("a | b", r"a \| b"),
        ("`x` *b* _i_ ~~s~~", r"\`x\` \*b\* \_i\_ \~\~s\~\~"),
        ("<b>&amp;</b>", "&lt;b&gt;&amp;amp;&lt;/b&gt;"),
        ("[x](http://e.example) ![i](x)", r"\[x\](http:\/\/e.example) !\[i\](x)"),
        ("www.e.example", r"www\.e.example"),
        ("# no heading", r"\# no heading"),
        ("- no item", r"\- no item"),
        ("1. no item", r"1\. no item"),
        ("line\nbreak", r"line\\nbreak"),
        ("back\\slash", r"back\\slash"),
        ("@someone", "&#64;someone"),
        ("$x$", r"\$x\$"),
        ("Where is 1.5 C#-ish - and so on?", "Where is 1.5 C#-ish - and so on?"),
    ],
)
def test_markup_in_data_is_shown_as_it_is(text: str, escaped: str) -> None:
    assert markdown_text(text) == escaped


def test_hostile_text_breaks_no_table(hostile_run: Run) -> None:
    text = summary_markdown(hostile_run)
    assert "\x1b" not in text
    assert "<script" not in text
    assert "<img" not in text
    lines = text.split("\n")
    bars = [line.replace("\\\\", "").replace("\\|", "").count("|") for line in lines]
    rows = [at for at, line in enumerate(lines) if line.startswith("|") and lines[at - 1].startswith("|")]
    assert len(rows) > 100
    for at in rows:
        assert bars[at] == bars[at - 1] > 4, lines[at]
    text.encode("utf-8")


def test_the_summary_leads_with_the_verdict(small_run: Run) -> None:
    lines = summary_markdown(small_run).split("\n")
    assert lines[:5] == [
        "## Knowledge gates: fail",
        "",
        "**reference:overconfident** against baseline **reference**: 1 fail, 1 inconclusive, 4 pass.",
        "",
        "**7 facts lost, 1 gained; 5 of the 7 are head; worst P30.**",
    ]
    assert r"accuracy 0.512 \[0.432, 0.592\] (-0.071)" in "\n".join(lines)


def test_the_summary_names_the_judge(small_run: Run) -> None:
    text = summary_markdown(replace(small_run, settings=(("judge", "openai/judge"),)))
    assert ", judged by openai/judge: " in text


def test_at_most_ten_facts_a_case_are_listed(big_run: Run) -> None:
    text = summary_markdown(big_run)
    assert text.count("60 facts lost (the first 10):") == 100
    assert text.count("| Africa |") == 100 * 11


@pytest.mark.slow
def test_the_summary_stays_within_what_a_ci_page_takes(hostile_run: Run) -> None:
    many = tuple(replace(case, id=f"{case.id}{at}") for at in range(80) for case in hostile_run.cases)
    text = summary_markdown(replace(hostile_run, cases=many))
    assert len(text.encode("utf-8")) < 1_000_000
    assert "More cases are in report.html." in text
    assert "### Problems" in text


def test_problems_are_named(hostile_run: Run, small_run: Run, empty_run: Run) -> None:
    assert "- partial run: not every case" in summary_markdown(hostile_run)
    assert "Problems" not in summary_markdown(small_run)
    assert "no case was decided" in summary_markdown(empty_run)


def test_what_was_not_run_stands_behind_what_was_and_is_told_once(stopped_run: Run) -> None:
    text = summary_markdown(stopped_run)
    rows = [line.split(" | ")[0] for line in text.splitlines() if line.startswith("| ")]
    assert rows == ["| verdict", "| **fail**", "| **not run**", "| **not run**", "| question", *rows[5:]]
    assert "before this case" not in text
    assert text.endswith(
        "### Problems\n\n- 2 cases not run: the session stopped before them\n"
        "- the session stopped before all its cases were decided\n"
    )
