"""One golden text a surface, all of one made run: ``make golden`` rewrites them, git diff shows what changed."""

import json
import os
import re
import tempfile
from dataclasses import replace
from html import unescape
from pathlib import Path

import jsonschema
import pytest

from pytest_kbrel.cli import main
from pytest_kbrel.records import (
    Churn,
    Correlation,
    Divergence,
    Looks,
    Share,
    Waiver,
)
from pytest_kbrel.reports.html.comparison import comparison_html
from pytest_kbrel.reports.html.page import report_html
from pytest_kbrel.reports.json_report import report_dict, schema
from pytest_kbrel.reports.junit import write_junit
from pytest_kbrel.reports.rendering import comment_markdown, summary_markdown
from pytest_kbrel.reports.terminal import failure_text, terminal_lines
from tests.made_cases import told
from tests.made_comparisons import comparison_of
from tests.plugin.conftest import KNOWS, OVERCONFIDENT, SUITE, mini_suite
from tests.reports.conftest import (
    case,
    fingerprint,
    gate,
    metric,
    monitored,
    moved_fact,
    rich,
    with_facts,
)

__all__ = ["mini_suite"]

FOLDER = Path(__file__).parent / "golden"


def red():
    """The run of all surfaces: each thing that a report may say of a case is said of one at least."""
    run = rich()
    run = replace(run, model=replace(run.model, name="./base + ./my-lora"))
    failed, passed, unsure, seen, unseen, *overall = run.cases
    moved_tokens = Divergence(facts=118, positions=900, kl=0.25, top1_agreement=0.9)
    late = Waiver(
        owner="Eve", reason="old", expires="2025-06-30", fact="P30:2", line=21
    )
    rose = gate(
        "monitor rose by 0.031",
        metric="monitor",
        observed=0.031,
        low=0.01,
        high=0.052,
        p_sidak=0.04,
    )
    failed = replace(
        failed,
        label="continent",
        gates=(*failed.gates, rose),
        waiver=None,
        expired=(replace(late, expired=True),),
        moved=(moved_fact(),),
        notes=tuple(f"{at} of 120 facts: asked otherwise" for at in range(1, 8)),
        churn=Churn(facts=118, texts=21, labels=8, divergence=moved_tokens),
        prompt="Question: On which continent is country 1?\nAnswer:",
    )
    first = replace(
        unsure.gates[0],
        reasons=told(
            "it fell; about 400 facts would decide, were it the same", needed=400
        ),
        observed=0.02,
        low=-0.02,
        high=0.06,
        unchanged=0.04,
    )
    limit = {"metric": "missing", "rule": "max", "bound": 0.3, "line": 17}
    unsure = replace(
        unsure,
        gates=(first, gate("unsure", verdict="inconclusive", **limit)),
        looks=Looks(taken=2, of=10, asked=120, facts=600),
        settings=(("language", "sw (no rules)"),),
        integrity=(
            *unsure.integrity,
            Share(name="anchor_prob", value=0.6, total=60, limit=0.01),
        ),
    )
    controls = (
        metric("cr_control_majority", 0.083),
        metric("c_correct_control_random", 0.2),
    )
    below = gate(
        "c_correct is 0.600 above its control",
        metric="c_correct",
        rule="above_control",
        bound=0.7,
        observed=0.6,
        line=17,
    )
    seen = replace(
        seen,
        verdict="fail",
        metrics=(*seen.metrics, *controls),
        gates=(below,),
        waiver=Waiver(owner="Ann", reason="known", expires="2026-12-31", case=seen.id),
    )
    cut = ("90 of 120 answers are cut short; allowed: at most 50%: raise it",)
    invalid = tuple(
        case("monitor", part, "invalid", (), errors=cut) for part in ("P36", "P37")
    )
    pair = tuple(
        Correlation(
            x="monitor", y="accuracy", method=method, over="slices", r=-0.5, p=0.03, n=9
        )
        for method in ("pearson", "spearman")
    )
    return replace(
        run,
        cases=(failed, passed, unsure, seen, unseen, *invalid, *overall),
        correlations=pair,
        compared=(820, 1240),
        blessed="2025-12-20T03:04:05+00:00",
        environment=(
            *run.environment,
            *(("answers_asked", "1240"), ("answers_reused", "200")),
            *(("answers_store", ".kbrel-cache"), ("model_load_seconds", "1.50")),
        ),
        settings=(("judge", "openai/judge"),),
        complete=False,
        problems=("the last response of gw2 is torn and left out",),
    )


def only(*verdicts):
    cases = [one for one in red().cases if one.verdict in verdicts]
    return replace(red(), cases=tuple(cases), complete=True, problems=(), exit_status=0)


