"""Each thing that stands beside the figures, in the words that readers get."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pytest_kbrel.records import CaseResult, GateResult, Run, Share, Unmatched, Waiver
from pytest_kbrel.reports import phrases

STOPPED = "the session stopped before all its cases were decided"


def gate(**more: Any) -> GateResult:
    given = {
        "metric": "accuracy",
        "rule": "min",
        "bound": 0.5,
        "verdict": "inconclusive",
        "reason": "why",
    }
    return GateResult(**{**given, **more})


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("max_drop", "drop 0.250 [0.000, 0.500]"),
        ("recovery", "recovered 0.250 [0.000, 0.500]"),
    ],
)
def test_what_was_held_against_a_bound(rule: Any, expected: str) -> None:
    assert (
        phrases.observed(gate(rule=rule, observed=0.25, low=0.0, high=0.5)) == expected
    )
    assert (
        phrases.observed(gate(rule=rule, observed=0.25)) == expected.partition(" [")[0]
    )
    # Nothing is something else than none.
    assert phrases.observed(gate(rule=rule, observed=0.0)).endswith(" 0.000")
    assert phrases.observed(gate(rule=rule, low=0.0, high=0.5)) == ""


@pytest.mark.parametrize(
    ("values", "expected", "family"),
    [
        (
            {"p": 0.004, "p_sidak": 0.0},
            "p = 0.004; over the whole run: Šidák p < 0.001 (decides)",
            "Šidák p < 0.001 (decides)",
        ),
        (
            {"p": 0.711, "rule": "max_drop", "beyond": 0.04},
            "p of no drop beyond 0.04 = 0.711",
            "",
        ),
        (
            {"p": 0.0, "rule": "recovery", "beyond": 0.95, "p_holm": 0.0},
            "p of no recovery below 0.95 < 0.001; over the whole run: Holm p < 0.001",
            "Holm p < 0.001",
        ),
    ],
)
def test_p_values_that_are_known_are_told(
    values: dict[str, Any], expected: str, family: str
) -> None:
    assert phrases.corrected(gate(**values)) == expected
    assert phrases.family(gate(**values)) == family


WAIVER = Waiver(
    owner="Ann", reason="known", expires="2026-12-31", case="monitor[P30]", line=9
)


@pytest.fixture
def case(small_run: Run) -> CaseResult:
    return replace(small_run.cases[0], gates=(), metrics=(), errors=(), waiver=None)


@pytest.mark.parametrize(
    ("verdict", "expired", "expected"),
    [
        (
            "invalid",
            (),
            "waiver not used, it is for failures only: until 2026-12-31 by Ann: known",
        ),
    ],
)
def test_what_became_of_a_waiver(
    verdict: Any,
    expired: tuple[Waiver, ...],
    expected: str,
    case: CaseResult,
    small_run: Run,
) -> None:
    assert (
        phrases.waiver(
            replace(case, verdict=verdict, waiver=WAIVER, expired=expired), small_run
        )
        == expected
    )
    assert phrases.waiver(case, small_run) == ""


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("answered", "3 of 8 answered (at least 12.5 %)"),
        ("empty", "3 of 8 empty (at most 12.5 %)"),
        ("truncated", "3 of 8 cut short (at most 12.5 %)"),
        ("repeated", "3 of 8 with one and the same wrong answer (at most 12.5 %)"),
        ("errored", "3 of 8 without a usable response (at most 12.5 %)"),
        ("unparsable", "3 of 8 not read by the judge (at most 12.5 %)"),
        ("unread", "3 of 8 without a choice among the options (at most 12.5 %)"),
        ("below_random", "3 of 8 informative answers right (random answers: 12.5 %)"),
        ("constant", "3 of 8 with the same probability (at most 12.5 %)"),
    ],
)
def test_shares_of_responses_in_words(name: str, expected: str) -> None:
    assert (
        phrases.share_text(Share(name=name, value=3, total=8, limit=0.125)) == expected
    )
    assert "0 %)" in phrases.share_text(Share(name=name, value=3, total=8, limit=0.0))


@pytest.mark.parametrize(
    ("value", "limit", "expected"),
    [
        (6.4, 0.01, "mean anchor probability 0.8 over 8 facts (at least 0.01)"),
    ],
)
def test_a_mean_probability_in_words_is_no_share(
    value: float, limit: float, expected: str
) -> None:
    assert (
        phrases.share_text(Share(name="anchor_prob", value=value, total=8, limit=limit))
        == expected
    )
    none = Share(name="anchor_prob", value=0, total=0, limit=0.01)
    assert (
        phrases.share_text(none)
        == "mean anchor probability 0 over 0 facts (at least 0.01)"
    )


@pytest.mark.parametrize(
    ("name", "value", "total", "limit", "noteworthy"),
    [
        ("answered", 1, 1, 1.0, False),
        ("answered", 9, 10, 1.0, True),
        ("answered", 0, 0, 0.5, False),
        ("empty", 0, 9, 0.0, False),
        ("empty", 1, 1000, 0.0, True),
        ("below_random", 2, 10, 0.2, False),
        ("below_random", 1, 10, 0.2, True),
        ("constant", 5, 10, 1.0, True),
        ("constant", 4, 10, 1.0, False),
        ("anchor_prob", 0.2, 10, 0.01, True),
        ("anchor_prob", 0.21, 10, 0.01, False),
        ("anchor_prob", 0.0, 10, 0.01, True),
        ("anchor_prob", 0.0, 10, 0.0, False),
    ],
)
def test_half_of_what_is_allowed_is_worth_a_note(
    name: str,
    value: float,
    total: int,
    limit: float,
    noteworthy: bool,
    case: CaseResult,
) -> None:
    share = Share(name=name, value=value, total=total, limit=limit)
    assert phrases.noteworthy(replace(case, integrity=(share,))) == (
        (share,) if noteworthy else ()
    )
    broken = replace(share, broken=True)
    assert phrases.noteworthy(replace(case, integrity=(broken,))) == (broken,)


WORDS = {
    "added": "not in the baseline",
    "unasked": "not asked in this run",
    "unanswered": "without a usable response in this run",
    "waived": "left out by a waiver",
}


@pytest.mark.parametrize("name", WORDS)
def test_each_kind_of_fact_without_a_partner(
    name: str, case: CaseResult, small_run: Run
) -> None:
    one, two = Unmatched(**{name: ("a",)}), Unmatched(**{name: ("b", "a")})
    assert phrases.unmatched(one) == f"1 fact {WORDS[name]}"
    assert phrases.unmatched(two) == f"2 facts {WORDS[name]}"
    assert list(phrases.unmatched_lists(two)) == [(WORDS[name], ("b", "a"))]
    # A fact of several cases is one fact; figures over several cases have no facts of their own.
    cases = (
        replace(case, unmatched=one),
        replace(case, id="z", unmatched=two),
        replace(case, id="zz", aggregate=True, unmatched=Unmatched(**{name: ("c",)})),
    )
    assert phrases.all_unmatched(replace(small_run, cases=cases)) == Unmatched(
        **{name: ("a", "b")}
    )


@pytest.mark.parametrize(
    ("complete", "problems", "expected"),
    [
        (True, (STOPPED,), ""),
        (
            False,
            ("the session was interrupted (Ctrl-C) before all its cases were decided",),
            "",
        ),
        (
            False,
            ("another",),
            "partial run: not every case of its suites was selected and soundly decided",
        ),
    ],
)
def test_a_partial_run_says_so_once(
    complete: bool, problems: tuple[str, ...], expected: str, small_run: Run
) -> None:
    assert (
        phrases.partial_note(replace(small_run, complete=complete, problems=problems))
        == expected
    )
    assert phrases.STOPPED == STOPPED


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
def test_how_answers_were_come_by(
    environment: dict[str, str], expected: list[str], empty_run: Run
) -> None:
    assert (
        list(
            phrases.run_notes(
                replace(empty_run, environment=tuple(environment.items()))
            )
        )
        == expected
    )


def test_notes_keep_to_one_line(small_run: Run, case: CaseResult) -> None:
    assert small_run.model is not None
    bad = "a\x1bb"
    names = (
        "model_load_seconds",
        "engine",
        "answers_store",
        "answers_resumed",
        "answers_not_kept",
    )
    run = replace(
        small_run,
        cases=(case,),
        environment=(
            *((name, bad) for name in names),
            ("answers_asked", "2"),
            ("answers_reused", "1"),
        ),
        base=replace(small_run.model, spec=bad),
        recorded=bad,
        differences=(bad,),
    )
    assert list(phrases.run_notes(run)) == [
        r"model loaded in a\x1bb s; a\x1bb",
        r"1 of 2 answers reused from a\x1bb",
        r"a\x1bb",
        r"answers are not kept: a\x1bb",
        r"decided again over a\x1bb, the model was not asked",
        r"the baseline's model is a\x1bb",
        r"differs from the baseline in: a\x1bb",
    ]
    given = Waiver(owner=bad, reason=bad, expires=bad, case=bad, fact=bad, line=1)
    assert phrases.waiver_reason(given) == r"waived until a\x1bb by a\x1bb: a\x1bb"
    late = replace(case, suite=bad, expired=(given, replace(given, fact="")))
    assert all(
        line.count(r"a\x1bb") == 5 and "\x1b" not in line
        for line in phrases.expired_waivers(late)
    )
    unsure = replace(
        case,
        id=bad,
        verdict="inconclusive",
        gates=(gate(metric=bad, reason=bad), gate(metric="m", reason=bad)),
    )
    assert phrases.inconclusive_reasons(replace(small_run, cases=(unsure,))) == (
        (r"a\x1bb: a\x1bb min 0.5: a\x1bb", 1),
        (r"a\x1bb: m min 0.5: a\x1bb", 1),
    )
    assert phrases.unmeasured_note(replace(case, errors=(bad,))) == r"a\x1bb"
    assert (
        phrases.share_text(Share(name=bad, value=0, total=1, limit=0.0))
        == r"0 of 1 a\x1bb (at most 0 %)"
    )


def test_reasons_that_gates_share_are_told_together(
    small_run: Run, case: CaseResult
) -> None:
    whole = "fell by 0.1; allowed: 0.02; about 363 facts would decide, were the difference the same"
    seen = gate(
        rule="max_drop", bound=0.02, reason=whole, observed=0.1, low=-0.1, high=0.3
    )
    cases = (
        replace(
            case,
            id="monitor[a]",
            verdict="inconclusive",
            gates=(seen, gate(verdict="pass")),
        ),
        replace(
            case,
            id="monitor[b]",
            verdict="inconclusive",
            gates=(seen, gate(), gate(metric="pfd")),
        ),
        replace(case, id="monitor[c]", verdict="inconclusive", gates=(seen,)),
        # Of a case that failed, its failure tells.
        replace(
            case, id="monitor[d]", verdict="fail", gates=(seen, gate(verdict="fail"))
        ),
    )
    assert phrases.inconclusive_reasons(replace(small_run, cases=cases)) == (
        (
            "monitor[a] and 2 more: accuracy max_drop 0.02: drop 0.100 [-0.100, 0.300]; "
            "about 363 facts would decide",
            3,
        ),
        ("monitor[b]: accuracy min 0.5: why", 1),
        ("monitor[b]: pfd min 0.5: why", 1),
    )
    never = replace(
        seen,
        reason="fell; no number of facts below a million would decide",
        observed=0.0,
    )
    (text,) = phrases.inconclusive_reasons(
        replace(small_run, cases=(replace(cases[2], gates=(never,)),))
    )
    assert text[0].endswith(
        ": drop 0.000 [-0.100, 0.300]; no number of facts below a million would decide"
    )
