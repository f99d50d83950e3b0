import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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
def test_markup_in_data_is_shown_as_it_is(text, escaped):
    assert markdown_text(text) == escaped


def test_hostile_text_breaks_no_table(hostile_run):
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


def test_at_most_ten_facts_a_case_are_listed(many_cases):
    text = summary_markdown(many_cases(10))
    assert text.count("60 facts lost (the first 10)</summary>") == 10
    assert text.count("| Africa |") == 10 * 11
    assert text.count("<details>") == text.count("\n\n</details>\n") == 20


def test_the_worst_cases_keep_their_facts_where_not_all_fit(many_cases):
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
    count, letters, length, failed, problems
):
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
