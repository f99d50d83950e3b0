from __future__ import annotations

import json

import pytest

from tests.plugin.conftest import INT4, MODEL, RELATIVE

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
        {key: case[key] for key in ("id", "verdict", "metrics", "lost", "gained")} for case in actual["cases"]
    ]
    gates = [
        [(gate["metric"], gate["verdict"], gate["reason"]) for gate in case["gates"]]
        for case in actual["cases"]
    ]
    return cases, gates


def test_it_decides_as_a_blessed_run_of_that_model(pytester, mini_suite, report, plugin_args):
    mini_suite(RECOVERY)
    assert pytester.runpytest(MODEL, "suites", "--kb-baseline-update=prod").ret == 0
    blessed = pytester.runpytest(*CANDIDATE, "--kb-baseline=prod")
    apart = report()
    result = pytester.runpytest(*IN_SESSION, *plugin_args)
    result.stdout.fnmatch_lines(["*baseline model scripted/knows.jsonl*"])
    together = report()
    assert result.ret == blessed.ret
    assert judged(together) == judged(apart)
    assert "suites/mini.kb.yaml::head_to_tail[overall]" in {case["id"] for case in together["cases"]}
    assert any(value["delta"] is not None for case in together["cases"] for value in case["metrics"].values())


def test_both_models_answers_are_recorded_apart(pytester, mini_suite):
    mini_suite(RELATIVE)
    pytester.runpytest(*IN_SESSION)
    lines = (pytester.path / "kbrel-report" / "responses.jsonl").read_text().splitlines()
    asked = [json.loads(line) for line in lines]
    first = {
        to: {
            (one["case"], one["fact"]) for one in asked if one.get("to", "") == to and one["role"] == "answer"
        }
        for to in ("", "baseline")
    }
    assert first[""] == first["baseline"]
    assert len(first[""]) == 12 + 40


def test_the_report_says_what_was_compared_with(pytester, mini_suite, report):
    mini_suite(RELATIVE)
    pytester.runpytest(*IN_SESSION)
    actual = report()
    assert actual["baseline"] == "scripted/knows.jsonl"
    assert actual["settings"]["baseline_model"] == "scripted/knows.jsonl"


def test_a_model_against_itself_loses_nothing(pytester, mini_suite, report):
    mini_suite(RELATIVE)
    assert pytester.runpytest(MODEL, "suites", "--kb-baseline-model=scripted/knows.jsonl").ret == 0
    assert report()["summary"]["facts_lost"] == report()["summary"]["facts_gained"] == 0


def test_what_must_be_equal_is_held_against_it_too(pytester, mini_suite, report):
    mini_suite(RELATIVE)
    result = pytester.runpytest(
        "--kb-model=reference", "--kb-baseline-model=reference,add_bos_token=False", "suites"
    )
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    cases = {case["slice"]: case for case in report()["cases"] if case["slice"] == "seen-zero-shot"}
    (gate,) = cases["seen-zero-shot"]["gates"]
    assert gate["verdict"] == "not comparable"
    assert "BOS added on 12 of 12 prompts" in gate["reason"]


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--kb-baseline-model=scripted/knows.jsonl", "--kb-baseline=prod"), "*--kb-baseline: found both*"),
        (("--kb-baseline-model=refrence",), "*--kb-baseline-model: refrence: no such folder*"),
        (("--kb-baseline-model=reference,dytpe=x",), "*--kb-baseline-model: *dytpe*did you mean 'dtype'*"),
    ],
)  # fmt: skip
def test_flags_that_cannot_be_meant(pytester, mini_suite, flags, said):
    mini_suite(RELATIVE)
    result = pytester.runpytest(*CANDIDATE, *flags)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([said])
