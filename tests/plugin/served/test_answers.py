"""Requests out and answers in: rounds of batches decide as the same model behind a server does."""

from __future__ import annotations

import json

import openai  # noqa: F401  (in-process sessions forget new modules, and this one takes a second to load)
import pytest

from tests.batch import run_batch
from tests.openai_server import Fault
from tests.plugin.conftest import CAPITALS, GATED, HEADER, RENAMED, facts_file, one_line

SUITE = (
    HEADER
    + """\
head_to_tail:
  prompt: zero-shot
  gates: {accuracy: {min: 0.3}}
reliability:
  choices: 3
  distractors: 6
  unseen: {count: 6, as_of: 2026-11-01, expires: 2090-01-01}
  gates: {cr: {min: 0.3}}
"""
)
NAMED = ("--kb-model=openai/judge", "suites")
EXPORT = "--kb-export-requests=requests.txt"


def knows(text):
    """Answer questions about most capitals, and pick the option that is the capital."""
    for country, city, _ in CAPITALS[:9]:
        if f"capital of {country}?" in text:
            options = [
                line.partition(")")
                for line in text.splitlines()
                if line.endswith(f") {city}")
            ]
            return options[0][0] if options else city
    return "unsure"


@pytest.fixture
def server(openai_server):
    openai_server.say = knows
    return openai_server


@pytest.fixture
def answer(pytester, server):
    """Answer the requests that were written, into a file of the folder ``answers``."""
    (pytester.path / "answers").mkdir()

    def answer(name):
        return run_batch(
            server,
            pytester.path / "requests.txt",
            pytester.path / "answers" / f"{name}.jsonl",
        )

    return answer


def texts_of(responses):
    """Return what was answered to what, without what names the model."""
    return sorted(
        json.dumps(
            [
                line["case"],
                line["fact"],
                line["role"],
                line["request"],
                line["response"],
            ]
        )
        for line in responses
        if "request" in line
    )


def test_rounds_of_batches_decide_as_the_model_asked_directly(
    pytester, mini_suite, server, answer, cases, responses
):
    mini_suite(SUITE)
    first = pytester.runpytest(*NAMED, EXPORT)
    assert first.ret == pytest.ExitCode.OK
    assert not (pytester.path / "kbrel-report").exists()
    told = one_line(first)
    assert "requests to judge in requests.txt" in told
    assert "vllm run-batch --model judge -i requests.txt -o ANSWERS.jsonl" in told
    assert "--kb-model=answers/ANSWERS.jsonl" in told
    asked = len(answer(1))
    assert not server.calls_to("models")
    given = ("--kb-model=answers/answers", "suites")
    second = pytester.runpytest(*given, EXPORT)
    assert second.ret == pytest.ExitCode.OK
    assert f"{asked} answers of judge in answers/answers" in one_line(second)
    choices = answer(2)
    assert choices
    assert "every request has an answer" in one_line(pytester.runpytest(*given, EXPORT))
    decided = pytester.runpytest(*given, "--kb-output-path=batch")
    direct = pytester.runpytest(
        *NAMED, f"--kb-model-args=base_url={server.base_url}", "--kb-output-path=direct"
    )
    assert decided.ret == direct.ret
    assert decided.parseoutcomes() == direct.parseoutcomes()
    assert texts_of(responses("batch")) == texts_of(responses("direct"))
    both = cases("batch"), cases("direct")
    assert both[0].keys() == both[1].keys()
    for name, case in both[0].items():
        assert case["verdict"] == both[1][name]["verdict"]
        assert case["metrics"] == both[1][name]["metrics"]
    assert any(
        case["metrics"]["cr"]["value"] > 0.5
        for case in both[0].values()
        if "cr" in case["metrics"]
    )


