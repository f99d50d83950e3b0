"""Each share of what is sound: how it is counted, its limit from both sides, and what is said beyond it."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import pytest

from pytest_kbrel.gates import Soundness, check_integrity, unsound_suites
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


def first_tokens(
    written: int, right: int, wrong: int = 0, says: str = "{n} is the city", **more: Any
) -> Table:
    """Right answers, of which some begin with the scored token; no wrong one does."""
    rows = (
        outcome(
            f"Q{n}",
            (1, 0.4 + n / 1000, float(n < written), float(n < right)),
            "wrong",
            answer=says.format(n=n),
            **more,
        )
        for n in range(right + wrong)
    )
    columns = ("kept", "anchor", "first_token", "cell:none:0")
    return Table(columns=columns, rows=tuple(rows))


def still(unmoved: int, of: int, anchor: float = 0.6, term: float = 0.0) -> Table:
    """Facts with different anchors; some have one probability behind all prompts, or nearly so."""
    rows = tuple(
        outcome(
            f"Q{n:03}",
            (1, 0.1, 0.2, term if n < unmoved else 0.2, anchor - n * 1e-9, 1, 1),
            "correct",
        )
        for n in range(of)
    )
    return Table(columns=MONITOR, rows=rows)


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
    ("sound", "name", "counted", "broken"),
    [
        # Facts without response are reported, or went missing; others were asked for nothing.
        (soundness(answers("+-"), errors=["a"], of=continents("abcdefg")), "errored", (5, 7), True),
        (soundness(answers("+++"), errors=["a"], errored=0.25), "errored", (1, 4), False),
        (soundness(some(2, 4)), "empty", (2, 4), False),
        # 0.29 * 100 is 28.999999999999996, and 0.55 * 100 is 55.00000000000001.
        (soundness(some(29, 100), empty=0.29), "empty", (29, 100), False),
        (soundness(some(45, 100), answered=0.55), "answered", (55, 100), False),
        (soundness(some(1, 4), answered=0.8), "answered", (3, 4), True),
        # A thought is no answer, what stands behind it is one.
        (soundness(said(answers("++"), "<think>", "<think>x</think>Lima")),
         "answered", (1, 2), False),
        # MONITOR's answers are short: what is cut off says nothing.
        (soundness(anchored(0.4, 0.5), of=OF_MONITOR), "truncated", None, False),
        (soundness(judged(2, 10)), "unparsable", (2, 10), True),
        (soundness(chosen(10, 20)), "unread", (10, 20), False),
        (soundness(chosen(11, 20)), "unread", (11, 20), True),
        # One wrong answer to almost everything: a constant model is perfectly consistent.
        (soundness(WRONG), "repeated", (10, 10), True),
        (soundness(answers("-" * 9, answer="Paris")), "repeated", (9, 9), False),
        (soundness(said(answers("-" * 12), "Rome", *["The Paris"] * 6, *["paris."] * 5), repeated=0.9), "repeated", (11, 12), True),
        # No probability for the right answer: MONITOR divides by it.
        (soundness(anchored(*[0.005, 0.015] * 5), of=OF_MONITOR), "anchor_prob", (0.1, 10), False),
        (soundness(anchored(*[0.005, 0.0149] * 5), of=OF_MONITOR), "anchor_prob", (0.0995, 10), True),
        (soundness(anchored(*[0.005] * 9), of=OF_MONITOR), "anchor_prob", (0.045, 9), False),
        (soundness(anchored(0.0, 0.0, kept=[0, 0]), of=OF_MONITOR, anchor_prob=0.0),
         "anchor_prob", (0, 2), True),
        (soundness(anchored(0.0, math.nan), of=OF_MONITOR), "anchor_prob", None, False),
        # Right answers that do not begin with what is scored.
        (soundness(first_tokens(10, 20), of=OF_MONITOR), "first_token", (10, 20), False),
        (soundness(first_tokens(9, 20, 5), of=OF_MONITOR), "first_token", (9, 20), False),
        (soundness(first_tokens(0, 10), of=OF_MONITOR), "first_token", (0, 10), True),
        # Nor do wrong ones that are sentences: different, and nearly all begin with one word.
        (soundness(first_tokens(0, 0, 20, "The city is {n}."), of=OF_MONITOR), "first_token",
         (0, 20), True),
        (soundness(first_tokens(0, 0, 20, "The city"), of=OF_MONITOR), "first_token", None, False),
        (soundness(first_tokens(0, 0, 20, "The Hague {n}", expected="The Bronx"), of=OF_MONITOR),
         "first_token", None, False),
        # What no prompt moves is not measured by MONITOR.
        (soundness(still(9, 10), of=OF_MONITOR), "unmoved", (9, 10), False),
        (soundness(still(10, 10), of=OF_MONITOR), "unmoved", (10, 10), True),
        # A model that is nearly sure moves in the last digits.
        (soundness(still(10, 10, 1 - 1e-5, 1e-8), of=OF_MONITOR), "unmoved", (0, 10), False),
        # Answers that are worse than drawn by lot: Wilson's interval must lie below, over ten at least.
        (soundness(answers("+" * 3 + "-" * 37), of=FIVE), "below_random", (3, 40), True),
        (soundness(answers("+" * 4 + "-" * 36), of=FIVE), "below_random", (4, 40), False),
        (soundness(answers("-" * 40), of=FIVE, below_random="allowed"), "below_random",
         (0, 40), False),
    ],
)  # fmt: skip
def test_each_share_is_counted_and_held_against_its_limit(
    sound: Soundness, name: str, counted: tuple[float, int] | None, broken: bool
) -> None:
    one = share(sound, name)
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
    ("sound", "said"),
    [
        (soundness(answers("+-?")), []),
        (soundness(answers("+"), errors=list("abcd")),
         ["4 facts without usable responses: a; b; c; and 1 more; allowed: none"]),
        (soundness(answers("+-"), of=continents("abcdefg")),
         ["5 facts without usable responses: nothing is known of them; allowed: none"]),
        (soundness(answers("+" * 99), errors=["a"], errored=0.005),
         ["1 fact without usable responses: a; allowed: at most 0.5%"]),
        (soundness(answers(""), errors=["a"], errored=1.0),
         ["no fact was measured: zero outcomes are no measurement; allowed: at least one fact"]),
        (soundness(TWICE), ["4 facts measured more than once: fact ids must differ"]),
        (soundness(chosen(math.inf, math.nan)),
         ["values that are no number for 1 of 1 facts (first: Q1); allowed: none"]),
        (soundness(some(3, 4)),
         ["3 of 4 answers are empty; allowed: at most 50%: the model answers nothing, or its prompts or stop "
          "strings do not suit it"]),
        (soundness(said(answers("????"), "<think>\nPeru", "", "Answer:", "Lima")),
         ["3 of 4 answers are empty, 2 of them but for thoughts or mark-up; allowed: at most 50%: the model "
          "thinks where it should answer, see enable_thinking and max_thinking_tokens of --kb-model-args, or "
          "writes mark-up alone"]),
        # Whoever comes to no answer needs longer thoughts and not longer answers.
        (soundness(answers("---", answer="", truncated=True)),
         [f"3 of 3 answers are empty, 3 of them cut short before an answer; allowed: at most 50%: {THINKS}",
          f"3 of 3 answers are cut short; allowed: at most 50%: {THINKS}"]),
        (soundness(answers("++-", truncated=True)),
         ["3 of 3 answers are cut short; allowed: at most 50%: raise max_new_tokens in the suite, unless the "
          "model does not stop (its end token or prompts do not suit it)"]),
        # Too few answers are told where nothing else has said so.
        (soundness(some(3, 4), empty=1.0),
         ["1 of 4 facts have an answer; allowed: at least 50%: see what is empty and what has no usable "
          "response"]),
        (soundness(judged(1, 1)),
         ["1 of 1 reply of the judge cannot be read; allowed: at most 10%: this model cannot judge, or its "
          "chat template is missing"]),
        (soundness(chosen(3, 5)),
         ["3 of 5 replies to multiple-choice questions pick no option; allowed: at most 50%: nothing then "
          "tells whether the model keeps to its answers"]),
        (soundness(chosen(3, 5), of=BARE),
         ["3 of 5 replies to multiple-choice questions pick no option; allowed: at most 50%: nothing then "
          "tells whether the model keeps to its answers; the slices known and known-few-shot show solved "
          "ones first"]),
        (soundness(answers("-" * 10, answer="x" * 61)),
         [f"10 of 10 facts get the same wrong answer, '{'x' * 60}'; allowed: at most 90%: the model does not "
          "answer the question, or its prompts or chat template do not suit it; an answer that says nothing "
          "belongs into the suite's 'uninformative' file"]),
        (soundness(answers("-" * 40), of=FIVE),
         ["0 of 40 informative answers are right (at most 8.76%, Wilson's interval); allowed: at least the "
          "20% that random objects of the relation are: the accepted answers, the judge or the prompts do "
          "not suit the model"]),
        (soundness(still(10, 10), of=OF_MONITOR), ["10 of 10 right answers have one and the same "
          "probability behind all of their prompts; allowed: at most 90%: the prompts do not reach the model "
          "whole, or its scores do not depend on them"]),
        (soundness(anchored(*[1e-7, 2e-7, 3e-7] * 4), of=OF_MONITOR),
         ["the right answer gets no probability behind the prompt that states it (mean 2e-07 over 12 facts); "
          f"allowed: a mean of at least 0.01: {NO_SUIT}"]),
        (soundness(anchored(*[0.0] * 99, 0.9, kept=[0] * 99 + [1]), of=OF_MONITOR),
         ["the right answer gets no probability behind the prompt that states it (mean 0.009 over 100 facts, "
          f"99 of which were dropped); allowed: a mean of at least 0.01: {NO_SUIT}"]),
        (soundness(anchored(0.0, 0.0, kept=[0, 0]), of=OF_MONITOR),
         ["the right answer is written behind the prompt that states it for none of 2 facts, so that none is "
          f"left to measure; allowed: at least one: {NO_SUIT}"]),
    ],
)  # fmt: skip
def test_what_is_said_beyond_a_limit(sound: Soundness, said: list[str]) -> None:
    assert list(sound.broken) == said


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


@pytest.mark.parametrize(
    ("slices", "limits", "told"),
    [
        ([(9, 20)], {}, "9 of 20 answers begin"),
        ([(2, 9), (8, 11)], {}, ""),
        ([(4, 9), (5, 11)], {}, "9 of 20 answers begin"),
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


def test_few_facts_that_no_prompt_moves_are_told_over_all_relations() -> None:
    results = [decided(OF_MONITOR, still(5, 5)) for _ in "ab"]
    assert {result.verdict for result in results} == {"pass"}
    assert "10 of 10 right answers have one" in "".join(unsound_suites(results))
    assert not [*unsound_suites([results[0], decided(OF_MONITOR, still(4, 5))])]


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
        (continents("aabx"), (0.5 * 2 + 0) / 3),  # what has no answer is not drawn
        (continents("abc", relation="P#"), None),  # nor are those of other relations
        (continents("aabc", ["", "", "a"]), (1 / 3 + 1 / 3 + 1 / 2 + 0) / 4),
    ],
)
def test_the_chance_of_a_random_object(of: Case, chance: float | None) -> None:
    one = share(soundness(answers("-" * len(of.facts)), of=of), "below_random")
    assert (None if one is None else one.limit) == (
        None if chance is None else pytest.approx(chance)
    )


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
        # Of fewer facts an honest model may know none, and nobody can answer what is unseen.
        ((head_to_tail("?" * 9), unseen("?" * 20)), []),
        ((head_to_tail("?" * 30 + "-"),), []),
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
