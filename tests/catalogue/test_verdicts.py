"""Every verdict has a place in the order of severity, a colour, and says whether it fails a run."""

from __future__ import annotations

import json
import re
import typing
from pathlib import Path

import pytest

import pytest_kbrel
from pytest_kbrel import resources
from pytest_kbrel.catalogue.verdicts import SEVERITY, VERDICTS, VerdictKind, failing, worst
from pytest_kbrel.records import JUDGEMENTS, Judgement

STYLE = Path(pytest_kbrel.__file__).parent / "reports" / "html" / "templates" / "report.css"
README = Path(__file__).parents[2] / "README.md"
EVERY_VERDICT = pytest.mark.parametrize("verdict", VERDICTS.values(), ids=lambda verdict: verdict.name)
ALWAYS = {"fail", "invalid", "not run", "not comparable"}


def test_the_table_has_every_verdict_once() -> None:
    assert sorted(VERDICTS) == sorted(JUDGEMENTS)


@EVERY_VERDICT
def test_every_verdict_has_a_colour_and_says_when_it_fails(verdict: VerdictKind) -> None:
    assert sum(verdict.markup.get(colour, False) for colour in ("green", "yellow", "red")) == 1
    assert verdict.fails in typing.get_args(typing.get_type_hints(VerdictKind)["fails"])


@EVERY_VERDICT
def test_the_page_has_the_colour_of_the_terminal(verdict: VerdictKind) -> None:
    # What has no colour of its own there is yellow.
    names = re.findall(r"([^{}]*)\{[^{}]*--(good|bad)bg", STYLE.read_text(encoding="utf-8"))
    own = {part.strip(): tone for rule, tone in names for part in rule.split(",") if ".word." in part}
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
def test_which_verdicts_fail_a_run(compared: bool, strict: bool, more: set[Judgement]) -> None:
    assert failing(compared=compared, strict=strict) == ALWAYS | more


def test_the_worst_of_verdicts() -> None:
    assert worst(["pass", "inconclusive", "fail", "invalid"]) == "fail"
    assert worst(reversed(SEVERITY)) == SEVERITY[0]
    assert worst([]) == "pass"


def test_the_schema_of_reports_has_every_verdict() -> None:
    assert json.loads(resources.schema("report"))["$defs"]["verdict"]["enum"] == list(JUDGEMENTS)


@EVERY_VERDICT
def test_the_readme_explains_every_verdict(verdict: VerdictKind) -> None:
    assert f"\n| `{verdict.name}` | " in README.read_text(encoding="utf-8")
