from __future__ import annotations

import json
import lzma
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_kbrel.baselines.format import dump_tables, load_tables, packed
from pytest_kbrel.records import Outcome, Reply, Table, TopTokens
from pytest_kbrel.untrusted import MIB, unpack

NUMBERS = st.floats(-1e15, 1e15)
WORDS = st.text(max_size=8)
LABELS = st.sampled_from(("correct", "wrong", "uninformative"))
OTHERS = st.lists(
    st.builds(
        Reply,
        answer=WORDS,
        label=LABELS,
        question=WORDS,
        rule=WORDS,
        truncated=st.booleans(),
    ),
    max_size=2,
).map(tuple)
TOKENS = st.lists(st.tuples(st.integers(0, 200_000), st.integers(0, 9_000)), max_size=3)
TOPS = st.lists(TOKENS, max_size=3).map(
    lambda top: tuple(
        tuple((token, -nats / 1000) for token, nats in tokens) for tokens in top
    )
)


@st.composite
def tables(draw: st.DrawFn) -> Table:
    columns = tuple(draw(st.lists(st.sampled_from("abcd"), unique=True)))
    facts = sorted(draw(st.sets(WORDS, max_size=5)))
    digests = st.one_of(WORDS, st.sampled_from(("aa.1/2.bb", "aa.1/2.cc", "aa")))
    return Table(
        columns=columns,
        rows=tuple(
            Outcome(
                fact_id=fact,
                question=draw(WORDS),
                expected=draw(WORDS),
                answer=draw(WORDS),
                label=draw(LABELS),
                values=tuple(draw(NUMBERS) for _ in columns),
                prompt_digest=draw(digests),
                truncated=draw(st.booleans()),
                rule=draw(WORDS),
                others=draw(OTHERS),
                top=draw(TOPS),
            )
            for fact in facts
        ),
    )


@given(st.lists(tables(), max_size=3))
def test_tables_are_read_as_they_were_written(result: list[Table]) -> None:
    named = {
        f"suite.kb.yaml::case[{number}]": table for number, table in enumerate(result)
    }
    data = packed(dump_tables(named.items(), texts=True))
    assert load_tables(unpack(data, MIB)) == named
    assert data == packed(dump_tables(named.items(), texts=True))


@given(tables())
def test_without_texts_the_suite_has_them(table: Table) -> None:
    (row, *_) = table.rows or (None,)
    read = load_tables(dump_tables([("k", table)]))["k"]
    assert [one.fact_id for one in read.rows] == [one.fact_id for one in table.rows]
    if row is not None:
        assert (read.rows[0].question, read.rows[0].rule, read.rows[0].truncated) == (
            "",
            "",
            False,
        )
        assert (read.rows[0].answer, read.rows[0].values) == (row.answer, row.values)
        assert [(of.answer, of.label, of.question) for of in read.rows[0].others] == [
            (of.answer, of.label, "") for of in row.others
        ]


def row(top: tuple[TopTokens, ...] = ()) -> Outcome:
    given: dict[str, Any] = {
        "question": "",
        "expected": "",
        "answer": "a",
        "label": "correct",
        "values": (),
    }
    return Outcome(fact_id="f", prompt_digest="d", top=top, **given)


@pytest.mark.parametrize(
    "top",
    [
        *(
            [[1]],
            [[[1], [2, 3]]],
            [[["1"], [2]]],
            [[[-1], [2]]],
            [[[1], [-2]]],
            [[[1], [0.5]]],
        ),
        [[[1] * 65, [2] * 65]],
    ],
)
def test_top_tokens_of_another_form_are_refused(top: Any) -> None:
    line = dump_tables([("k", Table(columns=(), rows=(row((((7, -0.25),),)),)))])
    assert b'"top":[[[[7],[250]]]]' in line
    with pytest.raises((ValueError, TypeError)):
        load_tables(line.replace(b"[[[7],[250]]]", json.dumps(top).encode()))


def test_a_table_that_stands_there_twice_is_refused() -> None:
    table = Table(columns=(), rows=())
    with pytest.raises(ValueError, match="twice"):
        load_tables(dump_tables([("k", table), ("k", table)]))


@pytest.mark.parametrize(
    "spoil",
    [
        lambda data: data[:-9],
        lambda data: b"plain",
        lambda data: data[9:],
        lambda data: lzma.compress(b"line\n", format=lzma.FORMAT_ALONE),
    ],
)
def test_a_file_that_is_cut_or_foreign_is_refused(spoil: object) -> None:
    with pytest.raises(ValueError, match=r"^(it ends early|[A-Z]\w+ \w+ \w+)"):
        unpack(spoil(packed(b"line\n")), MIB)  # type: ignore[operator]


