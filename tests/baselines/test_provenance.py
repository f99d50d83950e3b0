"""The commit that a blessed run names, by what git answers."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from pytest_kbrel.baselines import commit_of

Answer = str | Exception


def asked(monkeypatch: pytest.MonkeyPatch, head: Answer, status: Answer = "") -> list[list[str]]:
    """Let git answer this; return what it is asked."""
    seen: list[list[str]] = []

    def run(command: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
        assert (options["check"], options["capture_output"], options["text"]) == (True, True, True)
        assert 0 < options["timeout"] <= 60
        seen.append(command)
        answer = head if "rev-parse" in command else status
        if isinstance(answer, Exception):
            raise answer
        return subprocess.CompletedProcess(command, 0, stdout=answer, stderr="warning")

    monkeypatch.setattr(subprocess, "run", run)
    return seen


@pytest.mark.parametrize(
    ("head", "status", "expected"),
    [
        ("abc123\n", "", "abc123"),
        ("abc123\n", "\n", "abc123"),
        ("abc123\n", " M suites/world.kb.yaml\n", "abc123 with changes"),
        ("", " M x\n", ""),
        (FileNotFoundError("git"), "", ""),
        (subprocess.CalledProcessError(128, "git"), " M x\n", ""),
        (subprocess.TimeoutExpired("git", 10), "", ""),
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad"), "", ""),
        ("abc123\n", subprocess.TimeoutExpired("git", 10), "abc123"),
    ],
)
def test_the_commit_is_told_with_whether_tracked_files_were_changed(
    monkeypatch: pytest.MonkeyPatch, head: Answer, status: Answer, expected: str
) -> None:
    asked(monkeypatch, head, status)
    assert commit_of(Path("here")) == expected


def test_git_is_asked_about_the_folder_and_tracked_files_only(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = asked(monkeypatch, "abc123\n")
    commit_of(Path("here"))
    assert seen == [
        ["git", "-C", "here", "rev-parse", "HEAD"],
        ["git", "-C", "here", "status", "--porcelain", "--untracked-files=no"],
    ]
