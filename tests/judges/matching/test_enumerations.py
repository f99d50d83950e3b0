"""An accepted answer among other things: which of them are alternatives, and which only describe it."""

from __future__ import annotations

import pytest

from pytest_kbrel.judges.rules import judge

WHICH = "Which is it?"
CAPITAL = "What is the capital of France?"
COUNTRY = "In which country does the river rise?"
KEEP = "What does the shepherd keep?"
HE = "What was he?"

# By subject: the question, what is accepted, the answer, and the rule that tells.
CASES = {
    "an alternative in another sentence": [
        (CAPITAL, "Paris", "It may be Lyon or so. It is Paris.", "contained"),
        (CAPITAL, "Paris", "It may be Lyon or so. It now is Paris.", "contained"),
    ],
    "sentences that say the same of two things": [
        (CAPITAL, "Paris", "It is Paris. It is Lyon, they say.", "several"),
        (CAPITAL, "Paris", 'It is Paris. It is "Lyon".', "several"),
        (CAPITAL, "Paris", "It is Paris. It is French. It is Lyon.", "several"),
        (CAPITAL, "Paris", "It is Paris. It is Sri Lankan.", "contained"),
        (CAPITAL, "Paris", "Paris is it. Lyon was old.", "contained"),
    ],
    "where a place lies": [
        (WHICH, "New Mexico", "Santa Fe, New Mexico", "contained"),
        (WHICH, "Riga", "Riga, Kurzeme, South Korea", "contained"),
        (WHICH, "Japan", "South Korea, Japan", "several"),
    ],
    # Before a nation two places in it may stand, three with a region; another nation is an alternative.
    "places before and behind a nation": [
        (COUNTRY, "Canada", "It is in Abc, Def, Canada.", "contained"),
        (COUNTRY, "Canada", "It is in Abc, Def, Ghi, Canada.", "several"),
        (COUNTRY, "Canada", "It is in Strip, Reno, Nevada, Canada.", "contained"),
        (COUNTRY, "Spain", "It is in France, Norway, Spain.", "several"),
        (COUNTRY, "Spain", "It is in New Zealand, South Korea, Spain.", "several"),
        (COUNTRY, "Spain", "It is in Spain, Texas, Sicily.", "several"),
        (WHICH, "Riga", "It is Spain, Norway, Riga.", "several"),
    ],
    # A name has five words at most.
    "names in a list": [
        (WHICH, "Riga", "Rome, Oslo, Riga are named.", "several"),
        (WHICH, "Riga", "It is Rome. Oslo. Riga.", "several"),
        (WHICH, ["Riga", "Bern"], "It is Riga, Bern, Oslo, Rome.", "several"),
        (WHICH, "Riga", "It is Riga, X, Oslo.", "several"),
        (WHICH, "Riga", "It is Riga, Ann Bo Cy Di Ed, Oslo.", "several"),
        (WHICH, "Riga", "It is Riga, Ann Bo Cy Di Ed Flo, Oslo.", "contained"),
        (WHICH, "Riga", "It is Riga, Oslo, Bern is big.", "contained"),
        (
            "Which is it, seen from Oslo?",
            "Riga",
            "It is Riga, Oslo, Bern.",
            "contained",
        ),
        (
            "Who founded the company?",
            "Ann Lee",
            "It is Ann Lee, PhD, MBE.",
            "contained",
        ),
    ],
    # An alternative has at most one word more than the answer; a longer one describes it.
    "common nouns in a list": [
        (KEEP, "goat", "it keeps a goat, cow, pig", "several"),
        (KEEP, "goat", "it keeps a goat, big cow, small pig", "several"),
        (KEEP, "goat", "it keeps a goat, very big cow, very small pig", "contained"),
    ],
    "trades, of which people have several": [
        (HE, "poet", "he was a poet, a painter, an actor", "contained"),
        (HE, "poet", "he was a poet, smith, duke", "contained"),
    ],
    "one of several": [
        (CAPITAL, "Paris", "It is one of Rome, Paris.", "several"),
        (WHICH, "Riga", "It is one of Riga.", "contained"),
        # Of parents there are two, of towns there may be one.
        (
            "Who are her parents?",
            "Ann Lee",
            "They are Ann Lee and Bob Lee.",
            "contained",
        ),
        ("Who are her parents?", "Cyd", "Ann, Bob and Cyd were.", "several"),
        ("Which of the towns is it?", "Riga", "It is Riga and Oslo.", "several"),
    ],
}


@pytest.mark.parametrize("subject", CASES)
def test_an_answer_among_other_things(subject):
    rows = CASES[subject]
    result = [
        judge(answer, [gold] if isinstance(gold, str) else gold, question).rule
        for question, gold, answer, _ in rows
    ]
    assert list(zip(result, rows, strict=True)) == [(row[-1], row) for row in rows]
