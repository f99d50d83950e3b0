"""The controller's hooks, called one by one without a session."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from pytest_kbrel.evaluation.model_pool import News
from pytest_kbrel.models.cache.session import JournalSummary
from pytest_kbrel.plugin.controller import Recorder
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
MODEL = replace(
    RECORDED_MODEL,
    backend="openai",
    weights_digest="",
    tokenizer_digest="",
    dtype="",
    device="http://a/v1",
)


class Journals:
    """Journals of a run under way that hold what they are told to."""

    def __init__(self, **summary):
        self._summary, self.ended = JournalSummary(**summary), None

    def acquire(self):
        """Do nothing."""

    def summary(self):
        return self._summary

    def release(self, *, ended):
        self.ended = ended


@pytest.fixture
def recorder(tmp_path, monkeypatch):
    """Return a recorder of a suite with one case."""
    suite = made_suite(made_case("head_to_tail[a]"))
    monkeypatch.setattr(
        "pytest_kbrel.plugin.worker.suites_of", lambda config, nodeids, options: [suite]
    )
    options = made_options(output_path=tmp_path / "out", from_run=None)
    return Recorder(StubConfig(tmp_path), options, None)


def session(**more):
    actual = {
        "exitstatus": pytest.ExitCode.OK,
        "shouldfail": False,
        "shouldstop": False,
    }
    return SimpleNamespace(**(actual | more))


def report(*results, outcome="passed", **more):
    """Return a report of an item; it carries these results and what else a worker sends."""
    where = {name: more.pop(name) for name in ("nodeid", "when") if name in more}
    actual = made_report(
        outcome=outcome, failure="why" if outcome == "failed" else "", **where
    )
    models = {"": MODEL} | more.pop("models", {})
    if results:
        news = News(models=tuple(models.items()), **more)
        actual.kbrel = dumps_compact({"results": results, "news": news})
    return actual


def finished(recorder, **more):
    """End the session that recorded; return the run and the session."""
    recorder._finished = more.pop("finished", True)
    ended = session(**more)
    recorder.pytest_sessionfinish(ended)
    assert recorder._run is not None
    return recorder._run, ended


GO_ON = (
    "this run did not end: the server's 5 answers are kept for a day, for the next run"
)
STAY = "2 of the answers taken over were not needed, and stay for the next run"
KEPT = {"answers": 5, "unused": 2}


@pytest.mark.parametrize(
    ("summary", "came", "how", "ended", "note"),
    [
        (KEPT, [report(made_result())], {}, True, STAY),
        (KEPT, [], {}, False, GO_ON),
        (KEPT, [report(outcome="skipped", when="setup")], {}, True, STAY),
        (KEPT, [report(made_result())], {"finished": False}, False, GO_ON),
        (
            KEPT | {"failed": 1},
            [report(made_result(verdict="invalid"))],
            {},
            False,
            GO_ON,
        ),
        (KEPT | {"failed": 1}, [report(made_result())], {}, True, STAY),
        *(
            (
                KEPT,
                [report(made_result(verdict="fail"), outcome="failed")],
                {"finished": False, name: "stopping"},
                True,
                STAY,
            )
            for name in ("shouldfail", "shouldstop")
        ),
        (
            KEPT,
            [report(made_result())],
            {"finished": False, "shouldfail": "stopping"},
            False,
            GO_ON,
        ),
        (
            KEPT | {"notes": ("went on", "twice")},
            [report(made_result())],
            {},
            True,
            f"went on\ntwice\n{STAY}",
        ),
    ],
)
def test_whether_a_run_against_a_server_has_ended_and_the_note_on_it(
    recorder, summary, came, how, ended, note
):
    journals = Journals(**summary)
    recorder._run_lock = journals
    recorder.expect([ITEM])
    for one in came:
        # A report is taken apart when it is taken in.
        recorder.pytest_runtest_logreport(_again(one))
    run, _ = finished(recorder, **how)
    assert journals.ended is ended
    assert dict(run.environment).get("answers_resumed") == note


def _again(one):
    actual = report(nodeid=one.nodeid, outcome=one.outcome, when=one.when)
    if hasattr(one, "kbrel"):
        actual.kbrel = one.kbrel
    return actual
