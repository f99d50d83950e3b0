"""Metrics of other tools' runs: which way is better, of what size, and in which of the runs."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from pytest_kbrel.cli import main
from pytest_kbrel.foreign import Wanted, read_run

DATES = ("2026-11-01T10-00-00.1", "2026-11-02T10-00-00.1")
ROWS = 40


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def write(name: str, rows: Iterable[dict[str, Any]]) -> str:
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    Path(name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    return name


def samples(
    folder: str, task: str, score: float, date: str = DATES[0], metric: str = "score"
) -> None:
    """Write the samples of a task of lm_eval, all with the same score."""
    rows = (
        {
            "doc_id": at,
            "filtered_resps": ["x"],
            "filter": "none",
            "metrics": [metric],
            metric: score,
        }
        for at in range(ROWS)
    )
    write(f"{folder}/samples_{task}_{date}.jsonl", rows)


def results(
    folder: str, higher: dict[str, dict[str, bool]], date: str = DATES[0]
) -> None:
    Path(folder, f"results_{date}.json").write_text(
        json.dumps({"higher_is_better": higher})
    )


def verdicts(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, str]:
    """Return the verdict of each gate by case, metric and rule, and of each case, by its name alone."""
    main(["compare", *arguments, "--json"])
    document = json.loads(capsys.readouterr().out)
    assert list(document) != ["error"], document
    (paired,) = document["paired"]
    found = {"run": "fails" if paired["fails"] else "passes"}
    for case in paired["cases"]:
        name = case["id"].partition("::")[2]
        found |= {f"{name} {gate['metric']}": gate["verdict"] for gate in case["gates"]}
    return found


def show(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    main(["compare", *arguments])
    return capsys.readouterr().out


def test_a_perplexity_is_compared_by_the_logarithms_that_its_rows_have(
    capsys: pytest.CaptureFixture[str],
) -> None:
    # So lm_eval 0.4.13 writes it: less is better, and the rows have logarithms of likelihoods.
    for folder, likelihood in (("a", -4.0), ("b", -6.0)):
        samples(folder, "lambada", likelihood, metric="perplexity")
        samples(folder, "own", 4.0, metric="perplexity")
        results(
            folder, {"lambada": {"perplexity": False}, "own": {"perplexity": False}}
        )
    arguments = ("--recovery=0.9",)
    assert verdicts(capsys, "a", "b", *arguments)["lambada log_perplexity"] == "fail"
    assert verdicts(capsys, "b", "a", *arguments) == {
        "run": "passes",
        "lambada log_perplexity": "pass",
        "own perplexity": "pass",
    }
    assert "log_perplexity    4.000   6.000" in show(capsys, "a", "b", *arguments)


def test_two_models_in_one_folder_are_not_taken_for_one_run() -> None:
    samples("runs/base", "arc", 1)
    samples("runs/w4a16", "gsm8k", 1)
    with pytest.raises(
        Exception,
        match="found several runs: runs/base, runs/w4a16; allowed: the folder of",
    ):
        read_run(Path("runs"), Wanted())


def test_a_gate_on_a_metric_that_one_run_lacks_fails(
    capsys: pytest.CaptureFixture[str],
) -> None:
    both = write("both.jsonl", ({"id": at, "acc": 1, "f1": 0.5} for at in range(ROWS)))
    acc = write("acc.jsonl", ({"id": at, "acc": 1} for at in range(ROWS)))
    Path("f1.yaml").write_text("all: {f1: {min: 0.4}}")
    Path("acc.yaml").write_text("all: {acc: {min: 0.4}}")
    assert verdicts(capsys, both, acc, "--gates=f1.yaml") == {
        "run": "fails",
        "all f1": "not run",
    }
    assert verdicts(capsys, acc, both, "--gates=f1.yaml") == {
        "run": "fails",
        "all f1": "no baseline",
    }
    assert verdicts(capsys, both, acc, "--gates=acc.yaml") == {
        "run": "passes",
        "all acc": "pass",
    }
    assert verdicts(capsys, both, acc, "--max-drop=0.1") == {
        "run": "fails",
        "all acc": "pass",
        "all f1": "not run",
    }
    assert main(["compare", both, acc, "--gates=f1.yaml", "--exit-code"]) == 1
    assert "f1 min 0.4: not run: not judged: acc.jsonl has no f1 in all" in " ".join(
        capsys.readouterr().out.split()
    )


def test_each_task_of_a_file_has_the_scores_that_its_rows_have(
    capsys: pytest.CaptureFixture[str],
) -> None:
    rows = [
        {"task": task, "id": at, metric: 1}
        for task, metric in (("arc", "acc"), ("squad", "f1"))
        for at in range(ROWS)
    ]
    a = write("a.jsonl", rows)
    assert verdicts(capsys, a, a, "--max-drop=0.1") == {
        "run": "passes",
        "arc acc": "pass",
        "squad f1": "pass",
    }
    assert verdicts(capsys, a, a, "--max-drop=0.1", "--metric=f1") == {
        "run": "passes",
        "squad f1": "pass",
    }
    # A row without the score of its task is left out and named.
    b = write("b.jsonl", [*rows, {"task": "arc", "id": "x"}])
    main(["compare", a, b, "--max-drop=0.1"])
    assert "b.jsonl: 1 rows have no acc and are left out: x" in " ".join(
        capsys.readouterr().out.split()
    )


@pytest.mark.parametrize(
    ("metric", "worse"),
    [
        ("brier_score", 0.3),
        ("wer", 0.3),
        ("word_perplexity", 0.3),
        ("bits_per_byte", 0.3),
        ("toxicity_score", 0.3),
        ("hallucinationRate", 0.3),
        ("expected_calibration_error", 0.3),
        ("edit_distance", 0.3),
        ("exact_match", -0.3),
        ("rougeL", -0.3),
        ("pass@1", -0.3),
    ],
)
def test_a_known_metric_knows_which_way_is_better(
    metric: str, worse: float, capsys: pytest.CaptureFixture[str]
) -> None:
    for folder, score in (("a", 0.4), ("b", 0.4 + worse)):
        samples(folder, "t", score, metric=metric)
    assert verdicts(capsys, "a", "b", "--max-drop=0.1")[f"t {metric}"] == "fail"
    assert verdicts(capsys, "b", "a", "--max-drop=0.1")[f"t {metric}"] == "pass"
    assert "taken to be" not in show(capsys, "a", "b", "--max-drop=0.1")


@pytest.mark.parametrize("metric", ["depth", "hallucination_free", "brier_skill_score"])
def test_which_way_an_unknown_metric_is_better_is_not_guessed(
    metric: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for folder, score in (("a", 0.4), ("b", 0.7)):
        samples(folder, "t", score, metric=metric)
    arguments = ("a", "b", "--max-drop=0.1")
    assert verdicts(capsys, *arguments)[f"t {metric}"] == "inconclusive"
    text = " ".join(show(capsys, *arguments).split())
    says = f"{metric}: taken to be better the higher it is; allowed: --lower-is-better {metric}"
    assert text.count(says) == 1
    assert f"were less of it better: {metric} rose by 0.300" in text
    assert verdicts(capsys, "b", "a", "--max-drop=0.1")[f"t {metric}"] == "fail"
    assert verdicts(capsys, "a", "a", "--max-drop=0.1")[f"t {metric}"] == "pass"
    said = (*arguments, f"--lower-is-better={metric}")
    assert verdicts(capsys, *said)[f"t {metric}"] == "fail"
    # What one run's results file says is enough; what two say otherwise is not.
    results("a", {"t": {metric: True}})
    assert verdicts(capsys, *arguments)[f"t {metric}"] == "pass"
    results("b", {"t": {metric: False}})
    assert verdicts(capsys, *arguments)[f"t {metric}"] == "inconclusive"
    assert main(["compare", *arguments, "--lower-is-better=depht"]) == 2
    assert "found no score named depht" in capsys.readouterr().err


def test_shares_are_not_compared_with_percent(
    capsys: pytest.CaptureFixture[str],
) -> None:
    files = {}
    for name, scale in (("share", 1), ("percent", 100)):
        rows = [
            {"id": at, "acc": scale * (at % 3 != 0), "loss": scale * 0.7}
            for at in range(ROWS)
        ]
        files[name] = write(f"{name}.jsonl", rows)
    for a, b in (("share", "percent"), ("percent", "share")):
        found = verdicts(capsys, files[a], files[b], "--max-drop=0.1")
        assert found == {"run": "fails", "all acc": "not comparable"}
    assert "acc is at most 100 in the baseline and 1 in the candidate" in " ".join(
        show(capsys, files["percent"], files["share"], "--max-drop=0.1").split()
    )
    # A loss has no scale.
    found = verdicts(
        capsys, files["percent"], files["share"], "--max-drop=0.1", "--metric=loss"
    )
    assert found["all loss"] == "pass"
