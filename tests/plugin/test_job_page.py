"""The summary on the page of a job of GitHub Actions."""

import pytest

from pytest_kbrel.cli import main
from tests.plugin.conftest import GATE, ONE, one_line


@pytest.fixture
def page(pytester, monkeypatch):
    path = pytester.path / "page.md"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(path))
    return path


def test_a_page_that_cannot_be_written_is_a_warning(pytester, mini_suite, page):
    mini_suite(ONE)
    page.mkdir()
    result = pytester.runpytest(*GATE, "-W", "error")
    assert result.ret == 0
    assert (
        "warning: the summary was not added to $GITHUB_STEP_SUMMARY: [Errno 21]"
        in one_line(result)
    )


def test_shards_append_nothing_and_the_joined_run_does(
    pytester, mini_suite, page, capsys
):
    mini_suite(ONE)
    for index in "12":
        pytester.runpytest(*GATE, f"--kb-shard={index}/2", f"--kb-output-path={index}")
    assert not page.exists()
    assert main(["merge", "1", "2", "--output=merged"]) == 0
    assert (
        page.read_text("utf-8")
        == "\n" + (pytester.path / "merged" / "summary.md").read_text()
    )
    page.unlink()
    page.mkdir()
    assert main(["merge", "1", "2", "--output=again"]) == 0
    assert "warning: the summary was not added" in capsys.readouterr().out
