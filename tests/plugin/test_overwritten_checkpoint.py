"""Checkpoints that change during a run: the run is invalid, and no wrong response is cached."""

import json
import shutil
from pathlib import Path

import openai  # noqa: F401  (in-process sessions forget new modules, and this one takes a second to load)
import pytest
from safetensors.torch import load_file, save_file

from pytest_kbrel.models.hf.model import HfModel
from pytest_kbrel.reference import checkpoints
from tests.plugin.conftest import (
    GATED,
    RENAMED,
    facts_file,
    one_line,
)

SUITE = GATED + "  overall: {gates: {gap: {max: 1.0}}}\n"
GATE = ("--kb-model=./checkpoint", "suites", "--kb-batch-size=32", "-p", "no:randomly")
CHANGED = "of ./checkpoint changed while it was being read"


@pytest.fixture
def checkpoint(pytester):
    """Copy the embedded checkpoint to ``checkpoint``, in the format it runs in: its weights are mapped."""
    folder = pytester.path / "checkpoint"
    shutil.copytree(Path(checkpoints.__path__[0]) / "base", folder)
    file = folder / "model.safetensors"
    weights = {name: tensor.float() for name, tensor in load_file(file).items()}
    save_file(weights, file, metadata={"format": "pt"})
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "dtype": "float32"}))
    return folder


def overwrite(folder):
    """Write other weights of the same sizes into the file that is there."""
    file = folder / "model.safetensors"
    other = folder / "other"
    save_file(
        {name: -tensor for name, tensor in load_file(file).items()},
        other,
        metadata={"format": "pt"},
    )
    with file.open("r+b") as stream:
        stream.write(other.read_bytes())
    other.unlink()


@pytest.fixture
def overwritten(monkeypatch, checkpoint):
    """Let the checkpoint be overwritten after the second batch of texts that it writes."""
    real, batches = HfModel.generate_as_ready, []

    def spoilt(model, requests):
        for batch in real(model, requests):
            yield batch
            if model.parts.spec.path == "./checkpoint":
                batches.append(batch)
                if len(batches) == 2:
                    overwrite(checkpoint)

    monkeypatch.setattr(HfModel, "generate_as_ready", spoilt)
    return batches


def answers(pytester, folder="kbrel-report"):
    """Return who said what to which request, as it is recorded."""
    lines = (pytester.path / folder / "responses.jsonl").read_text().splitlines()
    actual = map(json.loads, lines)
    return {
        json.dumps([one.get("to"), one["request"]]): one["response"].get("text")
        for one in actual
    }


def errors(report):
    cases = [case for case in report()["cases"] if not case["aggregate"]]
    return {case["id"].partition("::")[2]: case["errors"] for case in cases}


def test_a_run_whose_weights_are_overwritten_is_invalid_and_blesses_nothing(
    pytester, mini_suite, report, checkpoint, overwritten
):
    mini_suite(SUITE)
    result = pytester.runpytest(*GATE, "--kb-baseline-update=prod")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    actual = report()
    assert (actual["summary"]["verdict"], actual["complete"]) == ("invalid", False)
    # It stops there: the others would fail of the same.
    verdicts = {
        case["id"].partition("::")[2]: case["verdict"] for case in actual["cases"]
    }
    assert verdicts.pop("head_to_tail[places-head]") == "invalid"
    assert set(verdicts.values()) == {"not run"}
    ((error,),) = (
        case["errors"] for case in actual["cases"] if case["verdict"] == "invalid"
    )
    assert error.startswith(f"model.safetensors {CHANGED}; answers")
    assert f"no case can be decided: {error}" in actual["problems"]
    assert len(overwritten) == 2
    assert not (pytester.path / "baselines").exists()
    # Lines are wrapped where the folder's name is long.
    assert "no baseline was written" in one_line(result)


@pytest.mark.slow
def test_the_store_serves_no_answer_of_the_batch_in_which_weights_changed(
    pytester, mini_suite, report, checkpoint, overwritten
):
    mini_suite(SUITE)
    shutil.copytree(checkpoint, pytester.path / "right")
    pytester.runpytest(*GATE)
    stored = sum(map(len, overwritten))
    gate = ("--kb-model=./right", *GATE[1:])
    pytester.runpytest(*gate, "--kb-use-cache=off")
    right = answers(pytester)
    assert pytester.runpytest(*gate).ret == 0
    assert report()["environment"]["answers_reused"] == str(stored)
    assert answers(pytester) == right


