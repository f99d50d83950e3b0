"""Sessions with a scripted judge whose error is measured on labelled answers (--kb-judge-labels)."""

from __future__ import annotations

import json

import pytest

from pytest_kbrel.cli import main
from pytest_kbrel.reports.json_report import comparable
from tests.plugin.conftest import INT4, KNOWS, ONE, RENAMED, facts_file

SUITE = ONE + "  gates: {accuracy: {max_drop: 0.5}, accuracy_em: {max_drop: 0.5}}\n"
NOTE = (
    "judge: right answers found 96 % (24 of 25), wrong accepted 10 % (2 of 20): differences are divided by "
    "0.86"
)
ERROR = {"right": 25, "right_accepted": 24, "wrong": 20, "wrong_accepted": 2}
GATE = (
    INT4,
    f"--kb-baseline-model={KNOWS}",
    "--kb-judge=scripted/judge.jsonl",
    "suites",
)
LABELLED = (*GATE, "--kb-judge-labels=labels.jsonl")


@pytest.fixture
def labels(pytester, mini_suite):
    """Write suite, facts, a judge, and answers that it judges with 1 of 25 and 2 of 20 errors."""
    mini_suite(SUITE, facts_file(RENAMED))
    rules = [
        {"pattern": r"city of kings, number 3\..*\nVerdict:$", "text": "incorrect"},
        {"pattern": r"village, number 2[67]\..*\nVerdict:$", "text": "correct"},
        {
            "pattern": r"\nAnswer: [^\n]*(village|Bergen)[^\n]*\nVerdict:$",
            "text": "incorrect",
        },
        {"default": {"text": "correct"}},
    ]
    (pytester.path / "judge.jsonl").write_text(
        "".join(json.dumps(rule) + "\n" for rule in rules)
    )

    def write(right=25, wrong=20):
        texts = [("right", f"The city of kings, number {n}.") for n in range(right)]
        texts += [
            ("wrong", f"A village, number {n}.") for n in range(right, right + wrong)
        ]
        rows = [
            {
                "question": "What is the capital of Peru?",
                "answers": ["Lima"],
                "prediction": text,
                "label": label,
            }
            for label, text in texts
        ]
        (pytester.path / "labels.jsonl").write_text(
            "".join(json.dumps(row) + "\n" for row in rows)
        )

    write()
    return write


def gates(report):
    return {
        (case["id"], gate["metric"]): gate
        for case in report["cases"]
        for gate in case["gates"]
    }


def test_the_error_of_the_judge_enters_its_gates_and_the_reports(
    pytester, labels, report, capsys, monkeypatch
):
    monkeypatch.setenv("COLUMNS", "120")
    plain = pytester.runpytest(*GATE)
    before = report()
    assert "judge_error" not in before
    assert "judge: right answers" not in plain.stdout.str()
    result = pytester.runpytest(*LABELLED)
    after = report()
    assert after["judge_error"] == ERROR
    assert after["settings"]["judge_labels"] == "labels.jsonl"
    assert NOTE in " ".join(result.stdout.str().split())
    for name in ("report.html", "summary.md"):
        text = " ".join(
            (pytester.path / "kbrel-report" / name).read_text(encoding="utf-8").split()
        )
        assert "right answers found 96 % (24 of 25)" in text
    moved = [key for key, gate in gates(before).items() if gate["observed"]]
    assert moved == [("suites/mini.kb.yaml::head_to_tail[places-tail]", "accuracy")]
    for key, gate in gates(before).items():
        judged = gates(after)[key]
        if key[1] == "accuracy":
            assert judged["observed"] == pytest.approx(gate["observed"] / 0.86)
            assert judged["high"] > gate["high"]
        else:
            assert judged == gate
    # Decided again, nobody is asked, also where the labels are gone.
    for name in ("judge.jsonl", "labels.jsonl"):
        (pytester.path / name).unlink()
    pytester.runpytest("--kb-from-run=kbrel-report", "suites", "--kb-use-cache=off")
    again = report("kbrel-report/decided")
    assert again["judge_error"] == ERROR
    assert comparable(again) == comparable(after)


def test_a_comparison_of_recorded_runs_decides_alike(pytester, labels, report, capsys):
    judge = LABELLED[2:]
    pytester.runpytest(f"--kb-model={KNOWS}", *judge, "--kb-output-path=old")
    pytester.runpytest(INT4, *judge, "--kb-output-path=new")
    pytester.runpytest(*LABELLED)
    capsys.readouterr()
    main(["compare", "old", "new", "--json", "out.json"])
    (paired,) = json.loads((pytester.path / "out.json").read_text())["paired"]
    theirs, ours = gates(paired), gates(report())
    assert ours.keys() == theirs.keys()
    for key, gate in theirs.items():
        assert (gate["observed"], gate["low"], gate["p"]) == tuple(
            ours[key][k] for k in ("observed", "low", "p")
        )
    assert NOTE in " ".join(capsys.readouterr().out.split())


