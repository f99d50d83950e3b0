"""``kbrel compare`` over models of papers and recorded runs: figures, what is decided again, and what is printed."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_kbrel.cli import main
from pytest_kbrel.cli.compare.recorded import family_of, pair_recorded, size_in
from pytest_kbrel.cli.compare.run import LEAST_LINES, brief_lines
from pytest_kbrel.printing import cells
from pytest_kbrel.records import (
    CaseResult,
    GateResult,
    Looks,
    MetricValue,
    Run,
    Table,
)
from pytest_kbrel.reports.comparison import Side, SideBySide
from pytest_kbrel.reports.json_report import write_json
from tests.gates.tables import answers, consistency
from tests.golden import figures_of, rows_of
from tests.made_comparisons import comparison_of
from tests.reports import conftest as runs

SUITE, HEAD = "w.kb.yaml", "head_to_tail[a]"
Figures = Mapping[str, float | None]
Compare = Callable[..., dict[str, Any]]


@pytest.fixture
def compare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Compare:
    """Run the command in an empty folder and return what it wrote as JSON."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")

    def compare(*sources: str) -> dict[str, Any]:
        assert main(["compare", *sources, "-v", "--json", "out.json", "--force"]) == 0
        document: dict[str, Any] = json.loads(Path("out.json").read_text())
        return document

    return compare


def case(name: str, figures: Figures | None = None, **more: Any) -> CaseResult:
    """Return a case; its name may begin with a suite."""
    suite, _, case_id = name.rpartition("::")
    probe, _, slice_name = case_id.removesuffix("]").partition("[")
    values = (
        MetricValue(name=of, better="higher", value=value)
        for of, value in (figures or {}).items()
    )
    fields = {
        "id": case_id,
        "suite": suite or SUITE,
        "probe": probe,
        "slice": slice_name,
        "verdict": "pass",
        "n": 9,
        "metrics": tuple(values),
    }
    return CaseResult(**{**fields, **more})


def run(*cases: CaseResult, **more: Any) -> Run:
    fields = {
        "kbrel_version": "1",
        "created": "now",
        "model": None,
        "environment": (),
        "settings": (),
    }
    return Run(**{**fields, "cases": cases, **more})


def reports(*models: Mapping[str, Figures]) -> list[str]:
    """Write a report of each model's figures, as versions without outcomes did; return their folders."""
    for at, model in enumerate(models):
        Path(f"r{at}").mkdir()
        cases = itertools.starmap(case, model.items())
        write_json(run(*cases), Path(f"r{at}/report.json"))
    return [f"r{at}" for at in range(len(models))]


def coefficient(
    data: dict[str, Any], within: str, x: str, y: str, method: str = "pearson"
) -> dict[str, Any]:
    wanted = {"within": within, "x": x, "y": y, "method": method}
    (one,) = (of for of in data["correlations"] if wanted.items() <= of.items())
    return dict(one)


def test_monitor_and_accuracy_over_the_twelve_models(compare: Compare) -> None:
    """Table 4, Table 6 and three of Table 12, from the published baselines."""
    data = compare("published/monitor")
    assert len(data["models"]) == 12
    stated = {
        row["relation"]: value
        for row, value in figures_of("monitor.csv", 12)
        if row["metric"] == "pearson_r"
    }
    for relation in ("P178", "P108", "P37"):
        one = coefficient(data, f"monitor[{relation}]", "monitor", "accuracy")
        assert one["r"] == pytest.approx(stated[relation], abs=0.0006)
    overall = coefficient(data, "monitor[overall]", "monitor", "accuracy")
    assert overall["r"] == pytest.approx(-0.846, abs=0.001)
    assert (overall["n"], overall["over"]) == (12, "models")
    assert overall["p"] <= 0.001
    deviation = coefficient(data, "monitor[P1412]", "monitor", "accuracy_std")
    assert deviation["r"] == pytest.approx(0.754, abs=0.0005)


