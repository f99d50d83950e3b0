"""Every rule of a gate has a range, words, a schema and a function that judges it."""

from __future__ import annotations

import json
import re
import typing
from pathlib import Path

import jsonschema
import pytest

import pytest_kbrel
from pytest_kbrel import resources
from pytest_kbrel.bounds import Bounds
from pytest_kbrel.catalogue.metrics import Metric
from pytest_kbrel.catalogue.rules import GATE_RULES, GateRule
from pytest_kbrel.catalogue.verdicts import (
    SEVERITY,
    VERDICTS,
    VerdictKind,
    failing,
    worst,
)
from pytest_kbrel.gates.rules import JUDGES
from pytest_kbrel.records import JUDGEMENTS, RULES, Judgement, Rule
from pytest_kbrel.suites.gates import DIRECTED, REFUSED, SAME, WORSE_WHEN
from tests.suite_schema import bound_schema

DOCS = Path(__file__).parents[2] / "docs" / "gates.md"
EVERY_RULE = pytest.mark.parametrize(
    "rule", GATE_RULES.values(), ids=lambda rule: rule.name
)


def test_the_table_has_every_rule() -> None:
    assert GATE_RULES.keys() == {*RULES}


def test_every_rule_is_judged() -> None:
    assert JUDGES.keys() == {*RULES}


@EVERY_RULE
@pytest.mark.parametrize(("low", "high"), [(0, 1), (0, 0.5), (-1, 1)])
def test_every_rule_has_a_range_and_a_schema_that_say_the_same(
    rule: GateRule, low: float, high: float
) -> None:
    metric = Metric(
        name="m", better="higher", about="", low=low, high=high, controlled=True
    )
    bounds = rule.bounds(metric)
    assert isinstance(bounds, Bounds)
    assert bounds.least < bounds.most
    for bound in (low - 1, low, 0, 0.25, high, high + 1, high - low):
        assert jsonschema.Draft202012Validator(bound_schema(rule, metric)).is_valid(
            bound
        ) is (bound in bounds)


@EVERY_RULE
def test_every_rule_has_words(rule: GateRule) -> None:
    words = rule.allowed.format(bound="0.123", baseline="prod")
    assert "0.123" in words
    assert ("prod" in words) is rule.relative
    assert rule.observed


def test_a_name_in_other_tools_means_one_rule() -> None:
    names = [name for rule in GATE_RULES.values() for name in rule.synonyms]
    assert len(names) == len(SAME)
    assert not {*names} & {*RULES, *WORSE_WHEN, *REFUSED, DIRECTED}


def test_the_schema_of_reports_has_every_rule() -> None:
    gate = json.loads(resources.schema("report"))["$defs"]["gate"]
    assert gate["properties"]["rule"]["enum"] == [*RULES]


@pytest.mark.parametrize("rule", RULES)
def test_the_docs_explain_every_rule(rule: Rule) -> None:
    assert f"| `{rule}` |" in DOCS.read_text(encoding="utf-8")


STYLE = Path(pytest_kbrel.__file__).parent / "reports" / "templates" / "report.css"
REPORT = DOCS.with_name("report.md")
EVERY_VERDICT = pytest.mark.parametrize(
    "verdict", VERDICTS.values(), ids=lambda verdict: verdict.name
)
ALWAYS = {"fail", "invalid", "not run", "not comparable"}


def test_the_table_has_every_verdict_once() -> None:
    assert sorted(VERDICTS) == sorted(JUDGEMENTS)


@EVERY_VERDICT
def test_every_verdict_has_a_colour_and_says_when_it_fails(
    verdict: VerdictKind,
) -> None:
    assert (
        sum(verdict.markup.get(colour, False) for colour in ("green", "yellow", "red"))
        == 1
    )
    assert verdict.fails in typing.get_args(typing.get_type_hints(VerdictKind)["fails"])


@EVERY_VERDICT
def test_the_page_has_the_colour_of_the_terminal(verdict: VerdictKind) -> None:
    # What has no colour of its own there is yellow.
    names = re.findall(
        r"([^{}]*)\{[^{}]*--(good|bad)bg", STYLE.read_text(encoding="utf-8")
    )
    own = {
        part.strip(): tone
        for rule, tone in names
        for part in rule.split(",")
        if ".word." in part
    }
    tone = own.get(f".word.{verdict.name.replace(' ', '-')}", "warn")
    assert verdict.markup.get({"good": "green", "bad": "red", "warn": "yellow"}[tone])


def test_what_fails_more_often_is_worse() -> None:
    order = ["always", "compared", "strict", "never"]
    places = [order.index(VERDICTS[name].fails) for name in SEVERITY]
    assert places == sorted(places)


@pytest.mark.parametrize(
    ("compared", "strict", "more"),
    [
        (False, False, set()),
        (True, False, {"no baseline"}),
        (False, True, {"inconclusive"}),
        (True, True, {"no baseline", "inconclusive"}),
    ],
)
def test_which_verdicts_fail_a_run(
    compared: bool, strict: bool, more: set[Judgement]
) -> None:
    assert failing(compared=compared, strict=strict) == ALWAYS | more


def test_the_worst_of_verdicts() -> None:
    assert worst(["pass", "inconclusive", "fail", "invalid"]) == "fail"
    assert worst(reversed(SEVERITY)) == SEVERITY[0]
    assert worst([]) == "pass"


def test_the_schema_of_reports_has_every_verdict() -> None:
    assert json.loads(resources.schema("report"))["$defs"]["verdict"]["enum"] == list(
        JUDGEMENTS
    )


@EVERY_VERDICT
def test_the_page_of_the_report_explains_every_verdict(verdict: VerdictKind) -> None:
    assert f"\n| `{verdict.name}` | " in REPORT.read_text(encoding="utf-8")
