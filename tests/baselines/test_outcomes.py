from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_kbrel.baselines.outcomes import lines_of, packed, tables_of, unpacked
from pytest_kbrel.records import Outcome, Table

NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
WORDS = st.text(max_size=8)


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
                label=draw(st.sampled_from(("correct", "wrong", "uninformative"))),
                values=tuple(draw(NUMBERS) for _ in columns),
                prompt_digest=draw(digests),
                truncated=draw(st.booleans()),
                rule=draw(WORDS),
            )
            for fact in facts
        ),
    )


@given(st.lists(tables(), max_size=3))
def test_tables_are_read_as_they_were_written(found: list[Table]) -> None:
    named = {f"suite.kb.yaml::case[{number}]": table for number, table in enumerate(found)}
    data = packed(lines_of(named.items(), texts=True))
    assert tables_of(unpacked(data)) == named
    assert data == packed(lines_of(named.items(), texts=True))


@given(tables())
def test_without_texts_the_suite_has_them(table: Table) -> None:
    (row, *_) = table.rows or (None,)
    read = tables_of(lines_of([("k", table)]))["k"]
    assert [one.fact_id for one in read.rows] == [one.fact_id for one in table.rows]
    if row is not None:
        assert (read.rows[0].question, read.rows[0].rule, read.rows[0].truncated) == ("", "", False)
        assert (read.rows[0].answer, read.rows[0].values) == (row.answer, row.values)


def test_a_table_that_stands_there_twice_is_refused() -> None:
    table = Table(columns=(), rows=())
    with pytest.raises(ValueError, match="twice"):
        tables_of(lines_of([("k", table), ("k", table)]))


@pytest.mark.parametrize("spoil", [lambda data: data[:-9], lambda data: b"plain", lambda data: data[9:]])
def test_a_file_that_is_cut_or_foreign_is_refused(spoil: object) -> None:
    with pytest.raises(ValueError, match=r"[A-Z]\w+"):
        unpacked(spoil(packed(b"line\n")))  # type: ignore[operator]
