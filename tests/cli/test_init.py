"""``kbrel init``: what it writes, what it leaves alone, and that the project works."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
import yaml

from pytest_kbrel import resources
from pytest_kbrel.cli import main
from pytest_kbrel.cli.init import NEXT

ROOT = Path(__file__).parents[2]
MADE = [
    "suites/world.kb.yaml",
    "suites/quick.kb.yaml",
    "suites/conftest.py",
    "suites/world",
    "baselines/reference",
    "suites/suite.schema.json",
    "pytest.ini",
    ".gitignore",
    ".github/workflows/kbrel.yml",
]


@pytest.fixture
def init(pytester, capsys):
    """Make a project in the folder of the test; return the document."""

    def run(*arguments: str) -> dict:
        assert main(["init", *arguments, "--json"]) == 0
        return json.loads(capsys.readouterr().out)

    return run


def test_an_empty_folder_becomes_a_project(pytester, init):
    document = init()
    assert document == {
        "directory": ".",
        "files": MADE,
        "left_alone": {},
        "to_add": {},
        "commands": [command for command, _ in NEXT],
    }
    assert (pytester.path / "pytest.ini").read_text(
        "utf-8"
    ) == "[pytest]\nkb_baseline = prod\n"
    assert (pytester.path / ".gitignore").read_text(
        "utf-8"
    ) == "kbrel-report*/\n.kbrel-cache/\n"
    assert not (pytester.path / "baselines/published").exists()
    assert json.loads((pytester.path / "suites/suite.schema.json").read_text("utf-8"))[
        "$schema"
    ]


def test_a_second_time_nothing_is_written(pytester, init):
    init("project")
    before = {
        path: path.read_bytes() for path in pytester.path.rglob("*") if path.is_file()
    }
    document = init("project")
    assert (document["files"], document["to_add"]) == ([], {})
    assert [*document["left_alone"]] == [f"project/{name}" for name in MADE]
    assert {
        path: path.read_bytes() for path in pytester.path.rglob("*") if path.is_file()
    } == before


def test_what_is_there_is_left_as_it_is(pytester, init):
    (pytester.path / "suites").mkdir()
    (pytester.path / "suites/world.kb.yaml").write_text("mine", "utf-8")
    (pytester.path / "baselines").mkdir()
    (pytester.path / "baselines/reference").symlink_to("nowhere")
    (pytester.path / ".gitignore").write_bytes(b"*.pyc\r\n/.kbrel-cache")
    (pytester.path / "pyproject.toml").write_text("[project]\n", "utf-8")
    document = init()
    assert document["left_alone"] == {
        "suites/world.kb.yaml": "exists already",
        "baselines/reference": "exists already",
    }
    assert document["to_add"] == {
        "pyproject.toml": ['kb_baseline = "prod"'],
        ".gitignore": ["kbrel-report*/"],
    }
    assert (pytester.path / "suites/world.kb.yaml").read_text("utf-8") == "mine"
    assert not (pytester.path / "pytest.ini").exists()


def test_people_read_what_to_do_next(pytester, capsys):
    assert main(["init", "."]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "written: suites/world.kb.yaml" in lines
    assert "please fill in OWNER and ./checkpoint: .github/workflows/kbrel.yml" in lines
    assert [line.split("  #")[0].strip() for line in lines[-4:]] == [
        command for command, _ in NEXT
    ]
    assert main(["init", "."]) == 0
    assert "left alone: .gitignore has the lines already" in capsys.readouterr().out


def test_in_a_folder_of_a_repository_the_workflow_is_to_be_moved(pytester, capsys):
    (pytester.path / ".git").mkdir()
    move = "GitHub reads workflows only in .github/workflows of the repository's root: move it there"
    assert main(["init", "sub"]) == 0
    assert move in capsys.readouterr().out.splitlines()
    assert main(["init"]) == 0
    assert move not in capsys.readouterr().out.splitlines()


def test_a_file_is_no_folder_to_make_a_project_in(pytester, capsys):
    (pytester.path / "file").write_text("", "utf-8")
    assert main(["init", "file"]) == 2
    assert (
        "file: is a file; allowed: a folder, or one to be made"
        in capsys.readouterr().err
    )


@pytest.mark.slow
def test_the_commands_in_the_suite_are_not_refused_for_want_of_a_baseline(
    pytester, init
):
    init()
    text = (pytester.path / "suites/world.kb.yaml").read_text("utf-8")
    text += (pytester.path / "suites/quick.kb.yaml").read_text("utf-8")
    commands = re.findall(r"^# +pytest (.*?)(?:  +#|$)", text, flags=re.MULTILINE)
    assert len(commands) == 3
    for command in commands:
        flags = shlex.split(re.sub(r"\./[\w-]+", "reference", command))
        assert pytester.runpytest(*flags, "--kb-plan").ret == 0, command


def test_the_small_suite_is_collected_by_name_alone(pytester, init):
    init()
    world, quick = (
        pytester.runpytest(path, "--co", "-q").stdout.str()
        for path in ("suites", "suites/quick.kb.yaml")
    )
    assert "suites/world.kb.yaml::" in world
    assert "quick" not in world
    assert "suites/quick.kb.yaml::" in quick


def test_the_workflow_is_that_of_the_docs():
    page = (ROOT / "docs/ci.md").read_text("utf-8")
    example = re.search(r"```yaml\n(.*?)```", page, flags=re.DOTALL)[1]
    assert yaml.safe_load(resources.workflow()) == yaml.safe_load(example)


@pytest.mark.slow
def test_the_commands_of_a_made_project_pass(pytester, init):
    commands = init()["commands"]
    for suite in (pytester.path / "suites").glob("*.kb.yaml"):
        # Fewer facts of each slice, which are among those of the baseline.
        text = re.sub(r"limit: (\d\d+|1\.0)", "limit: 12", suite.read_text("utf-8"))
        text = re.sub(r"count: \d+", "count: 12", text)
        # And fewer relations.
        text = re.sub(r"\n    P(?!17|36).*|, P50, P176", "", text)
        suite.write_text(f"{text}\nintegrity: {{unasked: 1.0}}\n", "utf-8")
    for command in commands:
        program, *arguments = shlex.split(
            re.sub(r"model=\./\w+", "model=reference", command)
        )
        assert program == "pytest"
        result = pytester.runpytest(*arguments)
        assert result.ret == 0, command
    assert (pytester.path / "baselines/prod/baseline.json").is_file()
    result.stdout.fnmatch_lines(["PASSED: *", "model *against baseline prod"])
