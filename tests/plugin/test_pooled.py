"""The aggregate over all slices of all probes."""

import pytest

from pytest_kbrel.stats import benjamini_hochberg, holm, sidak_p
from tests.plugin.conftest import GATE, OVERCONFIDENT

MIXED = """\
suite: mini
facts: facts.jsonl
head_to_tail:
  prompt: zero-shot
  gates: {accuracy: {max_drop: 0.05}}
reliability:
  choices: 3
  distractors: 6
  slices: [known-zero-shot, known-four-shot, unseen-zero-shot]
  unseen: {count: 30, as_of: 2026-11-01, expires: 2090-01-01}
  gates: {cr: {max_drop: 0.05}, ur: {max_drop: 0.05, min: 0.0}}
overall:
  gates:
    as_expected: {max_drop: 0.01, min: 0.1}
    churn: 1.0
"""


@pytest.fixture
def pooled(report):
    return lambda: next(case for case in report()["cases"] if case["probe"] == "pooled")


@pytest.fixture
def blessed(pytester, mini_suite):
    mini_suite(MIXED)
    assert pytester.runpytest(*GATE, "--kb-baseline-update=prod").ret == 0


def test_the_pooled_case_is_decided_over_all_answers_of_the_suite(
    pytester, mini_suite, report, pooled, slices
):
    mini_suite(MIXED)
    result = pytester.runpytest(*GATE, "-v")
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(["*suites/mini.kb.yaml::pooled?overall? *PASSED*"])
    case, good = pooled(), {"known": "cr", "unseen": "ur", "places": "accuracy"}
    right = sum(
        one["n"] * one["metrics"][good[one["slice"].partition("-")[0]]]["value"]
        for one in slices()
    )
    answers = sum(one["n"] for one in slices())
    value = case["metrics"]["as_expected"]
    assert value["value"] == pytest.approx(right / answers)
    # Twelve facts, each asked by three slices, and the unseen ones.
    assert (case["n"], value["n"], answers) == (42, 42, 3 * 12 + 30)


def test_every_p_value_is_corrected_for_the_whole_run(pytester, blessed, report):
    pytester.runpytest(OVERCONFIDENT, "suites", "--kb-baseline=prod")
    gates = [gate for case in report()["cases"] for gate in case["gates"]]
    made = [gate for gate in gates if gate["rule"] == "max_drop"]
    assert len(made) == report()["comparisons"]["made"] == 7
    ps = [gate["p"] for gate in made]
    sidak = [sidak_p(p, 7) for p in ps]
    corrected = {"p_sidak": sidak, "p_holm": holm(ps), "p_bh": benjamini_hochberg(ps)}
    for name, expected in corrected.items():
        assert [gate[name] for gate in made] == pytest.approx(expected)
    assert {gate["p_holm"] for gate in gates if gate["rule"] == "min"} == {None}
