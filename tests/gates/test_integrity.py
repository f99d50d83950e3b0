from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import pytest

from pytest_kbrel.gates import Soundness, check_integrity
from pytest_kbrel.records import Case, Fact, Integrity, MonitorSettings, Share, Table
from pytest_kbrel.serialization import from_wire, to_wire
from tests.gates.tables import (
    HEAD_TO_TAIL,
    MONITOR,
    answers,
    case,
    decided,
    gate,
    outcome,
)


def soundness(
    table: Table, errors: Sequence[str] = (), of: Case | None = None, **limits: Any
) -> Soundness:
    """Hold a table against the default limits but for those given."""
    return check_integrity(
        dataclasses.replace(of or case(), integrity=Integrity(**limits)), table, errors
    )


def share(sound: Soundness, name: str) -> Share:
    (one,) = (one for one in sound.shares if one.name == name)
    return one


def said(table: Table, *texts: str) -> Table:
    """The table with these answers."""
    rows = (
        dataclasses.replace(row, answer=text)
        for row, text in zip(table.rows, texts, strict=True)
    )
    return Table(columns=table.columns, rows=tuple(rows))


def test_sound_responses_pass() -> None:
    assert soundness(answers("+-?")).broken == ()


@pytest.mark.parametrize(
    ("table", "errors", "message"),
    [
        (
            answers("+"),
            ["Q7 (answer): out of memory"],
            "1 fact without usable responses: Q7 (answer): out",
        ),
        (
            answers("+"),
            ["a", "b", "c", "d", "e"],
            "5 facts without usable responses: a; b; c; and 2 more",
        ),
        (answers(""), (), "no fact was measured"),
        (
            Table(columns=HEAD_TO_TAIL, rows=answers("+").rows * 2),
            (),
            "1 fact measured more than once",
        ),
        (answers("-----", answer=" \n"), (), "5 of 5 answers are empty"),
        (
            answers("++-", truncated=True),
            (),
            "3 of 3 answers are cut short; allowed: at most 50%: raise max_new",
        ),
    ],
)
def test_unsound_responses_are_invalid_in_words(
    table: Table, errors: list[str], message: str
) -> None:
    assert soundness(table, errors).broken[0].startswith(message)
    result = decided(case(gate("accuracy", "min", 0.0)), table, errors=errors)
    assert result.verdict == "invalid"
    assert result.metrics == ()
    assert [g.verdict for g in result.gates] == ["invalid"]
    assert message in result.gates[0].reason


def test_a_value_that_is_no_number_is_counted_and_does_not_travel() -> None:
    rows = (*answers("++").rows, outcome("QX", (1, 0, math.nan, 0), "correct"))
    result = decided(
        case(gate("accuracy", "min", 0.0)), Table(columns=HEAD_TO_TAIL, rows=rows)
    )
    assert result.errors == (
        "values that are no number for 1 of 3 facts (first: QX); allowed: none",
    )
    assert (result.n, len(result.table.rows)) == (3, 2)
    to_wire(result)


@pytest.mark.parametrize(
    "text",
    [
        "<think>",
        "<think>\nThe user asks",
        "<thinking>Lima</thinking>\n",
        "</s>",
        "Answer:",
    ],
)
def test_an_answer_that_is_a_thought_or_mark_up_alone_is_empty(text: str) -> None:
    sound = soundness(said(answers("????"), text, "", text, "Lima"))
    assert sound.broken == (
        "3 of 4 answers are empty, 2 of them but for thoughts or mark-up; allowed: at most 50%: the model "
        "thinks where it should answer, see enable_thinking and max_thinking_tokens of --kb-model-args, or "
        "writes mark-up alone",
    )
    assert (share(sound, "answered").value, share(sound, "empty").value) == (1, 3)


def test_an_answer_behind_a_thought_is_one() -> None:
    table = said(
        answers("+++"),
        "<think>Peru?</think>Lima",
        "The user asks</think> Rome",
        "<Lima>",
    )
    assert soundness(table).broken == ()
    assert share(soundness(table), "answered").value == 3


