"""What a gate may demand: every word, and both sides of each bound."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest
import yaml

from pytest_kbrel.catalogue.metrics import (
    METRICS,
    OVERALL_METRICS,
    Metric,
)
from pytest_kbrel.suites import load_suite
from pytest_kbrel.suites.gates import (
    REFUSED,
    SYNONYMS,
    as_gate,
)
from tests.suite_schema import make_schema
from tests.suites.examples import HEAD


def test_a_change_may_be_nothing_and_no_improvement() -> None:
    for key, rule, same in (
        ("min_absolute_change", "max_drop", 0),
        ("min_relative_change", "recovery", 1),
    ):
        assert as_gate(key, 0, METRICS["accuracy"]) == (rule, same)
        assert as_gate(key, -0.0, METRICS["accuracy"]) == (rule, same)
        with pytest.raises(ValueError, match=f"'{key}' must be at most 0, found 0.001"):
            as_gate(key, 0.001, METRICS["accuracy"])


DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize(
    ("metric", "key", "value", "expected"),
    [
        ("accuracy", "threshold", 0.4, ("min", 0.4)),
        ("pfd", "threshold", 0.4, ("max", 0.4)),
        ("accuracy", "max_regression", 0.1, ("max_drop", 0.1)),
        ("pfd", "max_regression", 0.1, ("max_drop", 0.1)),
        ("pfd", "max_rise", 0.1, ("max_drop", 0.1)),
        ("pfd", "max_increase", 0.1, ("max_drop", 0.1)),
        ("accuracy", "max_decrease", 0.1, ("max_drop", 0.1)),
        ("accuracy", "min_absolute_change", -0.1, ("max_drop", 0.1)),
        ("pfd", "min_absolute_change", -0.1, ("max_drop", 0.1)),
        ("accuracy", "min_absolute_change", 0, ("max_drop", 0)),
        ("accuracy", "min_relative_change", -0.25, ("recovery", 0.75)),
        ("accuracy", "recovery_threshold", 0.98, ("recovery", 0.98)),
        ("accuracy", "min_recovery", 0.98, ("recovery", 0.98)),
        ("monitor", "max", 7.5, ("max", 7.5)),
        ("nccr", "min", -1, ("min", -1)),
    ],
)
def test_meaning(
    metric: str, key: str, value: float, expected: tuple[str, float]
) -> None:
    assert as_gate(key, value, METRICS[metric]) == expected


def test_the_documentation_has_every_name_of_other_tools() -> None:
    text = (DOCS / "reference" / "suite-keys.md").read_text("utf-8")
    for name in (*SYNONYMS, *REFUSED):
        assert f"`{name}" in text, name


@pytest.mark.parametrize(
    ("metric", "bound", "message"),
    [
        (METRICS["monitor"], 0.1, "monitor has none here; allowed: on cr, "),
        (OVERALL_METRICS["reliability"]["nccr"], 0.1, "nccr has none here"),
        (METRICS["c_correct"], -0.1, "must be at least 0 and at most 1, found -0.1"),
        (METRICS["c_correct"], 5, "found 5"),
        (METRICS["nccr"], 2.5, "at most 2, found 2.5"),
    ],
)
def test_what_cannot_be_demanded_is_refused(
    metric: Metric, bound: float, message: str
) -> None:
    with pytest.raises(ValueError, match="above_control") as caught:
        as_gate("above_control", bound, metric)
    assert message in str(caught.value)


def checks(text: dict[str, object]) -> bool:
    validator = jsonschema.Draft202012Validator(make_schema())
    return validator.is_valid({"suite": "s", "facts": "facts.jsonl", **text})


@pytest.mark.parametrize("page", ["suites.md", "gates.md"])
def test_the_examples_of_the_documentation_are_right_by_the_schema(page: str) -> None:
    blocks = re.findall(
        r"```yaml.*?\n(.*?)```", (DOCS / page).read_text("utf-8"), flags=re.DOTALL
    )
    keys = make_schema()["properties"].keys()
    # A suite's dates are texts.
    suites = [
        json.loads(json.dumps(yaml.safe_load(block), default=str)) for block in blocks
    ]
    suites = [suite for suite in suites if suite and suite.keys() <= keys]
    assert len(suites) >= 2
    for suite in suites:
        assert checks({"head_to_tail": None} | suite), suite


def test_a_figure_may_have_the_name_that_another_probe_gives_it(
    suite_file: Callable[..., Path],
) -> None:
    text = (
        HEAD
        + "reliability: {gates: {accuracy: 0.1, hallucination: 0.9, missing: 0.8}}\n"
    )
    (case,) = load_suite(suite_file(text)).cases
    assert [(gate.metric, gate.rule) for gate in case.gates] == [
        ("cr", "min"),
        ("wr", "max"),
        ("uninformative", "max"),
    ]


def test_a_slice_may_have_no_gates(suite_file: Callable[..., Path]) -> None:
    text = HEAD + (
        "monitor:\n  gates: {accuracy: {min: 0.4}}\n"
        "  slices: {P36: , P50: {gates: none}}\n"
    )
    jsonschema.validate(yaml.safe_load(text), make_schema())
    gates = {case.slice: case.gates for case in load_suite(suite_file(text)).cases}
    assert [gate.metric for gate in gates["P36"]] == ["accuracy"]
    assert gates["P50"] == ()
