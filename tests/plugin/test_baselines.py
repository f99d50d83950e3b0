"""Runs compared with a blessed run, or with a second model of the same session."""

import re

import pytest

from tests.plugin.conftest import (
    GATE,
    GATED,
    INT4,
    KNOWS,
    MODEL,
    OVERCONFIDENT,
    RELATIVE,
    one_line,
)


@pytest.fixture
def blessed(pytester, mini_suite):
    mini_suite(RELATIVE)
    blessing = pytester.runpytest(*GATE, "--kb-baseline-update=prod")
    assert blessing.ret == 0
    blessing.stdout.fnmatch_lines(["blessed as prod: baselines?prod"])
    return pytester.path / "baselines" / "prod"


def test_a_worse_candidate_fails_and_its_report_names_the_lost_facts(
    pytester, blessed, report
):
    result = pytester.runpytest(OVERCONFIDENT, "suites", "--kb-baseline=prod")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    verdicts = {case["slice"]: case["verdict"] for case in report()["cases"]}
    assert verdicts["unseen-zero-shot"] == "fail"
    assert verdicts["known-zero-shot"] in ("pass", "inconclusive")
    lost = next(
        case for case in report()["cases"] if case["slice"] == "unseen-zero-shot"
    )["lost"]
    assert lost
    assert lost[0]["old_answer"] != lost[0]["new_answer"]
    result.stdout.fnmatch_lines(
        [
            "*ur max_drop 0.05: fail",
            "*measured*",
            "*at most 0.05 worse than prod; fails if surely above 0.025",
            "*difference*paired facts*",
        ]
    )


def test_a_suite_that_the_baseline_lacks_is_refused(pytester, mini_suite, blessed):
    mini_suite(RELATIVE, name="other")
    result = pytester.runpytest(MODEL, "suites/other.kb.yaml", "--kb-baseline=prod")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*has no case like *found in it: cases of mini.kb.*"])
    # Beside one that it has, it fails.
    result = pytester.runpytest(MODEL, "suites", "--kb-baseline=prod")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["*no baseline*"])


def test_other_prompts_are_not_comparable(pytester, mini_suite, blessed, report):
    relations = pytester.path / "suites" / "relations.yaml"
    relations.write_text(
        relations.read_text().replace("What is the capital", "Name the capital")
    )
    result = pytester.runpytest(*GATE, "--kb-baseline=prod")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    verdicts = {case["slice"]: case["verdict"] for case in report()["cases"]}
    assert verdicts["known-zero-shot"] == "not comparable"


RECOVERY = """\
suite: mini
facts: facts.jsonl
head_to_tail:
  prompt: zero-shot
  gates:
    accuracy: {recovery: 0.9, max_drop: 0.1}
  overall:
    gates:
      accuracy: {max_drop: 0.1}
reliability:
  choices: 3
  distractors: 6
  unseen: {count: 6, as_of: 2026-11-01, expires: 2090-01-01}
  gates:
    ur: {max_drop: 0.05}
"""
CANDIDATE = (INT4, "suites")
IN_SESSION = (*CANDIDATE, "--kb-baseline-model=scripted/knows.jsonl")


def judged(actual):
    cases = [
        {key: case[key] for key in ("id", "verdict", "metrics", "lost", "gained")}
        for case in actual["cases"]
    ]
    gates = [
        [(gate["metric"], gate["verdict"], gate["reason"]) for gate in case["gates"]]
        for case in actual["cases"]
    ]
    return cases, gates


def test_a_baseline_model_decides_as_a_blessed_run_of_the_same_model(
    pytester, mini_suite, report
):
    mini_suite(RECOVERY)
    assert pytester.runpytest(MODEL, "suites", "--kb-baseline-update=prod").ret == 0
    blessed = pytester.runpytest(*CANDIDATE, "--kb-baseline=prod")
    apart = report()
    result = pytester.runpytest(*IN_SESSION)
    result.stdout.fnmatch_lines(["*baseline model scripted/knows.jsonl*"])
    together = report()
    assert result.ret == blessed.ret
    assert judged(together) == judged(apart)
    assert "suites/mini.kb.yaml::head_to_tail[overall]" in {
        case["id"] for case in together["cases"]
    }
    assert any(
        value["delta"] is not None
        for case in together["cases"]
        for value in case["metrics"].values()
    )


def test_a_baseline_of_the_ini_file_stands_back_for_a_model_and_for_its_first_blessing(
    pytester, mini_suite
):
    mini_suite(GATED)
    pytester.makeini("[pytest]\nkb_baseline = prod\n")
    result = pytester.runpytest(*GATE)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    wanted = "kb_baseline: no baseline is called 'prod'*--kb-baseline-update=prod blesses*--kb-baseline= comp*"
    result.stderr.fnmatch_lines([f"ERROR: {wanted}"])
    assert pytester.runpytest(*GATE, f"--kb-baseline-model={KNOWS}").ret == 0
    assert pytester.runpytest(*GATE, "--kb-baseline=").ret == 0
    assert (
        pytester.runpytest(*GATE, "--kb-baseline-update=nightly").ret
        == pytest.ExitCode.USAGE_ERROR
    )
    assert pytester.runpytest(*GATE, "--kb-baseline-update").ret == 0
    result = pytester.runpytest(*GATE)
    assert result.ret == 0
    assert re.search("PASSED: .* against baseline prod", one_line(result))
