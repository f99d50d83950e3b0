from __future__ import annotations

from pathlib import Path

import pytest

from pytest_kbrel.catalogue.metrics import METRICS
from pytest_kbrel.records import RULES
from pytest_kbrel.suites.gates import REFUSED, SYNONYMS, as_gate, plain_rule

DOCS = Path(__file__).parents[2] / "docs" / "suite-files.md"


@pytest.mark.parametrize(
    ("metric", "key", "value", "expected"),
    [
        ("accuracy", "gte", 0.4, ("min", 0.4)),
        ("accuracy", "ge", 0.4, ("min", 0.4)),
        ("accuracy", "minimum", 0.4, ("min", 0.4)),
        ("accuracy", "lte", 0.4, ("max", 0.4)),
        ("accuracy", "le", 0.4, ("max", 0.4)),
        ("accuracy", "maximum", 0.4, ("max", 0.4)),
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
def test_meaning(metric: str, key: str, value: float, expected: tuple[str, float]) -> None:
    assert as_gate(key, value, METRICS[metric]) == expected


@pytest.mark.parametrize("key", REFUSED)
def test_what_has_no_equal_is_refused_with_the_way_out(key: str) -> None:
    with pytest.raises(ValueError, match=f"rule '{key}' has no equal here: .*allowed: {', '.join(RULES)}$"):
        as_gate(key, 0.1, METRICS["accuracy"])


def test_a_bare_number_is_the_worst_that_is_good() -> None:
    assert plain_rule(METRICS["accuracy"]) == "min"
    assert plain_rule(METRICS["gap"]) == "max"


def test_the_documentation_has_every_name() -> None:
    text = DOCS.read_text("utf-8")
    for name in (*METRICS, *SYNONYMS, *REFUSED):
        assert f"`{name}`" in text, name
