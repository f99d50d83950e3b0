"""What becomes of older reports before a run."""

import pytest

from pytest_kbrel.plugin.activation import start as begin
from pytest_kbrel.plugin.controller import Recorder
from tests.made_cases import made_options
from tests.stub_config import StubConfig

REPORTS = (
    "report.json",
    "report.html",
    "summary.md",
    "responses.jsonl",
    "outcomes.jsonl.xz",
)


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
