from __future__ import annotations

import datetime
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from pytest_kbrel import resources
from pytest_kbrel.catalogue.metrics import METRICS, OVERALL_METRICS, SLICE_METRICS
from pytest_kbrel.catalogue.rules import GATE_RULES, GateRule
from pytest_kbrel.evaluation.stub_run import asks_of
from pytest_kbrel.suites import load_suite
from pytest_kbrel.suites.gates import WAIVER_KEYS
from pytest_kbrel.suites.parse import SUITE_KEYS, UNSEEN_KEYS
from tests.suite_schema import make_schema
from tests.suites.examples import GOOD
from tests.suites.shape_errors import SHAPE_ERRORS

SCHEMA = json.loads(resources.schema("suite"))
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


def as_json(value: Any) -> Any:
    """What an editor's YAML reader hands to a JSON Schema: days are text."""
    if isinstance(value, dict):
        return {key: as_json(item) for key, item in value.items()}
    if isinstance(value, list):
        return [as_json(item) for item in value]
    return value.isoformat() if isinstance(value, datetime.date) else value


def test_the_file_is_what_the_tables_make() -> None:
    assert make_schema() == SCHEMA


def test_it_has_the_keys_that_are_read() -> None:
    properties = SCHEMA["properties"]
    assert {*properties} == {*SUITE_KEYS}
    assert {*properties["waivers"]["items"]["properties"]} == {*WAIVER_KEYS}
    unseen = properties["reliability"]["properties"]["unseen"]
    assert {*unseen["properties"]} == {*UNSEEN_KEYS}


@pytest.mark.parametrize("name", GOOD)
def test_right_suites_are_valid(name: str) -> None:
    assert [
        error.message
        for error in VALIDATOR.iter_errors(as_json(yaml.safe_load(GOOD[name])))
    ] == []


@pytest.mark.parametrize("name", SHAPE_ERRORS)
def test_wrong_suites_are_not(name: str) -> None:
    assert not VALIDATOR.is_valid(as_json(yaml.safe_load(SHAPE_ERRORS[name][0])))


def keys_of(
    schema: Any, path: tuple[str, ...] = ()
) -> Iterator[tuple[str, dict[str, Any]]]:
    """The keys that a suite file may have, by their path, each with its schema."""
    if isinstance(schema, list):
        for one in schema:
            yield from keys_of(one, path)
    elif isinstance(schema, dict):
        for name, inner in schema.get("properties", {}).items():
            yield ".".join((*path, name)), inner
            yield from keys_of(inner, (*path, name))
        for name, inner in schema.items():
            if name in ("$defs", "patternProperties"):
                for key, one in inner.items():
                    yield from keys_of(one, (*path, key))
            elif name in ("anyOf", "additionalProperties"):
                yield from keys_of(inner, path)


def test_every_key_has_a_description() -> None:
    keys = list(keys_of(SCHEMA))
    assert len(keys) > 500
    assert [
        path
        for path, schema in keys
        if not schema.get("description", "").endswith((".", ")"))
    ] == []


@pytest.mark.parametrize("rule", GATE_RULES.values(), ids=lambda rule: rule.name)
def test_a_rule_is_described_as_in_the_catalogue(rule: GateRule) -> None:
    descriptions = {
        schema["description"]
        for path, schema in keys_of(SCHEMA)
        if path.endswith(f".{rule.name}")
    }
    assert descriptions
    assert all(text.startswith(rule.about) for text in descriptions)


def test_every_metric_has_a_place() -> None:
    used = {
        name
        for table in (*SLICE_METRICS.values(), *OVERALL_METRICS.values())
        for name in table
    }
    assert used == set(METRICS)


WORLD = Path(__file__).parents[2] / "suites" / "world.kb.yaml"
QUICK = WORLD.with_name("quick.kb.yaml")
DAY = datetime.date(2026, 12, 1)


def test_it_loads_whole() -> None:
    start = time.perf_counter()
    suite = load_suite(WORLD, nodeid_path="suites/world.kb.yaml", today=DAY)
    print(f"{time.perf_counter() - start:.2f} s")
    count = {
        probe: [c for c in suite.cases if c.probe == probe]
        for probe in ("monitor", "head_to_tail")
    }
    assert len(count["monitor"]) == 12
    assert len(count["head_to_tail"]) == 8
    assert [case.id for case in suite.cases[-2:]] == [
        "reliability[known]",
        "reliability[unseen]",
    ]
    assert [len(case.facts) for case in suite.cases[-2:]] == [300, 200]
    ungated = [case.id for case in suite.cases if not case.gates]
    assert ungated == ["monitor[P30]", "monitor[P282]"]
    assert all(case.facts for case in suite.cases)
    assert len(suite.aggregates) == 4
    assert len(suite.aggregates[-1].members) == len(suite.cases)
    assert suite.warnings == ()


def test_the_quick_suite_asks_at_most_3000_questions_about_the_worlds_facts() -> None:
    quick = load_suite(QUICK, today=DAY)
    world = {
        fact.id for case in load_suite(WORLD, today=DAY).cases for fact in case.facts
    }
    asked = [fact.id for case in quick.cases for fact in case.facts]
    assert sum(fact in world for fact in asked) > 0.9 * len(asked)
    assert sum(len([*asks_of(case)]) for case in quick.cases) <= 3000
    assert quick.warnings == ()


@pytest.mark.parametrize("suite", [WORLD, QUICK])
def test_editors_accept_it(suite: Path) -> None:
    data = as_json(yaml.safe_load(suite.read_text("utf-8")))
    assert [
        error.message
        for error in jsonschema.Draft202012Validator(SCHEMA).iter_errors(data)
    ] == []
