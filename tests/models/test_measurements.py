"""The rate of a run is what a later plan goes by: measured behind the first batch, kept for one process."""

from __future__ import annotations

import pytest

from pytest_kbrel.models import measurements
from pytest_kbrel.models.cache.session import CacheSession
from pytest_kbrel.models.cache.store import FILE
from pytest_kbrel.models.measurements import (
    last_rates,
    stored_rate,
)
from pytest_kbrel.records import ScoreRequest
from tests.planning.test_cost_model import MODEL, TOKEN, Clocked


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
