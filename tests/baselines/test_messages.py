"""What is said, in full, of baselines that cannot be read or written, and what one without a file knows."""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from pytest_kbrel.baselines import (
    baseline_directory,
    check_target,
    read_baseline,
    write_baseline,
)
from pytest_kbrel.errors import BaselineError
from tests.baselines.test_baselines import sound
from tests.baselines.test_blessed_files import meta_of, respelt

WRITTEN = "a folder that --kb-baseline-update wrote, or a file NAME.kbrel of kbrel pack"


def said(attempt: Callable[[], object]) -> str:
    with pytest.raises(BaselineError) as caught:
        attempt()
    return str(caught.value)


def test_why_a_baseline_cannot_be_read(tmp_path: Path) -> None:
    folder = tmp_path / "b"
    meta = folder / "baseline.json"
    write_baseline(folder, sound())
    whole = meta.read_text(encoding="utf-8")
    (outcomes,) = folder.glob("outcomes-*")

    def after(spoil: Callable[[Path], object]) -> str:
        meta.write_text(whole, encoding="utf-8")
        spoil(folder)
        return said(lambda: read_baseline(f"{folder}", tmp_path))

    version = (
        "found schema_version {}, written by pytest-kbrel 0.1.0; allowed: 2: update pytest-kbrel, or bless "
        "again with --kb-baseline-update=b"
    )
    sha = meta_of(folder)["outcomes"]["sha256"]
    rows = [
        (
            respelt(lambda of: of.update(schema_version="2")),
            f"{meta}: is no kbrel baseline; allowed: {WRITTEN}",
        ),
        (
            respelt(lambda of: of.update(schema_version=3)),
            f"{meta}: {version.format(3)}",
        ),
        (
            respelt(lambda of: of.update(schema_version=1)),
            f"{meta}: {version.format(1)}",
        ),
        (
            respelt(lambda of: of.update(outcomes={})),
            f"{folder}: not a baseline of this format: KeyError: 'file'; allowed: {WRITTEN}",
        ),
        (
            respelt(lambda of: of.pop("model")),
            f"{folder}: not a baseline of this format: KeyError: 'model'; allowed: {WRITTEN}",
        ),
        (
            respelt(lambda of: of["outcomes"].update(sha256="0" * 64)),
            f"{outcomes}: found digest {sha[:12]}, baseline.json was written with 000000000000; "
            "allowed: two files of one run",
        ),
    ]
    assert [after(spoil) for spoil, _ in rows] == [message for _, message in rows]
    result = after(lambda of: meta.write_text("{", encoding="utf-8"))
    assert result.startswith(f"{meta}: cannot be read: ")
    assert result.endswith(f"; allowed: {WRITTEN}")
    assert (
        after(lambda of: meta.unlink())
        == f"{folder}: has no baseline.json; allowed: {WRITTEN}"
    )
    assert after(lambda of: outcomes.unlink()) == (
        f"{outcomes}: is missing; allowed: the file as it was written; restore it, or bless again with "
        f"--kb-baseline-update={folder}"
    )
    result = after(lambda of: outcomes.write_bytes(b"plain"))
    assert result.startswith(f"{outcomes}: cannot be read: ")
    assert result.endswith("; allowed: the file as it was written")


def test_why_a_path_or_a_name_is_no_baseline(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x", encoding="utf-8")
    rows = [
        (
            f"{tmp_path}/nowhere",
            f"{tmp_path}/nowhere: nothing is there; allowed: {WRITTEN}",
        ),
        (f"{tmp_path}/file", f"{tmp_path}/file: a file is there; allowed: {WRITTEN}"),
    ]
    assert [said(partial(read_baseline, name, tmp_path)) for name, _ in rows] == [
        text for _, text in rows
    ]
    assert said(lambda: baseline_directory("published/x", tmp_path)) == (
        "'published/x' stands for figures of a paper, which no run replaces; allowed: a name that does not "
        "begin with published/"
    )


def test_a_folder_is_blessed_in_only_where_files_can_be_made_and_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = (
        f"{tmp_path}/b: no baseline can be written: {{}}; allowed: a folder that can"
    )
    for right in (os.W_OK, os.X_OK):
        monkeypatch.setattr(
            os, "access", lambda path, mode, right=right: not mode & right
        )
        assert said(lambda: check_target(tmp_path / "b")) == refused.format(
            f"{tmp_path} may not be written"
        )
    monkeypatch.undo()

    def forbidden(folder: Path) -> None:
        raise PermissionError(13, "Permission denied", f"{folder}")

    (tmp_path / "b").mkdir()
    monkeypatch.setattr(Path, "iterdir", forbidden)
    assert said(lambda: check_target(tmp_path / "b")) == refused.format(
        f"[Errno 13] Permission denied: '{tmp_path}/b'"
    )


def test_figures_that_are_no_numbers_are_not_blessed(tmp_path: Path) -> None:
    """Others read the file too: NaN is no JSON."""
    write_baseline(tmp_path / "b", sound(created="before"))
    (first, *others) = sound().cases
    odd = dataclasses.replace(
        first, metrics=(dataclasses.replace(first.metrics[0], value=math.nan),)
    )
    with pytest.raises(ValueError, match="JSON compliant"):
        write_baseline(tmp_path / "b", sound(odd, *others))
    assert read_baseline(f"{tmp_path}/b", tmp_path).created == "before"
