"""The reports of the run before, when another one begins in their folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_kbrel.errors import KbrelError
from pytest_kbrel.plugin.output_folder import move_aside, move_back
from pytest_kbrel.replay.recorded_run import read_run
from pytest_kbrel.reports.files import REPORT_FILES
from pytest_kbrel.reports.json_report import read_report


def _reports(folder: Path, text: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name in REPORT_FILES:
        (folder / name).write_text(text)


def _names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_reports_take_the_place_of_those_before_them(tmp_path: Path) -> None:
    for text in ("one", "two"):
        _reports(tmp_path, text)
        (tmp_path / "previous" / "notes.md").parent.mkdir(exist_ok=True)
        (tmp_path / "previous" / "notes.md").write_text("mine")
        (tmp_path / "notes.md").write_text("mine")
        assert move_aside(tmp_path)
        assert _names(tmp_path) == {"previous", "notes.md"}
        assert _names(tmp_path / "previous") == {*REPORT_FILES, "notes.md"}
        assert (tmp_path / "previous" / "report.json").read_text() == text


def test_a_part_that_only_the_run_before_that_had_does_not_stay_among_others(tmp_path: Path) -> None:
    _reports(tmp_path / "previous", "old")
    (tmp_path / "report.json").write_text("new")
    assert move_aside(tmp_path)
    assert _names(tmp_path / "previous") == {"report.json"}


def test_what_a_killed_run_left_does_not_replace_whole_reports(tmp_path: Path) -> None:
    _reports(tmp_path / "previous", "whole")
    (tmp_path / "responses.jsonl").write_text("torn")
    assert not move_aside(tmp_path)
    assert _names(tmp_path) == {"previous"}
    assert _names(tmp_path / "previous") == set(REPORT_FILES)


def test_where_there_is_nothing_nothing_is_made(tmp_path: Path) -> None:
    assert not move_aside(tmp_path / "new")
    assert not move_aside(tmp_path)
    assert not _names(tmp_path)


def test_reports_come_back_where_it_came_to_no_run(tmp_path: Path) -> None:
    _reports(tmp_path, "one")
    assert move_aside(tmp_path)
    move_back(tmp_path)
    assert _names(tmp_path) == set(REPORT_FILES)


def test_reports_that_cannot_be_moved_are_a_usage_error(tmp_path: Path) -> None:
    _reports(tmp_path, "one")
    (tmp_path / "previous").write_text("a file")
    with pytest.raises(
        pytest.UsageError, match=r"^--kb-output-path: .*cannot be moved to .*previous: .*; allo"
    ):
        move_aside(tmp_path)


def test_who_looks_for_a_report_that_was_set_aside_is_told_where_it_is(tmp_path: Path) -> None:
    _reports(tmp_path, "{}")
    move_aside(tmp_path)
    for read in (read_report, read_run):
        with pytest.raises(
            KbrelError, match=r"did not end \(killed\?\), or was refused; the one before: .*/prev"
        ):
            read(tmp_path)
    with pytest.raises(KbrelError, match=r"there is no such report$"):
        read_report(tmp_path / "other")
