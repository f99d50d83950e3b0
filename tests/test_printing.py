"""Printed text: no log commands, no keys, and tables that fit."""

from __future__ import annotations

import html
import json
import re
import textwrap
import unicodedata
from urllib.parse import quote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pytest_kbrel import printing
from pytest_kbrel.errors import KbrelError, ModelError, SuiteError
from pytest_kbrel.models.batching import describe_error
from pytest_kbrel.printing import (
    cells,
    fit,
    format_table,
    hide,
    pad,
    printable,
    redacted,
    wrap,
)
from pytest_kbrel.reports.formatting import one_line
from tests.ci_commands import FORMS, commands_in

PIECES = (
    "##",
    "#",
    "::",
    ":",
    "[",
    "]",
    "vso",
    "error",
    " ",
    "\n",
    "\r",
    "\t",
    "\u200d",
    "travis_fold:",
    "é",
)
MIXED = st.lists(
    st.sampled_from(PIECES) | st.text(st.characters(codec=None), max_size=3)
).map("".join)


@pytest.mark.parametrize("text", FORMS)
def test_no_log_command_is_left(text: str) -> None:
    assert commands_in(text), "the reader must know the form"
    assert commands_in(printable(text)) == []


@given(MIXED, st.integers(1, 9))
def test_a_line_that_is_broken_anywhere_between_words_holds_no_command(
    text: str, width: int
) -> None:
    wrapped = textwrap.wrap(
        printable(f"x ::error::{text}"), width, break_long_words=False
    )
    assert commands_in("\n".join(wrapped)) == []


@given(MIXED)
@example("::::error::x")
def test_whatever_is_printed_holds_no_command_and_is_printable_already(
    text: str,
) -> None:
    shown = printable(text)
    assert commands_in(shown) == []
    assert printable(shown) == shown
    allowed = {"\n", "\t", "\u200c", "\u200d"}
    assert not [
        c
        for c in shown
        if unicodedata.category(c) in {"Cc", "Cf", "Cs"} and c not in allowed
    ]


@given(MIXED)
def test_only_blanks_are_added_but_for_what_cannot_be_seen(text: str) -> None:
    plain = re.sub(r"[^\n\t -~]", "", text)
    assert printable(plain).replace(" ", "") == plain.replace(" ", "")


def test_a_person_reads_nearly_the_same() -> None:
    assert printable("##vso[task.complete]") == "# #vso[task.complete]"
    assert printable("::error::boo") == ": :error::boo"
    assert printable("old\n  ::error::boo") == "old\n  : :error::boo"


@pytest.mark.parametrize(
    "text",
    [
        "suites/world.kb.yaml::monitor[P17]",
        "C# and F#, ## a heading, [x], a::b, std::vector, 10::1, ::",
        "--- a diff\n+++ of two",
        "میخواهم می\u200cخواهم 東京 👩\u200d🔬",
        "one\n\ttwo",
        "",
    ],
)
def test_ordinary_text_is_left_alone(text: str) -> None:
    assert printable(text) == text


def test_an_error_may_be_printed_whatever_it_quotes() -> None:
    error = SuiteError(
        "found '##vso[task.complete]'\n::error::x\x1b[2J", "##[x].yaml", 3
    )
    assert (
        str(error)
        == "# #[x].yaml:3: found '# #vso[task.complete]'\n: :error::x\\x1b[2J"
    )
    assert str(KbrelError(str(error))) == str(error)


@given(st.text(max_size=30), st.integers(1, 40))
def test_fitting_and_padding_count_terminal_columns(text: str, width: int) -> None:
    fitted = fit(one_line(text), width)
    assert cells(fitted) <= width
    assert cells(pad(fitted, width)) == width


def test_wide_characters_take_two_columns() -> None:
    assert cells("東京") == 4
    assert cells("e\u0301") == 1
    assert fit("東京都", 4) == "東…"
    assert (fit("東京", 4), fit("abcd", 4), fit("abcde", 4), fit("ab", 1)) == (
        "東京",
        "abcd",
        "abc…",
        "…",
    )
    # Full width takes two columns too; what joins or combines takes none.
    assert (cells("Ａ"), cells("ｱ"), cells("a\u200db\u200c"), cells("")) == (2, 1, 2, 0)
    assert (pad("東", 4), pad("東", 4, right=True), pad("abc", 2)) == (
        "東  ",
        "  東",
        "abc",
    )


