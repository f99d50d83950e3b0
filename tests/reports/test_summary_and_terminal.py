"""The summary and the terminal, line by line: what stands where, and what is left out."""

from dataclasses import replace

import pytest

from pytest_kbrel.records import MetricValue
from pytest_kbrel.reports import view
from pytest_kbrel.reports.markdown import markdown_text
from pytest_kbrel.reports.terminal import table_lines, terminal_lines


def value(**more):
    return MetricValue(
        **{"name": "accuracy", "better": "higher", "value": 0.5, "n": 9, **more}
    )


# Each by itself: whoever leaves one out of the list leaves markup in the summary.
@pytest.mark.parametrize("char", ["\\", "`", "*", "_", "[", "]", "|", "~", "$"])
def test_each_character_of_markup_is_escaped_wherever_it_stands(char):
    shown = {"\\": "\\\\"}.get(char, f"\\{char}")
    assert markdown_text(f"a{char}b{char}") == f"a{shown}b{shown}"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        *((f"{char} a {char} b", f"\\{char} a {char} b") for char in "#+-"),
        ("> a > b", r"\&gt; a &gt; b"),
        ("1. a 1. b", r"1\. a 1. b"),
        ("12) a", r"12\) a"),
        ("https://x", r"https:\/\/x"),
        ("a // b", "a // b"),
        ("www.x.y", r"www\.x.y"),
        ("& < > @", "&amp; &lt; &gt; &#64;"),
        ("plain (text) 1.5, 'q' \"r\"!", "plain (text) 1.5, 'q' \"r\"!"),
    ],
)
def test_what_is_markup_at_the_beginning_only_is_escaped_there(text, shown):
    assert markdown_text(text) == shown


@pytest.mark.parametrize(
    ("verdict", "markup"),
    [
        ("pass", {}),
        ("fail", {"red": True, "bold": True}),
        ("invalid", {"red": True, "bold": True}),
        ("not comparable", {"yellow": True, "bold": True}),
        ("inconclusive", {"yellow": True}),
    ],
)
def test_each_verdict_has_its_colour(verdict, markup, small_run, make_case):
    run = replace(small_run, cases=(make_case("monitor", "P1", verdict, (value(),)),))
    lines = terminal_lines(run, width=100, verbosity=1)
    assert [marks for text, marks in lines if text.startswith("  P1 ")] == [markup]


TABLE = {
    100: """\
slice                                       n     pfd↓     accuracy↑  verdict
P1                                        120  0.500 =  0.500 -0.250  pass
P22222222222222222222222222222222222222…  120      –    0.500         a long verdict""",
    83: """\
slice                                       n     pfd    accuracy  verdict
P1                                        120  .500 =  .500 -.250  pass
P22222222222222222222222222222222222222…  120     –    .500        a long verdict""",
    80: """\
slice                                       n    pfd  accuracy  verdict
P1                                        120  .50 =  .50 -.25  pass
P22222222222222222222222222222222222222…  120    –    .50       a long verdict""",
    77: """\
slice           n    pfd  accuracy  verdict
P1            120  .50 =  .50 -.25  pass
P2222222222…  120    –    .50       a long verdict""",
    49: """\
slice           n  pfd  verdict
P1            120  .50  pass
P2222222222…  120    –  a long verdict""",
    37: """\
slice           n  verdict
P1            120  pass
P2222222222…  120  a long verdict""",
    31: """\
slice           n  verdict
P1            120  pass
P2222222222…  120  a long verd…""",
}


@pytest.mark.parametrize("width", TABLE)
def test_the_widest_table_that_fits_is_taken(width, small_run, make_case):
    metrics = (value(delta=-0.25), value(name="pfd", better="lower", delta=0.0))
    cases = (
        make_case("monitor", "P1", "pass", metrics),
        make_case("monitor", f"P{'2' * 44}", "fail", (value(),)),
    )
    (group,) = view.groups(replace(small_run, cases=cases))
    lines = table_lines(group, ["pass", "a long verdict"], width)
    # Whichever case lacks a figure.
    turned = replace(group, cases=group.cases[::-1], labels=group.labels[::-1])
    (head, _), (one, _), (two, _) = table_lines(
        turned, ["a long verdict", "pass"], width
    )
    assert [head, two, one] == [text for text, _ in lines]
    assert [case for _, case in lines] == [None, *cases]
    assert "\n".join(text for text, _ in lines) == TABLE[width]
    # However wide the terminal is, a line has a hundred columns.
    assert table_lines(group, ["pass", "a long verdict" * 9], 300)[2][0].endswith("…")
