"""What a run compares and warns of, counted on suites that are never collected."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from pytest_kbrel.plugin.collection import case_of, count_comparisons, count_relative, is_suite
from pytest_kbrel.records import AggregateCase, Gate
from tests.made_cases import made_case, made_suite


@pytest.mark.parametrize(
    ("rules", "count"),
    [
        ((), 0),
        (("max_drop",), 1),
        (("recovery",), 1),
        (("min", "max", "above_control"), 0),
        (("max_drop", "min", "recovery", "max_drop"), 3),
    ],
)
def test_gates_that_compare_with_a_baseline(rules: tuple[str, ...], count: int) -> None:
    gates = [Gate(metric="accuracy", rule=cast(Any, rule), bound=0.1) for rule in rules]
    assert count_relative(gates) == count


@pytest.mark.parametrize(
    ("selected", "count"),
    [
        ([], 0),
        (["mini.kb.yaml::head_to_tail[a]"], 1),
        (["mini.kb.yaml::head_to_tail[b]"], 2),
        (["mini.kb.yaml::head_to_tail[a]", "mini.kb.yaml::head_to_tail[b]"], 4),
        (["other.kb.yaml::head_to_tail[a]", "head_to_tail[a]"], 0),
    ],
)
def test_a_family_has_the_gates_of_selected_cases_and_of_whole_aggregates(
    selected: list[str], count: int
) -> None:
    overall = AggregateCase(
        id="head_to_tail[overall]",
        suite="mini.kb.yaml",
        probe="head_to_tail",
        slice="overall",
        members=("head_to_tail[a]", "head_to_tail[b]"),
        gates=(Gate(metric="gap", rule="recovery", bound=0.9), Gate(metric="gap", rule="max", bound=0.9)),
    )
    suite = made_suite(
        made_case("head_to_tail[a]", "max_drop", "min"),
        made_case("head_to_tail[b]", "max_drop", "recovery"),
        aggregates=(overall,),
    )
    assert count_comparisons([suite], selected) == count
    assert count_comparisons([suite, suite], selected) == 2 * count


@pytest.mark.parametrize(
    ("name", "result"),
    [("a.kb.yaml", True), ("a.kb.yml", False), ("a.yaml", False), ("a.kb.yaml.bak", False)],
)
def test_a_suite_is_known_by_its_name(name: str, result: bool) -> None:
    assert is_suite(Path("suites", name)) is result


def test_an_items_case_is_that_of_a_suite_and_not_of_other_tests() -> None:
    case = made_case()

    def item(**params: object) -> pytest.Item:
        return cast(pytest.Item, SimpleNamespace(callspec=SimpleNamespace(params=params)))

    assert case_of(item(kb_case=case)) is case
    assert case_of(item(kb_case="a word")) is None
    assert case_of(item(other=case)) is None
    assert case_of(cast(pytest.Item, SimpleNamespace())) is None
