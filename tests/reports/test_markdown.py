from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_kbrel.records import Run
from pytest_kbrel.reports.markdown import markdown_text, summary_markdown
from tests.reports.conftest import many, small


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
    rows = [
        at
        for at, line in enumerate(lines)
        if line.startswith("|") and lines[at - 1].startswith("|")
    ]
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


def test_the_cause_precedes_the_figures_over_several_cases(dropped_run: Run) -> None:
    text = summary_markdown(dropped_run)
    rows = re.findall(r"^\| \*\*fail\*\* \| (\S+)", text, flags=re.MULTILINE)
    told = re.findall(r"^- \*\*fail\*\* (\S+):", text, flags=re.MULTILINE)
    blocks = re.findall(r"^### (\S+): fail", text, flags=re.MULTILINE)
    cause = r"reliability\[unseen-zero-shot\]"
    assert (
        rows
        == told
        == blocks
        == [cause, r"reliability\[overall\]", r"pooled\[overall\]"]
    )
    assert f"- **fail** {cause}: UR 0.945 to 0.205, allowed 0.05\n" in text


def test_what_is_lost_precedes_the_tables_and_how_the_model_was_loaded_ends_it(
    small_run: Run,
) -> None:
    run = replace(
        small_run,
        environment=(("model_load_seconds", "26.80"),),
        problems=("a problem",),
    )
    text = summary_markdown(run)
    order = (
        "a problem",
        "### Why",
        "7 facts lost</summary>",
        "| verdict |",
        "model loaded in 26.80 s",
    )
    places = [text.index(part) for part in order]
    assert places == sorted(places)


def test_the_summary_names_the_judge(small_run: Run) -> None:
    text = summary_markdown(replace(small_run, settings=(("judge", "openai/judge"),)))
    assert ", judged by openai/judge: " in text


def test_at_most_ten_facts_a_case_are_listed(many_cases: Callable[[int], Run]) -> None:
    text = summary_markdown(many_cases(10))
    assert text.count("60 facts lost (the first 10)</summary>") == 10
    assert text.count("| Africa |") == 10 * 11
    assert text.count("<details>") == text.count("\n\n</details>\n") == 20


def test_the_worst_cases_keep_their_facts_where_not_all_fit(
    many_cases: Callable[[int], Run],
) -> None:
    text = summary_markdown(many_cases(60))
    assert text.count("\n### monitor") == 60
    listed = text.count("60 facts lost (the first 10)</summary>")
    assert 0 < listed < 60
    assert text.index("60 facts lost.") > text.rindex("</details>")
    assert "in report.json" not in text


# Whatever the parts, the text is a comment that GitHub takes.
COMMENT = 65_536


@given(
    count=st.sampled_from((1, 30, 200, 500)),
    letters=st.sampled_from(("a", "<&@", "é|*", "\U0001f600")),
    length=st.integers(0, 700),
    failed=st.integers(0, 500),
    problems=st.integers(0, 200),
)
@settings(max_examples=12)
@pytest.mark.slow
def test_the_summary_is_never_too_long_for_a_comment(
    count: int, letters: str, length: int, failed: int, problems: int
) -> None:
    check_summary(count, letters, length, failed, problems)


@pytest.mark.slow
def test_the_summary_of_500_cases_is_not_too_long_for_a_comment() -> None:
    check_summary(500, "<&@", 300, 250, 100)


def check_summary(
    count: int, letters: str, length: int, failed: int, problems: int
) -> None:
    said = letters * (length // len(letters))
    worst, passed = replace(many(1).cases[0], waiver=None), small().cases[1]
    cases = tuple(
        replace(
            worst if at < failed else passed,
            id=f"monitor[P{at:03}]",
            lost=tuple(replace(change, question=said) for change in worst.lost),
            errors=(said,) * (at % 12),
        )
        for at in range(count)
    )
    run = replace(
        many(1), cases=cases, problems=tuple(f"{at} {said}" for at in range(problems))
    )
    text = summary_markdown(run)
    assert len(text) < COMMENT
    assert text.startswith("## Knowledge gates: ")
    assert ("### Problems" in text) == bool(problems)
    lines = text.split("\n")
    rows = [line for line in lines if re.match(r"\| \**(fail|pass)", line)]
    assert rows == sorted(rows, key=lambda row: "fail" not in row)
    left_out = re.findall(r"and (\d+) more cases? in report\.json", text)
    blocks = sum(line.startswith("### monitor") for line in lines)
    assert len(rows) + blocks + sum(map(int, left_out)) == count + count
    assert text.count("<details>") == text.count("</details>")


def test_problems_are_named(hostile_run: Run, small_run: Run, empty_run: Run) -> None:
    assert "- partial run: not every case" in summary_markdown(hostile_run)
    assert "Problems" not in summary_markdown(small_run)
    assert "no case was decided" in summary_markdown(empty_run)


def test_what_was_not_run_stands_behind_what_was_and_is_told_once(
    stopped_run: Run,
) -> None:
    text = summary_markdown(stopped_run)
    rows = [line.split(" | ")[0] for line in text.splitlines() if line.startswith("| ")]
    assert rows[-4:] == ["| verdict", "| **fail**", "| **not run**", "| **not run**"]
    assert "before this case" not in text
    problems = (
        "### Problems\n\n- 2 cases not run: the session stopped before them\n"
        "- the session stopped before all its cases were decided\n\n### Why\n"
    )
    assert problems in text
