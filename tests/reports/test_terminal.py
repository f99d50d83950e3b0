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


def test_without_colour_nothing_is_marked(small_run):
    assert all(
        not marks
        for _, marks in terminal_lines(small_run, width=100, verbosity=1, color=False)
    )


def test_an_empty_run_says_that_nothing_was_decided(empty_run):
    assert texts(empty_run, 80) == ["INVALID: no case was decided"]


def test_cases_of_several_suites_are_told_apart(small_run):
    other = [replace(case, suite="other.kb.yaml") for case in small_run.cases]
    lines = texts(replace(small_run, cases=(*small_run.cases, *other)), 100)
    # One and the same reason of both.
    text = " ".join("\n".join(lines).split())
    assert (
        "other.kb.yaml::head_to_tail[open-tail] and 1 more: accuracy max_drop 0.02: the drop may be"
        in text
    )
    assert "open-tail (world)" in text


def test_reasons_are_short_and_those_of_many_are_counted(small_run):
    case = next(case for case in small_run.cases if case.verdict == "inconclusive")
    gate = replace(
        case.gates[0],
        reason="accuracy fell by 0.020 [-0.050, 0.010] from 0.230 to 0.210 (paired over 120 facts, p 0.1); "
        "allowed: 0.020; about 363 facts would decide, were the difference the same",
        observed=0.02,
        low=-0.01,
        high=0.05,
    )
    many = tuple(
        replace(
            case,
            id=f"head_to_tail[{n:02}]",
            slice=f"{n:02}",
            gates=(replace(gate, observed=0.02 + n / 1000),),
        )
        for n in range(20)
    )
    lines = texts(replace(small_run, cases=many), 100)
    start = lines.index("Inconclusive")
    shown = lines[start + 1 : lines.index("", start)]
    assert shown[0] == (
        "  head_to_tail[00]: accuracy max_drop 0.02: drop 0.020 [-0.010, 0.050]; about 363 facts would decide"
    )
    assert shown[-1] == "  and 12 more gates; report.html has all reasons"
    assert len(shown) == 9


def test_hostile_text_in_a_failure_is_harmless(hostile_run):
    for case in hostile_run.cases:
        text = failure_text(case, baseline_name=hostile_run.baseline)
        assert not re.search(
            "[\x00-\x09\x0b-\x1f\x7f-\x9f\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]",
            text,
        )
        assert len(text) < 20_000
