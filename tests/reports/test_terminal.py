import re
from dataclasses import replace

import pytest

from pytest_kbrel.printing import cells
from pytest_kbrel.reports.terminal import failure_text, terminal_lines


def texts(run, width):
    return [text for text, _ in terminal_lines(run, width=width, verbosity=1)]


@pytest.mark.parametrize("width", [40, *range(60, 104, 4)])
def test_the_verdict_is_never_cut(small_run, width):
    lines = texts(small_run, width)
    assert next(line for line in lines if line.startswith("  open-tail")).endswith(
        "  inconclusive"
    )


@pytest.mark.parametrize("width", [20, 40, 60, 80, 100, 200])
@pytest.mark.parametrize(
    "name", ["small_run", "rich_run", "hostile_run", "empty_run", "big_run"]
)
def test_no_line_is_too_wide_or_has_a_control_character(name, width, request):
    for text in texts(request.getfixturevalue(name), width):
        assert cells(text) <= min(width, 100)
        assert not re.search(
            "[\x00-\x1f\x7f-\x9f\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]", text
        )


def test_an_empty_run_says_that_nothing_was_decided(empty_run):
    assert texts(empty_run, 80) == ["INVALID: no case was decided"]


def test_cases_of_several_suites_are_told_apart(small_run):
    other = [replace(case, suite="other.kb.yaml") for case in small_run.cases]
    lines = texts(replace(small_run, cases=(*small_run.cases, *other)), 100)
    text = "\n".join(lines)
    assert "other.kb.yaml::head_to_tail[open-tail]" in text
    assert "open-tail (world)" in text


def test_hostile_text_in_a_failure_is_harmless(hostile_run):
    for case in hostile_run.cases:
        text = failure_text(case, baseline_name=hostile_run.baseline)
        assert not re.search(
            "[\x00-\x09\x0b-\x1f\x7f-\x9f\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]",
            text,
        )
        assert len(text) < 20_000
