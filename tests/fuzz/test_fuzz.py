"""Damaged files and replies are refused in words, and never pass where the model was wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz.targets import TARGETS, files_of, try_once, world_of


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fuzz")
    world_of(folder)
    return folder


@pytest.mark.parametrize("name", TARGETS)
def test_only_sound_input_is_read(
    name: str, made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(made)
    target = TARGETS[name]
    for path in files_of(target)[:40]:
        assert target.read(path) == int(target.never_green)
    for seed in range(25):
        try_once(name, seed)
