from __future__ import annotations

import dataclasses
import enum
import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_kbrel.records import (
    Ask,
    Exchange,
    Fact,
    Failed,
    Former,
    Generated,
    GenerateRequest,
    MetricValue,
    Outcome,
    Scored,
    ScoreRequest,
    Step,
    Table,
)
from pytest_kbrel.serialization import (
    dumps_compact,
    encoder,
    fields_of,
    from_wire,
    replace_surrogates,
    to_wire,
)

texts = st.text(max_size=30)
numbers = st.floats(allow_nan=False, allow_infinity=False)
responses = st.one_of(
    st.builds(Failed, error=texts),
    st.builds(
        Scored,
        probabilities=st.lists(numbers, max_size=3).map(tuple),
        token_ids=st.lists(st.integers(), max_size=3).map(tuple),
        prompt_tokens=st.integers(),
        prompt_digest=texts,
    ),
    st.builds(
        Generated,
        text=texts,
        token_ids=st.just(()),
        finish=st.sampled_from(["stop", "length"]),
        prompt_tokens=st.integers(),
        prompt_digest=texts,
        steps=st.lists(
            st.builds(
                Step,
                token_id=st.integers(),
                token=texts,
                probability=numbers,
                watched=st.none() | numbers,
            ),
            max_size=2,
        ).map(tuple),
    ),
)
requests = st.one_of(
    st.builds(ScoreRequest, prompt=texts, continuation=texts),
    st.builds(
        GenerateRequest,
        prompt=texts,
        max_new_tokens=st.integers(),
        stop=st.just(("\n", "x")),
    ),
)
exchanges = st.builds(
    Exchange,
    case=texts,
    ask=st.builds(Ask, fact_id=texts, role=texts, request=requests),
    response=responses,
)


@given(exchanges)
def test_a_record_comes_back_from_its_wire_form(exchange):
    assert from_wire(Exchange, json.loads(json.dumps(to_wire(exchange)))) == exchange


@given(exchanges)
def test_a_record_is_written_as_its_wire_form_would_be(exchange):
    wire = {"one": exchange, "fields": fields_of(exchange.response)}
    fields = {"one": to_wire(exchange), "fields": to_wire(exchange.response)}
    assert encoder()(wire) == json.dumps(fields)
    assert encoder((",", ":"))(wire) == json.dumps(fields, separators=(",", ":"))


@given(exchanges)
def test_what_travels_packed_comes_back_with_whole_texts(exchange):
    text = dumps_compact({"one": exchange, "several": (exchange,)})
    text.encode()
    expected = from_wire(
        Exchange,
        json.loads(
            replace_surrogates(json.dumps(to_wire(exchange), ensure_ascii=False))
        ),
    )
    result = json.loads(text)
    assert [
        from_wire(Exchange, one) for one in (result["one"], *result["several"])
    ] == [expected, expected]


def test_of_a_packed_record_only_what_differs_from_its_defaults_is_told():
    value = MetricValue(name="accuracy", better="higher", value=None, n=3, note="")
    assert json.loads(dumps_compact(value)) == {
        "name": "accuracy",
        "better": "higher",
        "value": None,
        "n": 3,
    }
    assert from_wire(MetricValue, json.loads(dumps_compact(value))) == value


def test_the_wire_form_is_exact_builtins():
    class Word(enum.StrEnum):
        PARIS = "Paris"

    class Float(float):
        pass

    row = Outcome(
        fact_id=Word.PARIS,
        question="q",
        expected="e",
        answer="a",
        label="correct",
        values=(Float(0.5),),
        prompt_digest="d",
    )
    wire = to_wire(Table(columns=("c",), rows=(row,)))
    assert type(wire["rows"][0]["fact_id"]) is str
    assert type(wire["rows"][0]["values"][0]) is float


@pytest.mark.parametrize("number", [math.nan, math.inf])
def test_no_number_has_no_wire_form(number):
    for write in (to_wire, encoder(), dumps_compact):
        with pytest.raises(ValueError):
            write([Step(token_id=1, token="a", probability=number)])


def test_what_is_neither_a_record_nor_a_builtin_has_no_wire_form():
    with pytest.raises(TypeError, match="type complex has no wire form"):
        dumps_compact({"a": 1j})


@pytest.mark.parametrize(
    "wire",
    [
        {},
        {"id": 1, "relation": "r", "subject": "s", "object": "o"},
        [],
        "text",
        {"id": "a", "aliases": "b"},
    ],
)
def test_what_is_no_record_is_refused(wire):
    with pytest.raises(ValueError):
        from_wire(Fact, wire)


def test_unknown_keys_are_ignored_so_that_older_readers_read_newer_files():
    fact = Fact(id="a", relation="r", subject="s", object=None)
    assert from_wire(Fact, to_wire(fact) | {"new": 1}) == fact


def test_all_that_is_right_on_a_day_is_accepted():
    kuna = Former(object="kuna", aliases=("HRK",), valid_until="2023-01-14")
    fact = Fact(id="hr", relation="P38", subject="Croatia", object="euro")
    fact = dataclasses.replace(fact, valid_from="2023-01-01", former=(kuna,))
    days = ("2022-12-31", "2023-01-14", "2023-01-15")
    assert [fact.on(day).accepted for day in days] == [
        ("kuna", "HRK"),
        ("euro", "kuna", "HRK"),
        ("euro",),
    ]
    assert [fact.on(day).outdated for day in days] == [(), (), ("kuna", "HRK")]
