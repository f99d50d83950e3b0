"""The wheel, and what an installation of it finds."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    return next(folder.glob("*.whl"))


def test_the_wheel_carries_suites_checkpoints_baseline_schemas_and_licence(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    for needed in (
        "pytest_kbrel/bundled_data/suites/world.kb.yaml",
        "pytest_kbrel/bundled_data/suites/world/facts.jsonl",
        "pytest_kbrel/bundled_data/suites/world/SOURCES.md",
        "pytest_kbrel/bundled_data/baselines/reference/baseline.json",
        "pytest_kbrel/bundled_data/baselines/published/reliable-kb/llama-2-7b/four-shot.json",
        "pytest_kbrel/judges/words.yaml",
        "pytest_kbrel/judges/languages/de.yaml",
        "pytest_kbrel/reference/checkpoints/base/model.safetensors",
        "pytest_kbrel/reference/checkpoints/overconfident/model.safetensors",
        "pytest_kbrel/reference/checkpoints/gullible/model.safetensors",
        "pytest_kbrel/cli/workflow.yml",
        "pytest_kbrel/suites/suite.schema.json",
        "pytest_kbrel/reports/report.schema.json",
        "pytest_kbrel/reports/templates/report.html.j2",
        "pytest_kbrel/reports/templates/report.css",
        "pytest_kbrel/reports/templates/page.js",
        "pytest_kbrel/py.typed",
    ):
        assert needed in names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert not any(name.startswith(("tests/", "recipe/")) for name in names)


@pytest.mark.slow
def test_an_installed_package_finds_what_it_carries(wheel, tmp_path):
    site = tmp_path / "site"
    subprocess.run(
        [
            sys.executable,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--no-deps",
            "--target",
            str(site),
            str(wheel),
        ],
        check=True,
        capture_output=True,
    )

    def kbrel(*arguments: str) -> str:
        command = [sys.executable, "-m", "pytest_kbrel.cli", *arguments]
        result = subprocess.run(
            command,
            cwd=tmp_path,
            env={"PYTHONPATH": str(site)},
            capture_output=True,
            text=True,
            check=True,
        )
        return result.stdout

    assert "written: project/suites/world.kb.yaml\n" in kbrel("init", "project")
    assert (tmp_path / "project/suites/world.kb.yaml").is_file()
    assert (tmp_path / "project/baselines/reference/baseline.json").is_file()
    assert not (tmp_path / "project/baselines/published").exists()
    assert "Vicuna-7b" in kbrel(
        "compare", "published/monitor/vicuna-7b", "published/monitor/bloomz-3b"
    )
    assert '"$schema"' in kbrel("schema", "suite")
    assert '"$schema"' in kbrel("schema", "report")


def test_a_clone_without_the_packages_of_the_tests_collects_the_others(tmp_path):
    (tmp_path / "hypothesis.py").write_text(
        "raise ImportError(\"No module named 'hypothesis'\")"
    )
    run = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "--co",
            "-q",
            "-p",
            "no:cacheprovider",
            "-p",
            "no:hypothesispytest",
            "tests/test_printing.py",
            "tests/test_bounds.py",
        ],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert "tests/test_printing.py:1: make test installs what it needs" in run.stdout
    assert "tests/test_bounds.py::" in run.stdout
