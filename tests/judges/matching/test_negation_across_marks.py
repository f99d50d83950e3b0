"""Denials that brackets, quotation marks, commas or a full stop part from the name that they deny."""

from __future__ import annotations

import pytest

from pytest_kbrel.judges.rules import judge

CAPITAL = "What is the capital of Peru?"
COUNTRY = "Which country is it?"
BURMA = ["Myanmar (Burma)"]
LIMA = ["Lima"]

DENIED = [
    # brackets
    (COUNTRY, BURMA, "Myanmar (Burma) is not the answer."),
    (COUNTRY, BURMA, "Myanmar (Burma) is wrong."),
    (COUNTRY, BURMA, "It is not Myanmar (Burma)."),
    (COUNTRY, BURMA, "Myanmar (also known as Burma) is not it."),
    (CAPITAL, LIMA, "Lima (a city on the coast) is not the capital of Peru."),
    (CAPITAL, LIMA, "It is not (Lima)."),
    (CAPITAL, LIMA, "Lima (not the capital)"),
    (CAPITAL, LIMA, "Lima (wrong)"),
    # quotation marks
    (CAPITAL, LIMA, '"Lima" is not the capital.'),
    (CAPITAL, LIMA, 'It is not "Lima".'),
    (CAPITAL, LIMA, 'Not "Lima".'),
    (CAPITAL, LIMA, "The capital is not called “Lima”."),
    # commas, colons and dashes
    (COUNTRY, BURMA, "Myanmar, or Burma, is not the answer."),
    (CAPITAL, LIMA, "Lima, Peru, is not the capital."),
    (CAPITAL, LIMA, "Lima, in Peru, is not it."),
    (CAPITAL, LIMA, "Lima – a city on the coast – was never the capital."),
    (CAPITAL, LIMA, "Lima, the city (on the coast), is not the capital."),
    (CAPITAL, LIMA, "It is not, in fact, Lima."),
    (CAPITAL, LIMA, "Lima is, in fact, not the capital."),
    (CAPITAL, LIMA, "The capital is not: Lima"),
    (CAPITAL, LIMA, "Lima: not the capital."),
    # another sentence
    (CAPITAL, LIMA, "Lima? Not the capital."),
    (CAPITAL, LIMA, "Lima; it is not the capital."),
    (CAPITAL, LIMA, "Lima... not!"),
    (CAPITAL, LIMA, "Lima. That is wrong."),
    (CAPITAL, LIMA, "Lima is a city on the coast. It is not the capital."),
]
STATED = [
    (COUNTRY, BURMA, "Myanmar (Burma), not Laos."),
    (COUNTRY, BURMA, "It is not Laos, but Myanmar (Burma)."),
    (COUNTRY, BURMA, "Myanmar (not Laos)"),
    (CAPITAL, LIMA, "Lima, not Quito"),
    (CAPITAL, LIMA, 'It is "Lima", not "Quito".'),
    (CAPITAL, LIMA, "It is Lima (Peru), which is not far from the sea."),
    (CAPITAL, LIMA, "Lima, a city on the coast, is not far from the sea."),
    (CAPITAL, LIMA, "Lima (Peru) is the capital, not Cusco."),
    (CAPITAL, LIMA, "The capital is Lima, which, by the way, is not Quito."),
    (CAPITAL, LIMA, "It is Lima, for Cusco, once the capital, is not the capital now."),
    (CAPITAL, LIMA, "Lima. It is not Cusco."),
    (CAPITAL, LIMA, "Lima. It is not the largest city of the continent."),
    (CAPITAL, LIMA, "Cusco is not, in our time, the capital, Lima is."),
    (CAPITAL, LIMA, "It is not Cusco (it is Lima)."),
    ("Who turns into a bear?", ["Beorn"], "It is Beorn, not a bear, who can change."),
    ("Is it part of Europe or Asia?", ["Asia"], "It is part of Asia, not Europe."),
    ("Is it part of Europe or Asia?", ["Asia"], "It is part of Asia, not part of Europe."),
    ("Who turns into a bear?", ["Beorn"], "It is Beorn. He is not a bear."),
    (CAPITAL, LIMA, "Lima. It is not the capital of Chile."),
    (CAPITAL, LIMA, "Cusco is not it, the city is “Lima”."),
    ("Who sang it?", ["Buddy Holly"], "“Not Fade Away” (Buddy Holly)"),
    ("Who wrote it?", ["Kazuo Ishiguro"], "The author of “Never Let Me Go” is Kazuo Ishiguro."),
    ("Which of them is wrong?", LIMA, "Lima (wrong)"),
    ("Which of them is wrong?", LIMA, "Lima, the capital, is wrong."),
]


@pytest.mark.parametrize(("question", "golds", "answer"), DENIED, ids=[row[2] for row in DENIED])
def test_a_mark_does_not_hide_a_denial(question, golds, answer):
    found = judge(answer, golds, question)
    assert (found.label, found.rule) == ("wrong", "negated")


@pytest.mark.parametrize(("question", "golds", "answer"), STATED, ids=[row[2] for row in STATED])
def test_what_denies_another_thing_denies_nothing(question, golds, answer):
    assert judge(answer, golds, question).label == "correct"
