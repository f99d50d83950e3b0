"""``kbrel labels``: answers drawn for a human, and how often the judge of their run errs."""

import json

import pytest

from pytest_kbrel.cli import main
from tests.plugin.conftest import INT4, KNOWS, ONE, RENAMED, facts_file

ROW = {"question": "q", "answers": ["Lima"], "prediction": "Lima"}


def write(path, *pairs):
    lines = (
        json.dumps({**ROW, "verdict": verdict, "label": label}) + "\n"
        for verdict, label in pairs
    )
    path.write_text("".join(lines), "utf-8")
    return str(path)


def test_sensitivity_and_specificity_have_intervals(tmp_path, capsys):
    pairs = [("correct", "right")] * 48 + [("wrong", "right")] * 2
    pairs += [("correct", "wrong")] * 2 + [("uninformative", "missing")] * 8
    assert main(["labels", write(tmp_path / "l.jsonl", *pairs), "--json"]) == 0
    shares = json.loads(capsys.readouterr().out)
    # Wilson's intervals by hand: 48 of 50 and 8 of 10.
    assert shares["sensitivity"] == pytest.approx(
        {"value": 0.96, "low": 0.8654, "high": 0.9890, "n": 50}, abs=1e-4
    )
    assert shares["specificity"] == pytest.approx(
        {"value": 0.8, "low": 0.4902, "high": 0.9433, "n": 10}, abs=1e-4
    )


@pytest.mark.parametrize("pairs", [[("correct", "")], [("sure", "right")], []])
def test_labels_that_say_nothing_are_refused(tmp_path, capsys, pairs):
    path = write(tmp_path / "l.jsonl", *pairs)
    assert main(["labels", path]) == 2
    assert "l.jsonl:" in capsys.readouterr().err


def test_answers_of_a_run_are_drawn_with_the_verdicts_of_its_judge(
    pytester, mini_suite, capsys
):
    mini_suite(ONE, facts_file(RENAMED))
    pytester.runpytest(INT4, f"--kb-baseline-model={KNOWS}", "suites")
    capsys.readouterr()
    drawn = ["labels", "kbrel-report", "--output", "mine.jsonl", "--number"]
    assert main([*drawn, "5"]) == 0
    rows = [
        json.loads(line)
        for line in (pytester.path / "mine.jsonl").read_text("utf-8").splitlines()
    ]
    assert len(rows) == 5
    assert {row["label"] for row in rows} == {""}
    assert {row["verdict"] for row in rows} <= {"correct", "wrong", "uninformative"}
    # What is there is not replaced, and a folder without a report is none.
    assert main([*drawn, "5"]) == 2
    assert main(["labels", "suites", "--output", "other.jsonl"]) == 2