def test_answers_that_are_empty_altogether_need_other_prompts() -> None:
    (message,) = soundness(answers("---", answer=" ")).broken
    assert message == (
        "3 of 3 answers are empty; allowed: at most 50%: the model answers nothing, or its prompts or stop "
        "strings do not suit it"
    )


def test_half_of_the_answers_may_be_empty() -> None:
    rows = (*answers("?", prefix="A", answer="").rows, *answers("+").rows)
    assert soundness(Table(columns=HEAD_TO_TAIL, rows=rows)).broken == ()


def test_half_of_the_answers_may_be_cut_short_and_are_counted() -> None:
    rows = (*answers("-?", prefix="A", truncated=True).rows, *answers("+-").rows)
    result = decided(
        case(gate("accuracy", "min", 0.0)), Table(columns=HEAD_TO_TAIL, rows=rows)
    )
    assert (result.verdict, result.truncated) == ("pass", 2)
    broken = decided(case(), answers("++-", truncated=True))
    assert (broken.verdict, broken.truncated) == ("invalid", 3)


def judged(unread: int, of: int) -> Table:
    rows = answers("+" * of).rows
    rules = ["unparsable"] * unread + ["judge"] * (of - unread)
    return Table(
        columns=HEAD_TO_TAIL,
        rows=tuple(
            dataclasses.replace(row, rule=rule)
            for row, rule in zip(rows, rules, strict=True)
        ),
    )


def test_a_judge_whose_replies_cannot_be_read_decides_nothing() -> None:
    assert soundness(judged(1, 10)).broken == ()
    (message,) = soundness(judged(2, 10)).broken
    assert message.startswith(
        "2 of 10 replies of the judge cannot be read; allowed: at most 10%"
    )


@pytest.mark.parametrize(("unread", "sound"), [(10, True), (11, False)])
def test_choices_that_are_not_made_are_no_consistency(unread: int, sound: bool) -> None:
    rows = tuple(
        dataclasses.replace(row, values=(20, unread)) for row in answers("--").rows
    )
    table = Table(columns=("choices", "choices_unread"), rows=rows)
    assert (soundness(table).broken == ()) is sound


ONE_EMPTY = said(answers("++++"), "a", "b", "c", "")


def test_choices_that_are_no_number_are_no_crash() -> None:
    rows = tuple(
        dataclasses.replace(row, values=(math.nan, math.inf))
        for row in answers("-").rows
    )
    (message,) = soundness(
        Table(columns=("choices", "choices_unread"), rows=rows)
    ).broken
    assert message.startswith("values that are no number for 1 of 1 facts")


