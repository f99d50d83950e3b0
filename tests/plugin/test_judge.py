"""Sessions with a judge on a loopback server or on real weights, and cached judgements."""

import openai  # noqa: F401  (in-process sessions forget new modules, and this one takes a second to load)
import pytest

from tests.openai_server import Fault
from tests.plugin.conftest import RENAMED, facts_file

ONE = """\
suite: mini
facts: facts.jsonl
head_to_tail:
  prompt: zero-shot
  gates: {accuracy: {min: 0.0, max_drop: 0.5}}
  overall: {gates: {accuracy: {max_drop: 0.5}}}
"""


FACTS = facts_file(RENAMED)


@pytest.fixture
def exchanges(responses):
    """Read the recorded exchanges with the judge."""
    return lambda: [response for response in responses() if response.get("to")]


def gate(pytester, *flags, model="scripted/knows.jsonl"):
    return pytester.runpytest(f"--kb-model={model}", "suites", *flags)


def accuracies(cases):
    return [case["metrics"]["accuracy"]["value"] for case in cases]


def test_a_judge_decides_what_rules_do_not_find_equal(
    pytester, mini_suite, report, exchanges, openai_server, judge, slices
):
    mini_suite(ONE, FACTS)
    openai_server.say = lambda text: "Correct."
    # Asked again, it is asked nothing.
    for reused in (0, len(RENAMED)):
        assert gate(pytester, *judge).ret == 0
        assert len(openai_server.calls) == len(exchanges()) == len(RENAMED)
        assert accuracies(slices()) == [1.0, 1.0, 1.0]
        assert [helper["spec"] for helper in report()["helpers"]] == ["openai/judge"]
        environment = report()["environment"]
        assert environment["helpers_asked"] == str(len(RENAMED))
        assert environment["helpers_reused"] == str(reused)
        assert {one["role"] for one in exchanges()} == {"judge"}


def test_an_unreadable_verdict_is_a_class_of_its_own(
    pytester, mini_suite, report, openai_server, judge, slices
):
    mini_suite(ONE, FACTS)
    openai_server.say = lambda text: "Let me think about it"
    result = gate(pytester, *judge)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    # Whether it thinks before it answers is looked at once, where its first reply is a sentence.
    assert len(openai_server.calls) == len(RENAMED) + 1
    assert {case["verdict"] for case in report()["cases"]} == {"invalid"}
    assert all(
        "of the judge cannot be read; allowed: at most 10%" in case["errors"][0]
        for case in slices()
    )


def test_a_judge_that_fails_makes_the_case_invalid_and_is_not_cached(
    pytester, mini_suite, report, openai_server, judge
):
    mini_suite(ONE, FACTS)
    openai_server.always = Fault(status=500, message="overheated")
    result = gate(pytester, judge[0], f"{judge[1]},max_retries=0")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert {case["verdict"] for case in report()["cases"]} == {"invalid"}
    result.stdout.fnmatch_lines(["*(judge): *overheated*"])
    openai_server.always = None
    openai_server.say = lambda text: "incorrect"
    assert gate(pytester, *judge).ret == 0


def test_a_baseline_of_another_judge_is_not_comparable(
    pytester, mini_suite, report, openai_server, judge
):
    openai_server.models = ("judge", "other")
    openai_server.say = lambda text: "correct"
    mini_suite(ONE, FACTS)
    assert gate(pytester, "--kb-baseline-update=rules").ret == 0
    assert gate(pytester, *judge, "--kb-baseline-update=judged").ret == 0
    assert gate(pytester, "--kb-baseline=rules").ret == 0
    assert gate(pytester, *judge, "--kb-baseline=judged").ret == 0
    asked = len(openai_server.calls)
    for flags, message in (
        ((*judge, "--kb-baseline=rules"), "openai/judge, that of the baseline rules"),
        (("--kb-baseline=judged",), "rules, that of the baseline openai/judge"),
    ):
        result = gate(pytester, *flags)
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        assert message in result.stderr.str()
    assert len(openai_server.calls) == asked
    # What answers for a judge is known once it was asked.
    flags = ("--kb-judge=openai/other", judge[1], "--kb-baseline=judged")
    result = gate(pytester, *flags)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert "architecture ('other' and 'judge')" in result.stdout.str()
    # The slices, and the figure over all of them.
    cases = report()["cases"]
    actual = [case["verdict"] for case in cases if case["probe"] != "pooled"]
    assert actual == ["not comparable"] * 4