def rows_of(*rows: dict[str, object]) -> Table:
    given: dict[str, object] = {
        "question": "Where?",
        "expected": "Oslo",
        "answer": "Oslo",
        "label": "correct",
    }
    given |= {"values": (1.0, 0.5), "prompt_digest": "aa.0/1.b"}
    return Table(
        columns=("x", "y"), rows=tuple(Outcome(**{**given, **row}) for row in rows)
    )  # type: ignore[arg-type]


TWO = rows_of(
    {
        "fact_id": "b",
        "label": "wrong",
        "answer": "Rome",
        "values": (0.0, 0.5),
        "prompt_digest": "aa.1/1.b",
    },
    {"fact_id": "a", "rule": "equal", "truncated": True},
)
LINE: dict[str, object] = {
    "case": "k",
    "facts": ["a", "b"],
    "labels": "cw",
    "answers": ["Oslo", "Rome"],
    "asked": {"parts": ["aa", ["0/1", "1/1"], "b"]},
    "columns": ["x", "y"],
    "values": [[1, 0], 0.5],
}
TEXTS = {
    "question": "Where?",
    "expected": "Oslo",
    "rule": ["equal", ""],
    "truncated": [True, False],
    "cluster": "",
}


def test_the_line_of_a_table_is_the_documented_one() -> None:
    """Files of this form are committed: another letter or key could not be read by those who have them."""
    assert json.loads(dump_tables([("k", TWO)])) == LINE
    # Without blanks the file is smaller.
    assert dump_tables([("k", TWO)]).startswith(
        b'{"case":"k","facts":["a","b"],"labels":"cw","answers":["Oslo",'
    )
    assert dump_tables([("k", TWO)]).endswith(b'"values":[[1,0],0.5]}\n')
    assert json.loads(dump_tables([("k", TWO)], texts=True)) == {**LINE, **TEXTS}
    unsure = rows_of({"fact_id": "a", "label": "uninformative", "prompt_digest": "old"})
    assert json.loads(dump_tables([("k", unsure)])) == {
        "case": "k",
        "facts": ["a"],
        "labels": "u",
        "answers": ["Oslo"],
        "asked": {"parts": [["old"]]},
        "columns": ["x", "y"],
        "values": [[1], [0.5]],
    }
    mixed = rows_of(
        {"fact_id": "a", "prompt_digest": "a.b"},
        {"fact_id": "b", "prompt_digest": "old"},
    )
    assert json.loads(dump_tables([("k", mixed)]))["asked"] == ["a.b", "old"]


@pytest.mark.parametrize("value", [1e308, -2e15])
def test_values_that_cannot_be_summed_are_told_with_their_case(value: float) -> None:
    # Sums of such values are no numbers, which no report can hold.
    with pytest.raises(
        ValueError, match=r"^k has values that are no numbers from -1e\+15 to 1e\+15$"
    ):
        load_tables(json.dumps({**LINE, "values": [[1, value], 0.5]}).encode())
    (row, _) = load_tables(
        json.dumps({**LINE, "values": [[-1e15, 1e15], 0.5]}).encode()
    )["k"].rows
    assert row.values == (-1e15, 0.5)


def test_a_number_that_is_none_is_not_written() -> None:
    with pytest.raises(ValueError, match=r"\S"):
        dump_tables([("k", rows_of({"fact_id": "a", "values": (math.nan, 0.0)}))])


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"facts": ["a"]}, ValueError),
        ({"facts": ["a", "b", "c"]}, ValueError),
        ({"labels": "c"}, ValueError),
        ({"labels": "cx"}, KeyError),
        ({"answers": ["Oslo"]}, ValueError),
        ({"asked": ["one"]}, ValueError),
        ({"asked": {"parts": [["aa"], ["0/1", "1/1"]]}}, ValueError),
        ({"columns": ["x"]}, ValueError),
        ({"columns": ["x", "y", "z"]}, ValueError),
        ({"values": [[1], 0.5]}, ValueError),
        ({"values": [[1, math.nan], 0.5]}, ValueError),
        ({"values": [1, math.inf]}, ValueError),
        ({"values": [["x", 0], 0.5]}, ValueError),
        *(({name: ["x"]}, ValueError) for name in TEXTS),
    ],
)
def test_a_line_of_another_form_is_refused(
    change: dict[str, object], error: type[Exception]
) -> None:
    (whole,) = load_tables(json.dumps({**LINE, **TEXTS}).encode()).values()
    assert [row.fact_id for row in whole.rows] == ["a", "b"]
    with pytest.raises(error):
        load_tables(json.dumps({**LINE, **TEXTS, **change}).encode())
