"""Shards: every fact is in one, and which one depends on its id alone."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_kbrel.plugin.settings import read_shard
from pytest_kbrel.records import Fact, Shard
from tests.made_cases import made_case

IDS = st.lists(st.text(max_size=8), unique=True, max_size=40)


def shards(count, by="fact"):
    return [Shard(index=index, count=count, by=by) for index in range(1, count + 1)]


def case_of(ids):
    facts = tuple(
        Fact(id=name, relation="P36", subject="a", object="b") for name in ids
    )
    return replace(made_case(), facts=facts)


@given(IDS, st.integers(1, 7), st.sampled_from(["fact", "case"]))
def test_every_fact_of_a_case_is_in_exactly_one_shard(ids, count, by):
    case = case_of(ids)
    parts = [shard.facts_of(case) for shard in shards(count, by)]
    together = [fact.id for part in parts for fact in part]
    assert sorted(together) == sorted(ids)
    if by == "fact":
        assert [shard.part(ids) for shard in shards(count)] == [
            tuple(fact.id for fact in part) for part in parts
        ]
    else:
        assert sum(map(bool, parts)) <= 1


@given(IDS, st.integers(1, 7), st.randoms())
def test_a_share_depends_on_no_order_and_no_other_fact(ids, count, random):
    shuffled = random.sample(ids, len(ids) // 2)
    for shard in shards(count):
        assert set(shard.part(shuffled)) == set(shard.part(ids)) & set(shuffled)


# Whose eighth byte of sha256, as sha256sum prints it, ends in two zero bits.
FIRST = ("f1", "f3", "f5")


def test_the_share_of_a_fact_is_fixed_for_ever():
    assert Shard(index=1, count=4).part(f"f{n}" for n in range(8)) == FIRST


def slurm(task, first, count, last=None):
    named = {
        "ID": task,
        "MIN": first,
        "COUNT": count,
        "MAX": first + count - 1 if last is None else last,
    }
    return {f"SLURM_ARRAY_TASK_{name}": str(value) for name, value in named.items()}


@pytest.mark.parametrize(
    ("text", "environment", "expected"),
    [
        ("2/8", {}, (2, 8)),
        ("auto", slurm(12, 10, 4), (3, 4)),
        ("auto", slurm(1, 1, 1), (1, 1)),
        ("auto/4", slurm(3, 0, 4), (4, 4)),
        ("auto", {"JOB_COMPLETION_INDEX": "0", "JOB_COMPLETIONS": "5"}, (1, 5)),
        ("auto/5", {"JOB_COMPLETION_INDEX": "4"}, (5, 5)),
        ("auto", {"CI_NODE_INDEX": "2", "CI_NODE_TOTAL": "2"}, (2, 2)),
    ],
)  # fmt: skip
def test_what_is_typed_or_said_by_a_job_array(text, environment, expected):
    shard = read_shard(text, "fact", environment)
    assert (shard.index, shard.count) == expected


@pytest.mark.parametrize(
    ("text", "environment", "words"),
    [
        ("0/4", {}, "found '0/4'; allowed: I/N with I from 1 to N"),
        ("5/4", {}, "found '5/4'; allowed"),
        ("2", {}, "found '2'; allowed"),
        ("1/99999", {}, "allowed: I/N"),
        ("auto", {}, "JOB_COMPLETION_INDEX, CI_NODE_INDEX is set; .*matrix.shard"),
        ("auto", {"JOB_COMPLETION_INDEX": "0"}, "JOB_COMPLETION_INDEX and no JOB_COMPLETIONS; .*auto/N"),
        ("auto", {"JOB_COMPLETION_INDEX": "0", "CI_NODE_INDEX": "1"}, "INDEX and CI_NODE_INDEX are set"),
        ("auto/2", {"JOB_COMPLETION_INDEX": "2"}, "INDEX='2', counted from 0, of '2'; allowed"),
        ("auto/2", {"CI_NODE_INDEX": "x"}, "allowed: whole numbers"),
        # sbatch --array=3 and --array=3,7, to run tasks again; --array=1-7:2.
        ("auto", slurm(3, 3, 1), "of 1 from 3 to 3, for 1 parts; allowed: .* or I/N where a task runs again"),
        ("auto/8", slurm(3, 3, 1), "of 1 from 3 to 3, for 8 parts; allowed"),
        ("auto", slurm(7, 3, 2, 7), "of 2 from 3 to 7, for 2 parts; allowed"),
        ("auto", slurm(3, 1, 4, 7), "of 4 from 1 to 7, for 4 parts; allowed"),
    ],
)  # fmt: skip
def test_what_is_no_shard_says_what_was_found(text, environment, words):
    with pytest.raises(ValueError, match=words):
        read_shard(text, "fact", environment)
