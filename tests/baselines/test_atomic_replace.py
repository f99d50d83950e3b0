"""Killed in the middle, out of space, two at once: a blessed run is there, whole, at every moment."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pytest_kbrel.baselines import Baseline, read_baseline, write_baseline
from pytest_kbrel.baselines.writing import replace_files
from pytest_kbrel.errors import BaselineError
from tests.baselines.test_baselines import sound
from tests.gates.tables import answers, case, decided

# Blesses over and over, one of two runs after the other.
BLESSING = """\
import itertools, sys
from pathlib import Path
from tests.baselines.test_atomic_replace import run_of
from pytest_kbrel.baselines import write_baseline
print("ready", flush=True)
for marks in itertools.cycle(sys.argv[2].split(",")):
    write_baseline(Path(sys.argv[1]), run_of(marks))
"""


def run_of(marks: str):
    return sound(decided(case(), answers(marks)), created=marks)


def read(folder: Path) -> Baseline:
    return read_baseline(f"{folder}/", folder.parent)


def is_whole(result: Baseline) -> bool:
    """Both halves are of the same run: the readable one has its marks, the other the labels."""
    blessed = result.cases["world.kb.yaml::head_to_tail[world-head]"]
    assert blessed is not None
    labels = "".join(
        "+" if row.label == "correct" else "-" for row in blessed.table.rows
    )
    return labels == result.created


def blessing(folder: Path, marks: str) -> subprocess.Popen[str]:
    started = subprocess.Popen(
        [sys.executable, "-c", BLESSING, str(folder), marks],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert started.stdout is not None
    assert started.stdout.readline() == "ready\n"
    return started


def end(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert process.stdout is not None
    process.stdout.close()


@pytest.mark.parametrize("replaced", [0, 1])
def test_killed_between_any_two_steps(tmp_path, monkeypatch, replaced):
    folder = tmp_path / "b"
    write_baseline(folder, run_of("+++"))
    steps: list[str] = []
    replace = os.replace

    def die(source, target):
        if len(steps) == replaced:
            raise KeyboardInterrupt
        steps.append(str(target))
        replace(source, target)

    monkeypatch.setattr(os, "replace", die)
    with pytest.raises(KeyboardInterrupt):
        write_baseline(folder, run_of("--+"))
    monkeypatch.undo()
    assert read(folder).created == "+++"
    assert is_whole(read(folder))
    write_baseline(folder, run_of("--+"))
    assert read(folder).created == "--+"


@pytest.mark.slow
def test_killed_at_any_moment(tmp_path):
    folder = tmp_path / "b"
    write_baseline(folder, run_of("+-+"))
    for pause in (0.01, 0.03, 0.07):
        process = blessing(folder, "+++,---")
        time.sleep(pause)
        end(process)
        assert is_whole(read(folder))
    write_baseline(folder, run_of("+-+"))
    assert is_whole(read(folder))


@pytest.mark.slow
def test_two_at_once_leave_the_one_that_came_last(tmp_path):
    folder = tmp_path / "b"
    write_baseline(folder, run_of("+"))
    processes = [blessing(folder, "+,-+"), blessing(folder, "--,+++")]
    seen = set()
    start = time.monotonic()
    try:
        # A slow machine may need longer for two runs to come by, but a look takes as long as a fast one's.
        while (past := time.monotonic() - start) < 0.7 or (len(seen) < 2 and past < 60):
            result = read(folder)
            assert is_whole(result)
            seen.add(result.created)
    finally:
        for process in processes:
            end(process)
    assert is_whole(read(folder))
    assert len(seen) > 1


def test_no_space_leaves_the_older_one_and_nothing_else(tmp_path, monkeypatch):
    folder = tmp_path / "b"
    write_baseline(folder, run_of("+++"))
    before = sorted(folder.iterdir())

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(BaselineError, match="No space left"):
        write_baseline(folder, run_of("---"))
    assert sorted(folder.iterdir()) == before
    assert is_whole(read(folder))


def test_what_a_killed_process_left_is_no_obstacle_and_goes_in_time(tmp_path):
    folder = tmp_path / "b"
    folder.mkdir()
    for name in ("outcomes-0123456789ab.jsonl.xz", ".kbrel-00ff"):
        (folder / name).write_bytes(b"left")
    write_baseline(folder, run_of("+"))
    assert len(list(folder.iterdir())) == 4
    for path in folder.iterdir():
        os.utime(path, (0, 0))
    write_baseline(folder, run_of("-"))
    assert sorted(path.suffix for path in folder.iterdir()) == [".json", ".xz"]


def test_files_can_be_read_by_those_who_may_read_the_folder(tmp_path):
    replace_files(tmp_path / "b", b"{}", "outcomes-0123456789ab.jsonl.xz", b"x")
    (tmp_path / "other").write_bytes(b"")
    assert {path.stat().st_mode for path in (tmp_path / "b").iterdir()} == {
        (tmp_path / "other").stat().st_mode
    }


def test_what_another_process_took_away_first_hides_nothing_else(tmp_path, monkeypatch):
    write_baseline(tmp_path / "b", run_of("+"))
    old = tmp_path / "b" / "outcomes-0123456789ab.jsonl.xz"
    old.write_bytes(b"x")
    os.utime(old, (0, 0))
    listed = Path.iterdir
    monkeypatch.setattr(
        Path,
        "iterdir",
        lambda folder: iter([folder / ".kbrel-00ff", *listed(folder)]),
    )
    write_baseline(tmp_path / "b", run_of("-"))
    assert not old.exists()