@pytest.mark.slow
@pytest.mark.parametrize(
    ("flags", "who"),
    [
        (
            ("--kb-model=reference", "--kb-baseline-model=./checkpoint"),
            "--kb-baseline-model: ",
        ),
        # Its prompts are longer than those it was made for.
        (
            (
                "--kb-model=reference",
                "--kb-judge=./checkpoint",
                "--kb-judge-args=max_length=1024",
            ),
            "--kb-judge: ",
        ),
    ],
    ids=["baseline", "judge"],
)
def test_a_changed_baseline_model_or_judge_makes_the_run_invalid(
    pytester, mini_suite, report, overwritten, flags, who
):
    # A judge is asked where an answer is not what the facts say.
    mini_suite(SUITE, facts=facts_file(RENAMED))
    result = pytester.runpytest(*GATE[1:], *flags)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert len(overwritten) == 2
    (problem,) = (error for error in report()["problems"] if CHANGED in error)
    assert problem.startswith(
        f"no case can be decided: {who}model.safetensors {CHANGED}; answers"
    )
    assert problem.removeprefix("no case can be decided: ") in {
        error for (error, *_) in errors(report).values()
    }


@pytest.mark.parametrize("how", ["copy.replace(file)", "file.unlink()"])
def test_what_changes_between_two_cases_ends_the_second(
    pytester, mini_suite, report, checkpoint, how
):
    mini_suite(SUITE)
    pytester.makeconftest(
        f"""
        import pathlib, shutil

        def pytest_runtest_setup(item):
            if item.name == "head_to_tail[places-torso]":
                file = pathlib.Path("checkpoint/config.json")
                copy = pathlib.Path(shutil.copy2(file, "copy.json"))
                {how}
        """
    )
    assert pytester.runpytest(*GATE).ret == pytest.ExitCode.USAGE_ERROR
    actual = errors(report)
    assert actual["head_to_tail[places-head]"] == []
    assert actual["head_to_tail[places-torso]"][0].startswith(
        f"config.json {CHANGED}; answers"
    )
    lines = (
        (pytester.path / "kbrel-report" / "responses.jsonl").read_text().splitlines()
    )
    assert {json.loads(line)["case"].partition("::")[2] for line in lines} == {
        "head_to_tail[places-head]"
    }


def test_a_change_after_the_last_answer_ends_the_case(
    pytester, mini_suite, report, checkpoint, monkeypatch
):
    from pytest_kbrel.session.case_asker import CaseAsker

    mini_suite(SUITE)
    real = CaseAsker.ask_case

    def then_overwritten(self, case):
        decided = real(self, case)
        overwrite(checkpoint)
        return decided

    monkeypatch.setattr(CaseAsker, "ask_case", then_overwritten)
    assert pytester.runpytest(*GATE, "-k", "head]").ret == pytest.ExitCode.USAGE_ERROR
    ((error,),) = errors(report).values()
    assert error.startswith(f"model.safetensors {CHANGED}")


LATE = """
import os, pathlib, time

WORKER = os.environ.get("PYTEST_XDIST_WORKER")

def wait_for(name):
    end = time.monotonic() + 120
    while not os.path.exists(name) and time.monotonic() < end:
        time.sleep(0.01)

def pytest_runtest_setup(item):
    if WORKER == "gw1" and os.path.exists("other.safetensors"):
        wait_for("gw0")
        os.replace("other.safetensors", "checkpoint/model.safetensors")
    # Else it says before the other one what became of its own weights.
    elif WORKER == "gw0" and os.path.exists("gw0"):
        wait_for("gw1")

def pytest_runtest_teardown(item):
    pathlib.Path(WORKER).touch()
"""


@pytest.mark.slow
def test_a_worker_that_loads_other_weights_than_the_first_makes_the_run_invalid(
    pytester, mini_suite, report, checkpoint
):
    mini_suite(SUITE)
    other = shutil.copytree(checkpoint, pytester.path / "other")
    overwrite(other)
    (other / "model.safetensors").rename(pytester.path / "other.safetensors")
    pytester.makeconftest(LATE)
    result = pytester.runpytest_subprocess(*GATE, "-n2", "--kb-baseline-update=prod")
    assert result.ret in (pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.USAGE_ERROR)
    actual = report()
    assert actual["summary"]["verdict"] == "invalid"
    changed = ("changed while", "is not the same one in all workers: weights (")
    said = [
        *actual["problems"],
        *(of for case in errors(report).values() for of in case),
    ]
    assert any(text in one for one in said for text in changed)
    assert not (pytester.path / "baselines").exists()
    again = pytester.runpytest("--kb-from-run=kbrel-report", "suites")
    assert again.ret != 0
