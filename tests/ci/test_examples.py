"""The examples for other systems, run with a scripted model and stand-ins for what submits or serves."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.ci.conftest import ROOT

EXAMPLES = ROOT / "examples"
KNOWS, LOST = "scripted/knows.jsonl", "scripted/lost.jsonl"

# Runs a script at once: an array in two tasks, with the variables that SLURM sets.
SBATCH = r"""
import os, re, subprocess, sys

script = sys.argv[-1]
with open(os.environ["SUBMITTED"], "a") as stream:
    stream.write(" ".join(sys.argv[1:]) + "\n")
array = re.search(r"^#SBATCH --array=(\d+)-(\d+)$", open(script).read(), flags=re.MULTILINE)
first = int(array[1]) if array else 0
last = first + 1 if array else first
for task in range(first, last + 1):
    of = {"ID": task, "MIN": first, "COUNT": last - first + 1} if array else {}
    variables = {f"SLURM_ARRAY_TASK_{name}": str(value) for name, value in of.items()}
    status = subprocess.run(["bash", script], env=os.environ | variables, stdout=sys.stderr).returncode
    print(f"status {status}", file=sys.stderr)
print("17;cluster")
"""

# Says that it is ready after a while, and answers as the test server does.
VLLM = r"""
import http.server, os, sys, time
sys.path.insert(0, os.environ["ROOT"])
from tests.openai_server import OpenAIServer, _handler

arguments = sys.argv[1:]
assert arguments[:2] == ["serve", "the/model"], arguments
if "--broken" in arguments:
    sys.exit("no such model")
port = int(arguments[arguments.index("--port") + 1])
model = arguments[arguments.index("--served-model-name") + 1]
server = OpenAIServer(say=lambda text: "Paris", models=(model,), routes={"/health": lambda call: {}})
time.sleep(0.5)
with http.server.ThreadingHTTPServer(("127.0.0.1", port), _handler(server)) as running:
    running.serve_forever()
