"""Each share of what is sound: how it is counted, its limit from both sides, and what is said beyond it."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import pytest

from pytest_kbrel.gates import Soundness, check_integrity, unsound_suites
from pytest_kbrel.gates.integrity import count, percent
from pytest_kbrel.records import (
    Case,
    CaseResult,
    Fact,
    Integrity,
    MonitorSettings,
    ReliabilitySettings,
    Share,
    Table,
)
from pytest_kbrel.serialization import from_wire, to_wire
from tests.gates.tables import (
    HEAD_TO_TAIL,
    MONITOR,
    answers,
    case,
    consistency,
    decided,
    gate,
    outcome,
)

BARE = case(
    probe="reliability",
    slice="known-zero-shot",
    settings=ReliabilitySettings(prompt="zero-shot"),
)
OF_MONITOR = case(probe="monitor", slice="P36", settings=MonitorSettings())
Made = tuple[Table, Sequence[str], Case | None]


def soundness(
    table: Table, errors: Sequence[str] = (), of: Case | None = None, **limits: Any
) -> Soundness:
    """Hold a table against the default limits but for those given."""
    asked = dataclasses.replace(of or case(), integrity=Integrity(**limits))
    return check_integrity(asked, table, errors)


def share(sound: Soundness, name: str) -> Share | None:
    return next((one for one in sound.shares if one.name == name), None)


def said(table: Table, *texts: str) -> Table:
    """The table with these answers."""
    rows = (
        dataclasses.replace(row, answer=text)
        for row, text in zip(table.rows, texts, strict=True)
    )
    return Table(columns=table.columns, rows=tuple(rows))


def some(empty: int, of: int) -> Table:
    """A table of so many empty answers; the others differ."""
    texts = [" "] * empty + [f"city {number}" for number in range(of - empty)]
    return said(answers("+" * of), *texts)


def ruled(*rules: str) -> Table:
    rows = zip(answers("+" * len(rules)).rows, rules, strict=True)
    ruled_rows = tuple(dataclasses.replace(row, rule=rule) for row, rule in rows)
    return Table(columns=HEAD_TO_TAIL, rows=ruled_rows)


def judged(unread: int, of: int) -> Table:
    return ruled(*["unparsable"] * unread, *["judge"] * (of - unread))


def chosen(unread: float, of: float) -> Table:
    row = outcome("Q1", (of, unread), "correct")
    return Table(columns=("choices", "choices_unread"), rows=(row,))


def anchored(*anchors: float, kept: Sequence[float] = ()) -> Table:
    kept = kept or (1.0,) * len(anchors)
    rows = tuple(
        outcome(f"Q{n:03}", (keep, 0.1, 0.2, 0.2, anchor, 1, 1), "correct")
        for n, (anchor, keep) in enumerate(zip(anchors, kept, strict=True))
    )
    return Table(columns=MONITOR, rows=rows)


def first_tokens(written: int, right: int, wrong: int = 0) -> Table:
    """Right answers, of which some begin with the scored token; no wrong one does."""
    rows = (
        outcome(
            f"Q{n}", (1, 0.4 + n / 1000, float(n < written), float(n < right)), "wrong"
        )
        for n in range(right + wrong)
    )
    columns = ("kept", "anchor", "first_token", "cell:none:0")
    return Table(columns=columns, rows=tuple(rows))


def continents(
    objects: str, aliases: Sequence[str] = (), relation: str = "P30"
) -> Case:
    """Countries Q000, Q001, ... on the continents of these letters; x is one without an answer."""
    facts = tuple(
        Fact(
            id=f"Q{n:03}",
            relation=relation.replace("#", str(n)),
            subject=f"S{n}",
            object=None if letter == "x" else letter,
            aliases=tuple(aliases[n : n + 1]),
        )
        for n, letter in enumerate(objects)
    )
    return case(facts=facts)


FIVE = continents("abcde" * 8)
WRONG = answers("-" * 10, answer="The Paris!")
TWICE = Table(columns=HEAD_TO_TAIL, rows=answers("+-").rows * 3)


@pytest.mark.parametrize(
    ("made", "limits", "name", "counted", "broken"),
    [
        # Facts without response are reported, or went missing; others were asked for nothing.
        ((answers("+-"), ["a"] * 3, None), {}, "errored", (3, 5), True),
        ((answers("+-"), ["a"], continents("abcdefg")), {}, "errored", (5, 7), True),
        ((answers("+-"), [], continents("a")), {}, "errored", (0, 2), False),
        ((answers("+++"), ["a"], None), {"errored": 0.25}, "errored", (1, 4), False),
        ((some(2, 4), [], None), {}, "empty", (2, 4), False),
        ((some(1, 4), [], None), {"empty": 0.2}, "empty", (1, 4), True),
        # 0.29 * 100 is 28.999999999999996, and 0.55 * 100 is 55.00000000000001.
        ((some(29, 100), [], None), {"empty": 0.29}, "empty", (29, 100), False),
        ((some(45, 100), [], None), {"answered": 0.55}, "answered", (55, 100), False),
        ((some(1, 4), [], None), {"answered": 0.8}, "answered", (3, 4), True),
        # A thought is no answer, what stands behind it is one.
        ((said(answers("++"), "<think>", "<think>x</think>Lima"), [], None), {},
         "answered", (1, 2), False),
        ((answers("-?+", truncated=True), [], None), {}, "truncated", (3, 3), True),
        ((answers("-+", truncated=True), [], None), {"truncated": 1.0}, "truncated",
         (2, 2), False),
        # MONITOR's answers are short: what is cut off says nothing.
        ((anchored(0.4, 0.5), [], OF_MONITOR), {}, "truncated", None, False),
        ((judged(2, 10), [], None), {}, "unparsable", (2, 10), True),
        ((ruled("judge", "unparsable", "equal", "unsure"), [], None), {}, "unparsable",
         (1, 2), True),
        ((chosen(10, 20), [], None), {}, "unread", (10, 20), False),
        ((chosen(11, 20), [], None), {}, "unread", (11, 20), True),
        ((chosen(0, 0), [], None), {}, "unread", None, False),
        # One wrong answer to almost everything: a constant model is perfectly consistent.
        ((WRONG, [], None), {}, "repeated", (10, 10), True),
        ((WRONG, [], None), {"repeated": 1.0}, "repeated", (10, 10), False),
        ((answers("-" * 9, answer="Paris"), [], None), {}, "repeated", (9, 9), False),
        ((answers("+" + "-" * 9, answer="Africa"), [], None), {}, "repeated", (9, 10),
         False),
        ((said(answers("-" * 12), "Rome", *["The Paris"] * 6, *["paris."] * 5), [], None),
         {"repeated": 0.9}, "repeated", (11, 12), True),
        # All probabilities equal: a log-probability of 0.0, or what stands in for a missing one.
        ((anchored(*[0.5] * 10), [], OF_MONITOR), {}, "constant", (10, 10), True),
        ((anchored(*[0.5] * 9), [], OF_MONITOR), {}, "constant", (9, 9), False),
        ((anchored(*[0.123456789] * 9, 0.1234567891), [], OF_MONITOR), {}, "constant",
         (10, 10), True),
        ((anchored(*[0.123456789] * 9, 0.123456788), [], OF_MONITOR), {}, "constant",
         (9, 10), False),
        ((anchored(*[0.5] * 10), [], OF_MONITOR), {"constant": "allowed"}, "constant",
         (10, 10), False),
        ((anchored(*[0.0] * 10, 0.4, 0.7, kept=[0] * 10 + [1, 1]), [], OF_MONITOR), {},
         "constant", (1, 2), False),
        # No probability for the right answer: MONITOR divides by it.
        ((anchored(*[0.005, 0.015] * 5), [], OF_MONITOR), {}, "anchor_prob", (0.1, 10), False),
        ((anchored(*[0.005, 0.0149] * 5), [], OF_MONITOR), {}, "anchor_prob", (0.0995, 10), True),
        ((anchored(*[0.005] * 9), [], OF_MONITOR), {}, "anchor_prob", (0.045, 9), False),
        ((anchored(*[0.005, 0.0149] * 5), [], OF_MONITOR), {"anchor_prob": 0.005},
         "anchor_prob", (0.0995, 10), False),
        ((anchored(0.0, 0.0, kept=[0, 0]), [], OF_MONITOR), {"anchor_prob": 0.0},
         "anchor_prob", (0, 2), True),
        ((anchored(0.0, math.nan), [], OF_MONITOR), {}, "anchor_prob", None, False),
        # Right answers that do not begin with what is scored.
        ((first_tokens(10, 20), [], OF_MONITOR), {}, "first_token", (10, 20), False),
        ((first_tokens(9, 20, 5), [], OF_MONITOR), {}, "first_token", (9, 20), False),
        ((first_tokens(0, 9, 20), [], OF_MONITOR), {}, "first_token", (0, 9), False),
        ((anchored(0.4, 0.5), [], OF_MONITOR), {}, "first_token", None, False),
        # Answers that are worse than drawn by lot: Wilson's interval must lie below, over ten at least.
        ((answers("-" * 40), [], FIVE), {}, "below_random", (0, 40), True),
        ((answers("+" * 3 + "-" * 37), [], FIVE), {}, "below_random", (3, 40), True),
        ((answers("+" * 4 + "-" * 36), [], FIVE), {}, "below_random", (4, 40), False),
        ((answers("-" * 40), [], FIVE), {"below_random": "allowed"}, "below_random",
         (0, 40), False),
    ],
)  # fmt: skip
def test_each_share_is_counted_and_held_against_its_limit(
    made: Made,
    limits: dict[str, Any],
    name: str,
    counted: tuple[float, int] | None,
    broken: bool,
) -> None:
    table, errors, of = made
    one = share(soundness(table, errors, of, **limits), name)
    if counted is None:
        assert one is None
    else:
        assert one is not None
        assert (one.value, one.total) == pytest.approx(counted)
        assert one.broken == broken


THINKS = (
    "raise max_thinking_tokens of --kb-model-args, unless the thoughts end nowhere (the chat template does "
    "not suit the model)"
)
NO_SUIT = "the chat template or the tokenizer does not suit the model, or it knows nothing of this"


@pytest.mark.parametrize(
    ("made", "limits", "said"),
    [
        ((answers("+-?"), [], None), {}, []),
        ((answers("+"), list("abcd"), None), {},
         ["4 facts without usable responses: a; b; c; and 1 more; allowed: none"]),
        ((answers("+-"), [], continents("abcdefg")), {},
         ["5 facts without usable responses: nothing is known of them; allowed: none"]),
        ((answers("+" * 99), ["a"], None), {"errored": 0.005},
         ["1 fact without usable responses: a; allowed: at most 0.5%"]),
        ((answers(""), ["a"], None), {"errored": 1.0},
         ["no fact was measured: zero outcomes are no measurement; allowed: at least one fact"]),
        ((TWICE, [], None), {}, ["4 facts measured more than once: fact ids must differ"]),
        ((chosen(math.inf, math.nan), [], None), {},
         ["values that are no number for 1 of 1 facts (first: Q1); allowed: none"]),
        ((some(3, 4), [], None), {},
         ["3 of 4 answers are empty; allowed: at most 50%: the model answers nothing, or its prompts or stop "
          "strings do not suit it"]),
        ((said(answers("????"), "<think>\nPeru", "", "Answer:", "Lima"), [], None), {},
         ["3 of 4 answers are empty, 2 of them but for thoughts or mark-up; allowed: at most 50%: the model "
          "thinks where it should answer, see enable_thinking and max_thinking_tokens of --kb-model-args, or "
          "writes mark-up alone"]),
        # Whoever comes to no answer needs longer thoughts and not longer answers.
        ((answers("---", answer="", truncated=True), [], None), {},
         [f"3 of 3 answers are empty, 3 of them cut short before an answer; allowed: at most 50%: {THINKS}",
          f"3 of 3 answers are cut short; allowed: at most 50%: {THINKS}"]),
        ((answers("++-", truncated=True), [], None), {},
         ["3 of 3 answers are cut short; allowed: at most 50%: raise max_new_tokens in the suite, unless the "
          "model does not stop (its end token or prompts do not suit it)"]),
        # Too few answers are told where nothing else has said so.
        ((some(3, 4), [], None), {"empty": 1.0},
         ["1 of 4 facts have an answer; allowed: at least 50%: see what is empty and what has no usable "
          "response"]),
        ((judged(1, 1), [], None), {},
         ["1 of 1 reply of the judge cannot be read; allowed: at most 10%: this model cannot judge, or its "
          "chat template is missing"]),
        ((chosen(3, 5), [], None), {},
         ["3 of 5 replies to multiple-choice questions pick no option; allowed: at most 50%: nothing then "
          "tells whether the model keeps to its answers"]),
        ((chosen(3, 5), [], BARE), {},
         ["3 of 5 replies to multiple-choice questions pick no option; allowed: at most 50%: nothing then "
          "tells whether the model keeps to its answers; the slices known and known-few-shot show solved "
          "ones first"]),
        ((answers("-" * 10, answer="x" * 61), [], None), {},
         [f"10 of 10 facts get the same wrong answer, '{'x' * 60}'; allowed: at most 90%: the model does not "
          "answer the question, or its prompts or chat template do not suit it; an answer that says nothing "
          "belongs into the suite's 'uninformative' file"]),
        ((answers("-" * 40), [], FIVE), {},
         ["0 of 40 informative answers are right (at most 8.76%, Wilson's interval); allowed: at least the "
          "20% that random objects of the relation are: the accepted answers, the judge or the prompts do "
          "not suit the model"]),
        ((anchored(*[0.25] * 10), [], OF_MONITOR), {},
         ["the probabilities of all 10 anchors are equal (0.25); allowed: at least two that differ: the "
          "model's scores do not depend on the question"]),
        ((anchored(*[1e-7, 2e-7, 3e-7] * 4), [], OF_MONITOR), {},
         ["the right answer gets no probability behind the prompt that states it (mean 2e-07 over 12 facts); "
          f"allowed: a mean of at least 0.01: {NO_SUIT}"]),
        ((anchored(*[0.0] * 99, 0.9, kept=[0] * 99 + [1]), [], OF_MONITOR), {},
         ["the right answer gets no probability behind the prompt that states it (mean 0.009 over 100 facts, "
          f"99 of which were dropped); allowed: a mean of at least 0.01: {NO_SUIT}"]),
        ((anchored(0.0, 0.0, kept=[0, 0]), [], OF_MONITOR), {},
         ["the right answer is written behind the prompt that states it for none of 2 facts, so that none is "
          f"left to measure; allowed: at least one: {NO_SUIT}"]),
    ],
)  # fmt: skip
def test_what_is_said_beyond_a_limit(
    made: Made, limits: dict[str, Any], said: list[str]
) -> None:
    assert list(soundness(*made, **limits).broken) == said


def test_an_unsound_case_is_invalid_and_its_values_travel() -> None:
    rows = (*answers("++").rows, outcome("QX", (1, 0, math.nan, 0), "correct"))
    result = decided(
        case(gate("accuracy", "min", 0.0)), Table(columns=HEAD_TO_TAIL, rows=rows)
    )
    (error,) = result.errors
    assert (result.verdict, result.metrics) == ("invalid", ())
    assert [(one.verdict, one.reason) for one in result.gates] == [
        ("invalid", f"not judged: {error}")
    ]
    assert (result.n, len(result.table.rows)) == (3, 2)
    assert from_wire(type(result), to_wire(result)) == result
    # Nor is a case without gates sound for it.
    assert decided(OF_MONITOR, anchored(*[1e-5, 2e-5] * 5)).verdict == "invalid"
    assert decided(case(), answers("++-", truncated=True)).truncated == 3


def test_errors_within_the_limit_are_kept_beside_the_figures() -> None:
    lenient = case(gate("accuracy", "min", 1.0), integrity=Integrity(errored=0.25))
    result = decided(lenient, answers("+++"), errors=["Q9 (answer): timeout"])
    assert (result.verdict, result.n) == ("pass", 3)
    assert result.errors == ("Q9 (answer): timeout",)


def test_every_share_is_reported_also_within_its_limit() -> None:
    result = decided(case(), said(answers("+-?-"), "Lima", "Rome", "", "Rome"))
    assert result.verdict == "pass"
    assert {
        (one.name, one.value, one.total, one.limit, one.broken)
        for one in result.integrity
    } == {
        ("answered", 3, 4, 0.5, False),
        ("errored", 0, 4, 0.0, False),
        ("empty", 1, 4, 0.5, False),
        ("truncated", 0, 4, 0.5, False),
        ("repeated", 2, 4, 0.9, False),
    }
    missing = soundness(answers(""), ["Q1: gone"])
    assert [one.name for one in missing.shares] == ["answered", "errored"]


@pytest.mark.parametrize(
    ("slices", "limits", "told"),
    [
        ([(9, 20)], {}, "9 of 20 right answers begin"),
        ([(2, 9), (8, 11)], {}, ""),
        ([(4, 9), (5, 11)], {}, "9 of 20 right answers begin"),
        ([(4, 9), (5, 11)], {"first_token": 0.45}, ""),
        ([(0, 9)], {}, ""),
    ],
)
def test_what_is_scored_is_what_is_written_over_all_relations(
    slices: Sequence[tuple[int, int]], limits: dict[str, float], told: str
) -> None:
    of = dataclasses.replace(OF_MONITOR, integrity=Integrity(**limits))
    results = [decided(of, first_tokens(*counts)) for counts in slices]
    assert "invalid" not in {result.verdict for result in results}
    says = [text for text in unsound_suites(results) if "MONITOR" in text]
    assert (told in "".join(says)) if told else not says


@pytest.mark.parametrize(
    ("anchors", "told"),
    [
        ([1e-5] * 3, ""),
        ([1e-5] * 5, "over 10 facts); allowed: a mean of at least 0.01"),
        ([0.01] * 5, ""),
    ],
)
def test_few_facts_without_probability_are_told_over_all_relations(
    anchors: list[float], told: str
) -> None:
    results = [
        decided(OF_MONITOR, anchored(*anchors[1:], anchors[0] * 1.01)) for _ in "ab"
    ]
    assert {result.verdict for result in results} == {"pass"}
    says = "".join(unsound_suites(results))
    assert (told in says) if told else "MONITOR" not in says


# Answers that say nothing, by the rule that found them, and those that a judge left undecided.
@pytest.mark.parametrize(
    ("rule", "counts"),
    [
        *((rule, False) for rule in ("repetition", "none", "unsure", "unparsable")),
        *((rule, True) for rule in ("judge", "variant", "")),
    ],
)
def test_which_answers_are_informative(rule: str, counts: bool) -> None:
    of, allowed = continents("abcde" * 2), {"below_random": "allowed", "repeated": 0.8}
    wrong = soundness(answers("-" * 10, answer="Paris", rule=rule), of=of, **allowed)
    repeated = share(wrong, "repeated")
    assert repeated is not None
    assert repeated.value == (10 if counts else 0)
    assert (share(wrong, "below_random") is not None) is counts
    quiet = [dataclasses.replace(head_to_tail("-" * 10, rule=rule), verdict="pass")]
    assert bool(list(unsound_suites(quiet))) is not counts


@pytest.mark.parametrize(
    ("of", "chance"),
    [
        (continents("ab"), None),  # one other object is no draw
        (continents("abb"), (0.5 * 2 + 0) / 3),  # a draws from b alone
        (continents("abc", ["b"]), (0.5 + 0 + 0) / 3),  # either is right for the first
        (continents("abc", ["A!"]), None),  # another spelling of its own object
        (continents("aabx"), (0.5 * 2 + 0) / 3),  # what has no answer is not drawn
        (continents("aAb"), (0.5 * 2 + 0) / 3),  # another spelling is no other object
        (continents("ab!", ["?"] * 3), None),  # a name without a spelling is no object
        (continents("abc", relation="P#"), None),  # nor are those of other relations
        (continents("aabc", ["", "", "a"]), (1 / 3 + 1 / 3 + 1 / 2 + 0) / 4),
        (continents("abab", ["b", "a"] * 2), 1.0),  # either is right for all
    ],
)
def test_the_chance_of_a_random_object(of: Case, chance: float | None) -> None:
    one = share(soundness(answers("-" * len(of.facts)), of=of), "below_random")
    assert (None if one is None else one.limit) == (
        None if chance is None else pytest.approx(chance)
    )


@pytest.mark.parametrize("marks", ["+", "-", "?", "+-", "---", "+?-"])
def test_tiny_cases_are_measured(marks: str) -> None:
    of = dataclasses.replace(
        continents("a" * len(marks)), gates=(gate("accuracy", "min", 0.0),)
    )
    result = decided(of, answers(marks, answer="Paris"))
    assert (result.verdict, result.n) == ("pass", len(marks))


def test_numbers_in_words() -> None:
    shares = (0.0, 0.005, 1 / 3, 1.0, 0.08764)
    assert [percent(one) for one in shares] == ["0%", "0.5%", "33.3%", "100%", "8.76%"]
    assert [count(n, "reply", "replies") for n in (1, 2)] == ["1 reply", "2 replies"]
    assert count(0, "fact") == "0 facts"


def head_to_tail(marks: str, answer: str = "unsure", **more: Any) -> CaseResult:
    made = answers(marks, answer=answer, **more)
    return decided(case(slice="a-tail"), made)


def unseen(marks: str) -> CaseResult:
    rows = consistency([(mark, 0.0) for mark in marks], expected=False)
    return decided(case(probe="reliability", slice="unseen-zero-shot"), rows)


@pytest.mark.parametrize(
    ("results", "told"),
    [
        (
            (head_to_tail("?" * 11), head_to_tail("??", "I don't know."), unseen("???")),
            ["suites/world.kb.yaml: the model says nothing: none of 16 answers is informative (11 times "
             "'unsure'), although 13 of the questions have an answer; allowed: at least one: prompts, chat "
             "template or max_new_tokens do not suit the model, or it does not answer questions"],
        ),
        ((), []),
        # Of fewer facts an honest model may know none, and nobody can answer what is unseen.
        ((head_to_tail("?" * 9), unseen("?" * 20)), []),
        ((unseen("?" * 30),), []),
        ((head_to_tail("?" * 30 + "-"),), []),
        ((head_to_tail("?" * 30 + "+"),), []),
        # It answers what it cannot know.
        ((head_to_tail("?" * 30), unseen("??-")), []),
        # The case has said already what is wrong with these.
        ((head_to_tail("?" * 30, answer=""),), []),
    ],
)  # fmt: skip
def test_a_model_that_says_nothing(
    results: tuple[CaseResult, ...], told: list[str]
) -> None:
    assert list(unsound_suites(results)) == told


def test_each_suite_is_looked_at_alone_and_long_answers_are_cut() -> None:
    quiet = head_to_tail("?" * 10, answer="unsure " * 100)
    other = dataclasses.replace(quiet, suite="a.kb.yaml")
    third = dataclasses.replace(head_to_tail("?" * 10 + "+"), suite="c.kb.yaml")
    told = list(unsound_suites([quiet, other, third]))
    suites = [line.partition(":")[0] for line in told]
    assert suites == ["a.kb.yaml", "suites/world.kb.yaml"]
    assert len(told[0]) < 350
