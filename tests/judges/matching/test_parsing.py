"""The parts of an answer that may be the answer proper: what the question does not say, and names."""

from __future__ import annotations

from pytest_kbrel.judges.matching.parsing import (
    candidate_spans,
    read_answer,
    read_question,
    unasked_spans,
)

NAME = "Name it."
TOWN = "Which town is it?"
PAINTER = "Who painted it?"


def parts(find, question, text):
    answer = read_answer(text, read_question(question))
    return [" ".join(answer.words[start:end]) for start, end in find(answer)]


def test_stretches_are_what_the_question_does_not_say_between_framing_words():
    rows = [
        (TOWN, "It is town Lima", ["lima"]),
        (TOWN, "Paris town Rome", ["paris", "rome"]),
        (NAME, "Lima is in Peru", ["lima", "peru"]),
        (NAME, "Lima is by now in Peru", ["lima", "peru"]),
        (NAME, "Lima then is Quito", ["lima", "quito"]),
        (NAME, "Old Lima also then is Quito", ["old lima", "quito"]),
        # Between "is" and "was" stands nothing.
        (NAME, "Lima is then was Quito", ["lima", "quito"]),
        # What ties a name stands within it and not at its end.
        ("What is the Isla de Pinos?", "Casa de Campo", ["casa de campo"]),
        ("Who played Cruella de Vil?", "Glenn Close de Vil", ["glenn close"]),
        (NAME, "Lima, Quito", ["lima", "quito"]),
        (NAME, "it is", []),
    ]
    assert [parts(unasked_spans, question, text) for question, text, _ in rows] == [
        row[-1] for row in rows
    ]


def test_candidates_are_the_whole_the_stretches_and_the_names_each_place_once():
    rows = [
        (NAME, "it was Lima", ["it was lima", "lima"]),
        (NAME, "Lima", ["lima"]),
        (NAME, "it was Will Smith", ["it was will smith", "smith", "will smith"]),
        # A tying word behind a name is none of its words.
        (
            PAINTER,
            "it was Leonardo of course",
            ["it was leonardo of course", "leonardo of course", "leonardo"],
        ),
        (PAINTER, "it was old Jan van", ["it was old jan van", "old jan van", "jan"]),
        (
            PAINTER,
            "it was old Jan van der Meer of course",
            [
                "it was old jan van der meer of course",
                "old jan van der meer of course",
                "jan van der meer",
            ],
        ),
        # The month is no name.
        (NAME, "it was Lima in May", ["it was lima in may", "lima"]),
        (NAME, "it was May and Lima", ["it was may and lima", "lima"]),
    ]
    assert [parts(candidate_spans, question, text) for question, text, _ in rows] == [
        row[-1] for row in rows
    ]