class TestLimits:
    """A suite may ask for more or less than the defaults."""

    @pytest.mark.parametrize(
        ("table", "limits", "message"),
        [
            (answers("+++-", answer=""), {"empty": 1.0, "answered": 0.0}, ""),
            (
                answers("+++-", answer=""),
                {"empty": 1.0},
                "0 of 4 facts have an answer; allowed: at least 50",
            ),
            (ONE_EMPTY, {"empty": 0.25, "answered": 0.75}, ""),
            (
                ONE_EMPTY,
                {"empty": 0.2},
                "1 of 4 answers are empty; allowed: at most 20%",
            ),
            (ONE_EMPTY, {"empty": 0}, "1 of 4 answers are empty; allowed: none"),
            (
                ONE_EMPTY,
                {"answered": 0.8},
                "3 of 4 facts have an answer; allowed: at least 80%",
            ),
            (answers("++", truncated=True), {"truncated": 1.0}, ""),
            (judged(5, 10), {"unparsable": 0.5}, ""),
            (
                judged(1, 10),
                {"unparsable": 0.05},
                "1 of 10 replies of the judge cannot be read; allowed: at",
            ),
        ],
    )
    def test_limit(self, table: Table, limits: dict[str, Any], message: str) -> None:
        broken = soundness(table, **limits).broken
        assert len(broken) == bool(message)
        assert "".join(broken).startswith(message)

    def test_a_share_that_is_the_limit_is_within_it(self) -> None:
        # 0.29 * 100 is 28.999999999999996.
        texts = [""] * 29 + [f"city {number}" for number in range(71)]
        table = said(answers("+" * 100), *texts)
        assert soundness(table, empty=0.29).broken == ()
        assert soundness(table, empty=0.28).broken != ()
        # 0.55 * 100 is 55.00000000000001.
        assert (
            soundness(said(table, *[""] * 45, *"x" * 55), empty=1, answered=0.55).broken
            == ()
        )

    def test_small_limits_are_shown_as_they_are(self) -> None:
        (message,) = soundness(
            answers("+" * 99), ["Q1: gone", "Q2: gone"], errored=0.005
        ).broken
        assert (
            message
            == "2 facts without usable responses: Q1: gone; Q2: gone; allowed: at most 0.5%"
        )

    def test_errors_within_the_limit_are_kept_beside_the_figures(self) -> None:
        lenient = case(gate("accuracy", "min", 1.0), integrity=Integrity(errored=0.25))
        result = decided(lenient, answers("+++"), errors=["Q9 (answer): timeout"])
        assert (result.verdict, result.n, result.errors) == (
            "pass",
            3,
            ("Q9 (answer): timeout",),
        )
        assert share(Soundness(shares=result.integrity, broken=()), "errored") == Share(
            name="errored", value=1, total=4, limit=0.25
        )

    def test_facts_that_went_missing_are_errors_too(self) -> None:
        facts = tuple(
            Fact(id=f"Q00{n}", relation="P36", subject=f"S{n}", object=f"O{n}")
            for n in range(3)
        )
        (message,) = soundness(answers("++"), of=case(facts=facts)).broken
        assert (
            message
            == "1 fact without usable responses: nothing is known of them; allowed: none"
        )

    def test_what_is_empty_or_has_no_response_is_said_once(self) -> None:
        sound = soundness(answers("+", answer=""), ["Q9: gone"] * 3)
        assert share(sound, "answered").broken
        assert [message[:7] for message in sound.broken] == ["3 facts", "1 of 1 "]


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
    assert from_wire(type(result), to_wire(result)) == result
    broken = decided(case(), answers("----", answer=""))
    assert [one.name for one in broken.integrity if one.broken] == ["answered", "empty"]


class TestRepeated:
    """One wrong answer to almost everything (a constant model is perfectly consistent)."""

    def test_one_wrong_answer_to_everything(self) -> None:
        (message,) = soundness(answers("-" * 10, answer="The Paris!")).broken
        assert message.startswith(
            "10 of 10 facts get the same wrong answer, 'paris'; allowed: at most 90%: "
        )

    def test_a_few_facts_prove_nothing(self) -> None:
        assert soundness(answers("-" * 9, answer="Paris")).broken == ()

    def test_an_answer_that_is_right_for_some_is_explained_there(self) -> None:
        # Of 10 countries "Africa" is right for 1.
        assert soundness(answers("+" + "-" * 9, answer="Africa")).broken == ()

    def test_saying_that_one_does_not_know_is_honest(self) -> None:
        assert soundness(answers("?" * 20, answer="unsure")).broken == ()
        # MONITOR's published variant knows right and wrong only; the rule tells.
        published = answers("-" * 20, answer="I do not know.", rule="unsure")
        assert soundness(published).broken == ()

    def test_what_the_judge_left_undecided_is_not_wrong(self) -> None:
        table = answers("-" * 10, answer="Paris", rule="unparsable")
        assert share(soundness(table), "repeated").value == 0

    def test_the_limit_is_the_suites(self) -> None:
        table = said(answers("-" * 10), *["Paris"] * 6, *"abcd")
        assert soundness(table).broken == ()
        assert (
            "6 of 10 facts get the same wrong answer"
            in soundness(table, repeated=0.5).broken[0]
        )
        assert soundness(answers("-" * 10, answer="Paris"), repeated=1.0).broken == ()

    def test_a_hostile_answer_is_shown_shortened_and_escaped(self) -> None:
        (message,) = soundness(
            answers("-" * 10, answer="\x1b[31m" + "x" * 10_000)
        ).broken
        assert "\x1b" not in message
        assert len(message) < 400


