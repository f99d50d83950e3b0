"""Workers in other folders, with other Pythons and behind other connections: the run is the serial one."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

import pytest
from execnet import XSpec

from pytest_kbrel.plugin.elsewhere import is_elsewhere, settings_there
from pytest_kbrel.plugin.options import ELSEWHERE
from pytest_kbrel.plugin.settings import read_settings
from pytest_kbrel.reports.json_report import comparable
from tests.plugin.conftest import INT4, MODEL, RENAMED, SUITE, facts_file
from tests.stub_config import StubConfig

INI = "[pytest]\ntestpaths = suites\n"
# Does what ssh does: a shell of its own runs the command, in a home folder of its own and with few variables.
SSH = """\
#!/bin/sh
for command; do :; done
cd {home} && exec env -i HOME={home} PATH=/usr/bin:/bin PYTHONDONTWRITEBYTECODE=1 {more} sh -c "$command"
"""


@pytest.fixture
def project(pytester, mini_suite):
    """Make a project whose ini file names its suites, and a copy of it in another folder; return that."""
    mini_suite(SUITE)
    (pytester.path / "pytest.ini").write_text(INI)
    other = pytester.path / "other"
    shutil.copytree(
        pytester.path, other, ignore=shutil.ignore_patterns("other", "hypothesis")
    )
    return other


@pytest.fixture
def ssh(pytester, monkeypatch):
    """Put an ssh on PATH that stays on this machine; return the home folder there."""

    def make(more=""):
        home, tool = pytester.path / "home", pytester.path / "bin" / "ssh"
        home.mkdir()
        tool.parent.mkdir()
        tool.write_text(SSH.format(home=home, more=more))
        tool.chmod(0o755)
        monkeypatch.setenv("PATH", str(tool.parent), prepend=os.pathsep)
        return home

    return make


def contents(folder: Path):
    report = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    files = {
        name: (folder / name).read_bytes()
        for name in ("responses.jsonl", "outcomes.jsonl.xz")
    }
    return json.dumps(comparable(report)), files


def printed(result):
    return " ".join((result.stdout.str() + result.stderr.str()).split())


@pytest.mark.slow
def test_workers_in_another_folder_measure_what_a_serial_run_does(pytester, project):
    serial = pytester.runpytest_subprocess(MODEL, "--kb-output-path=serial")
    assert serial.ret == 0
    tx = ("--dist=load", "--tx", f"2*popen//chdir={project}")
    result = pytester.runpytest_subprocess(MODEL, *tx, "--kb-output-path=spread")
    assert result.ret == 0, printed(result)
    assert contents(pytester.path / "spread") == contents(pytester.path / "serial")
    assert not (project / "spread").exists()
    assert not list((pytester.path / "spread").glob(".parts"))


@pytest.mark.slow
def test_workers_behind_ssh_read_copies_and_take_the_options_of_the_environment(
    pytester, project, ssh, monkeypatch
):
    monkeypatch.setenv("KB_LIMIT", "7")
    home = ssh()
    model = f"--kb-model=scripted/{pytester.path}/knows.jsonl"
    serial = pytester.runpytest_subprocess(model, "--kb-output-path=serial")
    assert serial.ret == 0
    monkeypatch.setenv("KB_MODEL", model.partition("=")[2])
    tx = (
        "--dist=load",
        "--tx",
        f"2*ssh=node//python={sys.executable}//chdir={home}/copy",
    )
    suites = str(pytester.path / "suites")
    result = pytester.runpytest_subprocess(
        suites, *tx, f"--rsyncdir={pytester.path}", "--kb-output-path=spread"
    )
    assert result.ret == 0, printed(result)
    assert contents(pytester.path / "spread") == contents(pytester.path / "serial")


@pytest.mark.slow
def test_a_machine_without_the_plugin_is_named(pytester, project, ssh):
    home = ssh(more=f"PYTHONPATH={pytester.path / 'shadow'}")
    shadow = pytester.path / "shadow" / "pytest_kbrel"
    shadow.mkdir(parents=True)
    (shadow / "__init__.py").write_text("raise ImportError\n")
    tx = (
        "--dist=load",
        "--tx",
        f"ssh=node//python={sys.executable}//chdir={home}/copy",
    )
    result = pytester.runpytest_subprocess(MODEL, *tx)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "its Python does not have pytest-kbrel; allowed: " in printed(result)
    (shadow / "__init__.py").write_text("__version__ = '0.0.1'\n")
    result = pytester.runpytest_subprocess(MODEL, *tx)
    assert "its Python has pytest-kbrel 0.0.1; allowed: " in printed(result)


def test_a_path_that_is_not_copied_is_refused(pytester, project):
    result = pytester.runpytest(
        MODEL, "suites", "--dist=load", "--tx", f"popen//chdir={project}"
    )
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert (
        "found the path suites, and xdist passes only paths that it copies to the worker"
        in printed(result)
    )
    assert (
        f"allowed: {pytester.path / 'suites'} with --rsyncdir={pytester.path}"
        in printed(result)
    )


@pytest.mark.slow
@pytest.mark.parametrize("what", ["suite", "baseline"])
def test_other_facts_or_another_baseline_there_decide_nothing(
    pytester, project, report, what
):
    flags = [MODEL]
    if what == "suite":
        (project / "suites" / "facts.jsonl").write_text(
            facts_file(RENAMED), encoding="utf-8"
        )
    else:
        for folder, model in ((pytester.path, MODEL), (project, INT4)):
            bless = f"--kb-baseline-update={folder / 'baselines' / 'prod'}"
            assert pytester.runpytest_subprocess(model, bless).ret == 0
        flags += ["--kb-baseline=prod"]
    tx = ("--dist=load", "--tx", f"popen//chdir={project}")
    result = pytester.runpytest_subprocess(*flags, *tx)
    assert result.ret != 0
    name = "suites/mini.kb.yaml" if what == "suite" else "the baseline"
    assert f"{name} is not the same one on all machines" in printed(result)
    assert "invalid" in {case["verdict"] for case in report()["cases"]}


def test_a_worker_elsewhere_keeps_no_answers_of_a_server(tmp_path):
    here = StubConfig(tmp_path, model="openai/x")
    there = StubConfig(tmp_path, model="openai/x", worker={ELSEWHERE: {}})
    local = StubConfig(tmp_path, model="reference", worker={ELSEWHERE: {}})
    kept = [
        settings_there(config, read_settings(config)).use_cache
        for config in (here, there, local)
    ]
    assert kept == [tmp_path / ".kbrel-cache", None, tmp_path / ".kbrel-cache"]


@pytest.mark.parametrize(
    ("spec", "elsewhere"),
    [
        ("popen", False),
        ("popen//python=python3.12", False),
        ("popen//chdir=/other", True),
        ("popen//via=far", True),
        ("ssh=node", True),
        ("socket=node:8888", True),
    ],
)
def test_which_workers_may_see_other_files(spec, elsewhere):
    assert is_elsewhere(XSpec(spec)) is elsewhere