@pytest.mark.parametrize("setting", ["", "four-shot"])
def test_table_2_over_the_26_models(setting: str, compare: Compare) -> None:
    pattern = f"/*/{setting}" if setting else ""
    data = compare(f"published/reliable-kb{pattern}")
    shown = [setting] if setting else ["zero-shot", "four-shot", "four-shot-2"]
    assert len(data["models"]) == 26 * len(shown)
    rows = [
        row
        for row in rows_of("reliable_kb_correlations.csv")
        if row["setting"] in shown
    ]
    assert len(rows) == 3 * len(shown)
    negative = set()
    for row in rows:
        one = coefficient(data, f"reliability[{row['setting']}]", row["x"], row["y"])
        # The sign of two is not printed, and one is cut off instead of rounded.
        assert abs(one["r"]) == pytest.approx(float(row["r"]), abs=0.0101)
        if one["r"] < 0:
            negative.add((row["setting"], row["x"]))
    assert negative == {(of, "nccr") for of in shown if of != "four-shot-2"}
    # A model in three settings is not three models.
    assert {(one["n"], one["note"]) for one in data["correlations"]} == {(26, "")}
    # What is printed over both kinds of slice is in these already.
    within = {one["within"] for one in data["correlations"]}
    assert within == {f"reliability[{one}]" for one in shown}


def test_rules_and_judge_over_the_fourteen_models(compare: Compare) -> None:
    data = compare("published/head-to-tail")
    for score in ("em", "f1", "rouge_l"):
        names = (f"accuracy_{score}", "accuracy", "spearman")
        one = coefficient(data, "head_to_tail[overall]", *names)
        assert (one["n"], one["r"] > 0.9) == (14, True)


def test_figures_of_reports_stand_side_by_side_and_are_correlated(
    compare: Compare, capsys: pytest.CaptureFixture[str]
) -> None:
    name, points = "monitor[P37]", ((0.1, 0.9), (0.2, 0.7), (0.1, 0.9), (0.3, None))
    data = compare(
        *reports(
            *({name: {"monitor": x, "accuracy": y}} for x, y in points),
            {name: {"monitor": 0.4, "accuracy": 0.1, "pfd": 0.2}},
        )
    )
    (own,) = data["cases"]
    assert own["figures"] == {
        "monitor": [0.1, 0.2, 0.1, 0.3, 0.4],
        "accuracy": [0.9, 0.7, 0.9, None, 0.1],
    }
    # The third model is the first one by another name.
    one = coefficient(data, name, "monitor", "accuracy", "spearman")
    note = "1 of 4 models left out: they lack one of the figures"
    assert (one["n"], one["note"], one["r"]) == (3, note, pytest.approx(-1))
    assert "  accuracy   0.900   0.700   0.900       –   0.100" in (
        line.rstrip() for line in capsys.readouterr().out.splitlines()
    )


def test_what_stands_beside_a_figure_and_two_suites_with_one_case(
    compare: Compare,
) -> None:
    own = {"monitor": 0.1, "pfd": 0.2, "accuracy": 0.5}
    both = {f"{suite}.kb.yaml::monitor[P19]": own for suite in ("x/w", "v")}
    folders = reports({"monitor[P19]": own}, both)
    # Of this relation the paper has MONITOR alone.
    (first,) = compare(folders[0], "published/monitor/vicuna-7b")["cases"]
    assert [*first["figures"]] == ["monitor", "accuracy"]
    assert first["figures"]["accuracy"] == [0.5, None]
    cases = compare(folders[1], folders[1] + "/report.json")["cases"]
    assert {of["id"] for of in cases} == {
        "w.kb.yaml::monitor[P19]",
        "v.kb.yaml::monitor[P19]",
    }


def test_a_report_a_blessed_run_and_a_paper(compare: Compare) -> None:
    Path("mine").mkdir()
    write_json(runs.small(), Path("mine/report.json"))
    sources = "mine", "mine/report.json", "reference", "published/monitor/bloomz-3b"
    data = compare(*sources)
    assert [model["name"] for model in data["models"]] == [*sources]
    assert data["paired"] == []
    (overall,) = (of for of in data["cases"] if of["id"] == "monitor[overall]")
    ours, again, blessed, theirs = overall["figures"]["monitor"]
    assert blessed is not None
    assert (ours, theirs) == (again, pytest.approx(0.72005, abs=0.001))
    assert main(["compare", "mine", "reference", "--exit-code"]) == 2


