from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_kbrel.metrics.text import (
    best_f1,
    best_rouge_l,
    exact_match,
    normalise,
    rouge_l,
    rouge_tokens,
    squad_tokens,
    token_f1,
)

WORDS = st.lists(st.sampled_from("abcd"), max_size=7)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("  The Eiffel\tTower. ", "eiffel tower"),
        ("Côte d'Ivoire", "côte d ivoire"),
        ("ﬁnland", "finland"),
        ("Straße", "strasse"),
        ("U.S.A.", "u s"),
        ("Guinea-Bissau", "guinea bissau"),
        ("The The", "the the"),
        ("", ""),
        ("¿Qué?", "qué"),
        ("東京", "東京"),
    ],
)
def test_normalise(text: str, expected: str) -> None:
    assert normalise(text) == expected


@given(st.text())
def test_normalising_twice_changes_nothing(text: str) -> None:
    assert normalise(normalise(text)) == normalise(text)


@pytest.mark.parametrize(
    ("answer", "gold", "f1", "rouge"),
    [
        # 3 of 4 and 3 of 3 tokens in common, in order: 2 * 3 / 7.
        ("a b c d", "a b d", 6 / 7, 6 / 7),
        # The same bag in reverse: the longest common subsequence is one token.
        ("a b c", "c b a", 1.0, 1 / 3),
        # A repeated token counts as often as both have it: 2 * 1 / 4.
        ("x x x", "x", 0.5, 0.5),
        ("x", "y", 0.0, 0.0),
        ("", "", 1.0, 1.0),
        ("", "x", 0.0, 0.0),
        ("x", "", 0.0, 0.0),
    ],
)
def test_scores_by_hand(answer: str, gold: str, f1: float, rouge: float) -> None:
    assert token_f1(answer.split(), gold.split()) == pytest.approx(f1)
    assert rouge_l(answer.split(), gold.split()) == pytest.approx(rouge)


@given(WORDS, WORDS)
def test_scores_are_symmetric_and_rouge_is_the_stricter(
    left: list[str], right: list[str]
) -> None:
    assert token_f1(left, right) == token_f1(right, left)
    assert rouge_l(left, right) == rouge_l(right, left)
    assert 0 <= rouge_l(left, right) <= token_f1(left, right) <= 1
    assert token_f1(left, left) == rouge_l(left, left) == 1


def test_the_best_gold_counts() -> None:
    golds = ("Peking", "the city of Beijing")
    assert best_f1("Beijing city!", golds) == pytest.approx(2 * 2 / 5)
    assert best_rouge_l("Beijing city!", golds) == pytest.approx(2 * 1 / 6)
    assert best_f1("anything", ()) == 0.0
    assert best_rouge_l("anything", ()) == 0.0


def test_a_gold_that_normalises_to_nothing_does_not_count() -> None:
    for best in (best_f1, best_rouge_l):
        assert best("...", ("!!!",)) == 0.0
        assert best("Peking", ("!!!", "Peking")) == 1.0


@pytest.mark.parametrize(
    ("text", "squad", "rouge"),
    [
        # SQuAD deletes punctuation and articles; rouge_score cuts at what is no letter or digit.
        ("It's a U.S.-made car", "its usmade car", "it s a u s made car"),
        ("Guinea-Bissau", "guineabissau", "guinea bissau"),
        ("snake_case", "snakecase", "snake case"),
        ("$5.50", "550", "5 50"),
        ("The  answer,\nis: an apple!", "answer is apple", "the answer is an apple"),
        ("C++", "c", "c"),
        ("The The", "the the", "the the"),
        ("¿Qué?", "qué", "qué"),
        ("1985–1993", "19851993", "1985 1993"),
        ("Straße „Rom“", "strasse rom", "strasse rom"),
        ("दिल्ली, भारत", "दिल्ली भारत", "दिल्ली भारत"),
        ("?!", "", ""),
        ("", "", ""),
    ],
)
def test_the_tokens_are_those_of_squad_and_of_rouge_score(text, squad, rouge):
    assert squad_tokens(text) == squad.split()
    assert rouge_tokens(text) == rouge.split()


@pytest.mark.parametrize(
    ("answer", "match"),
    [
        ("the U.S.", True),
        ("US", True),
        ("U S", False),
        ("It is the US", False),
        ("", False),
        ("?", False),
    ],
)
def test_exact_match_is_squads(answer, match):
    assert exact_match(answer, ["Peru", "U.S."]) is match
    assert not exact_match(answer, [])
    assert not exact_match(answer, ["!"])
