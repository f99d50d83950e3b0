"""The rate of a run is what a later plan goes by: measured behind the first batch, kept for one process."""

from __future__ import annotations

import dataclasses

import pytest

from pytest_kbrel.models.base import Model
from pytest_kbrel.models.cache import session as module
from pytest_kbrel.models.cache.session import (
    CacheSession,
    RateMeter,
    last_rates,
    store_rates,
)
from pytest_kbrel.records import Fingerprint, Generated, Scored, ScoreRequest

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
SCORED = Scored(
    probabilities=(0.5,) * 2, token_ids=(1, 2), prompt_tokens=8, prompt_digest=""
)
TEXT = Generated(
    text="x", token_ids=(1,) * 9, finish="stop", prompt_tokens=5, prompt_digest=""
)


@pytest.fixture
def clock(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(module.time, "perf_counter", lambda: now[0])

    def batches(*lengths_and_seconds, answer=SCORED):
        for length, seconds in lengths_and_seconds:
            now[0] += seconds
            yield [(place, answer) for place in range(length)]

    return batches


def test_a_rate_is_of_tokens_read_behind_the_first_batch(clock):
    meter = RateMeter()
    assert (
        sum(map(len, meter.timed("score", clock((10, 99.0), (40, 1.0), (60, 3.0)))))
        == 110
    )
    assert meter.rates() == {"score": 100 * 10 / 4.0}
    list(meter.timed("generate", clock((1, 9.0), (64, 2.0), answer=TEXT)))
    assert meter.rates()["generate"] == 64 * 5 / 2.0


def test_a_rate_is_kept_by_spec_and_not_by_a_worker(tmp_path, monkeypatch):
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
    assert last_rates(tmp_path, MODEL.spec) == {}
    store_rates(tmp_path, MODEL, {"score": 5000.0, "generate": 3.0})
    store_rates(tmp_path, MODEL, {"score": 50.0})
    store_rates(tmp_path, dataclasses.replace(MODEL, weights_digest=""), {"score": 9.0})
    store_rates(tmp_path / "kbrel-rates.json", MODEL, {"score": 9.0})
    monkeypatch.setenv("PYTEST_XDIST_WORKER", "gw0")
    store_rates(tmp_path, MODEL, {"score": 9.0})
    assert last_rates(tmp_path, MODEL.spec) == {"score": 50.0}
    assert last_rates(tmp_path, "reference") == {}
    assert [path.name for path in tmp_path.iterdir()] == ["kbrel-rates.json"]


class Clocked(Model):
    """A model that takes a known time for each token it reads, on a clock of its own."""

    now = 0.0

    def describe(self):
        return MODEL

    def score(self, requests):
        self.now += TOKEN * 10 * len(requests)
        return [SCORED] * len(requests)


def test_a_run_leaves_its_rate_beside_its_answers(tmp_path, monkeypatch):
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
    model = Clocked()
    monkeypatch.setattr(module.time, "perf_counter", lambda: model.now)
    session = CacheSession(tmp_path, "run")
    requests = [
        ScoreRequest(prompt=f"word {number}", continuation=" x")
        for number in range(100)
    ]
    session.wrap(model).score(requests)
    session.close()
    assert last_rates(tmp_path, MODEL.spec) == {"score": pytest.approx(1 / TOKEN)}


@pytest.mark.parametrize("rates", ["", "[]", "{}", '{"./here": {"score": NaN}}'])
def test_a_broken_file_has_no_rate_and_is_written_anew(tmp_path, monkeypatch, rates):
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
    text = f'{{"rates_by_spec": {rates}}}'
    (tmp_path / "kbrel-rates.json").write_text(text)
    assert last_rates(tmp_path, MODEL.spec) == {}
    store_rates(tmp_path, MODEL, {"score": 9.0})
    assert last_rates(tmp_path, MODEL.spec) == {"score": 9.0}
    (tmp_path / "kbrel-rates.json").write_text(
        '{"rates_by_spec": {"./here": {"score": 1' + "0" * 400 + "}}}"
    )
    assert last_rates(tmp_path, MODEL.spec) == {}