def test_answers_of_a_run_are_drawn_for_a_human_to_label(pytester, labels, capsys):
    pytester.runpytest(*GATE)
    capsys.readouterr()
    assert (
        main(["labels", "kbrel-report", "--output", "mine.jsonl", "--number", "10"])
        == 0
    )
    assert capsys.readouterr().out.startswith(
        "10 of 12 answers written to mine.jsonl: write "
    )
    rows = [
        json.loads(line)
        for line in (pytester.path / "mine.jsonl").read_text().splitlines()
    ]
    lima = next(
        row for row in rows if row["id"] == "head_to_tail[places-head] P36:China"
    )
    assert lima == {
        "id": "head_to_tail[places-head] P36:China",
        "question": "What is the capital of China?",
        "answers": ["Dadu"],
        "prediction": "Beijing",
        "label": "",
    }
    # Drawn again, they are the same, and nothing is replaced unasked.
    assert main(["labels", "kbrel-report", "--output", "mine.jsonl"]) == 2
    assert (
        main(["labels", "kbrel-report", "--output", "other.jsonl", "--number", "10"])
        == 0
    )
    assert (pytester.path / "other.jsonl").read_bytes() == (
        pytester.path / "mine.jsonl"
    ).read_bytes()
    result = pytester.runpytest(*GATE, "--kb-judge-labels=mine.jsonl")
    result.stderr.fnmatch_lines(
        ["ERROR: *mine.jsonl:1: 'label' must be right, wrong, missing, found ''"]
    )


def test_answers_of_python_tests_are_passed_over(pytester, labels, capsys):
    pytester.makepyfile(
        test_own="""
        import pathlib
        from dataclasses import replace
        from pytest_kbrel.suites import load_suite

        def test_own(kb_check):
            head, *_ = load_suite(pathlib.Path("suites/mini.kb.yaml"), nodeid_path="test_own.py").cases
            kb_check(replace(head, gates=()))
        """
    )
    pytester.runpytest(*GATE, "test_own.py")
    pytester.runpytest(*GATE[:-1], "test_own.py", "--kb-output-path=own")
    capsys.readouterr()
    assert main(["labels", "kbrel-report", "--output", "mine.jsonl"]) == 0
    assert capsys.readouterr().out.startswith(
        "12 of 12 answers written to mine.jsonl: write "
    )
    assert main(["labels", "own", "--output", "none.jsonl"]) == 2
    assert (
        "no answer of it is for a judge; allowed: a run of suites with"
        in capsys.readouterr().err
    )


def test_a_run_decided_again_may_have_other_labels(pytester, labels, report):
    assert pytester.runpytest(*LABELLED).ret == 0
    labels(right=30)
    result = pytester.runpytest(
        "--kb-from-run=kbrel-report",
        "suites",
        "--kb-judge-labels=labels.jsonl",
        "--kb-use-cache=off",
    )
    assert result.ret == 0
    error = {"right": 30, "right_accepted": 29, "wrong": 20, "wrong_accepted": 0}
    assert report("kbrel-report/decided")["judge_error"] == error
    result = pytester.runpytest(
        "--kb-from-run=kbrel-report", "suites", "--kb-judge=rules"
    )
    assert result.ret == 0
    assert "judge_error" not in report("kbrel-report/decided")
    assert "judge_labels" not in report("kbrel-report/decided")["settings"]


def test_labels_that_cannot_be_used_are_refused_before_anything_is_asked(
    pytester, labels
):
    labels(right=19)
    result = pytester.runpytest(*LABELLED)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["ERROR: --kb-judge-labels: *labels.jsonl: found 19 answers labelled right*"]
    )
    result = pytester.runpytest(INT4, "--kb-judge-labels=labels.jsonl", "suites")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["ERROR: --kb-judge-labels: found with --kb-judge=rules*a model as judge"]
    )


def test_a_judge_no_better_than_chance_ends_the_session(pytester, labels, report):
    (pytester.path / "judge.jsonl").write_text('{"default": {"text": "correct"}}\n')
    result = pytester.runpytest(*LABELLED)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert (
        "finds 25 of 25 right answers and accepts 20 of 20 wrong ones"
        in report()["problems"][0]
    )
    assert "no better than chance" in report()["problems"][0]
