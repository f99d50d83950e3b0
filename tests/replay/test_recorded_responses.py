"""Recorded responses in place of a model: what is found, which of several, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_kbrel.errors import ResponseError
from pytest_kbrel.records import (
    Ask,
    Exchange,
    Failed,
    Generated,
    GenerateRequest,
    Response,
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
    return recorded(folder)


def recorded(folder: Path) -> RecordedResponses:
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