def continents(counts: str) -> Case:
    """A case of countries Q000, Q001, ... on the continents of these letters; x is one without an answer."""
    facts = tuple(
        Fact(
            id=f"Q{n:03}",
            relation="P30",
            subject=f"S{n}",
            object=None if letter == "x" else letter,
        )
        for n, letter in enumerate(counts)
    )
    return case(facts=facts)


class TestBelowRandom:
    """Answers that are worse than drawn by lot: the model does not read, or the judge does not."""

    def test_no_right_answer_among_few_objects(self) -> None:
        sound = soundness(answers("-" * 40), of=continents("abcde" * 8))
        (message,) = sound.broken
        assert message.startswith(
            "0 of 40 informative answers are right (at most 8.76%, Wilson's interval); allowed: at least the "
            "20% that random objects"
        )
        random = share(sound, "below_random")
        assert (random.value, random.total, random.broken) == (0, 40, True)
        assert random.limit == pytest.approx(0.2)

    def test_the_suite_may_allow_it(self) -> None:
        sound = soundness(
            answers("-" * 40), of=continents("abcde" * 8), below_random="allowed"
        )
        assert sound.broken == ()
        assert not share(sound, "below_random").broken

    @pytest.mark.parametrize(
        ("marks", "objects"),
        [
            (
                "+" * 5 + "-" * 35,
                "abcde" * 8,
            ),  # worse than by lot, and not significantly
            ("-" * 9, "abc" * 3),  # too few to say
            ("?" * 36 + "-" * 4, "ab" * 20),  # hardly ever answers
            ("?" * 40, "abcde" * 8),  # never answers
            ("+" * 36 + "-" * 4, "a" * 40),  # nothing to draw from
            ("-" * 40, "x" * 40),  # nothing can be right
        ],
    )
    def test_honest_models_do_not_trip(self, marks: str, objects: str) -> None:
        assert (
            soundness(answers(marks), of=continents(objects), repeated=1.0).broken == ()
        )

    def test_a_few_facts_of_many_relations_are_no_choice_among_few(self) -> None:
        facts = tuple(
            Fact(id=f"Q{n:03}", relation=f"P{n // 3}", subject=f"S{n}", object=f"O{n}")
            for n in range(120)
        )
        sound = soundness(answers("+" * 6 + "-" * 114), of=case(facts=facts))
        assert sound.broken == ()
        assert "below_random" not in [one.name for one in sound.shares]

    def test_other_names_of_an_object_count(self) -> None:
        both = tuple(
            Fact(
                id=f"Q{n:03}",
                relation="P37",
                subject=f"S{n}",
                object="a b"[::2][n % 2],
                aliases=("A", "B"),
            )
            for n in range(10)
        )
        # Either object is right for all, so that half right is worse than by lot.
        sound = soundness(answers("+" * 5 + "-" * 5), of=case(facts=both))
        assert share(sound, "below_random").limit == 1.0
        assert len(sound.broken) == 1

    def test_a_facts_own_object_is_not_drawn(self) -> None:
        facts = tuple(
            Fact(
                id=f"Q{n:03}",
                relation="P37",
                subject=f"S{n}",
                object=name,
                aliases=aliases,
            )
            for n, (name, aliases) in enumerate(
                [("a", ()), ("a", ()), ("b", ("a",)), ("c", ())]
            )
        )
        # The others' objects: {a, b, c}, {a, b, c}, {a, c}, {a, b}.
        chance = share(
            soundness(answers("++++"), of=case(facts=facts)), "below_random"
        ).limit
        assert chance == pytest.approx((1 / 3 + 1 / 3 + 1 / 2 + 0) / 4)


