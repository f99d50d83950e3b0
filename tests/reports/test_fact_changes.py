"""The sentence on lost and gained facts, and what it is made from."""

from dataclasses import replace

import pytest

from pytest_kbrel.records import Change, Churn
from pytest_kbrel.reports.changes import changed_facts, changes_headline, examples


def fact(at, relation="P108", bucket="head", **more):
    return replace(
        Change(
            fact_id=f"f{at}", question="?", expected="a", old_answer="a", new_answer="b"
        ),
        relation=relation,
        bucket=bucket,
        **more,
    )


@pytest.fixture
def run_of(small_run, make_case):
    def make(lost, gained=(), **more):
        case = make_case(
            "monitor", "P1", "fail", (), lost=tuple(lost), gained=tuple(gained)
        )
        return replace(small_run, cases=(case,), **more)

    return make


def test_the_sentence_is_the_promised_one(run_of):
    lost = [
        *(fact(at) for at in range(7)),
        *(fact(at, "P1") for at in range(7, 9)),
        *(fact(at, "P1", "tail") for at in range(9, 12)),
    ]
    gained = [fact(at, "P30", "torso") for at in range(20, 25)]
    run = run_of(lost, gained)
    assert (
        changes_headline(run)
        == "12 facts lost, 5 gained; 9 of the 12 are head; worst P108"
    )
    of_all = "12 of 1,240 facts lost, 5 gained; 9 of the 12 are head; worst P108"
    assert changes_headline(replace(run, compared=(1240, 1300))) == of_all
    parts = changed_facts(run)
    assert [(p.name, p.lost, p.gained) for p in parts.buckets] == [
        ("head", 9, 0), ("torso", 0, 5), ("tail", 3, 0),
    ]  # fmt: skip
    assert [(p.name, p.lost, p.gained) for p in parts.relations] == [
        ("P108", 7, 0), ("P1", 5, 0), ("P30", 0, 5),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("lost", "gained", "text"),
    [
        (
            [fact(1, "P2"), fact(2, "P1", "tail")],
            [],
            "2 facts lost, 0 gained; 1 of the 2 is head; worst P1 and P2",
        ),
        (
            [fact(at, f"P{at}", "tail") for at in range(3)],
            [],
            "3 facts lost, 0 gained; all of them are tail; worst P0 and 2 others",
        ),
    ],
)
def test_what_is_not_known_is_not_said(lost, gained, text, run_of):
    assert changes_headline(run_of(lost, gained)) == text


def test_no_change_is_said_only_where_facts_were_compared(small_run):
    same = [replace(case, lost=(), gained=()) for case in small_run.cases]
    some = replace(small_run, cases=tuple(same), compared=(200, 1800))
    said = "no fact lost or gained of the 200 of 1,800 facts that were compared"
    assert changes_headline(some) == said
    alone = [
        replace(case, metrics=tuple(replace(value, paired=0) for value in case.metrics))
        for case in same
    ]
    assert changes_headline(replace(small_run, cases=tuple(alone))) == ""


def test_another_model_that_answers_exactly_as_the_baseline_is_called_so(
    small_run, make_case, make_metric
):
    alike = " answers exactly as the baseline does"
    value = make_metric("accuracy", 0.5, 0.0, paired=20)
    same = make_case(
        "head_to_tail", "a", "pass", (value,), churn=Churn(facts=20, texts=0, labels=0)
    )
    model = small_run.model
    run = replace(small_run, cases=(same,), base=replace(model, weights_digest="other"))
    assert alike in changes_headline(run)
    moved = make_metric("anchor_prob", 0.5, 1e-9, paired=20)
    for cases, base in (
        ((same,), model),
        ((replace(same, churn=Churn(facts=20, texts=1, labels=0)),), run.base),
        ((replace(same, metrics=(value, moved)),), run.base),
    ):
        assert alike not in changes_headline(replace(run, cases=cases, base=base))


