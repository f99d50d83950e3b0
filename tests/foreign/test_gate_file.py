"""``kbrel compare --gates FILE``: gates by case and metric for runs of other tools."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_kbrel.cli import main

ROWS = 200
LOST = {"arc": 0, "gsm8k": 40}


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b"):
        rows = [
            {
                "task": task,
                "id": at,
                "acc": int(at >= (lost if name == "b" else 0)),
                "f1": 0.5,
            }
            for task, lost in LOST.items()
            for at in range(ROWS)
        ]
        Path(f"{name}.jsonl").write_text(
            "".join(json.dumps(row) + "\n" for row in rows)
        )


def compare(gates: str, *more: str) -> int:
    Path("gates.yaml").write_text(gates)
    return main(
        ["compare", "a.jsonl", "b.jsonl", "--gates=gates.yaml", "--exit-code", *more]
    )


def judged(capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    """Return the verdicts of all gates by case, metric and rule."""
    (paired,) = json.loads(capsys.readouterr().out)["paired"]
    return {
        f"{case['id'].partition('::')[2]} {gate['metric']} {gate['rule']} {gate['bound']:g}": gate[
            "verdict"
        ]
        for case in paired["cases"]
        for gate in case["gates"]
    }


def test_each_case_has_the_gates_that_the_file_names(
    capsys: pytest.CaptureFixture[str],
) -> None:
    gates = """
        all: {acc: {recovery_threshold: 0.95, min: 0.5}}
        gsm8k: {acc: {recovery: 0.7}, f1: {max_drop: 0.1}}
    """
    assert compare(gates, "--json") == 0
    assert judged(capsys) == {
        "arc acc recovery 0.95": "pass",
        "arc acc min 0.5": "pass",
        "gsm8k acc recovery 0.7": "pass",
        "gsm8k acc min 0.5": "pass",
        "gsm8k f1 max_drop 0.1": "pass",
    }
    assert compare("gsm8k: {acc: {recovery: 0.95}}", "--json") == 1
    assert judged(capsys) == {"gsm8k acc recovery 0.95": "fail"}


def test_a_name_means_the_metric_after_each_filter(
    capsys: pytest.CaptureFixture[str],
) -> None:
    made = Path(__file__).with_name("made") / "lm_eval"
    Path("gates.yaml").write_text(
        'made_sums: {exact_match: {max_drop: 0.4}, "exact_match,strict-match": {max_drop: 0.6}}'
    )
    assert (
        main(
            [
                "compare",
                str(made / "a"),
                str(made / "b"),
                "--gates=gates.yaml",
                "--json",
            ]
        )
        == 0
    )
    assert list(judged(capsys)) == [
        "made_sums exact_match,strict-match max_drop 0.6",
        "made_sums exact_match,flexible-extract max_drop 0.4",
    ]


@pytest.mark.parametrize(
    ("gates", "says"),
    [
        (
            "gsm: {acc: {recovery: 0.9}}",
            "gates.yaml:1: unknown case 'gsm' in the runs; allowed: arc, gsm8k, all",
        ),
        (
            "arc:\n  exact: {recovery: 0.9}",
            "gates.yaml:2: unknown metric 'exact' in case arc; allowed: acc, f1",
        ),
        (
            "all: {exact: {recovery: 0.9}}",
            "unknown metric 'exact' in case all; allowed: acc, f1",
        ),
        (
            "arc: {acc: {recovery: 95}}",
            "must be above 0 and at most 1, found 95",
        ),
        ("arc: {acc: {}}", "must have a rule, found none"),
        ("arc: {}", "gates.yaml:1: the case arc has no gate"),
        ("arc: 0.95", "gates of the case arc must be a mapping, found 0.95"),
        ("[arc]", "a file of gates must be a mapping, found a list"),
        ("", "the file is empty"),
        ("arc: {acc: {recovery: .nan}}", "found nan"),
        ("arc: [", "gates.yaml"),
    ],
)
def test_a_file_that_makes_no_sense_is_refused_with_its_line(
    gates: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert compare(gates) == 2
    out, err = capsys.readouterr()
    assert not out
    assert says in err