def test_text_of_wide_characters_is_wrapped_and_not_cut() -> None:
    text = (
        "1 fact lost, such as: 日本の首都はどこですか。"
        + "東京" * 40
        + " → 京都 (right: 東京)"
    )
    lines = wrap(text, 80)
    assert max(map(cells, lines)) <= 80
    assert [fit(line, 80) for line in lines] == lines
    assert "".join("".join(lines).split()) == "".join(text.split())
    assert len(lines) == 4


@given(st.text("ab ：東京é\u0301\u200d-", max_size=80), st.integers(12, 40))
def test_no_line_is_wider_than_the_width_and_nothing_is_left_out(
    text: str, width: int
) -> None:
    lines = wrap(text, width)
    assert all(cells(line) <= width for line in lines)
    assert "".join("".join(lines).split()) == "".join(text.split())


def test_a_line_holds_no_more_after_it_was_made_printable() -> None:
    lines = wrap("\0 ::error::x " * 20, 40)
    assert [fit(printable(line), 40) for line in lines] == lines


def test_a_table_is_as_wide_as_its_cells_and_aligned_by_column() -> None:
    rows = [["slice", "n", "verdict"], ["東京", "12", "pass"], ["a", "1234", "fail"]]
    assert format_table(rows) == [
        "slice     n  verdict",
        "東京     12     pass",
        "a      1234     fail",
    ]
    assert format_table(rows, left=(0, 2))[1:] == [
        "東京     12  pass",
        "a      1234  fail",
    ]
    assert format_table([["a", "b"], ["c", ""]], left=range(2)) == ["a  b", "c"]


def test_the_first_columns_of_a_table_may_have_a_least_width() -> None:
    assert format_table([["a", "b", "c"]], least=(3, 2), gap=" ") == ["a    b c"]
    assert format_table([["long", "b"]], least=(2,), gap=" ") == ["long b"]
    assert format_table([["a"]], least=(2, 3)) == ["a"]


def test_the_rows_of_a_table_are_equally_long() -> None:
    with pytest.raises(ValueError, match="shorter"):
        format_table([["a", "b"], ["c"]])


KEY = 'sk-Very/Secret+12"3&=%4é'


@pytest.fixture(autouse=True)
def _no_key_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(printing, "_patterns", {})
    hide(KEY)


@pytest.mark.parametrize(
    "spelled",
    [
        KEY,
        KEY.upper(),
        KEY.lower(),
        quote(KEY, safe=""),
        quote(KEY, safe="").lower(),
        json.dumps(KEY)[1:-1],
        html.escape(KEY),
    ],
)
def test_a_key_is_hidden_however_it_is_spelled(spelled: str) -> None:
    assert redacted(f"Bearer {spelled}, and {spelled}.") == "Bearer ***, and ***."


@pytest.mark.parametrize("key", ["none", "EMPTY", "test", "x", "", "1234567"])
def test_a_short_key_hides_no_ordinary_words(
    monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    monkeypatch.setattr(printing, "_patterns", {})
    hide(key)
    text = "none of the x, 1234567 times, in EMPTY test runs"
    assert redacted(text) == text


def test_eight_characters_are_a_key_and_blanks_around_it_are_not_its_own() -> None:
    hide(" 12345678\n")
    assert redacted("a 12345678 b") == "a *** b"


def test_what_is_not_the_key_stays() -> None:
    assert redacted(KEY[:-1]) == KEY[:-1]
    assert redacted("sk-very-other") == "sk-very-other"


@pytest.mark.parametrize("width", [20, 60, 100])
def test_no_part_of_a_key_is_left_where_a_line_is_broken(width: int) -> None:
    key = "sk-" + "proj" * 30
    hide(key)
    lines = wrap(f"the server refuses the key {key} today", width, "")
    assert " ".join(map(str.strip, lines)) == "the server refuses the key *** today"


@pytest.mark.parametrize("spelled", [KEY, quote(KEY, safe="")])
def test_no_half_of_a_key_is_left_where_a_text_is_cut(spelled: str) -> None:
    for before in range(40):
        for text in (
            "x" * before + spelled,
            "x" * before + spelled * 20,
            f"{spelled * before}y",
        ):
            for cut in (
                printable(one_line(text, 30)),
                printable(fit(one_line(text), 30)),
            ):
                assert re.fullmatch(r"x*[*]*y?…?", cut), cut
    assert one_line("x" * 99, 30) == "x" * 29 + "…"


def test_no_half_of_a_key_is_left_where_an_error_is_cut() -> None:
    text = describe_error(ValueError("x" * 290 + KEY + "y"))
    assert text == f"ValueError: {'x' * 290}***y"
    assert "***" in str(ModelError(f"refused: {KEY}"))
