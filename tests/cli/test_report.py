"""``kbrel report`` makes the page of a report folder anew, the same one while nothing else has changed."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_kbrel.baselines import Baseline, BaselineCase
from pytest_kbrel.cli import main
from pytest_kbrel.records import (
    Ask,
    Churn,
    Correlation,
    Exchange,
    Generated,
    GenerateRequest,
    Outcome,
    Run,
    Scored,
    ScoreRequest,
    Table,
)
from pytest_kbrel.session.page import page_of
from pytest_kbrel.session.run_builder import write_reports
from pytest_kbrel.store.lines import to_line
from tests.reports.conftest import rich

COLUMNS = (
    "kept",
    "pfd",
    "ird",
    "term",
    "anchor",
    "cell:positive:0",
    "cell:none:0",
    "cell:negative1:0",
)


def outcome(at: int, term: float = 0.1, label: str = "correct") -> Outcome:
    return Outcome(
        fact_id=f"P30:{at}",
        question=f"On which continent is country {at}?",
        expected="Asia",
        answer="Africa" if label == "wrong" else "Asia",
        label=label,  # type: ignore[arg-type]
        values=(1.0, 0.1, 0.2, term, 0.9, 1.0, float(label == "correct"), 0.0),
        prompt_digest="d",
    )


def exchanges(case: str, fact: str) -> list[Exchange]:
    question = "On which continent is it?"
    shared = {"token_ids": (1,), "prompt_tokens": 1, "prompt_digest": "d"}
    asks: list[tuple[str, str, float]] = [
        ("positive:0", f"Asia. {question}", 0.9),
        ("none:0", question, 0.5),
        ("negative1:0", f"Europe. {question}", 0.125),
    ]
    lines = []
    for role, prompt, probability in asks:
        scored = ScoreRequest(prompt=prompt, continuation=" Asia")
        lines.append(
            Exchange(
                case=case,
                ask=Ask(fact_id=fact, role=f"{role}/score", request=scored),
                response=Scored(probabilities=(probability, probability), **shared),  # type: ignore[arg-type]
            )
        )
        asked = GenerateRequest(prompt=prompt, max_new_tokens=9)
        answer = Generated(text=f"said <b> {role}", finish="stop", **shared)  # type: ignore[arg-type]
        lines.append(
            Exchange(
                case=case,
                ask=Ask(fact_id=fact, role=f"{role}/answer", request=asked),
                response=answer,
            )
        )
    shots = f"One is Asia. On which continent is country {fact[4:]}?"
    asked = GenerateRequest(prompt=shots, max_new_tokens=9)
    ask = Ask(fact_id=fact, role="answer", request=asked)
    lines.append(Exchange(case=case, ask=ask, response=answer))
    ask = Ask(fact_id=fact, role="none:1/answer", request=asked, to="baseline")
    other = Generated(text="said by another model", finish="stop", **shared)  # type: ignore[arg-type]
    return [*lines, Exchange(case=case, ask=ask, response=other)]


@pytest.fixture
def run() -> Run:
    made = rich()
    first, *rest = made.cases
    # A file of outcomes has them in the order of their ids.
    rows = (
        outcome(91),
        outcome(92, term=0.9),
        outcome(0, label="wrong"),
        outcome(90, term=0.8),
    )
    first = replace(
        first,
        table=Table(columns=COLUMNS, rows=rows),
        n=4,
        churn=Churn(facts=4, texts=1, labels=1),
    )
    pair = Correlation(x="a", y="b", method="pearson", over="slices", r=0.5, p=0.1, n=3)
    return replace(
        made,
        cases=(first, *rest),
        correlations=(pair,),
        complete=False,
        problems=("odd",),
        comparisons=3,
    )


@pytest.fixture
def folder(tmp_path: Path, run: Run) -> Path:
    case = run.cases[0].nodeid
    lines = [
        line for fact in ("P30:0", "P30:90", "P30:91") for line in exchanges(case, fact)
    ]
    (tmp_path / "responses.jsonl").write_bytes(b"".join(map(to_line, lines)))
    write_reports(run, tmp_path)
    return tmp_path


def test_the_page_is_made_anew_as_it_was(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (folder / "report.html").read_bytes()
    (folder / "report.html").unlink()
    assert main(["report", str(folder)]) == 0
    assert capsys.readouterr().out == f"{folder / 'report.html'}\n"
    assert (folder / "report.html").read_bytes() == page


def test_the_page_shows_what_was_asked_about_the_worst_facts(folder: Path) -> None:
    page = (folder / "report.html").read_text()
    case = page.split('<tbody class="case" id="monitor-P30"')[1].split("<tbody class=")[
        0
    ]
    for words in (
        "<b>lost</b>: <bdi>On which continent is country 0?</bdi>",
        "<td>after the right answer</td><td><bdi>Asia. On which continent is it?</bdi></td>",
        "<td>frame 1</td><td><bdi>On which continent is it?</bdi></td>",
        "<td>after wrong context 1</td>",
        '<td class="num">0.125</td>',
        "<bdi>said &lt;b&gt; none:0</bdi>",
        "<td>answer</td><td><bdi>On which continent is country 0?</bdi></td>",
    ):
        assert words in case
    assert "said by another model" not in case
    # The one whose probability moves most comes before the others; of one there are no responses.
    order = [case.index(f"country {at}?</bdi> <span") for at in (0, 92, 90, 91)]
    assert order == sorted(order)


@pytest.mark.parametrize("name", ["responses.jsonl", "outcomes.jsonl.xz"])
def test_files_of_another_run_are_refused(
    folder: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with (folder / name).open("ab") as stream:
        stream.write(b"\n")
    assert main(["report", str(folder)]) == 2
    assert f"{name}: is not the file that" in capsys.readouterr().err


def test_a_report_of_another_form_is_refused(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = json.loads((folder / "report.json").read_text())
    report["cases"][0]["metrics"] = ["none"]
    (folder / "report.json").write_text(json.dumps(report))
    assert main(["report", str(folder)]) == 2
    assert "cannot be read as a report: " in capsys.readouterr().err


def test_a_page_that_is_a_link_leads_nowhere(folder: Path, tmp_path: Path) -> None:
    for target in (tmp_path / "mine", Path("/dev/full")):
        (folder / "report.html").unlink(missing_ok=True)
        (folder / "report.html").symlink_to(target)
        assert main(["report", str(folder)]) == 0
        assert (folder / "report.html").read_text("utf-8").startswith("<!doctype")
    assert not (tmp_path / "mine").exists()


def test_figures_beyond_all_scales_are_no_error(folder: Path) -> None:
    report = json.loads((folder / "report.json").read_text())
    for entry in report["cases"]:
        for value in entry["metrics"].values():
            value |= {
                "value": 1e308,
                "baseline": -1e308,
                "low": -1e308,
                "delta": 1e308,
                "delta_low": -1e308,
            }
    (folder / "report.json").write_text(json.dumps(report))
    assert main(["report", str(folder)]) == 0


@pytest.mark.parametrize("named", ["kbrel-reprot", "kbrel-reprot/report.json"])
def test_a_mistyped_folder_is_told_which_run_is_meant(
    named: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "kbrel-report").mkdir()
    (tmp_path / "kbrel-report" / "report.json").write_text("{}")
    monkeypatch.chdir(tmp_path)
    for command in (["report", named], ["compare", "kbrel-reprot", "other"]):
        assert main(command) == 2
        assert capsys.readouterr().err.endswith("; did you mean 'kbrel-report'?\n")


def test_what_the_page_has_not_is_said(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def said() -> list[str]:
        assert main(["report", str(folder)]) == 0
        return [
            line.removeprefix("kbrel: ")
            for line in capsys.readouterr().err.splitlines()
        ]

    another = "left out: facts beside the baseline, for reference is not what the run was compared with"
    assert said() == [another]
    (folder / "responses.jsonl").unlink()
    (folder / "outcomes.jsonl.xz").unlink()
    without_files = [
        f"left out: plots over facts, and worst facts, for there is no {folder / 'outcomes.jsonl.xz'}",
        f"left out: the questions of worst facts, for there is no {folder / 'responses.jsonl'}",
    ]
    assert said() == [*without_files, another]
    report = json.loads((folder / "report.json").read_text())
    (folder / "report.json").write_text(json.dumps(report | {"baseline": "prod"}))
    assert said()[2].startswith(
        "left out: facts beside the baseline, for no baseline is called 'prod'"
    )
    (folder / "report.json").write_text(json.dumps(report | {"baseline": ""}))
    assert said() == without_files
    assert main(["report", str(folder), "--json"]) == 0
    printed = capsys.readouterr()
    assert (json.loads(printed.out)["warnings"], printed.err) == (without_files, "")


def test_the_report_itself_may_be_named(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", str(folder / "report.json")]) == 0
    assert capsys.readouterr().out == f"{folder / 'report.html'}\n"
    assert main(["report", str(folder / "report.html")]) == 2
    assert "report.html: is not JSON" in capsys.readouterr().err


def test_facts_are_paired_with_those_of_the_baseline(run: Run, tmp_path: Path) -> None:
    case = run.cases[0]
    key = "world.kb.yaml::monitor[P30]"
    blessed = BaselineCase(table=case.table)
    baseline = Baseline(
        path=tmp_path, model=run.base, settings=(), cases={key: blessed}
    )
    line = '<path class="outline"'
    assert line in page_of(run, baseline, tmp_path)
    alone = page_of(run, None, tmp_path)
    assert line not in alone
    assert 'id="plot-anchors"' in alone
