"""How the report of a recorded run is read, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

from pytest_kbrel import SCORING_VERSION
from pytest_kbrel.replay.recorded_run import read_run
from pytest_kbrel.reports import sha256_of
from tests.made_cases import RECORDED_MODEL
from tests.replay.test_recorded_responses import exchange, generated, record
from tests.replay.test_replay_pool import whole_case


def test_recorded_responses_are_scored_by_this_version(tmp_path: Path) -> None:
    record(tmp_path, exchange("a", generated("x")))
    wire = {
        name: getattr(RECORDED_MODEL, name)
        for name in RECORDED_MODEL.__slots__  # type: ignore[attr-defined]
    }
    report = {
        "schema_version": 1,
        "kbrel_version": "99",
        "created": "",
        "model": {**wire, "scoring_version": 0, "later": 1},
        "environment": {},
        "settings": {"limit": "3"},
        "cases": [whole_case({"id": "s::monitor[P36]"})],
        "aggregates": {},
        "correlations": [],
        "summary": {},
        "exit_status": 0,
        "complete": True,
        "problems": [],
        "files": {"responses.jsonl": sha256_of(tmp_path / "responses.jsonl")},
    }
    (tmp_path / "report.json").write_text(json.dumps(report), encoding="utf-8")
    run = read_run(tmp_path)
    assert (run.model.scoring_version, run.model.spec) == (SCORING_VERSION, "theirs")
    assert (run.setting("limit"), run.setting("seed"), run.cases) == (
        "3",
        "",
        {"s::monitor[P36]"},
    )
