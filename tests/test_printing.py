from __future__ import annotations

import re
import textwrap
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pytest_kbrel.errors import KbrelError, SuiteError
from pytest_kbrel.printing import printable
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
MIXED = st.lists(st.sampled_from(PIECES) | st.text(st.characters(codec=None), max_size=3)).map("".join)


@pytest.mark.parametrize("text", FORMS)
def test_no_log_command_is_left(text: str) -> None:
    assert commands_in(text), "the reader must know the form"
    assert commands_in(printable(text)) == []


@given(MIXED, st.integers(1, 9))
def test_a_line_that_is_broken_anywhere_between_words_holds_no_command(text: str, width: int) -> None:
    wrapped = textwrap.wrap(printable(f"x ::error::{text}"), width, break_long_words=False)
    assert commands_in("\n".join(wrapped)) == []


@given(MIXED)
@example("::::error::x")
@example("##\u200d##[x")
def test_whatever_is_printed_holds_no_command_and_is_printable_already(text: str) -> None:
    shown = printable(text)
    assert commands_in(shown) == []
    assert printable(shown) == shown
    allowed = {"\n", "\t", "\u200c", "\u200d"}
    assert not [c for c in shown if unicodedata.category(c) in {"Cc", "Cf", "Cs"} and c not in allowed]


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
    error = SuiteError("found '##vso[task.complete]'\n::error::x\x1b[2J", "##[x].yaml", 3)
    assert str(error) == "# #[x].yaml:3: found '# #vso[task.complete]'\n: :error::x\\x1b[2J"
    assert str(KbrelError(str(error))) == str(error)