def anchored(*anchors: float, kept: Sequence[float] = ()) -> Table:
    rows = tuple(
        outcome(f"Q{n:03}", (keep, 0.1, 0.2, 0.2, anchor, 1, 1), "correct")
        for n, (anchor, keep) in enumerate(
            zip(anchors, kept or (1.0,) * len(anchors), strict=True)
        )
    )
    return Table(columns=MONITOR, rows=rows)


class TestConstant:
    """All probabilities equal: a log-probability of 0.0, or whatever stands in for a missing one."""

    of = case(probe="monitor", slice="P36", settings=MonitorSettings())

    @pytest.mark.parametrize("value", [1.0, 0.0, 0.1 + 0.2])
    def test_equal_anchors(self, value: float) -> None:
        message, *_ = soundness(
            anchored(*[value] * 9, round(value, 9)), of=self.of
        ).broken
        assert message.startswith("the probabilities of all 10 anchors are equal (")

    def test_one_that_differs_or_a_handful_is_no_proof(self) -> None:
        assert soundness(anchored(*[0.5] * 9, 0.50001), of=self.of).broken == ()
        assert soundness(anchored(*[0.5] * 9), of=self.of).broken == ()
        assert (
            soundness(anchored(*[0.5] * 20), of=self.of, constant="allowed").broken
            == ()
        )

    def test_dropped_facts_do_not_count(self) -> None:
        table = anchored(*[0.0] * 10, 0.4, 0.7, kept=[0.0] * 10 + [1.0, 1.0])
        sound = soundness(table, of=self.of)
        assert sound.broken == ()
        assert share(sound, "constant") == Share(
            name="constant", value=1, total=2, limit=1.0
        )


class TestAnchorProb:
    """No probability for the right answer: MONITOR divides by it, and looks good or bad by chance."""

    of = case(probe="monitor", slice="P36", settings=MonitorSettings())

    def test_right_answers_without_probability(self) -> None:
        sound = soundness(anchored(1e-7, 2e-7, 3e-7), of=self.of)
        assert sound.broken == (
            "the right answer gets no probability behind the prompt that states it (mean 2e-07 over 3 "
            "facts); allowed: a mean of at least 0.01: the chat template or the tokenizer does not suit the "
            "model, or it knows nothing of this",
        )
        anchors = share(sound, "anchor_prob")
        assert anchors.value == pytest.approx(6e-7, rel=1e-12)
        assert (anchors.total, anchors.limit, anchors.broken) == (3, 0.01, True)

    def test_a_random_model_of_a_small_vocabulary_is_found_and_a_weak_one_is_not(
        self,
    ) -> None:
        assert soundness(anchored(*[1 / 257, 1 / 255] * 20), of=self.of).broken != ()
        assert soundness(anchored(0.001, 0.001, 0.058), of=self.of).broken == ()

    def test_the_limit_is_within_it_and_the_suites(self) -> None:
        assert soundness(anchored(0.005, 0.015), of=self.of).broken == ()
        assert soundness(anchored(0.005, 0.0149), of=self.of).broken != ()
        assert (
            soundness(anchored(0.005, 0.0149), of=self.of, anchor_prob=0.005).broken
            == ()
        )
        assert soundness(anchored(0.4, 0.5), of=self.of, anchor_prob=0.5).broken != ()
        assert soundness(anchored(0.0, 0.0), of=self.of, anchor_prob=0.0).broken == ()

    def test_a_fact_that_was_dropped_counts_as_one_without_probability(self) -> None:
        few = anchored(*[0.0] * 99, 0.9, kept=[0.0] * 99 + [1.0])
        (message,) = soundness(few, of=self.of).broken
        assert (
            "(mean 0.009 over 100 facts, 99 of which were dropped); allowed: a mean of"
            in message
        )
        assert soundness(few, of=self.of, anchor_prob=0.009).broken == ()

    @pytest.mark.parametrize("limit", [0.01, 0.0])
    def test_where_all_facts_were_dropped_no_limit_lets_it_pass(
        self, limit: float
    ) -> None:
        (message,) = soundness(
            anchored(0.0, 0.0, kept=[0.0, 0.0]), of=self.of, anchor_prob=limit
        ).broken
        assert message == (
            "the right answer is written behind the prompt that states it for none of 2 facts, so that none "
            "is left to measure; allowed: at least one: the chat template or the tokenizer does not suit the "
            "model, or it knows nothing of this"
        )

    def test_an_anchor_that_is_no_number_is_told_as_such(self) -> None:
        sound = soundness(anchored(0.0, math.nan), of=self.of)
        assert [message[:24] for message in sound.broken] == [
            "values that are no numbe"
        ]
        assert "anchor_prob" not in [one.name for one in sound.shares]

    def test_no_gate_passes_on_it_and_a_case_without_gates_neither(self) -> None:
        for gates in ((), (gate("monitor", "max", 1.0),)):
            demanded = case(
                *gates, probe="monitor", slice="P36", settings=MonitorSettings()
            )
            result = decided(demanded, anchored(1e-5, 2e-5))
            assert (result.verdict, result.metrics) == ("invalid", ())
            assert from_wire(type(result), to_wire(result)) == result


