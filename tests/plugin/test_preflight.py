"""What becomes of older reports before a run."""

import pytest

from pytest_kbrel.plugin.activation import start as begin
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
