"""Recorded responses in place of a model: what is found, which of several, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_kbrel.errors import ResponseError
from pytest_kbrel.probes.prompts import qa
from pytest_kbrel.probes.reliability.shots import shots_in
from pytest_kbrel.records import (
    Ask,
    Case,
    Exchange,
    Fact,
    Failed,
    Generated,
    GenerateRequest,
    Relation,
    ReliabilitySettings,
    Response,
    Scored,
    ScoreRequest,
    Shot,
)
from pytest_kbrel.replay.recorded_responses import RecordedResponses
from pytest_kbrel.replay.recorded_run import RecordedRun
from pytest_kbrel.reports.responses import to_line
from tests.made_cases import RECORDED_MODEL

ASKED = GenerateRequest(prompt="What?", max_new_tokens=4)


def generated(text: str) -> Generated:
    return Generated(
        text=text, token_ids=(1,), finish="stop", prompt_tokens=3, prompt_digest="d"
    )


def exchange(
    case: str, response: Response, *, to: str = "", fact: str = "f", request=ASKED
) -> Exchange:
    return Exchange(
        case=case,
        ask=Ask(fact_id=fact, role="answer", to=to, request=request),
        response=response,
    )


def record(folder: Path, *exchanges: Exchange) -> RecordedResponses:
    (folder / "responses.jsonl").write_bytes(b"".join(map(to_line, exchanges)))
    run = RecordedRun(
        folder=folder,
        kbrel_version="",
        settings=(),
        model=RECORDED_MODEL,
        helpers=(),
        base=None,
        cases=frozenset(),
    )
    return RecordedResponses(run)


def test_a_case_is_told_what_it_was_told_and_others_what_anybody_was(
    tmp_path: Path,
) -> None:
    result = record(
        tmp_path,
        exchange("a", Failed(error="no")),
        exchange("b", generated("from b")),
        exchange("c", Failed(error="no")),
    )
    assert result.find("a", "", [ASKED]) == [Failed(error="no")]
    assert result.find("b", "", [ASKED]) == [generated("from b")]
    # Of others' responses a usable one goes before a failure, wherever it stands.
    assert result.find("new", "", [ASKED]) == [generated("from b")]
    result.close()


@pytest.mark.parametrize("asking", ["a", "new"])
def test_of_several_responses_the_last_usable_one_counts_else_the_first_failure(
    asking: str, tmp_path: Path
) -> None:
    other = GenerateRequest(prompt="Which?", max_new_tokens=4)
    result = record(
        tmp_path,
        exchange("a", Failed(error="first")),
        exchange("a", generated("first")),
        exchange("a", generated("last")),
        exchange("a", Failed(error="last")),
        exchange("a", Failed(error="first"), request=other),
        exchange("a", Failed(error="last"), request=other),
    )
    assert result.find(asking, "", [ASKED, other]) == [
        generated("last"),
        Failed(error="first"),
    ]


def test_who_was_asked_and_what_must_be_the_same(tmp_path: Path) -> None:
    scored = ScoreRequest(prompt="What?", continuation=" this")
    answer = Scored(
        probabilities=(0.5,), token_ids=(1,), prompt_tokens=1, prompt_digest="d"
    )
    result = record(
        tmp_path, exchange("a", generated("model")), exchange("a", generated("judge"), to="openai/j"),
        exchange("a", answer, request=scored),
    )  # fmt: skip
    other = GenerateRequest(prompt="What?", max_new_tokens=5)
    assert result.find("a", "", [ASKED, other, scored]) == [
        generated("model"),
        None,
        answer,
    ]
    assert result.find("a", "openai/j", [ASKED]) == [generated("judge")]
    assert result.find("a", "openai/k", [ASKED]) == [None]


def test_a_field_that_came_later_has_its_default_in_older_records(
    tmp_path: Path,
) -> None:
    line = json.loads(to_line(exchange("a", generated("x"))))
    del line["request"]["watch"]
    line["request"]["a_later_key"] = 1
    result = record(tmp_path)
    (tmp_path / "responses.jsonl").write_text(json.dumps(line) + "\n", encoding="ascii")
    assert result.find("a", "", [ASKED]) == [generated("x")]


def test_a_number_that_is_no_probability_is_no_response(tmp_path: Path) -> None:
    scored = ScoreRequest(prompt="What?", continuation=" this")
    answer = Scored(
        probabilities=(1.5,), token_ids=(1,), prompt_tokens=1, prompt_digest="d"
    )
    result = record(tmp_path, exchange("a", answer, request=scored))
    assert result.find("a", "", [scored]) == [Failed(error="not a probability: 1.5")]


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda text: text.replace('"text"', '"tixt"'), "Generated"),
        (lambda text: text.replace('"generate"', '"sing"'), "'request' must be an object whose kind"),
        (lambda text: "{" + text, "Expecting property name"),
    ],
)  # fmt: skip
def test_a_broken_line_is_named(tmp_path: Path, spoil, words: str) -> None:
    result = record(tmp_path, exchange("a", generated("x")))
    path = tmp_path / "responses.jsonl"
    path.write_text(spoil(path.read_text()), encoding="ascii")
    with pytest.raises(
        ResponseError, match=f"responses.jsonl:1: is no recorded response: {words}"
    ):
        result.find("a", "", [ASKED])


def test_what_was_asked_in_a_case(tmp_path: Path) -> None:
    two = GenerateRequest(prompt="Which?", max_new_tokens=4)
    result = record(
        tmp_path,
        exchange("a", generated("x"), request=two),
        exchange("b", generated("x"), fact="f"),
        exchange("b", generated("x"), fact="g", request=two),
        exchange("b", generated("x"), fact="f", request=two, to="openai/j"),
        exchange("c", generated("x")),
    )
    assert result.requests("b", "answer") == {"f": ASKED, "g": two}
    assert result.requests("b", "judge") == result.requests("nowhere", "answer") == {}


def test_examples_are_read_back_from_prompts() -> None:
    shots = (
        Shot(question="Who?", answer="A"),
        Shot(question="Where?\nAnswer: no", answer="B"),
        Shot(question="When?", answer=None),
    )
    relation = Relation(id="R", label="r", domain="d", frames=("What is [X]?",))
    case = Case(
        id="reliability[seen-four-shot]",
        suite="s.kb.yaml",
        probe="reliability",
        slice="seen-four-shot",
        facts=(Fact(id="f", relation="R", subject="X", object="O"),),
        relations=(relation,),
        settings=ReliabilitySettings(prompt="four-shot"),
        gates=(),
        repository=shots,
    )
    prompt = qa("What is X?", (("Who?", "A"), ("When?", "unsure")))

    def read(prompt: str) -> Case | None:
        return shots_in(case, {"f": GenerateRequest(prompt=prompt, max_new_tokens=4)})

    chosen = read(prompt)
    assert chosen is not None
    assert chosen.shots == (("f", (shots[0], shots[2])),)
    assert read(prompt.replace("Who?", "Whose?")) is None
    assert read(prompt + " ") is None
    assert shots_in(case, {}) is None