def test_missing_answers_are_told_with_the_way_to_ask_for_them(
    pytester, mini_suite, answer, cases
):
    mini_suite(SUITE)
    pytester.runpytest(*NAMED, EXPORT)
    answer(1)
    result = pytester.runpytest("--kb-model=answers/answers/1.jsonl", "suites")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    told = [
        case
        for case in cases().values()
        if any("have no answer" in text for text in case["errors"])
    ]
    assert told
    assert {case["verdict"] for case in told} == {"invalid"}
    assert (
        "requests of this case have no answer in answers/answers/1.jsonl"
        in one_line(result)
    )
    assert "--kb-export-requests=FILE" in one_line(result)
    assert all(
        case["verdict"] == "pass"
        for name, case in cases().items()
        if name == "head_to_tail[places-head]"
    )


def test_an_error_of_a_batch_fails_its_fact_and_is_asked_again(
    pytester, mini_suite, server, answer, cases
):
    mini_suite(GATED)
    pytester.runpytest(*NAMED, EXPORT)
    server.inject(Fault(), Fault(status=500, message="overloaded"))
    answer(1)
    model = "--kb-model=answers/answers"
    result = pytester.runpytest(model, "suites")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert (
        "1.jsonl:2: the batch has an error in place of an answer: 500: 'overloaded'"
        in one_line(result)
    )
    pytester.runpytest(model, "suites", EXPORT)
    assert len(answer(2)) == 1
    assert pytester.runpytest(model, "suites").ret == pytest.ExitCode.OK
    assert not (pytester.path / ".kbrel-cache" / "answers.sqlite").exists()


def test_a_judge_is_asked_once_there_are_answers(
    pytester, mini_suite, server, answer, judge, cases
):
    mini_suite(SUITE, facts_file(RENAMED))
    server.say = lambda text: "correct" if "Compare an answer" in text else knows(text)
    pytester.runpytest(*NAMED, *judge, EXPORT)
    assert not server.calls
    answer(1)
    server.calls.clear()
    pytester.runpytest("--kb-model=answers/answers", "suites", *judge, EXPORT)
    asked = len(server.calls)
    assert asked
    answer(2)
    server.calls.clear()
    result = pytester.runpytest("--kb-model=answers/answers", "suites", *judge)
    # The replies of the judge were kept.
    assert not server.calls
    assert "invalid" not in {case["verdict"] for case in cases().values()}, (
        result.outlines
    )


def test_other_answers_than_asked_for_are_counted(pytester, mini_suite, answer):
    mini_suite(SUITE)
    pytester.runpytest(*NAMED, EXPORT)
    answer(1)
    result = pytester.runpytest(
        "--kb-model=answers/answers", "suites", EXPORT, "-k", "head_to_tail"
    )
    assert (
        "of them answer no request of these cases (first: answers/1.jsonl:"
        in one_line(result)
    )


NOWHERE = "--kb-model=answers/nowhere.jsonl"


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (
            ("--kb-model=scripted/knows.jsonl", EXPORT),
            "found scripted/knows.jsonl; allowed: openai/NAME",
        ),
        ((*NAMED, EXPORT, "--kb-plan"), "--kb-export-requests: found with --kb-plan"),
        ((*NAMED, "--kb-export-requests=suites"), "suites: found what --kb-export-re"),
        (
            (*NAMED, "--kb-export-requests=suites/facts.jsonl"),
            "facts.jsonl: found what --kb-export-requests did not write; allowed: a ",
        ),
        ((EXPORT,), "--kb-export-requests: found no model"),
        ((NOWHERE, EXPORT), "nowhere.jsonl: cannot be read"),
        ((NOWHERE,), "nowhere.jsonl: cannot be read"),
        (
            (*NAMED, EXPORT, "--kb-judge=answers/x.jsonl"),
            "what a helper model is asked is not written",
        ),
        (("--kb-from-run=x", EXPORT), "found with --kb-from-run"),
        ((*NAMED, EXPORT, "monitor"), 'leave these cases out with -k "not monitor"'),
    ],
)
def test_what_cannot_be_written_is_refused(pytester, mini_suite, args, said):
    mini_suite(SUITE + "monitor: {negatives: 2}\n" if "monitor" in args else GATED)
    flags = [arg for arg in args if arg != "monitor"]
    result = pytester.runpytest("suites", *flags)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert said in " ".join(result.stderr.str().split())
    assert not (pytester.path / "requests.txt").exists()
