from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_kbrel.errors import ResponseError
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
from pytest_kbrel.reports.responses import (
    append_exchanges,
    from_line,
    join_spools,
    parse_line,
    read_responses,
    to_line,
)


def exchange(case: str, fact: str, role: str = "anchor", probability: float = 0.5) -> Exchange:
    return Exchange(
        case=case,
        ask=Ask(fact_id=fact, role=role, request=ScoreRequest(prompt=f"{fact}?", continuation=" yes")),
        response=Scored(probabilities=(probability,), token_ids=(1,), prompt_tokens=3, prompt_digest="ab"),
    )


GENERATED = Exchange(
    case="s.kb.yaml::monitor[P1]",
    ask=Ask(
        fact_id="f",
        role="frame:3",
        request=GenerateRequest(prompt="Q", max_new_tokens=4, stop=("\n", "\u2028"), steps=True, watch=(7,)),
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


def test_only_an_exchange_with_a_helping_model_says_who_was_asked() -> None:
    assert json.loads(to_line(JUDGED))["to"] == "openai/judge"
    assert "to" not in json.loads(to_line(GENERATED))
    spoilt = {**json.loads(to_line(JUDGED)), "to": 3}
    with pytest.raises(ValueError, match="'to' must be a string"):
        from_line(json.dumps(spoilt).encode())


@pytest.mark.parametrize("item", [exchange("c", "f"), GENERATED, FAILED, JUDGED])
def test_every_kind_of_exchange_comes_back_equal(item: Exchange) -> None:
    line = to_line(item)
    assert line.count(b"\n") == 1
    assert from_line(line) == item


@given(st.text(st.characters(codec=None)), st.text(), st.floats(0, 1))
def test_any_text_and_number_survive_exactly(text: str, case: str, probability: float) -> None:
    item = exchange(case, text, probability=probability)
    assert from_line(to_line(item)) == item


def test_the_line_has_the_documented_keys_and_kinds() -> None:
    wire = json.loads(to_line(GENERATED))
    assert list(wire) == ["case", "fact", "role", "request", "response"]
    assert (wire["request"]["kind"], wire["response"]["kind"]) == ("generate", "generated")
    assert json.loads(to_line(FAILED))["response"] == {"kind": "failed", "error": "out of memory"}
    assert json.loads(to_line(FAILED))["request"]["kind"] == "score"


def test_unknown_keys_in_a_line_are_ignored() -> None:
    wire = json.loads(to_line(GENERATED)) | {"tomorrow": 1}
    wire["response"]["tomorrow"] = 1
    assert from_line(json.dumps(wire).encode()) == GENERATED


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "responses.jsonl"
    append_exchanges(path, [GENERATED, FAILED])
    assert list(read_responses(path)) == [GENERATED, FAILED]


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        ("not json", "is no recorded response"),
        ("[1]", "found list"),
        ('{"case": 1}', "'case' must be a string"),
        ('{"case": "c", "fact": "f", "role": "r", "request": []}', "score, generate"),
        (
            '{"case": "c", "fact": "f", "role": "r", "request": {"kind": "score", "prompt": "p"}}',
            "ScoreRequest",
        ),
        (
            '{"case": "c", "fact": "f", "role": "r", "request": {"kind": "score", "prompt": "p",'
            ' "continuation": "c"}, "response": {"kind": "guessed"}}',
            "scored, generated, failed",
        ),
    ],
)
def test_a_broken_line_is_named_by_its_number(broken: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "responses.jsonl"
    path.write_bytes(to_line(GENERATED) + broken.encode() + b"\n" + to_line(FAILED))
    with pytest.raises(ResponseError, match=message) as caught:
        list(read_responses(path))
    assert f"{path}:2:" in str(caught.value)


def test_a_missing_file_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(ResponseError, match="no such file"):
        list(read_responses(tmp_path / "responses.jsonl"))


def test_a_spool_is_on_disk_after_each_append(tmp_path: Path) -> None:
    path = tmp_path / "parts" / "gw0.jsonl"
    append_exchanges(path, [GENERATED])
    assert list(read_responses(path)) == [GENERATED]
    append_exchanges(path, [FAILED])
    assert list(read_responses(path)) == [GENERATED, FAILED]


@pytest.fixture
def spool(tmp_path: Path) -> Callable[[str, list[Exchange]], Path]:
    def write(name: str, exchanges: list[Exchange]) -> Path:
        path = tmp_path / f"{name}.jsonl"
        append_exchanges(path, exchanges)
        return path

    return write


Spool = Callable[[str, list[Exchange]], Path]


def test_two_workers_join_to_what_one_would_have_written(spool: Spool, tmp_path: Path) -> None:
    order = ["b", "a", "c", "d"]
    whole = [exchange(case, f"{case}{at}") for case in order for at in range(5)]
    serial = spool("main", whole)
    parts = [
        spool("gw1", [item for item in whole if item.case in ("d", "b")][::-1][:5] + whole[:5]),
        spool("gw0", [item for item in whole if item.case in ("a", "c")]),
    ]
    # The first worker had case d last to first; a case keeps the order in which its exchanges were made.
    expected = whole[:15] + whole[15:][::-1]
    joined = join_spools(parts, tmp_path / "responses.jsonl", order)
    assert (joined.exchanges, joined.torn) == (20, ())
    assert list(read_responses(tmp_path / "responses.jsonl")) == expected
    assert join_spools([serial], tmp_path / "serial.jsonl", order).exchanges == 20
    assert (tmp_path / "serial.jsonl").read_bytes() == serial.read_bytes()


def test_cases_that_alternate_in_a_spool_are_gathered(spool: Spool, tmp_path: Path) -> None:
    made = [exchange("ab"[at % 2], f"f{at}") for at in range(6)]
    join_spools([spool("gw0", made)], tmp_path / "out.jsonl", ["b", "a"])
    assert [item.ask.fact_id for item in read_responses(tmp_path / "out.jsonl")] == [
        "f1", "f3", "f5", "f0", "f2", "f4",
    ]  # fmt: skip


def test_cases_nobody_expected_come_last_by_name(spool: Spool, tmp_path: Path) -> None:
    made = [exchange(case, "f") for case in ("z", "y", "known")]
    join_spools([spool("gw0", made)], tmp_path / "out.jsonl", ["known"])
    assert [item.case for item in read_responses(tmp_path / "out.jsonl")] == ["known", "y", "z"]


def test_a_torn_last_line_costs_itself_only_and_is_reported(spool: Spool, tmp_path: Path) -> None:
    whole = spool("gw0", [exchange("a", "f0")])
    torn = spool("gw1", [exchange("b", "f1")])
    with torn.open("ab") as stream:
        stream.write(to_line(exchange("b", "f2"))[:-20])
    only_torn = tmp_path / "gw2.jsonl"
    only_torn.write_bytes(b'{"case": "')
    joined = join_spools([whole, torn, only_torn], tmp_path / "out.jsonl", ["a", "b"])
    assert joined.exchanges == 2
    assert joined.torn == (torn, only_torn)
    assert [item.ask.fact_id for item in read_responses(tmp_path / "out.jsonl")] == ["f0", "f1"]


def test_a_line_broken_in_the_middle_is_fatal_and_writes_nothing(spool: Spool, tmp_path: Path) -> None:
    path = spool("gw0", [exchange("a", "f0"), exchange("a", "f1")])
    first, second = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(first + first[:30] + b"\n" + second)
    with pytest.raises(ResponseError, match=r"gw0\.jsonl:2:"):
        join_spools([path], tmp_path / "out.jsonl", ["a"])
    assert not (tmp_path / "out.jsonl").exists()


def test_a_case_that_ran_again_is_kept_once_with_its_last_answer(spool: Spool, tmp_path: Path) -> None:
    again = [exchange("a", "f0", probability=0.1), exchange("a", "f1"), exchange("a", "f0", probability=0.9)]
    joined = join_spools([spool("gw0", again)], tmp_path / "out.jsonl", ["a"])
    assert joined.exchanges == 2
    assert [item.response for item in read_responses(tmp_path / "out.jsonl")] == [
        again[2].response,
        again[1].response,
    ]


ASKED = exchange("a", "f0")


@pytest.mark.parametrize(
    "other",
    [
        replace(ASKED, case="b"),
        replace(ASKED, ask=replace(ASKED.ask, fact_id="f1")),
        replace(ASKED, ask=replace(ASKED.ask, role="frame:0")),
        replace(ASKED, ask=replace(ASKED.ask, to="openai/judge")),
        replace(ASKED, ask=replace(ASKED.ask, request=ScoreRequest(prompt="f0? ", continuation=" yes"))),
        replace(ASKED, ask=replace(ASKED.ask, request=ScoreRequest(prompt="f0?", continuation=" no"))),
        replace(ASKED, ask=replace(ASKED.ask, request=GenerateRequest(prompt="f0?", max_new_tokens=4))),
    ],
    ids=["case", "fact", "role", "to", "prompt", "continuation", "kind"],
)
def test_what_was_asked_otherwise_is_another_exchange(other: Exchange, spool: Spool, tmp_path: Path) -> None:
    again = replace(ASKED, response=Failed(error="again"))
    joined = join_spools([spool("gw0", [ASKED, other]), spool("gw1", [again])], tmp_path / "o.jsonl", ["a"])
    assert joined.exchanges == 2
    assert sorted(map(to_line, read_responses(tmp_path / "o.jsonl"))) == sorted(map(to_line, [again, other]))


def test_the_lines_of_each_case_are_counted_but_for_the_baselines_own(spool: Spool, tmp_path: Path) -> None:
    base = replace(ASKED, ask=replace(ASKED.ask, to="baseline"))
    judged = replace(ASKED, ask=replace(ASKED.ask, to="openai/judge"))
    only = replace(base, case="c")
    made = [ASKED, ASKED, base, judged, exchange("b", "f0"), only]
    joined = join_spools([spool("gw0", made)], tmp_path / "o.jsonl", [])
    assert (joined.counts, joined.exchanges) == ((("a", 3), ("b", 1), ("c", 0)), 5)


@pytest.mark.parametrize("key", ["case", "fact", "role"])
def test_a_line_must_say_whose_it_is(key: str) -> None:
    wire = json.loads(to_line(ASKED))
    for spoilt in ({**wire, key: 3}, {name: wire[name] for name in wire if name != key}):
        for read in (from_line, parse_line):
            with pytest.raises(ValueError, match=f"'{key}' must be a string, found "):
                read(json.dumps(spoilt).encode())
    assert parse_line(json.dumps({**wire, key: ""}).encode()) == {**wire, key: ""}


@pytest.mark.parametrize(
    ("part", "kinds"), [("request", "score, generate"), ("response", "scored, generated, failed")]
)
def test_a_line_must_say_of_which_kind_its_parts_are(part: str, kinds: str) -> None:
    wire = json.loads(to_line(ASKED))
    for spoilt in ({}, {"kind": "x"}, {"kind": 3}, {"kind": ["score"]}, [], None):
        with pytest.raises(
            ValueError, match=f"'{part}' must be an object whose kind is one of {kinds}, found"
        ):
            parse_line(json.dumps({**wire, part: spoilt}).encode())
    # What they hold is looked at by those who need it.
    bare = {"kind": wire[part]["kind"]}
    assert parse_line(json.dumps({**wire, part: bare}).encode())[part] == bare
    with pytest.raises(ValueError, match=r"\S"):
        from_line(json.dumps({**wire, part: bare}).encode())


def test_a_response_may_have_the_kind_of_no_request() -> None:
    wire = json.loads(to_line(ASKED))
    with pytest.raises(ValueError, match="'response' must be"):
        parse_line(json.dumps({**wire, "response": wire["request"]}).encode())


def test_an_idle_workers_missing_spool_is_no_error(tmp_path: Path) -> None:
    joined = join_spools([tmp_path / "gw9.jsonl"], tmp_path / "out.jsonl", [])
    assert (joined.exchanges, joined.torn) == (0, ())
    assert (tmp_path / "out.jsonl").read_bytes() == b""