@pytest.mark.parametrize(
    ("sources", "message"),
    [
        ("reference", "found 1 model to compare; allowed: two or more"),
        ("reference reference", "reference: found more than once; allowed: two or mo"),
        ("reference ./nope", "nope: nothing is there; allowed: a report folder, or a "),
        ("reference r0", "found no run in it; allowed: lm_eval's samples_*.jsonl or"),
        (
            "reference new",
            "new/report.json: has schema_version 9, this pytest-kbrel re",
        ),
        ("reference broken", "broken: cannot be read as a report: KeyError: 'verd"),
        ("reference twice", "twice: two suites of the same file name, w.kb.yaml, have"),
        (
            "published/monitor/vicuna-7b published/head-to-tail/chatgpt",
            "no figure is in",
        ),
        ("r1 r2 --exit-code", "r1: there is no outcomes.jsonl.xz beside its report"),
    ],
)
def test_what_cannot_be_compared_is_answered_in_one_line(
    sources: str, message: str, compare: Compare, capsys: pytest.CaptureFixture[str]
) -> None:
    reports({}, {HEAD: {"accuracy": 0.5}}, {HEAD: {"accuracy": 0.5}})
    report = json.loads(Path("r0/report.json").read_text())
    Path("r0/report.json").unlink()
    twice = [case(f"{folder}/{SUITE}::{HEAD}") for folder in "ab"]
    for name, change in (("new", {"schema_version": 9}), ("broken", {"cases": [{}]})):
        Path(name).mkdir()
        Path(name, "report.json").write_text(json.dumps(report | change))
    Path("twice").mkdir()
    write_json(run(*twice), Path("twice/report.json"))
    assert main(["compare", *sources.split()]) == 2
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") == 1


@pytest.mark.slow
def test_a_reader_that_has_seen_enough_is_no_error(tmp_path: Path) -> None:
    """As in ``kbrel compare ... | head -1``: the pipe is closed before all is written."""
    command = [sys.executable, "-m", "pytest_kbrel.cli", "compare", "published/monitor"]
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, cwd=tmp_path, stdout=pipe, stderr=pipe)
    assert process.stdout is not None
    process.stdout.close()
    _, said = process.communicate(timeout=300)
    assert (process.returncode, said) == (141, b"")


def gate(rule: str = "max_drop", bound: float = 0.1, **more: Any) -> GateResult:
    fields = {"metric": "accuracy", "rule": rule, "bound": bound, "verdict": "pass"}
    return GateResult(**{**fields, **more})


def asked(labels: str, *gates: GateResult, name: str = HEAD) -> CaseResult:
    """Return a case whose facts were right (``+``) or wrong."""
    return case(name, table=answers(labels), n=len(labels), gates=gates)


def without_texts(table: Table) -> Table:
    rows = (replace(row, question="", expected="") for row in table.rows)
    return replace(table, rows=tuple(rows))


def decided(before: Run, *candidates: Run, strict: bool = False) -> list[Side]:
    models = [
        Side(name=name, about="", results={}, recorded=of)
        for name, of in zip("abcd", (before, *candidates), strict=False)
    ]
    return pair_recorded(models, strict=strict)[1:]


def results(side: Side) -> dict[str, CaseResult]:
    return {of.id: of for of in side.run.cases} if side.run else {}


def test_gates_of_all_candidates_are_one_family() -> None:
    gates = gate(), gate("recovery", 0.9), gate("min", 0.1)
    before = run(asked("+" * 40))
    after = run(asked("+" * 30 + "-" * 10, *gates))
    (one,), (two, _) = decided(before, after), decided(before, after, after)
    p, q = (results(of)[HEAD].gates[0].p_sidak for of in (one, two))
    assert p is not None
    assert q == pytest.approx(1 - (1 - p) ** 2)
    assert (one.fails, one.gates["fail"]) == (True, 2)


def test_a_run_is_compared_by_the_look_that_it_took() -> None:
    before, after = run(asked("+" * 40)), asked("+" * 38 + "--", gate())
    look = Looks(taken=4, of=10, asked=40, facts=100)
    ordinary, early = decided(before, run(after), run(replace(after, looks=look)))
    gates = [results(of)[HEAD].gates[0] for of in (ordinary, early)]
    assert "undecided after 40 of 100 facts, at look 4 of 10" in gates[1].reason
    assert (gates[1].high or 0) > (gates[0].high or 1)
    assert (
        ordinary.fails,
        *(of.fails for of in decided(before, run(after), strict=True)),
    ) == (False, True)


