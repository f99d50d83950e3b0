"""The plan of what is shared: every token once, each behind exactly what it must see."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_kbrel.models.hf.prefix_tree import TokenSequence, group_by_prefix

TOKENS = st.lists(st.integers(0, 2), min_size=1, max_size=9).map(tuple)


@st.composite
def asked(draw):
    start = draw(st.lists(st.integers(0, 2), max_size=6).map(tuple))
    result = []
    for _ in range(draw(st.integers(1, 25))):
        ids = (start if draw(st.booleans()) else ()) + draw(TOKENS)
        result.append(TokenSequence(ids=ids, start=draw(st.integers(0, len(ids) - 1))))
    return result


def fed(groups):
    return sum(
        len(group.prefix) + sum(len(row.tokens) for row in group.rows)
        for group in groups
    )


def distinct_tokens(sequences):
    """Return the number of nodes of the prefix tree of ``sequences``: the least that can be fed."""
    return len({ids[:end] for ids in sequences for end in range(1, len(ids) + 1)})


def seen_by(group, row, place):
    """Return the tokens that the token at ``place`` sees, itself last."""
    path = [n for n, end in enumerate(row.ends[: place + 1]) if place < end]
    return (*group.prefix, *(row.tokens[n] for n in path))


@given(asked(), st.sampled_from([0, 3, 8, 40]))
def test_each_wanted_token_sees_its_own_sequence_and_nothing_else(
    sequences, row_length
):
    result = set()
    for group in group_by_prefix(sequences, row_length):
        for row in group.rows:
            assert len(row.tokens) == len(row.ends) == len(row.depths)
            for number, places in row.outputs:
                sequence = sequences[number]
                result.add(number)
                assert len(places) == len(sequence.ids) - sequence.start
                for step, place in enumerate(places):
                    assert (
                        seen_by(group, row, place)
                        == sequence.ids[: sequence.start + step + 1]
                    )
                    assert row.depths[place] == sequence.start + step
    assert result == set(range(len(sequences)))


@given(asked(), st.sampled_from([0, 3, 8, 40]))
def test_no_more_is_fed_than_asked_and_no_less_than_the_tree_has(sequences, row_length):
    result = group_by_prefix(sequences, row_length)
    least = distinct_tokens(sequence.ids for sequence in sequences)
    assert least <= fed(result) <= sum(len(sequence.ids) for sequence in sequences)


@pytest.mark.parametrize("count", [50, 400])
def test_a_long_beginning_of_many_rows_is_computed_once(count):
    instruction = tuple(range(60))
    sequences = [
        TokenSequence(ids=(*instruction, 100 + n, 7), start=60) for n in range(count)
    ]
    result = group_by_prefix(sequences, 32)
    assert [group.prefix for group in result] == [instruction]
    assert fed(result) == 60 + 2 * count