def test_a_fact_that_two_cases_lost_is_one_and_keeps_what_either_knows(
    small_run, make_case
):
    whole = fact(1, "P36", "", old_probability=0.9, new_probability=0.5)
    lost = ((fact(1, "", "tail"),), (whole, fact(2)))
    # Whichever comes first.
    for names in (("P1", "P2"), ("P2", "P1")):
        cases = [
            make_case("monitor", name, "fail", (), lost=changes)
            for name, changes in zip(names, lost, strict=True)
        ]
        cases.append(replace(cases[0], suite="another.kb.yaml"))
        cases.append(replace(cases[0], id="x", lost=(fact(3),), aggregate=True))
        changes = changed_facts(replace(small_run, cases=tuple(cases)))
        assert len(changes.lost) == 3
        assert replace(whole, bucket="tail") in changes.lost


@pytest.mark.parametrize(
    ("first", "second", "winner"),
    [
        (
            {"old_probability": 0.5, "new_probability": 0.5},
            {"old_probability": 0.9, "new_probability": 0.1},
            0,
        ),
        ({}, {"old_probability": 0.0, "new_probability": 0.5}, 1),
    ],
)
def test_the_change_that_tells_the_anchor_is_kept(
    first, second, winner, small_run, make_case
):
    both = [
        fact(1, "P1", "head", new_answer="b", **first),
        fact(1, "", "", new_answer="c", **second),
    ]
    cases = tuple(
        make_case("monitor", f"P{at}", "fail", (), lost=(one,))
        for at, one in enumerate(both)
    )
    (change,) = changed_facts(replace(small_run, cases=cases)).lost
    assert change == replace(both[winner], relation="P1", bucket="head")


@pytest.mark.parametrize(
    ("groups", "text"),
    [
        (["tail", "torso"], "1 of the 2 is torso"),
        (["tail", "tail", "head", "head", "torso"], ""),
        (["", "tail"], "1 of the 2 is tail"),
        (["", "", "tail"], ""),
    ],
)
def test_the_group_that_half_of_the_lost_facts_are_in(groups, text, run_of):
    def lost(names):
        return [
            replace(fact(at, bucket=""), expected="")
            if name == "unanswerable"
            else fact(at, bucket=name)
            for at, name in enumerate(names)
        ]

    for names in (groups, groups[::-1]):
        parts = changes_headline(run_of(lost(names))).split("; ")
        assert parts[1:-1] == ([text] if text else [])


def test_the_facts_that_moved_furthest_come_first(run_of):
    lost = [
        fact(1),
        fact(2, old_probability=0.5, new_probability=0.4),
        fact(3, old_probability=0.9, new_probability=0.1),
    ]
    assert [change.fact_id for change in changed_facts(run_of(lost)).lost] == [
        "f3",
        "f2",
        "f1",
    ]


def test_facts_that_carried_the_verdict_come_first(small_run, make_case):
    far = {"old_probability": 0.9, "new_probability": 0.1}
    unseen = [replace(fact(at, "unseen", ""), expected="") for at in range(8)]
    capitals = [fact(at, "P36", "tail", **far) for at in range(20, 23)]
    rivers = [fact(at, "P30", "tail") for at in range(30, 32)]
    cases = (
        make_case("monitor", "P36", "pass", (), lost=tuple(capitals)),
        make_case("reliability", "unseen", "fail", (), lost=(*rivers, *unseen)),
    )
    changes = changed_facts(replace(small_run, cases=cases))
    order = ["unseen", "P30", *["unseen"] * 7, "P30", *["P36"] * 3]
    assert [change.relation for change in changes.lost] == order
    # The buckets add up to all facts.
    assert {part.name: part.lost for part in changes.buckets} == {
        "tail": 5,
        "unanswerable": 8,
    }


def test_of_a_few_examples_each_stands_for_a_group_the_largest_first():
    unseen = [replace(fact(at, "unseen-dates", ""), expected="") for at in range(148)]
    others = [
        fact(at, "P36", "tail", old_probability=0.9, new_probability=0.1)
        for at in range(200, 210)
    ]
    few = fact(300, "P30", "head")
    changes = [few, *others, *unseen]
    assert [change.relation for change in examples(changes, 4)] == [
        "unseen-dates", "P36", "P30", "unseen-dates",
    ]  # fmt: skip
    assert examples(changes, 1) == (unseen[0],)
    assert len(examples(changes, 1000)) == 159
    assert examples((), 3) == ()
