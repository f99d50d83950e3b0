"""Times follow from a rate; for a model with a clock of its own they are known beforehand."""

from __future__ import annotations

import dataclasses

import pytest

from pytest_kbrel.models.cache.caching_model import DeduplicatingModel
from pytest_kbrel.models.measurements import store_rates
from pytest_kbrel.models.token_counting import TokenEstimator
from pytest_kbrel.planning import cost_model
from pytest_kbrel.planning.cost_model import measure_costs, read_by
from pytest_kbrel.planning.requests import Call
from pytest_kbrel.records import (
    Failed,
    Fingerprint,
    Generated,
    GenerateRequest,
    Request,
    Scored,
    ScoreRequest,
)

TOKEN = 0.001
MODEL = Fingerprint(
    spec="./here",
    backend="hf",
    backend_version="1",
    architecture="Llama",
    parameters=1,
    weights_digest="a",
    tokenizer_digest="b",
    dtype="float32",
    device="cpu",
)
ANSWER = Scored(probabilities=(0.5,), token_ids=(1,), prompt_tokens=1, prompt_digest="")


class Clocked:
    """A model that takes a known time for each token it reads, on a clock of its own."""

    def __init__(self) -> None:
        self.now = 0.0
        self.closed = False
        self.asked = 0

    def describe(self):
        return MODEL

    def score(self, requests):
        self._work(requests)
        return [
            dataclasses.replace(ANSWER, prompt_tokens=TokenEstimator().prompt(one))
            for one in requests
        ]

    def generate(self, requests):
        self._work(requests)
        return [
            Generated(
                text="x",
                token_ids=(1,) * 4,
                finish="stop",
                prompt_tokens=TokenEstimator().prompt(request),
                prompt_digest="",
            )
            for request in requests
        ]

    def _work(self, requests):
        self.asked += len(requests)
        self.now += TOKEN * sum(
            read_by(request, TokenEstimator()) for request in requests
        )

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def clocked(monkeypatch) -> Clocked:
    model = Clocked()
    monkeypatch.setattr(cost_model.time, "perf_counter", lambda: model.now)
    return model


def calls(method: str) -> list[Call]:
    made: list[tuple[Request, ...]] = []
    for part in range(3):
        prompts = [
            f"{'word ' * (3 + number % 7)}{part}-{number}" for number in range(60)
        ]
        made.append(
            tuple(
                ScoreRequest(prompt=prompt, continuation=" x")
                if method == "score"
                else GenerateRequest(prompt=prompt, max_new_tokens=9)
                for prompt in prompts
            )
        )
    return [
        Call(
            case=f"case {part}",
            kind=("", "monitor", 0, method),
            requests=requests,
            received=len(requests),
        )
        for part, requests in enumerate(made)
    ]


@pytest.mark.parametrize("method", ["score", "generate"])
def test_a_model_that_takes_its_time_by_the_token_is_predicted_exactly(clocked, method):
    costs = measure_costs(lambda: clocked, calls(method), None)
    assert clocked.closed
    assert costs.answers == 60
    assert costs.rates == {method: pytest.approx(1 / TOKEN)}
    before = clocked.now
    predicted = sum(
        costs.seconds_for(call.requests, TokenEstimator()) for call in calls(method)
    )
    asker = DeduplicatingModel(clocked)
    for call in calls(method):
        asker.ask(call.requests)
    assert predicted == pytest.approx(clocked.now - before, rel=1e-6)
    assert sum(map(costs.written_for, calls(method))) == (
        180 * 4 if method == "generate" else 0
    )


def test_the_batch_is_short_and_has_each_kind_by_its_share(clocked):
    costs = measure_costs(
        lambda: clocked, [*calls("score") * 3, *calls("generate")], None
    )
    assert costs.answers == 48 + 16
    assert clocked.asked == costs.answers + 2
    assert costs.rates.keys() == {"score", "generate"}


def test_the_rate_of_the_last_run_is_taken_where_there_is_one(
    clocked, tmp_path, monkeypatch
):
    # No rate is kept by a worker, as which these tests may run.
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
    store_rates(tmp_path, MODEL, {"score": 50.0})
    store_rates(tmp_path, dataclasses.replace(MODEL, device="cuda"), {"score": 5000.0})
    costs = measure_costs(lambda: clocked, calls("score"), tmp_path)
    assert (costs.rates, costs.answers, clocked.asked) == ({"score": 50.0}, 0, 0)
    assert (
        costs.seconds_for(
            [ScoreRequest(prompt="word " * 8, continuation=" x")], TokenEstimator()
        )
        == 11 / 50
    )
    # What the store does not know is measured.
    both = measure_costs(
        lambda: clocked, [*calls("score"), *calls("generate")], tmp_path
    )
    assert both.rates == {"score": 50.0, "generate": pytest.approx(1 / TOKEN)}


def test_a_model_is_closed_where_it_fails(clocked):
    def fail(requests):
        raise RuntimeError("broken")

    clocked.generate = fail
    with pytest.raises(RuntimeError):
        measure_costs(lambda: clocked, calls("generate"), None)
    assert clocked.closed


def test_a_model_that_refuses_every_question_takes_no_time_for_them(clocked):
    clocked.score = lambda requests: [Failed(error="too long") for _ in requests]
    costs = measure_costs(lambda: clocked, calls("score"), None)
    assert costs.rates == {}
    assert costs.seconds_for(calls("score")[0].requests, TokenEstimator()) == 0
