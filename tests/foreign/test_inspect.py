"""Logs of Inspect, made by Inspect itself with its mock model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_kbrel.cli import main
from pytest_kbrel.errors import KbrelError
from pytest_kbrel.foreign import Wanted, format_of, read_run


def test_the_package_that_reads_logs_is_named_with_its_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "inspect_ai.log", None)
    (tmp_path / "a.eval").write_bytes(b"PK\x03\x04")
    with pytest.raises(
        KbrelError, match=r'needs inspect-ai: pip install "pytest-kbrel\[inspect\]"'
    ):
        read_run(tmp_path / "a.eval", Wanted())


@pytest.mark.filterwarnings("default")
def test_two_models_in_one_folder_are_not_taken_for_one_run(tmp_path: Path) -> None:
    logs = pytest.importorskip("inspect_ai.log", exc_type=ImportError)
    for at, file in enumerate(
        sorted(Path(__file__).with_name("made").glob("inspect/a/*.eval"))
    ):
        log = logs.read_eval_log(str(file))
        log.eval.model = f"mockllm/{at}"
        logs.write_eval_log(log, str(tmp_path / file.name))
    with pytest.raises(
        KbrelError, match="found 2 models: mockllm/0, mockllm/1; allowed: one"
    ):
        read_run(tmp_path, Wanted())


@pytest.mark.filterwarnings("default")
def test_samples_that_ended_in_an_error_count_as_lost(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    logs = pytest.importorskip("inspect_ai.log", exc_type=ImportError)
    made = Path(__file__).with_name("made") / "inspect" / "a"
    for file in made.glob("*.eval"):
        log = logs.read_eval_log(str(file))
        for sample in log.samples or []:
            if sample.epoch == 1 and log.eval.task == "physics":
                sample.scores = {}
        logs.write_eval_log(log, str(tmp_path / file.name))
    capsys.readouterr()
    assert main(["compare", str(made), str(tmp_path), "--max-drop=1", "--json"]) == 0
    (paired,) = json.loads(capsys.readouterr().out)["paired"]
    verdicts = {case["id"]: case["verdict"] for case in paired["cases"]}
    assert verdicts == {
        # Of fewer than ten rows no change shows nothing.
        "inspect_ai::biology": "inconclusive",
        "inspect_ai::physics": "invalid",
    }
    assert "7 have no score in the candidate alone" in paired["cases"][1]["obstacle"]


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("form", ["eval", "json"])
def test_logs_are_read_with_epochs_and_grades(
    form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    inspect = pytest.importorskip("inspect_ai", exc_type=ImportError)
    from inspect_ai.dataset import Sample
    from inspect_ai.model import ModelOutput
    from inspect_ai.scorer import match
    from inspect_ai.solver import solver

    @solver
    def known() -> Any:
        # Without asking the model: to count its tokens, Inspect would download a vocabulary.
        async def solve(state: Any, _: Any) -> Any:
            state.output = ModelOutput.from_content("mock", state.metadata["answer"])
            return state

        return solve

    def log(name: str, answers: list[str], first: int = 0) -> Path:
        task = inspect.Task(
            name="capitals",
            dataset=[
                Sample(
                    id=at,
                    input=f"{at + first}?",
                    target="yes",
                    metadata={"page": at // 4, "answer": answer},
                )
                for at, answer in enumerate(answers)
            ],
            solver=known(),
            scorer=match(),
        )
        (made,) = inspect.eval(
            task,
            model="mockllm/model",
            log_dir=str(tmp_path / name),
            log_format=form,
            display="none",
            epochs=2,
        )
        assert made.status == "success", made.error
        return tmp_path / name

    a, b = log("a", ["yes"] * 20), log("b", ["yes"] * 8 + ["no"] * 12)
    (file,) = b.iterdir()
    assert format_of(file) == "inspect_ai"
    run = read_run(file, Wanted(cluster="page"))
    assert run.model == "mockllm/model"
    rows = {row.fact_id: row for row in run.cases["capitals"].tables["match"].rows}
    assert len(rows) == 20
    assert rows["3"].cluster == "0"
    assert (rows["0"].question, rows["0"].expected, rows["0"].answer) == (
        "0?",
        "yes",
        "yes",
    )
    capsys.readouterr()
    code = main(["compare", str(a), str(b), "--max-drop=0.1", "--exit-code", "--json"])
    (case,) = json.loads(capsys.readouterr().out)["paired"][0]["cases"]
    assert (code, case["id"], case["verdict"]) == (1, "inspect_ai::capitals", "fail")
    assert "20 ids have several rows" in case["obstacle"]
    # Samples without ids are numbered in the order in which they ran: another one may be the first then.
    assert (
        main(
            [
                "compare",
                str(a),
                str(log("c", ["yes"] * 20, first=1)),
                "--max-drop=0.1",
                "--json",
            ]
        )
        == 0
    )
    (case,) = json.loads(capsys.readouterr().out)["paired"][0]["cases"]
    assert case["verdict"] == "not comparable"
    assert "20 rows are asked otherwise" in case["obstacle"]