@pytest.mark.parametrize("marks", ["+", "-", "?", "+-", "---", "+?-"])
def test_tiny_cases_are_measured(marks: str) -> None:
    table = answers(marks, answer="Paris")
    of = continents("a" * len(marks))
    result = decided(
        dataclasses.replace(of, gates=(gate("accuracy", "min", 0.0),)), table
    )
    assert (result.verdict, result.n) == ("pass", len(marks))


class TestFirstToken:
    """Right answers that do not begin with what is scored: MONITOR then measures what nobody writes."""

    of = case(probe="monitor", slice="P36", settings=MonitorSettings())

    def answered(self, right: int, written: int, wrong: int = 0) -> Table:
        """Make a table of right answers, of which some begin with the scored token; no wrong one does."""
        rows = [
            (1.0, 0.4 + n / 1000, float(n < written), float(n < right))
            for n in range(right + wrong)
        ]
        return Table(
            columns=("kept", "anchor", "first_token", "cell:none:0"),
            rows=tuple(
                outcome(f"Q{n:03}", values, "correct") for n, values in enumerate(rows)
            ),
        )

    def test_answers_that_are_written_otherwise(self) -> None:
        sound = soundness(self.answered(20, 9, wrong=5), of=self.of)
        assert sound.broken == (
            "9 of 20 right answers begin with the token that is scored; allowed: at least 50%: the model "
            "writes its answers otherwise (in sentences, or behind a line break), and what is scored is not "
            "what it writes: a chat template, or a prompt that asks for the answer alone, may help",
        )
        assert share(sound, "first_token") == Share(
            name="first_token", value=9, total=20, limit=0.5, broken=True
        )

    def test_the_limit_is_within_it_and_the_suites(self) -> None:
        assert soundness(self.answered(20, 10), of=self.of).broken == ()
        assert (
            soundness(self.answered(20, 9), of=self.of, first_token=0.45).broken == ()
        )
        assert (
            soundness(self.answered(20, 18), of=self.of, first_token=0.95).broken != ()
        )

    def test_wrong_answers_do_not_count_and_few_right_ones_decide_nothing(self) -> None:
        assert soundness(self.answered(9, 0, wrong=20), of=self.of).broken == ()
        assert soundness(self.answered(10, 0, wrong=20), of=self.of).broken != ()
        none_right = soundness(self.answered(0, 0, wrong=3), of=self.of)
        assert "first_token" not in [one.name for one in none_right.shares]

    def test_runs_without_the_column_are_not_held_against_it(self) -> None:
        sound = soundness(anchored(0.4, 0.5), of=self.of)
        assert "first_token" not in [one.name for one in sound.shares]
