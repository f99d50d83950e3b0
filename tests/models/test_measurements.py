"""The rate of a run is what a later plan goes by: measured behind the first batch, kept for one process."""

from __future__ import annotations

import pytest

from pytest_kbrel.models import measurements
from pytest_kbrel.models.cache.session import CacheSession
from pytest_kbrel.models.cache.store import FILE
from pytest_kbrel.models.measurements import (
    RateMeter,
    last_rates,
    store_rates,
    stored_rate,
)
from pytest_kbrel.records import Failed, Scored, ScoreRequest
from tests.planning.test_cost_model import MODEL, TOKEN, Clocked

SCORED = Scored(
    probabilities=(0.5,) * 2, token_ids=(1, 2), prompt_tokens=8, prompt_digest=""
)


@pytest.fixture
def clock(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(measurements.time, "perf_counter", lambda: now[0])

    def batches(*lengths_and_seconds, answer=SCORED):
        for length, seconds in lengths_and_seconds:
            now[0] += seconds
            yield [(place, answer) for place in range(length)]

    return batches


def test_a_failure_has_no_tokens_and_few_answers_no_rate(clock):
    meter = RateMeter()
    list(meter.timed("score", clock((1, 1.0), (63, 1.0))))
    assert meter.rates() == {}
    list(meter.timed("score", clock((1, 1.0), answer=Failed(error="no"))))
    assert meter.rates() == {"score": 63 * 10 / 2.0}


def test_a_rate_is_kept_by_model_and_device_and_not_by_a_worker(tmp_path, monkeypatch):
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
    store_rates(tmp_path, MODEL, {"score": 50.0})
    assert stored_rate(tmp_path, MODEL, "score") == 50.0
    assert stored_rate(tmp_path, MODEL, "generate") is None
    monkeypatch.setenv("PYTEST_XDIST_WORKER", "gw0")
    store_rates(tmp_path, MODEL, {"score": 9.0})
    assert stored_rate(tmp_path, MODEL, "score") == 50.0


def test_a_run_leaves_its_rate_beside_its_answers(tmp_path, monkeypatch):
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
    model = Clocked()
    monkeypatch.setattr(measurements.time, "perf_counter", lambda: model.now)
    session = CacheSession(tmp_path, "run")
    requests = [
        ScoreRequest(prompt=f"word {number}", continuation=" x")
        for number in range(100)
    ]
    session.wrap(model).score(requests)
    session.close()
    assert stored_rate(tmp_path, MODEL, "score") == pytest.approx(1 / TOKEN)


def test_a_store_that_cannot_be_read_has_no_last_rate(tmp_path):
    (tmp_path / FILE).write_bytes(b"SQLite format 3\0 and nothing else")
    assert last_rates(tmp_path, "reference") == {}
