from __future__ import annotations

import jsonschema
import pytest

from pytest_kbrel.catalogue.metrics import CONTROLS, METRICS
from pytest_kbrel.suites.gates import as_gate
from pytest_kbrel.suites.schema import make_schema


@pytest.mark.parametrize("name", CONTROLS)
def test_a_metric_with_a_control_may_be_demanded_to_stand_above_it(name: str) -> None:
    assert as_gate("above_control", 0.05, METRICS[name], True) == ("above_control", 0.05)


@pytest.mark.parametrize(
    ("name", "controlled", "bound", "message"),
    [
        ("monitor", False, 0.1, "monitor has none here; allowed: on cr, "),
        ("c_correct", False, 0.1, "c_correct has none here"),
        ("c_correct", True, -0.1, "must be at least 0 and at most 1, found -0.1"),
        ("c_correct", True, 5, "found 5; did you mean 0.05?"),
        ("nccr", True, 2.5, "at most 2, found 2.5"),
    ],
)
def test_what_cannot_be_demanded_is_refused(name: str, controlled: bool, bound: float, message: str) -> None:
    with pytest.raises(ValueError, match="above_control") as caught:
        as_gate("above_control", bound, METRICS[name], controlled)
    assert message in str(caught.value)


def checks(text: dict[str, object]) -> bool:
    validator = jsonschema.Draft202012Validator(make_schema())
    return validator.is_valid({"suite": "s", "facts": "facts.jsonl", **text})


def test_the_schema_knows_where_there_are_controls() -> None:
    demand = {"above_control": 0.05}
    assert checks({"reliability": {"gates": {"c_correct": demand}}})
    assert not checks({"reliability": {"gates": {"c_correct": {"above_control": 1.5}}}})
    assert not checks({"reliability": {"gates": {"ur": demand}}})
    assert not checks({"reliability": {"overall": {"gates": {"nccr": demand}}}})
    assert not checks({"monitor": {"gates": {"accuracy": demand}}})
