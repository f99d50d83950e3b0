"""``--kb-plan`` in real sessions: what it says is what a run then does, and it runs nothing."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import openai  # noqa: F401  (in-process sessions forget new modules, and this one takes a second to load)
import pytest

from tests.plugin.conftest import MODEL, SUITE, mini_suite, plugin_args, report

__all__ = ["mini_suite", "plugin_args", "report"]

ROOT = Path(__file__).resolve().parents[2]
PLAN = (MODEL, "suites", "--kb-plan", "-v")
FIXED = "monitor or head_to_tail"
ROW = re.compile(r"(\S+\[[^]]+\]|all) +([\d,]+)  +(\S.*?)  +(\S.*?)  +(\S.*)$")
TWICE = """\
suite: twice
facts: facts.jsonl
head_to_tail:
  prompt: zero-shot
  gates: {accuracy: {min: 0.3}}
"""

Rows = dict[str, tuple[str, str, str]]


def numbers(text: str) -> list[int]:
    return [int(actual.replace(",", "")) for actual in re.findall(r"\d[\d,]*", text)]


def rows_of(result: pytest.RunResult) -> Rows:
    """Return calls, different calls and prompt tokens of each slice, as they are printed, by its id."""
    matches = (ROW.match(line) for line in result.outlines)
    # A relation stands there with its label.
    return {
        re.sub(r" [^]]+", "", row[1]): (row[3], row[4], row[5])
        for row in matches
        if row
    }


@pytest.fixture
def exchanges(pytester: pytest.Pytester) -> Callable[[], list[dict[str, Any]]]:
    def read() -> list[dict[str, Any]]:
        text = (pytester.path / "kbrel-report" / "responses.jsonl").read_text(
            encoding="utf-8"
        )
        return [
            actual
            for actual in map(json.loads, text.splitlines())
            if "request" in actual
        ]

    return read


def per_case(exchanges: list[dict[str, Any]]) -> Rows:
    """Count a run as the plan does: all exchanges, those that no earlier one equals, their prompt tokens."""
    seen: set[str] = set()
    results: dict[str, list[int]] = {}
    for exchange in exchanges:
        counts = results.setdefault(exchange["case"].partition("::")[2], [0, 0, 0])
        counts[0] += 1
        asked = json.dumps(exchange["request"], sort_keys=True)
        if asked not in seen:
            seen.add(asked)
            counts[1] += 1
            counts[2] += exchange["response"]["prompt_tokens"]
    return {
        case: tuple(f"{count:,}" for count in counts)
        for case, counts in results.items()
    }  # type: ignore[misc]


@pytest.mark.parametrize(
    "model", ["scripted/knows.jsonl", pytest.param("reference", marks=pytest.mark.slow)]
)
def test_calls_and_tokens_are_those_of_the_run(
    pytester, mini_suite, report, exchanges, model
):
    mini_suite()
    planned = pytester.runpytest(f"--kb-model={model}", *PLAN[1:], "-k", FIXED)
    assert planned.ret == pytest.ExitCode.OK
    assert not (pytester.path / "kbrel-report").exists()
    pytester.runpytest(f"--kb-model={model}", "suites", "-k", FIXED)
    rows = rows_of(planned)
    del rows["all"]
    assert rows == per_case(exchanges())
    assert set(rows) == {
        case["id"].partition("::")[2]
        for case in report()["cases"]
        if not case["aggregate"]
    }


def test_repeated_questions_are_planned_once(pytester, mini_suite, exchanges):
    mini_suite(TWICE, name="a")
    mini_suite(TWICE, name="b")
    planned = pytester.runpytest(*PLAN)
    pytester.runpytest(MODEL, "suites")
    real = exchanges()
    assert len(real) == 24
    line = next(line for line in planned.outlines if "after deduplication" in line)
    assert (
        numbers(line)[0]
        == len({json.dumps(one["request"], sort_keys=True) for one in real})
        == 12
    )


@pytest.mark.slow
def test_reliability_lies_between_and_with_a_baseline_is_known(
    pytester, mini_suite, exchanges
):
    mini_suite()
    blind = rows_of(pytester.runpytest(*PLAN, "-k", "reliability"))
    assert pytester.runpytest(MODEL, "suites", "--kb-baseline-update=mine").ret == 0
    real = per_case([one for one in exchanges() if "reliability" in one["case"]])
    result = pytester.runpytest(*PLAN, "-k", "reliability", "--kb-baseline=mine")
    assert result.ret == 0
    actual = rows_of(result)
    assert len(real) == 2
    for case, counts in real.items():
        for printed, informed, count in zip(
            blind[case], actual[case], map(numbers, counts), strict=True
        ):
            low, high = numbers(printed)
            assert low <= count[0] <= high
            assert low < high
            # A slice whose answers all lead to choices, or none, is known too.
            assert informed.startswith("about ")
            assert numbers(informed) == [count[0], low, high]


def test_nothing_runs_and_no_report_is_touched(pytester, mini_suite, monkeypatch):
    mini_suite()
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    pytester.makepyfile(
        test_other="def test_other():\n    raise SystemExit('it ran')\n"
    )
    old = pytester.path / "kbrel-report" / "report.json"
    old.parent.mkdir()
    old.write_text("{}")
    result = pytester.runpytest(MODEL, "--kb-plan", "-v")
    assert result.ret == pytest.ExitCode.OK
    result.assert_outcomes()
    assert "it ran" not in result.stdout.str()
    assert "collected 7 items" in result.stdout.str()
    assert [path.name for path in old.parent.iterdir()] == ["report.json"]
    assert old.read_text() == "{}"
    assert not (pytester.path / ".kbrel-cache").exists()
    result.stdout.fnmatch_lines(
        ["*plan, nothing was run*", "suites/mini.kb.yaml", "time: * s in one process*"]
    )
    # As in a run, or the times would be those of other threads.
    assert os.environ["OMP_WAIT_POLICY"] == "PASSIVE"
    assert not re.search(r"created: \d+/\d+ workers", result.stdout.str())


@pytest.mark.parametrize(
    ("selection", "slices", "facts"),
    [
        (("-k", "monitor"), ["monitor[P36 capital]"], 12),
        (("--kb-limit=3", "-k", "monitor"), ["monitor[P36 capital]"], 3),
        (("--deselect=suites/mini.kb.yaml::monitor[P36]", "-k", "head"), None, 2),
    ],
)
def test_what_selects_items_shapes_the_plan(
    pytester, mini_suite, selection, slices, facts
):
    mini_suite()
    result = pytester.runpytest(*PLAN, *selection)
    rows = [ROW.match(line) for line in result.outlines]
    counts = {row[1]: int(row[2]) for row in rows if row and row[1] != "all"}
    every = [f"head_to_tail[places-{bucket}]" for bucket in ("head", "torso", "tail")]
    assert list(counts) == (slices or every)
    assert counts[next(iter(counts))] == facts


def test_a_node_id_shapes_the_plan(pytester, mini_suite):
    mini_suite()
    result = pytester.runpytest(
        MODEL, "--kb-plan", "-v", "suites/mini.kb.yaml::monitor[P36]"
    )
    assert list(rows_of(result)) == ["monitor[P36]"]


def test_gates_are_told_with_what_they_could_find(pytester, mini_suite):
    gates = "{accuracy: {max_drop: 0.1}, missing: {max: 1.0}, hallucination: {max_drop: 1.0}}"
    mini_suite(TWICE.replace("{accuracy: {min: 0.3}}", gates))
    result = pytester.runpytest(*PLAN)
    result.stdout.fnmatch_lines(
        [
            "cases compared with a baseline: 3 of suites/mini.kb.yaml; a drop is significant at p < 0.017",
            "accuracy in head_to_tail?places-tail? * 7 *max_drop 0.1 *0.* (needs a baseline)",
        ]
    )


@pytest.mark.slow
def test_the_shipped_baseline_tells_what_the_shipped_gates_could_find(pytester):
    suites, baseline = (str(ROOT / name) for name in ("suites", "baselines/reference"))
    chosen = ["-k", "reliability", "--kb-limit=3", "--kb-use-cache=off"]
    result = pytester.runpytest(
        suites,
        "--kb-model=reference",
        "--kb-plan",
        "-v",
        f"--kb-baseline={baseline}",
        *chosen,
    )
    # Over several slices, of which each figure needs but some.
    result.stdout.fnmatch_lines(
        [
            "smallest drops found *",
            "ur in reliability?unseen-zero-shot? * no drop is found among so few facts",
            "iur in reliability?overall? *",
        ]
    )
    assert result.ret == 0


def test_a_served_model_is_not_asked_and_its_cost_is_told(
    pytester, mini_suite, openai_server
):
    mini_suite(SUITE.partition("monitor:")[0] + SUITE[SUITE.index("head_to_tail:") :])
    flags = (
        "--kb-model=openai/big",
        f"--kb-model-args=base_url={openai_server.base_url}",
        "suites",
    )
    result = pytester.runpytest(*flags, "--kb-plan", "-v", "--kb-prices=10,20")
    assert result.ret == 0
    assert openai_server.calls == []
    text = result.stdout.str()
    assert "estimated, 4 characters a token" in text
    assert "time of openai/big: unknown" in text
    assert "timed on" not in text
    read = numbers(next(line for line in result.outlines if "tokens read" in line))
    written = numbers(
        next(line for line in result.outlines if "tokens written" in line)
    )
    cost = next(
        line for line in result.outlines if line.startswith("cost of openai/big")
    )
    prices = [float(number) for number in re.findall(r"\d+\.\d+", cost)]
    assert prices == pytest.approx(
        [read[0] * 10 / 1e6, read[1] * 10 / 1e6 + written[1] * 20 / 1e6], abs=1e-4
    )
    assert (
        "unknown without --kb-prices"
        in pytester.runpytest(*flags, "--kb-plan", "-v").stdout.str()
    )
    assert openai_server.calls == []


def test_a_judge_is_planned_beside_the_model(pytester, mini_suite, openai_server):
    mini_suite(TWICE)
    judge = (
        "--kb-judge=openai/judge",
        f"--kb-judge-args=base_url={openai_server.base_url}",
    )
    result = pytester.runpytest(*PLAN, *judge, "--kb-prices=1,1")
    assert openai_server.calls == []
    result.stdout.fnmatch_lines(
        [
            "--kb-model scripted/knows.jsonl: 12 calls",
            "--kb-judge openai/judge: 0 to 12 calls",
            "time: *",
            "time of openai/judge: unknown*",
            "cost of openai/judge: 0.0000 *",
        ]
    )


def test_a_model_to_compare_with_is_planned_and_loaded_too(pytester, mini_suite):
    mini_suite(TWICE.replace("{min: 0.3}", "{max_drop: 0.1}"))
    result = pytester.runpytest(*PLAN, "--kb-baseline-model=reference:int4")
    result.stdout.fnmatch_lines(
        [
            "--kb-model scripted/knows.jsonl: 12 calls",
            "--kb-baseline-model reference:int4: 12 calls",
            "  reference:int4 was loaded in *",
            "accuracy in * (the other model is asked in this run)",
        ]
    )


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("suites", "--kb-plan"), "--kb-plan: no model is given*--kb-model=SPEC*"),
        (("suites", "--kb-plan", "--kb-from-run=old"), "*--kb-from-run*"),
        ((*PLAN, "--kb-prices=cheap"), "--kb-prices: found 'cheap'*"),
        ((*PLAN, "--kb-baseline=nowhere"), "*no baseline is called 'nowhere'*"),
        (("--kb-model=./nowhere", "suites", "--kb-plan"), "*no such folder*"),
    ],
)
def test_wrong_settings_are_usage_errors(pytester, mini_suite, flags, message):
    mini_suite()
    result = pytester.runpytest(*flags)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: {message}"])


def test_a_wrong_suite_is_a_collection_error(pytester, mini_suite):
    mini_suite(SUITE.replace("negatives: 2", "negative: 2"))
    result = pytester.runpytest(*PLAN)
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(["*negative*", "*1 error*"])
    assert "plan, nothing was run" not in result.stdout.str()


def test_monitor_with_a_served_model_is_refused_as_in_a_run(
    pytester, mini_suite, openai_server
):
    mini_suite()
    flags = (
        "--kb-model=openai/big",
        f"--kb-model-args=base_url={openai_server.base_url}",
        "--kb-plan",
    )
    result = pytester.runpytest(*flags, "suites")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*MONITOR needs token probabilities*"])


def test_a_plan_without_suites_says_nothing(pytester: pytest.Pytester):
    pytester.makepyfile("def test_one():\n    pass\n")
    (pytester.path / "knows.jsonl").write_text('{"default": {"text": "unsure"}}')
    result = pytester.runpytest(MODEL, "--kb-plan")
    assert result.ret == pytest.ExitCode.OK
    result.assert_outcomes()
    assert "plan, nothing was run" not in result.stdout.str()


def test_the_folder_of_the_suite_keeps_no_trace(pytester, mini_suite):
    path: Path = mini_suite(TWICE)
    before = sorted(path.parent.iterdir())
    pytester.runpytest(*PLAN)
    assert sorted(path.parent.iterdir()) == before


@pytest.mark.slow
def test_answers_that_are_kept_are_not_planned_again(pytester, mini_suite):
    mini_suite()
    flags = (*PLAN, "-k", FIXED)
    before = pytester.runpytest(*flags)
    count = int(rows_of(before)["all"][1].replace(",", ""))
    before.stdout.fnmatch_lines(
        [f"  0 of {count} calls kept from earlier runs, which are not asked again"]
    )
    assert not (pytester.path / ".kbrel-cache").exists()
    pytester.runpytest(MODEL, "suites", "-k", "monitor")
    some = numbers(
        next(
            line
            for line in pytester.runpytest(*flags).outlines
            if " kept from " in line
        )
    )
    assert 0 < some[0] < some[1] == count
    pytester.runpytest(MODEL, "suites", "-k", FIXED)
    after = pytester.runpytest(*flags)
    after.stdout.fnmatch_lines(
        [
            f"  {count} of {count} calls kept from earlier runs, which are not asked again",
            "  scripted/knows.jsonl was loaded in * s and asked nothing",
        ]
    )
    # Another checkpoint has other answers, and who keeps none looks for none.
    other = pytester.runpytest("--kb-model=reference:int4", *flags[1:])
    other.stdout.fnmatch_lines([f"  0 of {count} calls kept*"])
    assert (
        " kept from "
        not in pytester.runpytest(*flags, "--kb-use-cache=off").stdout.str()
    )


def test_a_plan_says_how_the_checkpoint_shares(pytester, mini_suite):
    mini_suite()
    result = pytester.runpytest("--kb-model=reference", *PLAN[1:], "-k", FIXED)
    read = numbers(
        next(line for line in result.outlines if line.startswith("  tokens read "))
    )
    fed = numbers(
        next(line for line in result.outlines if line.startswith("  tokens fed "))
    )
    different = numbers(
        next(line for line in result.outlines if line.startswith("  different tokens "))
    )
    assert different[0] <= fed[0] < read[0] + read[1]
    result.stdout.fnmatch_lines(
        ["  tokens fed *: * times fewer, in packed rows behind shared prefixes"]
    )
