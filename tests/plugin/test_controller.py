"""The controller's hooks, called one by one without a session."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from pytest_kbrel.errors import KbrelError
from pytest_kbrel.evaluation.model_pool import News
from pytest_kbrel.plugin.controller import Recorder
from pytest_kbrel.replay.recorded_run import read_run
from pytest_kbrel.serialization import dumps_compact
from tests.made_cases import (
    RECORDED_MODEL,
    made_case,
    made_options,
    made_report,
    made_result,
    made_suite,
)
from tests.stub_config import StubConfig

ITEM = "mini.kb.yaml::head_to_tail[a]"


@pytest.fixture
def recorder(tmp_path, monkeypatch):
    """Return a recorder of a suite with one case."""
    suite = made_suite(made_case("head_to_tail[a]"))
    monkeypatch.setattr(
        "pytest_kbrel.plugin.worker.suites_of", lambda config, nodeids, options: [suite]
    )
    options = made_options(output_path=tmp_path / "out", from_run=None)
    return Recorder(StubConfig(tmp_path), options, None)


def report(result, models):
    """Return a report of an item as a worker with these models sends it."""
    actual = made_report(nodeid=result.nodeid)
    news = News(models=tuple(models.items()))
    actual.kbrel = dumps_compact({"results": [result], "news": news})
    return actual


HF = replace(RECORDED_MODEL, weights_digest="a" * 64)
OTHER = replace(HF, weights_digest="b" * 64)
MIXED = (
    "{} is not the same one in all workers: weights (aaaaaaaaaaaa and bbbbbbbbbbbb); its files changed "
    "before all had read them: run again when nothing writes there, or gate a copy"
)


@pytest.mark.parametrize(
    ("first", "second", "who"),
    [
        ({"": HF}, {"": OTHER}, "the model"),
        ({"hf/judge": HF}, {"hf/judge": OTHER}, "hf/judge"),
    ],
)
def test_workers_with_different_models_make_no_run(
    recorder, tmp_path, first, second, who
):
    one, two = made_result(), made_result("mini.kb.yaml::head_to_tail[b]", "fail")
    recorder.expect([ITEM])
    for result, models in (
        (one, first),
        (two, second),
        (replace(one, id="head_to_tail[c]"), first),
    ):
        recorder.pytest_runtest_logreport(report(result, models))
    recorder._finished = True
    ended = SimpleNamespace(exitstatus=0, shouldfail=False, shouldstop=False)
    recorder.pytest_sessionfinish(ended)
    run = recorder._run
    problem = MIXED.format(who)
    assert [(case.id, case.verdict, case.errors) for case in run.cases] == [
        ("head_to_tail[a]", "pass", ()),
        ("head_to_tail[b]", "invalid", (problem,)),
        ("head_to_tail[c]", "pass", ()),
    ]
    assert (run.problems, run.complete, int(ended.exitstatus)) == ((problem,), False, 1)
    # Whose the recorded responses are is not known: nobody decides on them again.
    with pytest.raises(KbrelError, match="no one model answered in this run"):
        read_run(tmp_path / "out")
