"""The action and the workflows: what they may do, what they run, and what they hand to a shell."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
FILES = [ROOT / "action.yml", *WORKFLOWS]
SCRIPTS = sorted((ROOT / ".github/scripts").glob("*.sh"))
# What is run beside a token that may write.
WRITING = {("gate.yml", "comment"): "pull-requests", ("bless.yml", "push"): "contents"}


def read(path: Path) -> dict[Any, Any]:
    document: dict[Any, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return document


def steps_of(document: dict[Any, Any]) -> Iterator[dict[str, Any]]:
    if "runs" in document:
        yield from document["runs"]["steps"]
    for job in document.get("jobs", {}).values():
        yield from job.get("steps", [])


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_actions_are_pinned_by_hash_with_their_version_beside_it(path):
    lines = [
        line
        for line in path.read_text(encoding="utf-8").splitlines()
        if not line.startswith("#")
    ]
    uses = [line.split("uses: ")[1] for line in lines if "uses: " in line]
    assert uses
    for use in uses:
        if not use.startswith("./"):
            assert re.fullmatch(
                r"actions/[\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", use
            ), use


def test_one_action_has_one_hash():
    text = "\n".join(path.read_text(encoding="utf-8") for path in FILES)
    pins = set(re.findall(r"uses: actions/([\w-]+)(?:/\w+)?@(\w+)", text))
    assert len(pins) == len({name for name, _ in pins}) >= 5


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_job_may_do_no_more_than_it_needs(path):
    document = read(path)
    assert document["permissions"] == {}
    for name, job in document["jobs"].items():
        allowed = dict(job["permissions"])
        writes = [scope for scope, access in allowed.items() if access == "write"]
        wanted = WRITING.get((path.name, name))
        assert writes == ([wanted] if wanted else [])
        assert set(allowed) <= {"contents", "pull-requests"}


@pytest.mark.parametrize(("file", "job"), WRITING)
def test_beside_a_token_that_may_write_only_our_own_scripts_run(file, job):
    document = read(ROOT / ".github/workflows" / file)
    steps = document["jobs"][job]["steps"]
    commands = [step["run"] for step in steps if "run" in step]
    scripts = {"comment": "post-comment.sh", "push": "push-baseline.sh"}
    assert [Path(command).name for command in commands] == [scripts[job]]
    assert not any(step.get("uses", "").startswith("./") for step in steps)
    conditions = [
        document["jobs"][name].get("if", "")
        for name in (job, document["jobs"][job]["needs"])
    ]
    same = "github.event.pull_request.head.repo.full_name == github.repository"
    assert any(same in condition for condition in conditions)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_no_expression_is_put_into_a_shell(path):
    for step in steps_of(read(path)):
        assert "${{" not in step.get("run", "")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_checkout_leaves_no_token_behind_but_where_one_pushes(path):
    for step in steps_of(read(path)):
        if step.get("uses", "").startswith("actions/checkout@"):
            pushes = (
                step["with"].get("ref") == "${{ github.event.pull_request.head.sha }}"
            )
            assert step["with"]["persist-credentials"] is pushes


def test_steps_run_scripts_that_are_there_and_hand_them_what_they_read():
    called = set()
    for path in FILES:
        for step in steps_of(read(path)):
            for name in re.findall(r"[\w-]+\.sh", step.get("run", "")):
                called.add(name)
                text = (ROOT / ".github/scripts" / name).read_text(encoding="utf-8")
                variables = set(re.findall(r"\bKBREL_[A-Z_]+\b", text))
                stated = {
                    variable
                    for variable in step.get("env", {})
                    if variable != "GH_TOKEN"
                }
                assert stated <= variables, (path.name, name, stated - variables)
                # Those that a script reads without a default must be stated.
                needed = {
                    name
                    for name in variables
                    if re.search(rf"\${{?{name}(?![A-Z_:])", text)
                }
                optional = {
                    name
                    for name in variables
                    if f"{{{name}:-" in text or f"{{{name}:+" in text
                }
                assert needed - optional <= stated, (
                    path.name,
                    name,
                    needed - optional - stated,
                )
    assert called == {path.name for path in SCRIPTS}


def test_what_the_workflow_hands_to_the_action_are_inputs_of_it():
    inputs = read(ROOT / "action.yml")["inputs"]
    uses = [
        step["with"]
        for path in WORKFLOWS
        for step in steps_of(read(path))
        if step.get("uses", "") in ("./", "./.kbrel-action")
    ]
    assert len(uses) == 3
    for given in uses:
        assert given.keys() <= inputs.keys()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_input_is_described_and_used(path):
    document = read(path)
    # YAML reads the key `on` as true.
    inputs = document.get("inputs") or (document.get(True, {}) or {}).get(
        "workflow_call", {}
    ).get("inputs", {})
    text = path.read_text(encoding="utf-8")
    for name, of in inputs.items():
        assert of["description"].endswith(".")
        assert f"inputs.{name}" in text


def test_shards_are_numbered_as_the_flag_wants_them(tmp_path):
    (step,) = read(ROOT / ".github/workflows/gate.yml")["jobs"]["plan"]["steps"]
    output = tmp_path / "output"

    def run(count: str) -> int:
        environment = {
            "PATH": os.environ["PATH"],
            "COUNT": count,
            "GITHUB_OUTPUT": str(output),
        }
        return subprocess.run(
            ["bash", "-e", "-c", step["run"]], env=environment, capture_output=True
        ).returncode

    assert run("3") == 0
    assert output.read_text() == "shards=[1,2,3]\n"
    assert [run(count) for count in ("0", "-1", "257", "1000", "1.5", "")] == [1] * 6


def test_a_shard_that_ran_too_long_is_decided_and_commented_on():
    # A job that ran too long is `cancelled` to the jobs after it; a cancelled workflow is not decided.
    jobs = read(ROOT / ".github/workflows/gate.yml")["jobs"]
    assert "cancelled" not in jobs["decide"]["if"].replace("!cancelled()", "")
    for name, before in (("decide", "shard"), ("comment", "decide")):
        assert "!cancelled() &&" in jobs[name]["if"]
        assert f"needs.{before}.result != 'skipped'" in jobs[name]["if"]


def test_each_run_stores_a_cache_of_its_own_and_prefers_the_latest_of_its_commit():
    steps = [
        step
        for step in steps_of(read(ROOT / "action.yml"))
        if "/cache/" in step.get("uses", "")
    ]
    restore, save = [step["with"] for step in steps]
    assert restore["key"] == save["key"]
    lines = restore["restore-keys"].splitlines()
    assert [restore["key"].startswith(line) for line in lines] == [True] * 3
    assert save["key"] == lines[0] + "${{ github.run_id }}-${{ github.run_attempt }}"
    assert lines[0].endswith("${{ github.sha }}-")


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_scripts_stop_at_the_first_error(path):
    lines = path.read_text(encoding="utf-8").splitlines()
    assert lines[0] == "#!/usr/bin/env bash"
    assert "set -euo pipefail" in lines
    assert "${{" not in "\n".join(lines)
    assert "eval" not in "\n".join(lines)


def blocks_of_the_page() -> list[str]:
    text = (ROOT / "docs/ci.md").read_text(encoding="utf-8")
    return [
        block
        for block in re.findall(r"```yaml\n(.*?)```", text, flags=re.DOTALL)
        if "jobs:" in block
    ]


def test_the_workflows_of_the_page_use_inputs_and_permissions_that_are_wanted():
    one, several = map(yaml.safe_load, blocks_of_the_page())
    step = one["jobs"]["gate"]["steps"][-1]
    assert step["with"].keys() <= read(ROOT / "action.yml")["inputs"].keys()
    for job in several["jobs"].values():
        (name,) = re.findall(r"/(\w+\.yml)@v1$", job["uses"])
        called = read(ROOT / ".github/workflows" / name)
        inputs = called[True]["workflow_call"]["inputs"]
        assert job["with"].keys() <= inputs.keys()
        assert {key for key, of in inputs.items() if of.get("required")} <= job[
            "with"
        ].keys()
        wanted: dict[str, str] = {}
        for inner in called["jobs"].values():
            for scope, access in inner["permissions"].items():
                wanted[scope] = max(wanted.get(scope, access), access)
        assert job["permissions"] == wanted


def test_the_page_lists_the_inputs_of_the_action_with_their_defaults():
    text = (ROOT / "docs/ci.md").read_text(encoding="utf-8")
    for name, of in read(ROOT / "action.yml")["inputs"].items():
        (row,) = [
            line
            for line in text.splitlines()
            if re.match(rf"\| (?:`[\w-]+`, )*`{name}`", line)
        ]
        default = of["default"]
        assert not default or "${{" in default or f"`{default}`" in row, name
