"""The model behind a file of answers gives what the same model gives behind a server."""

from __future__ import annotations

import json

import openai  # noqa: F401  (in-process sessions forget new modules, and this one takes a second to load)
import pytest

from pytest_kbrel.errors import ModelError
from pytest_kbrel.models.answers.model import AnswersModel
from pytest_kbrel.models.answers.spec import (
    MISSING,
    PROBE,
    request_line,
    to_export,
)
from pytest_kbrel.models.registry import (
    BACKENDS,
    open_model,
    read_spec,
)
from pytest_kbrel.records import Failed, GenerateRequest, ScoreRequest
from tests.batch import run_batch
from tests.openai_server import FILTERED, NULL, Fault


def ask(prompt, **more):
    return GenerateRequest(prompt=prompt, max_new_tokens=8, **more)


ASKED = [
    ask("Where?"),
    ask("What?", system="Be short."),
    ask("Why?", turns=(("Who?", "She"),)),
]


class Rounds:
    """Exports, answers and reads requests until all have answers; ``rounds`` has the lines of each export."""

    def __init__(self, server, folder, args=""):
        self.server, self.folder, self.args = server, folder, args
        self.rounds = []

    def ask(self, requests, name="judge"):
        """Return the responses of all rounds' answers."""
        spec = read_spec(f"openai/{name}", self.args)
        while lines := self.export(spec, requests):
            self.rounds.append([json.loads(line) for line in lines.values()])
            number = len(self.rounds)
            assert number < 5
            source = self.folder / f"requests-{number}"
            source.write_text("".join(lines.values()))
            run_batch(self.server, source, self.folder / f"{number}.jsonl")
            spec = read_spec(f"answers/{self.folder}", self.args)
        return self.open(spec).generate(requests)

    def export(self, spec, requests):
        model, lines = AnswersModel(to_export(spec)), {}
        model.listen(
            lambda name, path, body: lines.setdefault(
                name, request_line(name, path, body)
            )
        )
        model.generate(requests)
        model.close()
        return lines

    def open(self, spec):
        model = open_model(spec)
        model.close()
        return AnswersModel(spec)


