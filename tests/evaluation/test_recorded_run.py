"""How the report of a recorded run is read, and what is refused."""

from __future__ import annotations

from pathlib import Path

from pytest_kbrel import SCORING_VERSION
from pytest_kbrel.evaluation.recorded_run import read_run
from pytest_kbrel.serialization import to_wire
from tests.evaluation.test_recorded_pool import recorded
from tests.made_cases import RECORDED_MODEL


def test_recorded_responses_are_scored_by_this_version(tmp_path: Path) -> None:
    model = {**to_wire(RECORDED_MODEL), "scoring_version": 0, "later": 1}
    cases = [{"id": "s::monitor[P36]"}]
    recorded(
        tmp_path, kbrel_version="99", model=model, cases=cases, settings={"limit": "3"}
    )
    run = read_run(tmp_path)
    assert (run.model.scoring_version, run.model.spec) == (SCORING_VERSION, "theirs")
    assert (run.setting("limit"), run.setting("seed"), run.cases) == (
        "3",
        "",
        {"s::monitor[P36]"},
    )
