"""Runs of other tools through ``kbrel compare``: what is read, paired, judged and refused."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from pytest_kbrel.cli import main
from pytest_kbrel.cli.compare.thresholds import threshold

ROWS = 200


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def scores(lost: int, gained: int = 0, rows: int = ROWS) -> list[int]:
    """Return the scores of a candidate whose baseline has its last fifth wrong."""
    right = rows * 4 // 5
    return (
        [0] * lost + [1] * (right - lost) + [1] * gained + [0] * (rows - right - gained)
    )


def write_csv(name: str, values: Iterable[object], header: str = "id,score") -> str:
    rows = (f"q{at},{value}" for at, value in enumerate(values))
    Path(name).write_text("\n".join([header, *rows]) + "\n")
    return name


def write_lines(name: str, rows: Iterable[dict[str, Any]]) -> str:
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    Path(name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    return name


def lm_eval(
    folder: str,
    values: Sequence[object],
    *,
    prompt: str = "p",
    task: str = "gsm8k",
    **more: Any,
) -> str:
    """Write the samples of a task after two filters; only the first filter has ``values``."""
    rows = [
        {
            **{
                "doc_id": at,
                "doc": {
                    "question": f"q{at}?",
                    "subject": "ab"[at % 2],
                    "loss": float("nan"),
                },
            },
            **{
                "target": "4",
                "resps": [["4"]],
                "filtered_resps": ["4"],
                "filter": filtered,
            },
            **{
                "metrics": ["exact_match", "parts"],
                "doc_hash": "d",
                "prompt_hash": prompt,
                "target_hash": "t",
            },
            **{
                "exact_match": value if filtered == "strict-match" else 1.0,
                "parts": [1, 2],
                **more,
            },
        }
        for filtered in ("strict-match", "flexible-extract")
        for at, value in enumerate(values)
    ]
    return (
        write_lines(f"{folder}/samples_{task}_2026-11-01T10-00-00.123456.jsonl", rows)
        and folder
    )


def compare(capsys: pytest.CaptureFixture[str], *arguments: str, exit: int = 0) -> Any:
    """Return the JSON document of a comparison, or the text where it was not asked for."""
    assert main(["compare", *arguments, "--exit-code"]) == exit
    out, err = capsys.readouterr()
    if exit == 2:
        assert not out
        return err
    return json.loads(out) if "--json" in arguments else out


@pytest.mark.parametrize(
    ("lost", "verdict", "exit"),
    [(1, "pass", 0), (40, "fail", 1), (8, "inconclusive", 0)],
)
def test_rows_are_paired_by_id_and_judged_as_the_gates_of_suites_are(
    lost: int, verdict: str, exit: int, capsys: pytest.CaptureFixture[str]
) -> None:
    a, b = write_csv("a.csv", scores(0)), write_csv("b.csv", scores(lost))
    (paired,) = compare(capsys, a, b, "--max-drop=0.05", "--json", exit=exit)["paired"]
    (case,) = paired["cases"]
    assert (case["verdict"], paired["fails"]) == (verdict, bool(exit))
    assert case["figures"]["score"]["baseline"] == pytest.approx(0.8)
    assert case["figures"]["score"]["delta"] == pytest.approx(-lost / ROWS)
    assert [change["fact_id"] for change in case["lost"]] == sorted(
        f"q{at}" for at in range(lost)
    )


@pytest.mark.parametrize(
    ("expected", "shown"),
    [
        ({"expected": "Li"}, "Who? Li: "),
        ({"expected": ""}, "Who? (no answer exists): "),
    ],
)
def test_a_row_without_an_answer_says_so(
    expected: dict[str, object], shown: str, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = [
        write_lines(
            f"{name}.jsonl",
            [
                {
                    "id": at,
                    "score": score,
                    "question": "Who?",
                    "answer": answer,
                    **expected,
                }
                for at in range(10)
            ],
        )
        for name, score, answer in (("a", 1, "unsure"), ("b", 0, "Havana"))
    ]
    assert f"  lost: {shown}unsure -> Havana\n" in compare(
        capsys, *runs, "--max-drop=0.05", exit=1
    )
    # It is lost and gained by its score, whatever the other run says of it.
    write_lines("c.jsonl", [{"id": at, "score": 1} for at in range(10)])
    assert "0 rows lost, 10 gained" in compare(
        capsys, "b.jsonl", "c.jsonl", "--max-drop=0.05"
    )
    (paired,) = compare(capsys, *runs, "--max-drop=0.05", "--json", exit=1)["paired"]
    assert paired["cases"][0]["lost"][0]["expected"] == (
        "?" if not expected else expected.get("expected") or ""
    )


def test_what_is_inconclusive_fails_only_on_demand(
    capsys: pytest.CaptureFixture[str],
) -> None:
    a, b = write_csv("a.csv", scores(0)), write_csv("b.csv", scores(8))
    compare(capsys, a, b, "--max-drop=0.05")
    document = compare(
        capsys, a, b, "--max-drop=0.05", "--inconclusive=fail", "--json", exit=1
    )
    assert document["paired"][0]["fails"] is True


def test_a_recovery_is_a_share_of_the_value_of_the_baseline(
    capsys: pytest.CaptureFixture[str],
) -> None:
    a, b = write_csv("a.csv", scores(0)), write_csv("b.csv", scores(40))
    assert "score recovery 0.95: fail: " in compare(
        capsys, a, b, "--recovery=0.95", exit=1
    )
    assert "score recovery 0.5: pass" in compare(
        capsys, a, b, "--recovery=within:.5,beyond:.8"
    )


def test_a_row_without_score_counts_as_lost_and_is_named(
    capsys: pytest.CaptureFixture[str],
) -> None:
    a, b = (
        write_csv("a.csv", scores(0)),
        write_csv("b.csv", ["", "nan", *scores(0)[2:]]),
    )
    text = " ".join(compare(capsys, a, b, "--max-drop=0.05").split())
    assert (
        "2 rows are without a score in the candidate alone, and count as lost: q0, q1"
        in text
    )
    assert "2 rows lost, 0 gained" in text
    # Without a score in both, and in the baseline alone, a row is compared with nothing.
    text = " ".join(compare(capsys, b, b, "--max-drop=0.05").split())
    assert "b.csv: 2 rows have no score and are left out: q0, q1" in text
    assert "2 rows are only in the candidate" in compare(
        capsys, b, a, "--max-drop=0.05"
    )


def test_rows_of_one_cluster_count_as_fewer(capsys: pytest.CaptureFixture[str]) -> None:
    for name, lost in (("a", 0), ("b", 12)):
        rows = (
            {"id": at, "score": value, "doc": {"page": at // 20}}
            for at, value in enumerate(scores(lost))
        )
        write_lines(f"{name}.jsonl", rows)
    arguments = ("a.jsonl", "b.jsonl", "--max-drop=0.2", "--json")
    alone = compare(capsys, *arguments)["paired"][0]["cases"][0]["figures"]["score"]
    grouped = compare(capsys, *arguments, "--cluster=doc.page")["paired"][0]["cases"][
        0
    ]["figures"]["score"]
    assert grouped["delta_low"] < alone["delta_low"]
    assert (
        "a.jsonl:1: --cluster pag: the row has no such value; allowed: one of id, score, doc"
        in compare(
            capsys, "a.jsonl", "b.jsonl", "--max-drop=1", "--cluster=pag", exit=2
        )
    )


def test_a_case_that_one_side_lacks_fails(capsys: pytest.CaptureFixture[str]) -> None:
    a = lm_eval("a", [1.0] * 20)
    lm_eval("a", [1.0] * 20, task="arc")
    b = lm_eval("b", [1.0] * 20)
    lm_eval("b", [1.0] * 20, task="boolq")
    document = compare(capsys, a, b, "--max-drop=0.2", "--json", exit=1)
    cases = {case["id"]: case["verdict"] for case in document["paired"][0]["cases"]}
    assert cases == {
        "lm_eval::arc": "not run",
        "lm_eval::gsm8k": "pass",
        "lm_eval::boolq": "no baseline",
    }


def test_lm_eval_samples_are_cases_by_task_with_metrics_by_filter(
    capsys: pytest.CaptureFixture[str],
) -> None:
    a, b = (
        lm_eval("a/model", list(map(float, scores(0)))),
        lm_eval("b/model", list(map(float, scores(40)))),
    )
    Path("b/model/results_2026-11-01T10-00-00.123456.json").write_text(
        '{"model_name": "m-w4a16"}'
    )
    # lm_eval writes below a folder named after the model: the folder above it is read as well.
    document = compare(capsys, "a", "b", "--max-drop=0.05", "--json", exit=1)
    assert "m-w4a16" in document["models"][1]["about"]
    (case,) = document["paired"][0]["cases"]
    verdicts = {gate["metric"]: gate["verdict"] for gate in case["gates"]}
    assert verdicts == {
        "exact_match,strict-match": "fail",
        "exact_match,flexible-extract": "pass",
    }
    grouped = compare(
        capsys, a, b, "--max-drop=0.05", "--group-by=subject", "--json", exit=1
    )
    assert [case["id"] for case in grouped["paired"][0]["cases"]] == [
        "lm_eval::gsm8k[a]",
        "lm_eval::gsm8k[b]",
    ]
    one = compare(
        capsys,
        a,
        b,
        "--max-drop=0.05",
        "--metric=exact_match,flexible-extract",
        "--json",
    )
    assert list(one["paired"][0]["cases"][0]["figures"]) == [
        "exact_match,flexible-extract"
    ]


def test_another_prompt_hash_of_lm_eval_is_not_comparable(
    capsys: pytest.CaptureFixture[str],
) -> None:
    a, b = lm_eval("a", [1.0] * 50), lm_eval("b", [1.0] * 50, prompt="another")
    text = compare(capsys, a, b, "--max-drop=0.05", exit=1)
    assert (
        "50 rows are asked otherwise (another prompt, document or target)"
        in " ".join(text.split())
    )


def test_two_runs_in_one_folder_are_told_apart_by_their_results_file(
    capsys: pytest.CaptureFixture[str],
) -> None:
    a = lm_eval("a", [1.0] * 50)
    (old,) = Path(a).iterdir()
    new = Path(str(old).replace("11-01", "11-02"))
    new.write_text(old.read_text())
    error = compare(capsys, a, a, "--max-drop=0.05", exit=2)
    assert "found two runs of gsm8k" in error
    assert "results_DATE.json" in error
    results = Path(a, "results_2026-11-02T10-00-00.123456.json")
    results.write_text("{}")
    compare(capsys, str(results), str(old), "--max-drop=0.05")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (
            ("a.csv", "a.csv"),
            "--exit-code: no gate can be judged; allowed: --max-drop NUMBER, --recovery NUMBER or",
        ),
        (("a.csv", "--max-drop=1"), "found 1 run to compare, a.csv"),
        (("a.csv", "a.csv", "--max-drop=much"), "--max-drop: found 'much'"),
        (
            ("a.csv", "a.csv", "--max-drop=1", "--metric=acc"),
            "a.csv: found no score named acc; allowed here: none",
        ),
        (
            ("a.csv", "a.csv", "--max-drop=1", "--id=key"),
            "a.csv:2: found no id (key) among id, score; allowed: --id KEY",
        ),
        (("a.csv", "none.csv", "--max-drop=1"), "found no id (id, sample_id"),
        (
            ("a.csv", "text.csv", "--max-drop=1"),
            "text.csv:2: score is 'maybe'; allowed: a number, true or false",
        ),
        (
            ("a.csv", "short.csv", "--max-drop=1"),
            "short.csv:3: found 1 cells; allowed: 2, as in the header",
        ),
        (("a.csv", "empty.jsonl", "--max-drop=1"), "empty.jsonl: found no scored row"),
        (
            ("a.csv", "list.jsonl", "--max-drop=1"),
            "list.jsonl:1: found list; allowed: an object a line",
        ),
        (
            ("a.csv", "published/monitor/vicuna-7b", "--max-drop=1"),
            "found a.csv of another tool beside published/",
        ),
        (
            ("--json", "a.csv", "a.csv", "a.csv", "--max-drop=1"),
            "--json a.csv: is a run",
        ),
        (
            ("published/monitor", "--max-drop=1"),
            "--max-drop is for runs of other tools",
        ),
    ],
)
def test_what_cannot_be_compared_is_said_with_what_is_allowed(
    arguments: tuple[str, ...], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write_csv("a.csv", scores(0))
    Path("none.csv").write_text("name,score\na,1\n")
    Path("text.csv").write_text("id,score\na,maybe\n")
    Path("short.csv").write_text("id,score\na,1\nb\n")
    Path("empty.jsonl").write_text("\n")
    Path("list.jsonl").write_text("[1]\n")
    assert says in compare(capsys, *arguments, exit=2)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "within:",
        "beyond:.1",
        "within:.1,within:.2",
        "within:.1,beyond:.2",
    ],
)
def test_a_threshold_that_makes_no_sense_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="found"):
        threshold("max_drop", text)