"""


@pytest.fixture
def stand_in(environment, tmp_path):
    """Put a program of our own before all others."""

    def put(name, text):
        tools = tmp_path / "stand-ins"
        tools.mkdir(exist_ok=True)
        (tools / f"{name}.py").write_text(text, encoding="utf-8")
        (tools / name).write_text(
            f'#!/bin/sh\nexec "{sys.executable}" "{tools}/{name}.py" "$@"\n'
        )
        (tools / name).chmod(0o755)
        if str(tools) not in environment["PATH"]:
            environment["PATH"] = f"{tools}{os.pathsep}{environment['PATH']}"

    return put


@pytest.fixture
def shell(project, environment):
    """Run commands in one shell, as runners do: it ends at the first that fails."""

    def run_commands(commands, **more):
        return subprocess.run(
            ["bash", "-e", "-o", "pipefail", "-c", "\n".join(commands)],
            cwd=project,
            env=environment | more,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )

    return run_commands


def verdict(folder: Path) -> str:
    text: str = json.loads((folder / "report.json").read_text(encoding="utf-8"))[
        "summary"
    ]["verdict"]
    return text


@pytest.mark.parametrize("path", sorted(EXAMPLES.iterdir()), ids=lambda path: path.name)
def test_every_example_is_in_the_list_that_says_how_far_it_was_run(path):
    text = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    assert path.name == "README.md" or f"`{path.name}`" in text


def test_every_flag_of_an_example_is_one_of_ours_or_of_pytest():
    from pytest_kbrel.plugin.options import FLAGS

    flags = {flag.flag for flag in FLAGS} | {"--junitxml"}
    for path in sorted(EXAMPLES.iterdir()):
        text = path.read_text(encoding="utf-8")
        stated = set(re.findall(r"--(?:kb-[a-z-]+|junitxml)\b", text))
        assert stated <= flags, path.name


def test_an_indexed_job_asks_as_many_shares_as_it_has_pods():
    job = yaml.safe_load((EXAMPLES / "kubernetes-job.yaml").read_text(encoding="utf-8"))
    assert job["spec"]["completionMode"] == "Indexed"
    (command,) = job["spec"]["template"]["spec"]["containers"][0]["args"]
    assert f"--kb-shard=auto/{job['spec']['completions']} " in command


@pytest.mark.slow
def test_gitlab(shell, project, blessed):
    pipeline = yaml.safe_load((EXAMPLES / "gitlab-ci.yml").read_text(encoding="utf-8"))
    ask, decide = pipeline["ask"], pipeline["decide"]
    variables = pipeline["variables"] | {"MODEL": LOST}
    for index in ("1", "2"):
        numbers = {"CI_NODE_INDEX": index, "CI_NODE_TOTAL": "2"}
        result = shell(ask["script"], **variables, **numbers)
        assert result.returncode == 0, result.stdout
        assert list(project.glob(f"{ask['artifacts']['paths'][0]}/"))
    result = shell(decide["script"], **variables | decide["variables"])
    assert result.returncode == 1, result.stdout
    assert verdict(project / "kbrel-report") == "fail"
    assert (project / decide["artifacts"]["reports"]["junit"]).is_file()
    page = {
        "CI_PIPELINE_URL": "https://gitlab.example/a/-/pipelines/1",
        "CI_COMMIT_SHA": "a" * 40,
    }
    assert "## Knowledge gates: fail" in shell(decide["after_script"], **page).stdout


@pytest.mark.slow
def test_slurm(shell, project, blessed, stand_in, tmp_path):
    stand_in("sbatch", SBATCH)
    runs, submitted = tmp_path / "runs", tmp_path / "submitted"
    variables = {
        "MODEL": LOST,
        "BASELINE": "prod",
        "RUNS": str(runs),
        "SUBMITTED": str(submitted),
    }
    variables["TMPDIR"] = str(tmp_path)
    result = shell(
        [f"bash {shlex.quote(str(EXAMPLES / 'slurm-submit.sh'))}"], **variables
    )
    assert result.returncode == 0, result.stderr
    statuses = re.findall(r"^status (\d)$", result.stderr, flags=re.MULTILINE)
    assert statuses == ["0", "0", "1"]
    assert {path.name for path in runs.glob("shard-*")} == {"shard-1", "shard-2"}
    assert verdict(runs / "report") == "fail"
    assert (tmp_path / f"kbrel-cache-{os.getuid()}").is_dir()
    assert "--dependency=afterany:17 " in submitted.read_text().splitlines()[1]


@pytest.mark.parametrize("name", ["MODEL", "BASELINE"])
def test_nothing_is_submitted_without_a_model_or_a_baseline(
    shell, stand_in, tmp_path, name
):
    stand_in("sbatch", SBATCH)
    variables = {"MODEL": LOST, "BASELINE": "prod", "RUNS": str(tmp_path / "runs")}
    variables["SUBMITTED"] = str(tmp_path / "submitted")
    del variables[name]
    result = shell(
        [f"bash {shlex.quote(str(EXAMPLES / 'slurm-submit.sh'))}"], **variables
    )
    assert result.returncode != 0
    assert f"{name}: the " in result.stderr
    assert not (tmp_path / "submitted").exists()


@pytest.mark.slow
def test_kubernetes(shell, project, blessed, tmp_path):
    runs = {"RUNS": str(tmp_path / "runs")}

    def container(name):
        job = yaml.safe_load((EXAMPLES / name).read_text(encoding="utf-8"))
        (of,) = job["spec"]["template"]["spec"]["containers"]
        assert of["command"] == ["bash", "-c"]
        values = {one["name"]: one["value"] for one in of["env"]}
        # As of a job of two pods.
        return [text.replace("auto/4", "auto/2") for text in of["args"]], values | runs

    commands, values = container("kubernetes-job.yaml")
    for index in "01":
        result = shell(
            commands, **values | {"MODEL": KNOWS, "JOB_COMPLETION_INDEX": index}
        )
        assert result.returncode == 0, result.stdout
    commands, values = container("kubernetes-merge.yaml")
    result = shell(commands, **values)
    assert result.returncode == 0, result.stdout
    assert verdict(tmp_path / "runs/report") in ("pass", "inconclusive")


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl")
def test_a_server_is_started_waited_for_and_ended(shell, project, stand_in):
    stand_in("vllm", VLLM)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    variables = {
        "MODEL": "the/model",
        "PORT": str(port),
        "ROOT": str(ROOT),
        "VLLM": "--max-model-len\n4096",
    }
    command = f"bash {shlex.quote(str(EXAMPLES / 'vllm-server.sh'))}"
    result = shell([f"{command} -q"], **variables)
    assert result.returncode == 1, result.stdout + result.stderr
    assert verdict(project / "kbrel-report") == "fail"
    report = json.loads(
        (project / "kbrel-report/report.json").read_text(encoding="utf-8")
    )
    assert report["model"]["spec"].startswith("openai/gated")
    with socket.socket() as again:
        assert again.connect_ex(("127.0.0.1", port)) != 0

    broken = shell([command], **variables | {"VLLM": "--broken"})
    assert broken.returncode == 3
    assert "vllm serve ended before it was ready" in broken.stderr
    assert "no such model" in broken.stderr
