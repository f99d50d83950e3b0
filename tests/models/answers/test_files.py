"""Files of answers: what is read, and what is refused with its line."""

from __future__ import annotations

import json

import pytest

from pytest_kbrel.errors import ModelError
from pytest_kbrel.models.answers.spec import (
    PROBE,
    read_answers,
    request_id,
    request_line,
)
from pytest_kbrel.records import Failed

PATH = "/chat/completions"
A, B, C = (request_id(PATH, {"prompt": prompt}) for prompt in "abc")


def answer(name, text="Paris", model="m", **more):
    body = {"model": model, "choices": [{"message": {"content": text}}]}
    return {
        "custom_id": name,
        "response": {"status_code": 200, "body": body},
        "error": None,
        **more,
    }


def unended(name, **choice):
    line = answer(name)
    line["response"]["body"]["choices"][0] |= choice
    return line


def error(name, **more):
    return {
        "custom_id": name,
        "response": {"status_code": 400, "body": None},
        "error": "too long",
        **more,
    }


@pytest.fixture
def write(tmp_path):
    def write(*lines, name="answers.jsonl"):
        path = tmp_path / name
        text = "".join(
            f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines
        )
        path.write_text(text, encoding="utf-8")
        return path

    return write


def text_of(reply):
    return reply["choices"][0]["message"]["content"]


def test_an_id_depends_on_what_is_asked_and_not_on_the_models_name():
    body = {"model": "m", "messages": [], "max_tokens": 8}
    assert request_id(PATH, body) == request_id(PATH, body | {"model": "other"})
    assert request_id(PATH, body) != request_id(PATH, body | {"max_tokens": 9})
    assert request_id(PATH, body) != request_id("/completions", body)


def test_a_request_is_a_line_of_a_batch():
    line = request_line("x", PATH, {"model": "m"})
    assert json.loads(line) == {
        "custom_id": "x",
        "method": "POST",
        "url": "/v1/chat/completions",
        "body": {"model": "m"},
    }
    assert line.endswith("}\n")


def test_answers_are_found_by_their_ids_in_one_file_or_in_a_folder(write, tmp_path):
    write(answer(A, "one"), "", answer(B, "two"), name="1.jsonl")
    write(answer(C, "three"), answer(PROBE, "so"), name="2.jsonl")
    (tmp_path / "notes.txt").write_text("none of them")
    answers = read_answers(tmp_path)
    assert [text_of(answers.find(name)) for name in (A, B, C, PROBE)] == [
        "one",
        "two",
        "three",
        "so",
    ]
    assert answers.find(request_id(PATH, {})) is None
    assert len(answers) == 4
    assert answers.name == "m"
    assert [str(place) for place in answers.others({A, C})] == [
        f"{tmp_path / '1.jsonl'}:3"
    ]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (error(A), "400: 'too long'"),
        (
            error(
                A,
                response=None,
                error={"code": "batch_expired", "message": "it expired"},
            ),
            "'it expired'",
        ),
        (unended(A, finish_reason="abort"), "stop_sequence or null"),
        (
            unended(A, error={"code": 502}),
            "the server gave no answer: error '{\"code\": 502}'",
        ),
    ],
)
def test_an_error_in_the_place_of_an_answer_is_a_failure_with_its_line(
    write, line, said
):
    path = write(answer(B), line)
    failed = read_answers(path).find(A)
    assert isinstance(failed, Failed)
    assert failed.error.startswith(f"{path}:2: ")
    assert failed.error.endswith(said)


def test_an_answer_of_a_later_batch_replaces_an_error(write, tmp_path):
    write(unended(A, finish_reason="error"), answer(B), name="1.jsonl")
    write(answer(A, "at last"), error(B), name="2.jsonl")
    answers = read_answers(tmp_path)
    assert text_of(answers.find(A)) == "at last"
    assert text_of(answers.find(B)) == "Paris"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", r":2: is no JSON"),
        ("[" * 100_000, r":2: is no JSON"),
        ("7", r":2: found '7'"),
        (
            {"custom_id": A, "method": "POST", "url": "/v1", "body": {}},
            r":2: is a request and not an answer",
        ),
        (answer("request-1"), r":2: found the custom_id 'request-1'"),
        (answer(A, response=None), r":2: holds neither an answer nor an error"),
        (answer(A, response={"status_code": 200, "body": None}), r":2: holds neither"),
        (
            answer(B),
            r":2: answers the request kbrel-\w+ again; it has an answer at .*:1",
        ),
        (
            answer(A, model="other"),
            r":2: found an answer of 'other' behind those of 'm'",
        ),
    ],
)
def test_a_line_that_is_no_answer_is_named(write, line, said):
    with pytest.raises(ModelError, match=said):
        read_answers(write(answer(B), line))


def test_a_file_without_answers_is_refused(write, tmp_path):
    with pytest.raises(ModelError, match=r"answers\.jsonl: found no answers"):
        read_answers(write())
    with pytest.raises(ModelError, match=r"nowhere\.jsonl: cannot be read"):
        read_answers(tmp_path / "nowhere.jsonl")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ModelError, match=r"found no file \*\.jsonl"):
        read_answers(tmp_path / "empty")


def test_a_file_that_changes_meanwhile_gives_a_failure(write):
    path = write(answer(A, "long" * 100), answer(B))
    answers = read_answers(path)
    path.write_text("{}\n")
    assert "changed while it was in use" in answers.find(A).error
