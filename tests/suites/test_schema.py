from __future__ import annotations

import datetime
from typing import Any

import jsonschema
import pytest
import yaml

from pytest_kbrel.catalogue.metrics import METRICS, OVERALL_METRICS, SLICE_METRICS
from pytest_kbrel.suites.schema import make_schema, suite_schema
from tests.suites.examples import GOOD, SHAPE_ERRORS

SCHEMA = suite_schema()
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


def as_json(value: Any) -> Any:
    """What an editor's YAML reader hands to a JSON Schema: days are text."""
    if isinstance(value, dict):
        return {key: as_json(item) for key, item in value.items()}
    if isinstance(value, list):
        return [as_json(item) for item in value]
    return value.isoformat() if isinstance(value, datetime.date) else value


def test_the_file_is_what_the_tables_make() -> None:
    assert make_schema() == suite_schema()


def test_it_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("name", GOOD)
def test_right_suites_are_valid(name: str) -> None:
    assert [error.message for error in VALIDATOR.iter_errors(as_json(yaml.safe_load(GOOD[name])))] == []


@pytest.mark.parametrize("name", SHAPE_ERRORS)
def test_wrong_suites_are_not(name: str) -> None:
    assert not VALIDATOR.is_valid(as_json(yaml.safe_load(SHAPE_ERRORS[name][0])))


def test_every_metric_has_a_place() -> None:
    used = {name for table in (*SLICE_METRICS.values(), *OVERALL_METRICS.values()) for name in table}
    assert used == set(METRICS)
