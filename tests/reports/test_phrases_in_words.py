"""Each thing that stands beside the figures, in the words that readers get."""

from dataclasses import replace

import pytest

from pytest_kbrel.records import GateResult, Share, Waiver
from pytest_kbrel.reports import phrases
from tests.made_cases import told


def gate(**more):
    given = {
        "metric": "accuracy",
        "rule": "min",
        "bound": 0.5,
        "verdict": "inconclusive",
        "reasons": told("why"),
    }
    return GateResult(**{**given, **more})


@pytest.fixture
def case(small_run):
    return replace(small_run.cases[0], gates=(), metrics=(), errors=(), waiver=None)


@pytest.mark.parametrize(
    ("name", "value", "total", "limit", "noteworthy"),
    [
        ("answered", 9, 10, 1.0, True),
        ("answered", 0, 0, 0.5, False),
        ("empty", 1, 1000, 0.0, True),
        ("below_random", 2, 10, 0.2, False),
        ("below_random", 1, 10, 0.2, True),
        ("unmoved", 4, 10, 1.0, False),
        ("anchor_prob", 0.2, 10, 0.01, True),
        ("anchor_prob", 0.21, 10, 0.01, False),
    ],
)
def test_half_of_what_is_allowed_is_worth_a_note(
    name, value, total, limit, noteworthy, case
):
    share = Share(name=name, value=value, total=total, limit=limit)
    assert phrases.noteworthy(replace(case, integrity=(share,))) == (
        (share,) if noteworthy else ()
    )
    broken = replace(share, broken=True)
    assert phrases.noteworthy(replace(case, integrity=(broken,))) == (broken,)


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        (
            {"model_load_seconds": "3.2", "workers": "2"},
            ["model loaded in 3.2 s by the slowest worker"],
        ),
        ({"answers_asked": "9", "answers_reused": "0", "answers_store": "/s"}, []),
        ({"answers_resumed": "one run\nanother"}, ["one run", "another"]),
        (
            {"tokens_spent": "a: 1\nb: 2", "answers_resumed": "one run"},
            ["a: 1", "b: 2", "one run"],
        ),
        ({"answers_not_kept": ""}, ["answers are not kept: "]),
        ({"model_notes": "warning: one\na\x1bb"}, ["warning: one", "a\\x1bb"]),
    ],
)
def test_how_answers_were_come_by(environment, expected, empty_run):
    assert (
        list(
            phrases.run_notes(
                replace(empty_run, environment=tuple(environment.items()))
            )
        )
        == expected
    )


@pytest.mark.parametrize(
    ("unread", "told"),
    [
        ((5, 5), ""),
        ((6, 0), "6 % pick no option (A); they count"),
        ((6, 30), "30 % pick no option (B, 1 more above 5 %); they count"),
    ],
)
def test_more_than_a_few_unread_choices_are_told(unread, told, small_run, case):
    cases = tuple(
        replace(
            case,
            id=name,
            integrity=(Share(name="unread", value=count, total=100, limit=0.5),),
        )
        for name, count in zip("AB", unread, strict=True)
    )
    notes = [
        note
        for note in phrases.run_notes(replace(small_run, cases=cases), brief=True)
        if note.startswith("choices_unread")
    ]
    assert len(notes) == bool(told)
    assert told in "".join(notes)


def test_notes_keep_to_one_line(small_run, case):
    bad, shown = "a\x1bb", r"a\x1bb"
    names = ("model_load_seconds", "engine", "answers_store", "answers_not_kept")
    given = Waiver(owner=bad, reason=bad, expires=bad, case=bad, line=1)
    unsure = replace(
        case, id=bad, suite=bad, verdict="inconclusive", expired=(given,), errors=(bad,)
    )
    unsure = replace(unsure, gates=(gate(metric=bad, reasons=told(bad)),))
    run = replace(
        small_run,
        cases=(unsure,),
        environment=(*((name, bad) for name in names), ("answers_asked", "2")),
        base=replace(small_run.model, spec=bad),
        recorded=bad,
        differences=(bad,),
    )
    texts = [
        *phrases.run_notes(run),
        *phrases.expired_waivers(unsure),
        phrases.waiver_reason(given),
        phrases.unmeasured_note(unsure),
        phrases.share_text(Share(name=bad, value=0, total=1, limit=0.0)),
    ]
    assert len(texts) > 8
    assert all(shown in text and "\x1b" not in text for text in texts)
