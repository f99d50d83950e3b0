from __future__ import annotations

import re
from xml.etree import ElementTree

from pytest_kbrel.records import Run
from pytest_kbrel.reports.json_report import case_properties, suite_properties, xml_text


def test_a_case_has_few_short_properties(small_run: Run) -> None:
    assert case_properties(small_run.cases[0]) == [
        ("kb_verdict", "fail"),
        ("kb_n", "120"),
        ("kb_monitor", "0.4120"),
        ("kb_pfd", "0.3000"),
        ("kb_ird", "0.2500"),
        ("kb_anchor_prob", "0.7010"),
        ("kb_accuracy", "0.5120"),
        ("kb_facts_lost", "7"),
        ("kb_facts_gained", "1"),
    ]


def test_an_undefined_metric_has_no_property(small_run: Run) -> None:
    assert [name for name, _ in case_properties(small_run.cases[4])] == [
        "kb_verdict",
        "kb_n",
        "kb_ur",
        "kb_iur",
    ]


def test_the_suite_says_which_model_against_which_baseline(small_run: Run, empty_run: Run) -> None:
    properties = dict(suite_properties(small_run))
    assert properties["kb_model"] == "reference:overconfident"
    assert properties["kb_baseline"] == "reference"
    assert properties["kb_verdict"] == "fail"
    assert dict(suite_properties(empty_run)) == {"kb_version": "0.1.0", "kb_verdict": "invalid"}


def test_hostile_text_makes_xml_that_parses(hostile_run: Run) -> None:
    pairs = suite_properties(hostile_run)
    for case in hostile_run.cases:
        pairs += case_properties(case)
    root = ElementTree.Element("properties")
    for name, value in pairs:
        assert type(name) is str
        assert type(value) is str
        assert len(value) <= 200
        ElementTree.SubElement(root, "property", name=name, value=value)
    assert len(ElementTree.fromstring(ElementTree.tostring(root, encoding="utf-8"))) == len(pairs)


def test_no_character_is_left_that_xml_forbids() -> None:
    everything = "".join(map(chr, (*range(0x300), *range(0xD7F0, 0xE010), *range(0xFFF0, 0x10010))))
    for at in range(0, len(everything), 50):
        assert not re.search(
            "[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]", xml_text(everything[at : at + 50])
        )
