"""The lines of ``responses.jsonl``: what they hold, and how they are cut."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_kbrel.records import (
    Ask,
    Exchange,
    Failed,
    Generated,
    GenerateRequest,
    Scored,
    ScoreRequest,
    Step,
)
from pytest_kbrel.store.lines import (
    asked_digest,
    from_line,
    key_of_line,
    parse_line,
    request_key,
    response_in,
    to_line,
)


def exchange(case, fact, role="anchor", probability=0.5):
    return Exchange(
        case=case,
        ask=Ask(
            fact_id=fact,
            role=role,
            request=ScoreRequest(prompt=f"{fact}?", continuation=" yes"),
        ),
        response=Scored(
            probabilities=(probability,),
            token_ids=(1,),
            prompt_tokens=3,
            prompt_digest="ab",
        ),
    )


GENERATED = Exchange(
    case="s.kb.yaml::monitor[P1]",
    ask=Ask(
        fact_id="f",
        role="frame:3",
        request=GenerateRequest(
            prompt="Q", max_new_tokens=4, stop=("\n", "\u2028"), steps=True, watch=(7,)
        ),
    ),
    response=Generated(
        text="\ud800\x00\u2028\n<|end|>",
        token_ids=(5,),
        finish="length",
        prompt_tokens=1,
        prompt_digest="cd",
        steps=(Step(token_id=5, token="▁x", probability=0.25, watched=None),),
    ),
)
FAILED = Exchange(
    case="c", ask=Ask(fact_id="f", role="r", request=ScoreRequest(prompt="", continuation="")),
    response=Failed(error="out of memory"),
)  # fmt: skip


JUDGED = replace(GENERATED, ask=replace(GENERATED.ask, role="judge", to="openai/judge"))


def test_only_an_exchange_with_a_helping_model_says_who_was_asked():
    assert json.loads(to_line(JUDGED))["to"] == "openai/judge"
    assert "to" not in json.loads(to_line(GENERATED))
    spoilt = {**json.loads(to_line(JUDGED)), "to": 3}
    with pytest.raises(ValueError, match="'to' must be a string"):
        from_line(json.dumps(spoilt).encode())


@pytest.mark.parametrize("item", [exchange("c", "f"), GENERATED, FAILED, JUDGED])
def test_every_kind_of_exchange_comes_back_equal(item):
    line = to_line(item)
    assert line.count(b"\n") == 1
    assert from_line(line) == item


@given(st.text(st.characters(codec=None)), st.text(), st.floats(0, 1))
def test_any_text_and_number_survive_exactly(text, case, probability):
    item = exchange(case, text, probability=probability)
    assert from_line(to_line(item)) == item


def test_the_line_has_the_documented_keys_and_kinds():
    wire = json.loads(to_line(GENERATED))
    assert list(wire) == ["case", "fact", "role", "request", "response"]
    assert (wire["request"]["kind"], wire["response"]["kind"]) == (
        "generate",
        "generated",
    )
    assert json.loads(to_line(FAILED))["response"] == {
        "kind": "failed",
        "error": "out of memory",
    }
    assert json.loads(to_line(FAILED))["request"]["kind"] == "score"


def test_unknown_keys_in_a_line_are_ignored():
    wire = json.loads(to_line(GENERATED)) | {"tomorrow": 1}
    wire["response"]["tomorrow"] = 1
    assert from_line(json.dumps(wire).encode()) == GENERATED


ASKED = exchange("a", "f0")


@pytest.mark.parametrize(
    ("part", "kinds"),
    [("request", "score, generate"), ("response", "scored, generated, failed")],
)
def test_a_line_must_say_of_which_kind_its_parts_are(part, kinds):
    wire = json.loads(to_line(ASKED))
    for spoilt in ({}, {"kind": "x"}, {"kind": ["score"]}, [], None):
        with pytest.raises(ValueError, match=f"'{part}' must be .* one of {kinds}, fo"):
            parse_line(json.dumps({**wire, part: spoilt}).encode())


# Texts with the marks by which a line is cut, and with ends of strings and backslashes about them.
MARKS = [
    ', "response": {',
    '", "to": "baseline", "request": {',
    '", "fact": "',
    '"',
    "\\",
    "}}\n",
    "é\ud800",
]
TEXTS = st.lists(st.sampled_from(MARKS) | st.text(max_size=3), max_size=4).map("".join)
ASKS = st.builds(
    Ask,
    fact_id=TEXTS,
    role=TEXTS,
    request=st.builds(ScoreRequest, prompt=TEXTS, continuation=TEXTS, system=TEXTS)
    | st.builds(
        GenerateRequest, prompt=TEXTS, max_new_tokens=st.just(4), stop=st.tuples(TEXTS)
    ),
    to=st.sampled_from(["", "baseline", "openai/judge"]) | TEXTS,
)
RESPONSES = st.builds(Failed, error=TEXTS) | st.builds(
    Generated,
    text=TEXTS,
    token_ids=st.just((1,)),
    finish=st.just("stop"),
    prompt_tokens=st.just(1),
    prompt_digest=TEXTS,
)
EXCHANGES = st.builds(Exchange, case=TEXTS, ask=ASKS, response=RESPONSES)


@given(EXCHANGES, EXCHANGES)
def test_a_line_is_cut_where_its_response_begins(one, other):
    line = to_line(one)
    assert response_in(line) == from_line(line).response
    asked = asked_digest(line)
    assert asked_digest(to_line(replace(one, response=other.response))) == asked
    same = (other.case, other.ask) == (one.case, one.ask)
    assert (asked_digest(to_line(other)) == asked) == same
    key = request_key(one.ask.to, one.ask.request)
    assert key_of_line(parse_line(line)) == key
    asked_alike = (other.ask.to, other.ask.request) == (one.ask.to, one.ask.request)
    assert (request_key(other.ask.to, other.ask.request) == key) == asked_alike
