"""A project with a suite and a scripted model, in which scripts of CI run as CI runs them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.plugin.conftest import (
    GATED,
    MODEL,
    RELATIONS,
    RENAMED,
    SCRIPTS,
    facts_file,
)

ROOT = Path(__file__).parents[2]
Result = subprocess.CompletedProcess[str]
Run = Callable[..., Result]
COMPARING = GATED.replace("min: 0.0", "min: 0.5, max_drop: 0.1")

# What the scripts ask of gh: comments of one pull request, kept in a file.
GH = r"""
import json, os, sys
from pathlib import Path

folder = Path(os.environ["FAKE_GH"])
assert os.environ["GH_TOKEN"] == "token"
with (folder / "calls.jsonl").open("a") as stream:
    stream.write(json.dumps(sys.argv[1:]) + "\n")
arguments = sys.argv[1:]
assert arguments.pop(0) == "api"
method = arguments[arguments.index("--method") + 1] if "--method" in arguments else "GET"
(path,) = [argument for argument in arguments if argument.startswith("repos/")]
state = json.loads((folder / "state.json").read_text())
comments = state["comments"]
body = [argument for argument in arguments if argument.startswith("body=@")]
body = Path(body[0][6:]).read_text() if body else ""
if (method, path) == ("GET", "repos/o/r/pulls/7"):
    assert arguments[arguments.index("--jq") + 1] == ".head.sha"
    print(state["head"])
elif (method, path) == ("GET", "repos/o/r/issues/7/comments?per_page=100"):
    assert "--paginate" in arguments
    for comment in comments:
        if comment["user"]["type"] == "Bot":
            print(comment["id"], comment["body"].split("\n")[0].removesuffix("\r"), sep="\t")
elif (method, path) == ("POST", "repos/o/r/issues/7/comments"):
    comments.append({"id": len(comments) + 100, "user": {"type": "Bot"}, "body": body})
elif path.startswith("repos/o/r/issues/comments/"):
    (comment,) = [one for one in comments if one["id"] == int(path.rpartition("/")[2])]
    if method == "PATCH":
        comment["body"] = body
    else:
        assert method == "DELETE"
        comments.remove(comment)
else:
    sys.exit(f"{method} {path}")
(folder / "state.json").write_text(json.dumps(state))
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Write a project with a suite that compares with a baseline, and the scripts of three models."""
    return _written(tmp_path / "project")


@pytest.fixture(scope="session")
def _baselines(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = _written(tmp_path_factory.mktemp("blessed"))
    flags = (MODEL, "suites", "--kb-baseline-update=prod", "-pno:cacheprovider")
    command = [sys.executable, "-m", "pytest", *flags]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return folder / "baselines"


@pytest.fixture
def blessed(project: Path, _baselines: Path) -> None:
    """Put the baseline ``prod`` into the project: the model that knows the capitals, blessed once."""
    shutil.copytree(_baselines, project / "baselines")


def _written(folder: Path) -> Path:
    (folder / "suites").mkdir(parents=True)
    (folder / "suites/facts.jsonl").write_text(facts_file(), encoding="utf-8")
    (folder / "suites/relations.yaml").write_text(RELATIONS, encoding="utf-8")
    (folder / "suites/mini.kb.yaml").write_text(COMPARING, encoding="utf-8")
    for name, lines in SCRIPTS.items():
        (folder / f"{name}.jsonl").write_text(lines, encoding="utf-8")
    (folder / "lost.jsonl").write_text(_losing(), encoding="utf-8")
    (folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    return folder


def _losing() -> str:
    """Return the script of a model that lost the capitals of most countries."""
    rules = [
        {"pattern": rf"capital of {country}\?[^?]*$", "text": city}
        for country, city in RENAMED.items()
    ]
    lines = [*(json.dumps(rule) + "\n" for rule in rules), SCRIPTS["knows"]]
    return "".join(lines)


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Return the variables of a job: the tools of this Python first in PATH, then a gh of our own."""
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "gh.py").write_text(GH, encoding="utf-8")
    (tools / "gh").write_text(
        f'#!/bin/sh\nexec "{sys.executable}" "{tools}/gh.py" "$@"\n', encoding="utf-8"
    )
    (tools / "gh").chmod(0o755)
    return {
        "PATH": os.pathsep.join(
            [str(Path(sys.executable).parent), str(tools), os.environ["PATH"]]
        ),
        "HOME": str(tmp_path),
        "CI": "true",
        "PYTEST_ADDOPTS": "-p no:hypothesispytest -p no:anyio -p no:cacheprovider",
        "OMP_NUM_THREADS": "1",
    }


@pytest.fixture
def run(project: Path, environment: dict[str, str]) -> Run:
    """Run a script of ``.github/scripts`` in the project, with more variables."""

    def run_script(
        script: str | Path, *arguments: str, cwd: Path = project, **more: object
    ) -> Result:
        path = ROOT / ".github/scripts" / script
        return subprocess.run(
            ["bash", str(path), *arguments],
            cwd=cwd,
            env=environment | {name: str(value) for name, value in more.items()},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )

    return run_script
