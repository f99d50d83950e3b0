from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_kbrel.gates import fact_changes
from pytest_kbrel.records import Fact, Table
from tests.gates.tables import MONITOR, answers, case, consistency, outcome


def monitor(*rows):
    """A MONITOR table of (right, kept, anchor), one a fact."""
    return Table(
        columns=MONITOR,
        rows=tuple(
            outcome(f"Q{at:03}", (kept, 0, 0, 0, anchor, right, right), "correct" if right else "wrong")
            for at, (right, kept, anchor) in enumerate(rows)
        ),
    )


def test_a_fact_is_lost_or_gained_where_its_label_turned():
    lost, gained = fact_changes(case(), answers("+-?+"), answers("++--"))
    assert [(c.fact_id, c.old_answer, c.new_answer) for c in lost] == [("Q001", "correct Q001", "wrong Q001")]
    assert [c.fact_id for c in gained] == ["Q003"]


def test_where_no_answer_exists_not_knowing_is_what_counts():
    table, before = consistency([("+", 1), ("?", 1)], expected=False), consistency([("?", 1), ("-", 1)])
    lost, gained = fact_changes(case(probe="reliability"), table, before)
    assert ([c.fact_id for c in lost], [c.fact_id for c in gained]) == (["Q000"], ["Q001"])


def test_a_fact_that_was_asked_in_another_way_has_not_changed():
    before = answers("++")
    other = replace(before, rows=(replace(before.rows[0], prompt_digest="another"), before.rows[1]))
    lost, _ = fact_changes(case(), answers("--"), other)
    assert [c.fact_id for c in lost] == ["Q001"]


def test_a_change_names_the_relation_and_the_bucket():
    facts = tuple(Fact(id=f"Q{at:03}", relation="P36", subject="x", object="y") for at in range(1))
    known = case(facts=facts, buckets=(("Q000", "tail"),))
    (first, second), _ = fact_changes(known, answers("--"), answers("++"))
    assert (first.relation, first.bucket) == ("P36", "tail")
    assert (second.relation, second.bucket) == ("", "")


@pytest.mark.parametrize(
    ("kept", "expected"), [((1, 1), (0.9, 0.25)), ((0, 1), (None, 0.25)), ((1, 0), (0.9, None))]
)
def test_the_anchor_of_a_fact_that_monitor_kept_is_told(kept, expected):
    (change,), _ = fact_changes(
        case(probe="monitor"), monitor((0, kept[1], 0.25)), monitor((1, kept[0], 0.9))
    )
    assert (change.old_probability, change.new_probability) == expected


def test_other_probes_have_no_anchor():
    (change,), _ = fact_changes(case(), answers("-"), answers("+"))
    assert (change.old_probability, change.new_probability) == (None, None)
