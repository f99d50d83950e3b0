"""Parallel facts in eleven languages, and the suite over them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from pytest_kbrel.cli import main
from pytest_kbrel.suites import load_suite
from recipe import languages


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("languages")
    assert main(["build", "languages", "--output", str(made)]) == 0
    return made


def test_another_process_writes_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    line = [sys.executable, "-m", "pytest_kbrel.cli", "build", "languages", "--output"]
    seed = {**os.environ, "PYTHONHASHSEED": "5"}
    subprocess.run([*line, str(tmp_path)], check=True, env=seed, capture_output=True)
    for file in folder.iterdir():
        assert (tmp_path / file.name).read_bytes() == file.read_bytes()


def test_each_fact_is_asked_in_every_language_and_balanced(folder: Path) -> None:
    lines = (folder / "facts.jsonl").read_text("utf-8").splitlines()
    facts = [json.loads(line) for line in lines]
    named = defaultdict(set)
    for fact in facts:
        if fact["object"]:
            named[fact["parallel"]].add(fact["language"])
    scripts = Counter(of["object"] for of in facts if of["relation"] == "P282.en")
    assert len(named) > 1000
    assert {len(spoken) for spoken in named.values()} == {11}
    assert max(scripts.values()) <= languages.MOST_OF_A_SCRIPT


def test_the_rows_are_what_the_recipe_chooses() -> None:
    for path, text in languages.texts().items():
        assert path.read_text("utf-8") == text


def test_the_suite_has_slices_by_language(folder: Path) -> None:
    suite = load_suite(folder / "languages.kb.yaml", limit=4)
    slices = {case.id: case for case in suite.cases}
    assert len(slices) == 11 * (3 + 2)
    for name in ("head_to_tail[hi-tail]", "reliability[known-hi]"):
        assert {fact.language for fact in slices[name].facts} == {"hi"}
    pooled = suite.aggregates[-1]
    assert len(pooled.facts) >= 11 * 3 * 4
    assert "ar, de, es, fr, hi, it, ja, pt, ru, zh were not checked" in pooled.notes[0]


def test_files_that_are_there_are_kept(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["build", "languages", "--output", str(folder)]
    assert main(command) == 2
    assert "exists already" in capsys.readouterr().err
    assert main([*command, "--force"]) == 0
