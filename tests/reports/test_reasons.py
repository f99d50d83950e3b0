"""One sentence says why a gate failed, and the cases come in the order in which they matter."""

from dataclasses import replace

import pytest

from pytest_kbrel.records import GateResult, MetricValue, Waiver
from pytest_kbrel.reports.formatting import metric_title
from pytest_kbrel.reports.reasons import case_reason, deciding, gate_reason, natural
from tests.made_cases import told


def gate(**more):
    given = {
        "metric": "ur",
        "rule": "max_drop",
        "bound": 0.05,
        "verdict": "fail",
        "reasons": told("why"),
    }
    return GateResult(
        **{**given, "observed": 0.74, "low": 0.675, "high": 0.796, **more}
    )


def ur(**more):
    given = {
        "name": "ur",
        "better": "higher",
        "value": 0.205,
        "n": 200,
        "baseline": 0.945,
        "delta": -0.74,
    }
    return MetricValue(**{**given, **more})


@pytest.mark.parametrize(
    ("of", "value", "sentence"),
    [
        (gate(), ur(), "UR 0.945 to 0.205, allowed 0.05"),
        (
            gate(verdict="inconclusive"),
            ur(),
            "UR 0.945 to 0.205, drop [0.675, 0.796], allowed 0.05",
        ),
        (
            gate(rule="recovery", bound=0.98, observed=0.217),
            ur(),
            "UR 0.945 to 0.205, 0.217 of it recovered, allowed at least 0.98",
        ),
        (
            gate(rule="min", bound=0.4, observed=0.205, low=0.15, high=0.26),
            ur(baseline=None),
            "UR measured 0.205 [0.150, 0.260], allowed at least 0.4",
        ),
        (
            gate(bound=0.9, beyond=0.45),
            ur(value=0.0, baseline=0.867),
            "UR 0.867 to 0.000, allowed 0.9, surely above 0.45",
        ),
        (
            gate(
                verdict="inconclusive", observed=0.0, low=None, high=None, beyond=0.02
            ),
            ur(value=1.0, baseline=1.0, paired=1, note="n < 2"),
            "UR 1.000 to 1.000, no interval (1 fact), allowed 0.05",
        ),
        (
            gate(verdict="inconclusive", low=None, high=None),
            ur(paired=9, note="all facts share one answer"),
            "UR 0.945 to 0.205, no interval (all facts share one answer), allowed 0.05",
        ),
        (gate(), ur(value=None), "UR: why"),
    ],
)
def test_a_gate_says_what_was_observed_and_allowed(of, value, sentence, make_case):
    assert (
        gate_reason(make_case("reliability", "unseen-zero-shot", "fail", (value,)), of)
        == sentence
    )


def test_initials_are_written_as_such():
    names = (
        "nccr",
        "monitor_ablated",
        "accuracy_em",
        "nccr_control_majority",
        "current",
        "\x1b",
    )
    assert [metric_title(name) for name in names] == [
        "NCCR", "MONITOR ablated", "accuracy em", "NCCR control majority", "current", r"\x1b",
    ]  # fmt: skip


def test_the_worst_come_first_and_waived_ones_last(small_run, make_case):
    def failing(part, observed, **more):
        return make_case(
            "monitor", part, "fail", (ur(),), gates=(gate(observed=observed),), **more
        )

    waiver = Waiver(
        owner="Ann", reason="known", expires="2099-01-01", case="monitor[P1]"
    )
    cases = (
        failing("P1", 0.9, waiver=waiver),
        make_case("monitor", "P3", "inconclusive", ()),
        failing("P10", 0.2),
        failing("P2", 0.2),
        failing("P4", 0.6),
        failing("overall", 0.8, aggregate=True),
        make_case("monitor", "P5", "invalid", ()),
        make_case("monitor", "P6", "not run", ()),
        make_case("monitor", "P7", "pass", ()),
    )
    order = [case.slice for case in deciding(replace(small_run, cases=cases))]
    assert order == ["P4", "P2", "P10", "overall", "P5", "P3", "P1"]


@pytest.mark.parametrize(
    ("rule", "bound", "near", "far"),
    [
        ("min", 0.5, 0.4, 0.1),
        ("max_drop", 0.1, 0.2, 0.9),
    ],
)
def test_of_two_gates_the_one_farther_from_its_bound_is_told(
    rule, bound, near, far, make_case
):
    gates = [
        gate(metric=name, rule=rule, bound=bound, observed=at)
        for name, at in (("a", near), ("b", far))
    ]
    case = make_case("monitor", "P1", "fail", (), gates=tuple(gates))
    assert case_reason(case) == "b: why; also 1 more gate"


def test_numbers_in_names_are_sorted_by_value():
    assert sorted(["P10", "P2", "p1", "Q", "P²", "P"], key=natural) == [
        "P",
        "p1",
        "P2",
        "P10",
        "P²",
        "Q",
    ]
