"""What a failing case says, line by line, and what JUnit's properties leave out."""

from dataclasses import replace

import pytest

from pytest_kbrel.records import GateResult, MetricValue, Waiver
from pytest_kbrel.reports.junit import case_properties, suite_properties, xml_text
from pytest_kbrel.reports.terminal import failure_text
from tests.made_cases import told


def gate(**more):
    given = {
        "metric": "accuracy",
        "rule": "min",
        "bound": 0.5,
        "verdict": "fail",
        "reasons": told("why"),
    }
    return GateResult(**{**given, **more})


@pytest.fixture
def say(make_case):
    """The lines about one failed gate."""

    def lines(*metrics, baseline="prod", **more):
        case = make_case("monitor", "P1", "fail", metrics, gates=(gate(**more),))
        head, title, *body = failure_text(case, baseline_name=baseline).splitlines()
        assert head == "monitor[P1]: fail, 1 of 1 gate not passed"
        assert title.startswith("  accuracy ")
        assert all(line.startswith("    ") for line in body)
        return [line[4:] for line in body]

    return lines


def value(**more):
    return MetricValue(
        **{"name": "accuracy", "better": "higher", "value": 0.25, "n": 120, **more}
    )


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        (value(value=None), "nothing"),
        (value(value=None, note="no fact"), "nothing: no fact"),
        (value(value=0.0, low=0.0, high=0.1), "0.000 [0.000, 0.100] on 120 facts"),
        (value(n=1), "0.250 on 1 of 120 facts"),
        (value(n=121), "0.250 on 121 facts"),
    ],
)
def test_what_was_measured(metric, expected, say):
    assert say(metric) == [f"measured    {expected}", "allowed     at least 0.5"]


def test_whatever_a_file_says_xml_allows_it(make_case, small_run):
    bad = "a\uffffb"
    waiver = Waiver(owner=bad, reason=bad, expires=bad, case=bad)
    gates = (gate(metric=bad, p_sidak=0.5),)
    case = make_case("pooled", "x", "fail", (value(name=bad),), gates=gates)
    case = replace(case, waiver=waiver)
    model = replace(small_run.model, spec=bad, weights_digest=bad, dtype=bad)
    run = replace(small_run, cases=(case,), model=model, baseline=bad, recorded=bad)
    properties = [*case_properties(case), *suite_properties(run)]
    assert sum("a�b" in f"{name}{text}" for name, text in properties) > 5
    assert not any("\uffff" in f"{name}{text}" for name, text in properties)


def test_a_failure_keeps_to_its_lines(make_case):
    bad = "a\nb"
    metric = value(name=bad, baseline=0.5, delta=0.25)
    case = make_case(
        "monitor",
        "P1",
        "fail",
        (metric, value(name="none", value=None, note=bad)),
        id=bad,
        suite=bad,
        gates=(
            gate(metric=bad, rule="max_drop", line=1),
            gate(metric="none", verdict="invalid", reasons=told(bad)),
        ),
        errors=(bad,),
    )
    assert failure_text(case, baseline_name=bad).splitlines() == [
        r"a\nb: fail, 2 of 2 gates not passed",
        r"  a\nb max_drop 0.5: fail",
        "    measured    0.250 on 120 facts",
        r"    allowed     at most 0.5 worse than a\nb",
        r"    baseline    0.500 (a\nb)",
        "    difference  +0.250",
        r"    stated in   a\nb:1",
        "  none min 0.5: invalid",
        r"    measured    nothing: a\nb",
        "    allowed     at least 0.5",
        r"    reason      a\nb",
        r"  error: a\nb",
    ]


def test_a_property_has_two_hundred_characters_that_xml_allows():
    assert xml_text("x" * 200) == "x" * 200
    assert xml_text("x" * 201) == "x" * 199 + "…"
    assert xml_text("a\ufffe\uffffb\U0001f600") == "a��b\U0001f600"