def test_blessed_runs_lose_facts_of_which_nobody_knows_what_was_expected() -> None:
    def blessed(known: str, unseen: str) -> Run:
        """Return a run that kept no texts."""
        cases = {
            HEAD: answers(known),
            "reliability[unseen]": consistency([(of, 1.0) for of in unseen]),
        }
        return run(
            *(
                case(name, table=without_texts(table), n=len(table.rows))
                for name, table in cases.items()
            )
        )

    (side,) = decided(blessed("++", "??"), blessed("+-", "?-"))
    told = [
        [(of.question, of.expected) for of in one.lost]
        for one in results(side).values()
    ]
    assert told == [[("Q001", "?")], [("Q001", "")]]


@pytest.mark.parametrize("gates", [(), (gate(),)])
def test_what_one_run_lacks_is_said(gates: tuple[GateResult, ...]) -> None:
    other, overall = "head_to_tail[b]", "head_to_tail[overall]"
    broken = replace(asked("++--"), verdict="invalid", errors=("no answers",))
    over = case(overall, aggregate=True, members=(HEAD,), gates=gates)
    before = run(asked("++--"), asked("++--", *gates, name=other), over)
    whole, less, worse = decided(
        before,
        before,
        run(asked("++--")),
        run(broken, asked("+", gate(), name="head_to_tail[c]")),
    )
    assert (whole.fails, less.fails) == (False, True)
    lacking = results(less)
    assert {lacking[of].verdict for of in (other, overall)} == {"not run"}
    assert less.gates == ({"not run": 2} if gates else {})
    text = "\n".join(brief_lines(SideBySide(sides=(whole, less)), 80, 24))
    assert "NOT RUN" in text
    assert "a has this case, and the candidate does not" in " ".join(text.split())
    assert results(worse)[HEAD].errors == ("no answers",)
    assert results(worse)["head_to_tail[c]"].gates[0].verdict == "no baseline"
    assert (
        results(worse)["head_to_tail[c]"]
        .notes[0]
        .startswith("no baseline: the baseline has")
    )


def test_facts_that_the_candidate_lacks_make_no_gate_better() -> None:
    gates = gate(), gate("min", 0.4)
    less = run(asked("+" * 91, *gates))
    limited = replace(less, settings=(("limit", "90"),))
    shrunk, drawn = decided(run(asked("+" * 100)), less, limited)
    own = results(shrunk)[HEAD]
    assert {of.verdict for of in (own, *own.gates)} == {"not comparable"}
    assert shrunk.fails
    # Of another limit it is no such case.
    assert results(drawn)[HEAD].verdict == "pass"


@pytest.mark.parametrize("models", [1, 3, 12])
def test_it_is_one_screen_whatever_the_run(models: int) -> None:
    candidates = {f"a/long/path/to/run/{at}": runs.rich() for at in range(models - 1)}
    comparison = comparison_of({"hundreds": runs.many(60), **candidates})
    unpaired = replace(
        comparison, sides=tuple(replace(of, run=None) for of in comparison.sides)
    )
    for of, width, height in itertools.product(
        (comparison, unpaired), (60, 120), (10, 50)
    ):
        lines = brief_lines(of, width, height)
        # The next prompt takes a line.
        assert len(lines) < max(height, LEAST_LINES)
        assert max(map(cells, lines)) <= width
        assert "-v has all" in lines[-1]


def test_the_candidate_with_the_worst_gates_is_told_first() -> None:
    green = replace(runs.small(), cases=runs.small().cases[:1])
    passed = replace(green.cases[0], verdict="pass", gates=(), lost=())
    green = replace(green, cases=(passed,))
    comparison = comparison_of({"a": green, "runs/monday": runs.small()})
    lines = brief_lines(comparison, 80, 50)
    said = [line for line in lines if " against 1: " in line]
    assert said == ["3 against 1: runs/monday", "2 against 1: a"]
    assert any(line.startswith("FAILED") for line in lines)


@pytest.mark.parametrize(
    ("name", "size", "family"),
    [
        ("Llama-2-7b", 7_000_000_000, "llama-2"),
        ("Flan-T5 0.08B", 80_000_000, "flan-t5"),
        ("OPT-2b7", 2_700_000_000, "opt"),
        ("hf/org/Qwen2.5-0.5B-Instruct", 500_000_000, "qwen2.5-instruct"),
        ("llama3-8bit", 0, "llama3-8bit"),
    ],
)
def test_size_and_family_by_a_models_name(name: str, size: int, family: str) -> None:
    assert (size_in(name), family_of(name)) == (size, family)