def paper():
    """A run against what a paper prints, which lacks a case."""
    failed, passed, *_ = red().cases
    values = tuple(replace(one, unpaired=True) for one in failed.metrics)
    failed = replace(failed, metrics=values, lost=(), gained=(), moved=())
    lacks = (
        replace(passed.gates[0], verdict="no baseline", reasons=told("it has none")),
    )
    lacking = replace(passed, verdict="no baseline", gates=lacks, lost=(), waiver=None)
    return replace(red(), baseline="published/x/y", cases=(failed, lacking))


def screen(run, verbosity=0):
    steps = [("rerun the failed", "pytest suites --lf")]
    lines = terminal_lines(
        run, width=80, verbosity=verbosity, steps=steps, written_to="kbrel-report"
    )
    return "\n".join(text for text, _ in lines) + "\n"


def failures(run=None):
    run = run or red()
    return "".join(
        failure_text(one, baseline_name=run.baseline) + "\n\n"
        for one in run.cases
        if one.verdict != "pass"
    )


def comment():
    return comment_markdown(
        red(), name="nightly", link="https://ci.example/1", commit="0123456789abcdef"
    )


def text_of(page):
    """Return what a page says: a line for each block, with a bar before each cell."""
    body = page.partition("<body>")[2]
    body = re.sub("<(style|script)>.*?</\\1>", "", body, flags=re.DOTALL)
    body = re.sub(r"<(t[dh]|text|title|dd|span|a|abbr)\b[^>]*>", " | ", body)
    blocks = r"<(?:tr|h\d|p|li|dt|summary|pre|svg|figcaption|section|option)\b[^>]*>"
    texts = (unescape(re.sub("<[^>]*>", "", part)) for part in re.split(blocks, body))
    lines = (re.sub(r"[\s|]*\|[\s|]*", " | ", text) for text in texts)
    told = (" ".join(line.split()) for line in lines if line.strip("| \n"))
    return "\n".join(told) + "\n"


def page():
    # Rows of a blessed run do not say what was expected.
    rows = tuple(replace(row, expected="") for row in monitored(0.01).rows)
    base = {red().cases[0].nodeid: replace(monitored(), rows=rows)}
    return text_of(report_html(with_facts(red()), baseline=base))


def compared():
    good = replace(only("pass", "inconclusive"), model=fingerprint("good"))
    return text_of(comparison_html(comparison_of({"runs/red": red(), "good": good})))


def junit():
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "junit.xml"
        failing = {"fail", "invalid"}
        write_junit(
            red(), path, failing=failing, baseline_name="reference", as_properties=False
        )
        return path.read_text(encoding="utf-8").replace("><", ">\n<")


def wire():
    jsonschema.validate(report_dict(red()), schema())
    return json.dumps(report_dict(red()), indent=1, ensure_ascii=False) + "\n"


def is_golden(name, text):
    path = FOLDER / name
    if os.environ.get("KBREL_GOLDEN") == "write":
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "made"),
    [
        ("terminal-red.txt", lambda: screen(red(), verbosity=1)),
        ("terminal-green.txt", lambda: screen(only("pass"))),
        ("terminal-paper.txt", lambda: screen(paper(), verbosity=1)),
        ("failure-paper.txt", lambda: failures(paper())),
        ("summary-paper.md", lambda: summary_markdown(paper())),
        ("terminal-inconclusive.txt", lambda: screen(only("pass", "inconclusive"))),
        ("terminal-quiet.txt", lambda: screen(red(), verbosity=-1)),
        ("failure.txt", failures),
        ("summary.md", lambda: summary_markdown(red())),
        ("comment.md", comment),
        ("page.txt", page),
        ("compared-page.txt", compared),
        ("junit.xml", junit),
        ("report.json", wire),
    ],
)
def test_a_surface_is_its_golden_text(name, made):
    is_golden(name, made())


def test_plan_and_comparison_are_their_golden_texts(
    pytester, mini_suite, capsys, monkeypatch
):
    monkeypatch.setenv("COLUMNS", "80")
    mini_suite(SUITE.replace("cr: {min", "ur: {max_drop: 0.05}\n    cr: {min"))
    knows = f"--kb-model={KNOWS}"
    flags = ("suites", "--kb-plan", "-v", f"--kb-baseline-model={KNOWS}")
    plan = pytester.runpytest(knows, *flags).stdout.str()
    plan = plan[plan.index("suites/mini.kb.yaml\n") : plan.rindex("\n===")]
    times = r"[\d.]+( to [\d.]+)? (s|min|h)\b"
    is_golden("plan.txt", re.sub(times, "TIME", plan) + "\n")
    pytester.runpytest(knows, "suites", "--kb-output-path=before")
    pytester.runpytest(OVERCONFIDENT, "suites", "--kb-output-path=after")
    capsys.readouterr()
    assert main(["compare", "before", "after", "-v"]) == 0
    out = re.sub(r"\d{4}-\d\d-\d\dT\S+\d\d:\d\d", "TIME", capsys.readouterr().out)
    is_golden("compare.txt", out)
