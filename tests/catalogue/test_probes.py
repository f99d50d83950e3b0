"""What the catalogue says of each probe is whole, and the code behind it is there."""

from __future__ import annotations

import dataclasses
import typing
from pathlib import Path

import pytest

from pytest_kbrel.catalogue.metrics import (
    METRICS,
    OVERALL_METRICS,
    SLICE_METRICS,
    SliceKind,
)
from pytest_kbrel.catalogue.probes import PROBES, Probe, probe_named, probe_of_settings
from pytest_kbrel.metrics import FORMULAS
from pytest_kbrel.probes import IMPLEMENTATIONS
from pytest_kbrel.probes.base import check_wording, template_of
from pytest_kbrel.records import CaseKind, ProbeName
from pytest_kbrel.reports.json_report import schema
from pytest_kbrel.suites.cases import _GROUPS
from pytest_kbrel.suites.parse import COMMON_KEYS, SUITE_KEYS, probe_keys
from tests.suite_schema import _own

DOCS = Path(__file__).parents[2] / "docs" / "suites.md"
EACH = pytest.mark.parametrize("probe", PROBES.values(), ids=PROBES)


def names_in(kind: object) -> set[str]:
    return set(typing.get_args(kind))


def test_every_probe_has_a_record_an_implementation_formulas_and_keys_in_files() -> (
    None
):
    assert (
        names_in(ProbeName)
        == PROBES.keys()
        == IMPLEMENTATIONS.keys()
        == FORMULAS.keys()
    )
    assert names_in(CaseKind) - {"test"} == OVERALL_METRICS.keys()
    assert names_in(SliceKind) - {"questions", "reliability"} == SLICE_METRICS.keys()
    assert PROBES.keys() <= set(SUITE_KEYS)
    properties = schema()["$defs"]["case"]["properties"]
    assert set(properties["probe"]["enum"]) == names_in(CaseKind)


def test_no_metric_belongs_to_no_probe() -> None:
    of_slices = {name for metrics in SLICE_METRICS.values() for name in metrics}
    assert (
        of_slices | {name for metrics in OVERALL_METRICS.values() for name in metrics}
        == METRICS.keys()
    )


@EACH
def test_the_docs_explain_every_probe(probe: Probe) -> None:
    assert f"`{probe.name}`" in DOCS.read_text(encoding="utf-8")


@EACH
def test_titles_are_of_one_probe_only_and_its_settings_word_it(probe: Probe) -> None:
    others = [other for other in PROBES.values() if other is not probe]
    assert probe.title
    assert probe.title not in [other.title for other in others]
    assert probe_named(probe.name) is probe
    worded_by = probe_of_settings(probe.settings())
    assert (worded_by.cue, worded_by.places) == (probe.cue, probe.places)


@EACH
def test_each_kind_of_slice_has_metrics_of_which_some_are_shown_first(
    probe: Probe,
) -> None:
    assert probe.kinds
    assert probe.headline.keys() == set(probe.kinds)
    for kind in probe.kinds:
        assert probe.headline[kind]
        assert set(probe.headline[kind]) <= SLICE_METRICS[kind].keys()
        assert probe.kind(f"{kind}-anything") == kind


@EACH
def test_what_is_said_of_a_metric_is_said_of_one_that_the_probe_has(
    probe: Probe,
) -> None:
    # Roles have opposite signs, and no figure is over them.
    assert probe.overall_metrics or probe.slicing == "role"
    assert probe.overall_needs.keys() <= probe.overall_metrics.keys()
    assert {name for pair in probe.pairs for name in pair} <= probe.metrics.keys()
    for metric, (key, value) in probe.setting_needs.items():
        assert metric in probe.metrics
        assert value in (*probe.options[key].options, probe.default(key))


@EACH
def test_the_keys_of_a_probe_are_settings_that_it_has(probe: Probe) -> None:
    fields = {field.name: field for field in dataclasses.fields(probe.settings)}
    # Which facts a slice has is settled before the probe asks.
    slicing = {"bucket_by", "slice_by"}
    assert probe.options.keys() - slicing <= fields.keys()
    for name, setting in probe.options.items():
        assert setting.help
        assert probe.default(name) == (
            fields[name].default if name in fields else setting.options[0]
        )
    worded = {"prompt_text" if name == "prompt" else name for name in probe.wording}
    assert worded <= fields.keys()
    assert probe.places.keys() <= probe.wording.keys()
    assert len(set(probe_keys(probe))) == len(probe_keys(probe)) > len(COMMON_KEYS)
    assert all(map(_own, probe.own_keys))
    assert probe.overall_by in {"", *fields}


@EACH
def test_facts_can_be_grouped_and_prepared_for_it_and_its_own_words_hold_a_question(
    probe: Probe,
) -> None:
    assert probe.slicing in _GROUPS
    assert probe.chunk > 0
    check_wording(probe.settings())
    assert "Who?" in template_of(probe.settings()).question("Who?")
