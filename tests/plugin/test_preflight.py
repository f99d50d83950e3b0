"""Checks before a run: refused settings, unused flags, the session header."""

from dataclasses import replace
from pathlib import Path

import pytest

from pytest_kbrel.plugin.activation import start as begin
from pytest_kbrel.plugin.controller import Recorder
from pytest_kbrel.plugin.preflight import check, unused_flags
from pytest_kbrel.records import Fact
from tests.made_cases import made_case, made_options, made_suite
from tests.stub_config import StubConfig

REPORTS = (
    "report.json",
    "report.html",
    "summary.md",
    "responses.jsonl",
    "outcomes.jsonl.xz",
)


def checked(folder, *, line=(), typed=None, **settings):
    config = StubConfig(folder, line=line, **(typed or {}))
    return check(config, made_options(output_path=folder / "out", **settings))


@pytest.fixture
def old(tmp_path):
    """A folder with all reports of an older run, and a file of somebody else's."""
    folder = tmp_path / "kbrel-report"
    folder.mkdir()
    for name in (*REPORTS, "notes.md"):
        (folder / name).write_text('{"kbrel_version": "0"}')
    return folder


def test_a_run_that_is_refused_leaves_no_report_of_an_older_one(old):
    config = StubConfig(old.parent, model="./nowhere")
    with pytest.raises(pytest.UsageError, match="nowhere"):
        begin(config)
    assert {path.name for path in old.iterdir()} == {"notes.md", "previous"}
    assert {path.name for path in (old / "previous").iterdir()} == set(REPORTS)


def test_a_run_that_has_cases_to_run_takes_all_older_reports_away(old):
    options = made_options(output_path=old)
    recorder = Recorder(StubConfig(old.parent), options, None)
    recorder.expect(["tests/test_own.py::test_x"])
    assert len(list(old.iterdir())) == 6
    # That suite is not there; the reports go all the same, and the run will say so.
    recorder.expect(["gone.kb.yaml::monitor[a]"])
    assert {path.name for path in old.iterdir()} - {".parts"} == {
        "notes.md",
        "previous",
    }


MONITOR, ANSWERS = "mini.kb.yaml::monitor[a]", "mini.kb.yaml::head_to_tail[a]"
FACT = Fact(id="f", relation="P36", subject="France", object="Paris")
JUDGES = "--kb-judge=openai/j is not used: no case is selected whose answers it judges"


def unused(typed, expected, judge="openai/j"):
    answers = replace(made_case("head_to_tail[a]"), facts=(FACT,), judge=judge)
    suite = made_suite(made_case("monitor[a]"), answers)
    config = StubConfig(Path(), **typed)
    options = made_options(judge=typed.get("judge", "openai/j"))
    return unused_flags(config, options, [suite], expected)


@pytest.mark.parametrize(
    ("typed", "expected", "messages"),
    [
        ({"judge": "openai/j"}, {MONITOR, ANSWERS}, ()),
        ({"judge": "openai/j"}, {MONITOR}, (JUDGES,)),
    ],
)
def test_flags_that_no_selected_case_needs_are_reported(typed, expected, messages):
    assert unused(typed, expected) == messages