@pytest.fixture
def rounds(openai_server, tmp_path, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    return lambda args="": Rounds(openai_server, tmp_path, args)


@pytest.mark.parametrize(
    "args",
    ["", "endpoint=completions,seed=7", "system_instruction=Be kind,logprobs=True"],
)
def test_answers_are_those_of_the_model_asked_directly(
    openai_server, model_at, rounds, args
):
    openai_server.say = lambda text: f"In {text[:-1]} town\nand so on"
    batch = rounds(args)
    assert batch.ask(ASKED) == model_at(args).generate(ASKED)
    assert len(batch.rounds) == 1


def test_a_batch_sends_what_the_server_is_sent(openai_server, model_at, rounds):
    batch = rounds("seed=3")
    batch.ask(ASKED)
    sent = [line["body"] for line in batch.rounds[0] if line["custom_id"] != PROBE]
    assert {line["url"] for line in batch.rounds[0]} == {"/v1/chat/completions"}
    openai_server.calls.clear()
    model_at("seed=3").generate(ASKED)
    direct = [call.body for call in openai_server.calls_to("chat/completions")]
    assert sorted(map(json.dumps, sent)) == sorted(map(json.dumps, direct))


def test_a_reply_that_says_nothing_means_what_it_means_from_a_server(
    openai_server, model_at, rounds
):
    openai_server.always = NULL
    assert rounds().ask(ASKED) == model_at().generate(ASKED)


def test_an_answer_that_did_not_end_is_asked_for_in_a_second_round(
    openai_server, model_at, rounds
):
    openai_server.inject(Fault(), FILTERED, Fault())
    batch = rounds()
    assert batch.ask(ASKED) == model_at().generate(ASKED)
    assert [len(lines) for lines in batch.rounds] == [4, 1]


@pytest.mark.parametrize("parses", ["", "reasoning_content", "reasoning"])
def test_a_model_that_thinks_is_given_room_in_a_second_round(
    openai_server, model_at, rounds, parses
):
    openai_server.say = lambda text: (
        "<think>Let me see, they ask for a city in that country</think>Paris"
    )
    openai_server.parses = parses
    batch = rounds()
    results = batch.ask(ASKED)
    assert [result.text for result in results] == ["Paris"] * 3
    assert all(result.thought for result in results)
    assert results == model_at().generate(ASKED)
    assert [len(lines) for lines in batch.rounds] == [4, 3]


def test_a_missing_answer_and_an_error_are_failures(openai_server, rounds, tmp_path):
    batch = rounds()
    batch.ask(ASKED[:2])
    openai_server.inject(Fault(status=400, message="the prompt is too long"))
    (tmp_path / "1.jsonl").unlink()
    spec = read_spec("openai/judge")
    lines = batch.export(spec, ASKED[:1])
    source = tmp_path / "requests"
    source.write_text("".join(line for name, line in lines.items() if name != PROBE))
    run_batch(openai_server, source, tmp_path / "1.jsonl")
    spec = read_spec(f"answers/{tmp_path}/1.jsonl")
    failed, missing = AnswersModel(spec).generate(ASKED[:2])
    assert isinstance(failed, Failed)
    assert "1.jsonl:1: " in failed.error
    assert "the prompt is too long" in failed.error
    assert missing == MISSING
    # Both are asked again, and the probe for thoughts with them.
    assert len(batch.export(spec, ASKED[:2])) == 3


def test_a_file_without_the_probe_says_so(openai_server, rounds, tmp_path):
    batch = rounds()
    batch.ask(ASKED)
    assert not any(
        PROBE in note for note in AnswersModel(read_spec(f"answers/{tmp_path}")).notes
    )
    path = tmp_path / "1.jsonl"
    path.write_text(
        "".join(line for line in path.read_text().splitlines(True) if PROBE not in line)
    )
    assert any(
        PROBE in note for note in AnswersModel(read_spec(f"answers/{tmp_path}")).notes
    )


def test_it_is_told_apart_by_its_answers(openai_server, rounds, tmp_path):
    rounds().ask(ASKED)
    spec = read_spec(f"answers/{tmp_path}")
    model = AnswersModel(spec)
    fingerprint = model.describe()
    assert (fingerprint.spec, fingerprint.backend) == (f"answers/{tmp_path}", "answers")
    assert (fingerprint.architecture, fingerprint.backend_version) == (
        "judge",
        "served judge fp_loopback",
    )
    assert fingerprint.chat_template
    assert len(fingerprint.weights_digest) == 64
    assert model.name == "judge"
    assert (
        AnswersModel(read_spec(f"answers/{tmp_path}", "model=deployment")).name
        == "deployment"
    )


def test_it_scores_nothing(rounds, tmp_path):
    rounds().ask(ASKED)
    spec = read_spec(f"answers/{tmp_path}")
    assert "no probabilities" in BACKENDS[spec.backend].unscorable(spec)
    (result,) = AnswersModel(spec).score([ScoreRequest(prompt="a", continuation="b")])
    assert isinstance(result, Failed)
    # Nor does it continue the beginning of an answer, of which no request is written.
    asked = [ask("What?", lead="It is")]
    assert rounds().export(read_spec("openai/judge"), asked) == {}


@pytest.mark.parametrize("text", ["answers/", "answers"])
def test_a_file_must_be_named(text):
    with pytest.raises(ModelError, match="answers/FILE"):
        read_spec(text)


def test_requests_of_other_models_are_not_written():
    with pytest.raises(ModelError, match=r"found reference; allowed: openai/NAME"):
        to_export(read_spec("reference"))


def test_an_answer_that_leads_to_a_request_is_missing_until_that_is_answered(
    openai_server, rounds, tmp_path
):
    openai_server.say = lambda text: "\nParis"
    rounds().ask(ASKED)
    (tmp_path / "2.jsonl").unlink()
    assert (
        AnswersModel(read_spec(f"answers/{tmp_path}")).generate(ASKED) == [MISSING] * 3
    )


def test_a_thought_without_beginning_and_end_is_no_answer(
    openai_server, rounds, tmp_path
):
    thought = "They ask for a city in that country."
    openai_server.say = lambda text: (
        f"{thought * 9}" if "What" in text else f"{thought}</think>Paris"
    )
    args = "max_thinking_tokens=4"
    rounds(args).ask(ASKED)
    (result,) = AnswersModel(read_spec(f"answers/{tmp_path}", args)).generate(
        [ASKED[1]]
    )
    assert (result.text, result.finish) == ("", "length")
