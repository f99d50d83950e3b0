"""The limits of what is sound, from both sides, and each thing that is counted alone."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import pytest

from pytest_kbrel.gates import silent_suites
from pytest_kbrel.gates.integrity import count, percent
from pytest_kbrel.records import CaseResult, Fact, MonitorSettings, ProbeName, Table
from tests.gates.tables import (
    HEAD_TO_TAIL,
    MONITOR,
    answers,
    case,
    consistency,
    decided,
    outcome,
)
from tests.gates.test_integrity import anchored, continents, said, share, soundness


def facts(n: int) -> tuple[Fact, ...]:
    return tuple(
        Fact(id=f"Q{at:03}", relation=f"P{at}", subject="s", object="o")
        for at in range(n)
    )


@pytest.mark.parametrize(
    ("errors", "asked", "message"),
    [
        (
            ["a", "b", "c"],
            0,
            "3 facts without usable responses: a; b; c; allowed: none",
        ),
        (
            ["a", "b", "c", "d"],
            0,
            "4 facts without usable responses: a; b; c; and 1 more; allowed: none",
        ),
        (["a"], 7, "5 facts without usable responses: a; and 2 more; allowed: none"),
        (
            [],
            7,
            "5 facts without usable responses: nothing is known of them; allowed: none",
        ),
        (
            [],
            3,
            "1 fact without usable responses: nothing is known of them; allowed: none",
        ),
        ([], 2, ""),
        # Facts that nobody asked about are no loss.
        ([], 1, ""),
    ],
)
def test_facts_without_responses_are_counted_whether_they_are_reported_or_not(
    errors: list[str], asked: int, message: str
) -> None:
    sound = soundness(answers("+-"), errors, of=case(facts=facts(asked)))
    assert sound.broken == ((message,) if message else ())
    lost = int(message.split()[0]) if message else 0
    assert (share(sound, "errored").value, share(sound, "errored").total) == (
        lost,
        2 + lost,
    )


def only_some(n: int, of: int) -> Table:
    return said(answers("+" * of), *(["x"] * n + [" "] * (of - n)))


@pytest.mark.parametrize(
    ("table", "errors", "limits", "names"),
    [
        (only_some(1, 4), (), {}, ["empty"]),
        (only_some(1, 4), (), {"empty": 1.0}, ["answered"]),
        (only_some(2, 4), ["x"], {"errored": 1.0}, ["answered"]),
        (only_some(2, 4), ["x"], {}, ["errored"]),
        (only_some(1, 4), ["x"], {}, ["errored", "empty"]),
        (only_some(2, 4), (), {}, []),
        (answers(""), ["x"], {"errored": 1.0}, ["measured"]),
    ],
)
def test_too_few_answers_are_told_where_nothing_else_has_said_so(
    table: Table, errors: Sequence[str], limits: dict[str, float], names: list[str]
) -> None:
    words = {
        "errored": "without usable responses",
        "empty": "answers are empty",
        "answered": "have an answer; allowed: at least 50%: see what is empty and what has no usable ",
        "measured": "no fact was measured: zero outcomes are no measurement; allowed: at least one fact",
    }
    broken = soundness(table, errors, **limits).broken
    assert len(broken) == len(names)
    assert all(
        words[name] in message for name, message in zip(names, broken, strict=True)
    )


@pytest.mark.parametrize("probe", ["head_to_tail", "reliability", "monitor"])
def test_an_answer_that_is_cut_short_counts_where_its_end_matters(
    probe: ProbeName,
) -> None:
    if probe == "monitor":
        rows = (
            outcome(f"Q{at}", (1, 0, 0, 0, at / 9, 1, 1), "correct", truncated=True)
            for at in range(4)
        )
        sound = soundness(
            Table(columns=MONITOR, rows=tuple(rows)),
            of=case(probe=probe, settings=MonitorSettings()),
        )
        assert sound.broken == ()
        assert "truncated" not in {one.name for one in sound.shares}
    else:
        sound = soundness(answers("++--", truncated=True), of=case(probe=probe))
        assert share(sound, "truncated").value == 4
        assert len(sound.broken) == 1


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_values_that_are_no_number_are_counted_by_fact(value: float) -> None:
    rows = (
        *answers("+").rows,
        *(outcome(name, (value, value, 0, 0), "wrong") for name in ("R1", "R2")),
    )
    assert soundness(Table(columns=HEAD_TO_TAIL, rows=rows)).broken == (
        "values that are no number for 2 of 3 facts (first: R1); allowed: none",
    )


def test_every_further_measurement_of_a_fact_is_one_too_many() -> None:
    rows = answers("+-").rows
    assert soundness(Table(columns=HEAD_TO_TAIL, rows=rows * 3)).broken == (
        "4 facts measured more than once: fact ids must differ",
    )


# Answers that say nothing, by the rule that found them, and those that a judge left undecided.
@pytest.mark.parametrize(
    ("rule", "counts"),
    [
        ("repetition", False),
        ("none", False),
        ("unsure", False),
        ("unparsable", False),
        ("judge", True),
        ("variant", True),
        ("", True),
    ],
)
def test_which_answers_are_informative(rule: str, counts: bool) -> None:
    wrong = answers("-" * 10, answer="Paris", rule=rule)
    sound = soundness(
        wrong,
        of=continents("abcde" * 2),
        repeated=0.8,
        unparsable=1.0,
        below_random="allowed",
    )
    assert share(sound, "repeated").value == (10 if counts else 0)
    assert ("below_random" in {one.name for one in sound.shares}) is counts
    unsure = soundness(
        answers("?" * 10, answer="Paris", rule=rule), of=continents("abcde" * 2)
    )
    assert share(unsure, "repeated").value == 0
    assert "below_random" not in {one.name for one in unsure.shares}


@pytest.mark.parametrize(
    ("rules", "counted"),
    [
        (["judge", "unparsable", "equal", "unsure"], (1, 2)),
        (["judge", "judge"], (0, 2)),
        (["unparsable"], (1, 1)),
        (["equal", "unsure", ""], None),
    ],
)
def test_only_what_the_judge_was_asked_counts_as_its_replies(
    rules: list[str], counted: tuple[int, int] | None
) -> None:
    rows = zip(answers("+" * len(rules)).rows, rules, strict=True)
    table = Table(
        columns=HEAD_TO_TAIL,
        rows=tuple(dataclasses.replace(row, rule=rule) for row, rule in rows),
    )
    told = {
        one.name: (one.value, one.total)
        for one in soundness(table, unparsable=1.0).shares
    }
    assert told.get("unparsable") == counted


def test_one_reply_of_the_judge_is_one_reply() -> None:
    rows = tuple(
        dataclasses.replace(row, rule="unparsable") for row in answers("+").rows
    )
    assert soundness(Table(columns=HEAD_TO_TAIL, rows=rows)).broken == (
        "1 of 1 reply of the judge cannot be read; allowed: at most 10%: this model cannot judge, or its "
        "chat template is missing",
    )


@pytest.mark.parametrize(("choices", "told"), [(0, False), (1, True)])
def test_where_no_choices_were_asked_nothing_is_said_of_them(
    choices: int, told: bool
) -> None:
    table = Table(
        columns=("choices", "choices_unread"),
        rows=(outcome("Q1", (choices, 0), "correct"),),
    )
    assert ("unread" in {one.name for one in soundness(table).shares}) is told


def test_choices_without_an_option_are_told_in_words() -> None:
    table = Table(
        columns=("choices", "choices_unread"), rows=(outcome("Q1", (5, 3), "correct"),)
    )
    assert soundness(table).broken == (
        "3 of 5 replies to multiple-choice questions pick no option; allowed: at most 50%: nothing then "
        "tells whether the model keeps to its answers",
    )


def test_of_a_long_answer_sixty_characters_are_shown() -> None:
    assert soundness(answers("-" * 10, answer="x" * 61)).broken == (
        f"10 of 10 facts get the same wrong answer, '{'x' * 60}'; allowed: at most 90%: the model does not "
        "answer the question, or its prompts or chat template do not suit it; an answer that says nothing "
        "belongs into the suite's 'uninformative' file",
    )


def test_the_wrong_answer_that_is_given_most_often_is_the_one() -> None:
    table = said(answers("-" * 12), "Rome", *["The Paris"] * 6, *["paris."] * 5)
    assert share(soundness(table, repeated=1.0), "repeated").value == 11


class TestBelowRandom:
    @pytest.mark.parametrize(
        ("right", "n", "broken"),
        [(0, 10, True), (0, 9, False), (4, 40, False), (3, 40, True)],
    )
    def test_the_interval_must_lie_below_and_facts_must_be_ten(
        self, right: int, n: int, broken: bool
    ) -> None:
        # By lot 20 % are right; of 10 facts with 2 objects, half.
        objects = "ab" * (n // 2) + "a" * (n % 2) if n <= 10 else "abcde" * (n // 5)
        sound = soundness(
            answers("+" * right + "-" * (n - right)), of=continents(objects)
        )
        assert share(sound, "below_random").broken is broken
        assert bool(sound.broken) is broken

    @pytest.mark.parametrize(
        ("objects", "aliases", "chance"),
        [
            ("ab", {}, None),  # one other object is no draw
            ("abb", {}, (0.5 * 2 + 0) / 3),  # a draws from b alone, each b from a and b
            ("abc", {0: "b"}, (0.5 + 0 + 0) / 3),
            (
                "abc",
                {0: "A!"},
                None,
            ),  # another spelling of the own object is none of the others'
            (
                "aabx",
                {},
                (0.5 * 2 + 0) / 3,
            ),  # one that has no answer is not drawn, and has no chance
        ],
    )
    def test_chances(
        self, objects: str, aliases: dict[int, str], chance: float | None
    ) -> None:
        of = continents(objects)
        named = tuple(
            dataclasses.replace(fact, aliases=(aliases[at],)) if at in aliases else fact
            for at, fact in enumerate(of.facts)
        )
        sound = soundness(
            answers("-" * len(objects)), of=dataclasses.replace(of, facts=named)
        )
        shares = {one.name: one.limit for one in sound.shares}
        assert shares.get("below_random") == (
            None if chance is None else pytest.approx(chance)
        )

    def test_another_spelling_is_no_other_object(self) -> None:
        # "a" is one of two objects of the others, "A." too, and "b" has one other to be drawn from.
        of = continents("xxx")
        names = ("a", "A.", "b")
        named = tuple(
            dataclasses.replace(fact, object=name)
            for fact, name in zip(of.facts, names, strict=True)
        )
        sound = soundness(answers("---"), of=dataclasses.replace(of, facts=named))
        assert share(sound, "below_random").limit == pytest.approx((0.5 * 2 + 0) / 3)

    def test_a_name_without_a_spelling_is_no_object(self) -> None:
        # "a" and "b" have one other object each, so that none of the three can be drawn for.
        of = continents("xxx")
        named = tuple(
            dataclasses.replace(fact, object=name, aliases=("?",))
            for fact, name in zip(of.facts, ("a", "b", "!!!"), strict=True)
        )
        sound = soundness(answers("---"), of=dataclasses.replace(of, facts=named))
        assert "below_random" not in {one.name for one in sound.shares}

    def test_objects_of_other_relations_are_not_drawn(self) -> None:
        of = continents("abc")
        apart = tuple(
            dataclasses.replace(fact, relation=f"P{at}")
            for at, fact in enumerate(of.facts)
        )
        sound = soundness(answers("---"), of=dataclasses.replace(of, facts=apart))
        assert "below_random" not in {one.name for one in sound.shares}


def test_a_model_that_is_always_right_is_never_worse_than_chance() -> None:
    # Either object is right for all: by lot all answers are right too.
    either = tuple(
        Fact(
            id=f"Q{at:03}",
            relation="P37",
            subject="s",
            object="ab"[at % 2],
            aliases=("A", "B"),
        )
        for at in range(12)
    )
    right, wrong = (
        soundness(answers(mark * 12), of=case(facts=either)) for mark in "+-"
    )
    assert (share(right, "below_random").limit, right.broken) == (1.0, ())
    assert wrong.broken[-1] == (
        "0 of 12 informative answers are right (at most 24.2%, Wilson's interval); allowed: at least the "
        "100% that random objects of the relation are: the accepted answers, the judge or the prompts do not "
        "suit the model"
    )


def test_what_to_do_about_answers_that_are_empty_or_cut_short_is_told() -> None:
    assert soundness(only_some(1, 4)).broken == (
        "3 of 4 answers are empty; allowed: at most 50%: the model answers nothing, or its prompts or stop "
        "strings do not suit it",
    )
    assert soundness(answers("++-", truncated=True)).broken == (
        "3 of 3 answers are cut short; allowed: at most 50%: raise max_new_tokens in the suite, unless the "
        "model does not stop (its end token or prompts do not suit it)",
    )


def test_who_comes_to_no_answer_needs_longer_thoughts_and_not_longer_answers() -> None:
    remedy = (
        "allowed: at most 50%: raise max_thinking_tokens of --kb-model-args, unless the thoughts end nowhere "
        "(the chat template does not suit the model)"
    )
    assert soundness(answers("---", answer="", truncated=True)).broken == (
        f"3 of 3 answers are empty, 3 of them cut short before an answer; {remedy}",
        f"3 of 3 answers are cut short; {remedy}",
    )


def test_of_no_responses_nothing_is_counted_but_that_they_are_missing() -> None:
    assert [one.name for one in soundness(answers(""), ["Q1: gone"]).shares] == [
        "answered",
        "errored",
    ]


class TestConstant:
    of = case(probe="monitor", slice="P36", settings=MonitorSettings())

    @pytest.mark.parametrize(
        ("anchors", "value", "broken"),
        [
            ([0.5] * 10, 10, True),
            ([0.5] * 9, 9, False),
            ([0.5] * 10 + [0.25], 10, False),
            # Nine digits are looked at.
            ([0.123456789] * 9 + [0.1234567891], 10, True),
            ([0.123456789] * 9 + [0.123456788], 9, False),
        ],
    )
    def test_ten_that_are_equal_to_nine_digits(
        self, anchors: list[float], value: int, broken: bool
    ) -> None:
        sound = soundness(anchored(*anchors), of=self.of)
        assert (share(sound, "constant").value, share(sound, "constant").broken) == (
            value,
            broken,
        )

    def test_an_anchor_that_is_no_number_is_no_anchor(self) -> None:
        sound = soundness(anchored(*[0.5] * 9, math.nan), of=self.of)
        assert (share(sound, "constant").total, share(sound, "constant").broken) == (
            9,
            False,
        )
        none = soundness(anchored(0.5, kept=[0.0]), of=self.of)
        assert "constant" not in {one.name for one in none.shares}

    def test_the_probability_is_told(self) -> None:
        assert soundness(anchored(*[0.25] * 10), of=self.of).broken == (
            "the probabilities of all 10 anchors are equal (0.25); allowed: at least two that differ: the "
            "model's scores do not depend on the question",
        )


@pytest.mark.parametrize(
    ("value", "told"),
    [(0.0, "0%"), (0.005, "0.5%"), (1 / 3, "33.3%"), (1.0, "100%"), (0.08764, "8.76%")],
)
def test_percentages_have_three_digits(value: float, told: str) -> None:
    assert percent(value) == told


@pytest.mark.parametrize(
    ("n", "words", "told"),
    [
        (0, ("fact",), "0 facts"),
        (1, ("fact",), "1 fact"),
        (2, ("reply", "replies"), "2 replies"),
        (1, ("reply", "replies"), "1 reply"),
    ],
)
def test_counts_have_their_plural(n: int, words: Any, told: str) -> None:
    assert count(n, *words) == told


def head_to_tail(marks: str, answer: str = "unsure", **more: Any) -> CaseResult:
    return decided(
        case(slice=more.pop("slice", "a-tail")), answers(marks, answer=answer, **more)
    )


def unseen(marks: str) -> CaseResult:
    rows = consistency([(mark, 0.0) for mark in marks], expected=False)
    return decided(case(probe="reliability", slice="unseen-zero-shot"), rows)


def test_what_is_said_of_a_model_that_says_nothing() -> None:
    results = (
        head_to_tail("?" * 11),
        head_to_tail("?" * 2, answer="I don't know.", slice="b"),
        unseen("???"),
    )
    assert list(silent_suites(results)) == [
        "suites/world.kb.yaml: the model says nothing: none of 16 answers is informative (11 times "
        "'unsure'), although 13 of the questions have an answer; allowed: at least one: prompts, chat "
        "template or max_new_tokens do not suit the model, or it does not answer questions"
    ]


@pytest.mark.parametrize(
    "results",
    [
        (),
        # Of fewer facts an honest model may know none.
        (head_to_tail("?" * 9), unseen("?" * 20)),
        # Nobody can answer these.
        (unseen("?" * 30),),
        (head_to_tail("?" * 30 + "-"),),
        (head_to_tail("?" * 30 + "+"),),
        # It answers what it cannot know.
        (head_to_tail("?" * 30), unseen("??-")),
        # The case has said already what is wrong with these.
        (head_to_tail("?" * 30, answer=""),),
    ],
)
def test_of_others_nothing_is_said(results: tuple[CaseResult, ...]) -> None:
    assert list(silent_suites(results)) == []


def test_answers_of_a_label_too_few_are_told_by_their_rule() -> None:
    # MONITOR's published variant knows right and wrong only; and what a judge did not decide is not said.
    for rule in ("unsure", "none", "repetition", "unparsable"):
        result = head_to_tail("-" * 10, answer="so so", rule=rule)
        assert (
            len(list(silent_suites([dataclasses.replace(result, verdict="pass")]))) == 1
        )
    assert (
        list(
            silent_suites([dataclasses.replace(head_to_tail("-" * 10), verdict="pass")])
        )
        == []
    )


def test_each_suite_is_looked_at_alone_and_long_answers_are_cut() -> None:
    quiet = head_to_tail("?" * 10, answer="unsure " * 100)
    other = dataclasses.replace(quiet, suite="a.kb.yaml")
    third = dataclasses.replace(head_to_tail("?" * 10 + "+"), suite="c.kb.yaml")
    told = list(silent_suites([quiet, other, third]))
    assert [line.partition(":")[0] for line in told] == [
        "a.kb.yaml",
        "suites/world.kb.yaml",
    ]
    assert "10 times 'unsure unsure" in told[0]
    assert len(told[0]) < 350
