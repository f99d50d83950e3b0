"""The label of a relation beside its id, in every output."""

from dataclasses import replace

import pytest

from pytest_kbrel.records import Relation
from pytest_kbrel.reports.html.page import anchors


def relation(name, label):
    return Relation(id=name, label=label, domain="things", frames=())


@pytest.mark.parametrize(
    ("name", "label", "shown"),
    [
        ("P176", "manufacturer", "manufacturer"),
        ("P176", "P176", ""),
        ("capital_of", "capital of", ""),
        ("capital", "capital city", "capital city"),
    ],
)
def test_a_label_that_repeats_the_id_is_not_shown(name, label, shown):
    assert relation(name, label).shown_label == shown


@pytest.fixture
def labelled(small_run):
    def with_label(case):
        if case.slice != "P30":
            return case
        lost, gained = (
            tuple(replace(change, label="continent") for change in changes)
            for changes in (case.lost, case.gained)
        )
        return replace(case, label="continent", lost=lost, gained=gained)

    return replace(small_run, cases=tuple(map(with_label, small_run.cases)))


def test_links_on_the_page_are_made_of_ids(labelled, small_run):
    assert anchors(labelled) == anchors(small_run)
