"""Settings of the probes in whole sessions: prompts, retrieval, distractors, controls, slices."""

import json

import pytest

from tests.models.tiny_encoder import make_encoder
from tests.plugin.conftest import MODEL

RELIABILITY = """\
suite: mini
facts: facts.jsonl
reliability:
  slices: [{slices}]
  choices: 3
  distractors: 6
  unseen: {{count: 10, as_of: 2026-11-01, expires: 2090-01-01}}
{more}"""
TWO_UNSURE = "known-four-shot-2, unseen-four-shot-2"


def suite(slices, more=""):
    return RELIABILITY.format(slices=slices, more=more)


def exchanges(folder):
    text = (folder / "kbrel-report" / "responses.jsonl").read_text("utf-8")
    return [json.loads(line) for line in text.splitlines()]


def prompts(folder, slice_, role="answer"):
    return sorted(
        actual["request"]["prompt"]
        for actual in exchanges(folder)
        if actual.get("role") == role and f"[{slice_}]" in actual["case"]
    )


def test_controls_stand_in_the_report(pytester, mini_suite, cases):
    mini_suite(suite("known-zero-shot, unseen-zero-shot", "  controls: asked\n"))
    pytester.runpytest(MODEL, "suites").assert_outcomes(passed=4)
    seen, unseen = (
        cases()[f"reliability[{name}-zero-shot]"]["metrics"]
        for name in ("known", "unseen")
    )
    assert seen["cr_control_majority"]["value"] == pytest.approx(1 / 12)
    assert seen["c_correct_control_random"]["value"] == pytest.approx(0.2)
    assert seen["c_correct"]["value"] > seen["c_correct_control_shuffled"]["value"]
    assert {"unsure", "none", "repetition"} <= set(unseen)
    assert len(prompts(pytester.path, "known-zero-shot", "shuffled/answer")) == 12


def test_a_model_writes_the_distractors(pytester, mini_suite, report):
    (pytester.path / "writer.yaml").write_text(
        'default: {text: "1. Springfield\\n2. Shelbyville\\n3. Ogdenville\\n4. Paris"}'
    )
    mini_suite(suite("known-zero-shot", "  distractors_from: scripted/writer.yaml\n"))
    result = pytester.runpytest(MODEL, "suites")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["distractors by scripted/writer.yaml (0 of 12 *"])
    (case,) = report()["cases"]
    assert 0 <= case["metrics"]["distractors_written"]["value"] <= 4 / 6
    assert len(prompts(pytester.path, "known-zero-shot", "distractors")) == 12
    asked = prompts(pytester.path, "known-zero-shot", "choice:0")
    assert any("Ogdenville" in prompt for prompt in asked)


@pytest.mark.slow
def test_examples_by_a_local_encoder(pytester, mini_suite):
    pytest.importorskip("sentence_transformers")
    path = mini_suite(suite(TWO_UNSURE, "  retrieval: encoder\n"))
    make_encoder(path.parent / "encoder")
    # Not in this process, where parts of the package may be loaded already.
    pytester.runpytest_subprocess(MODEL, "suites").assert_outcomes(passed=4)
    by_encoder = prompts(pytester.path, "unseen-four-shot-2")
    assert all(prompt.count("Question:") == 5 for prompt in by_encoder)
    mini_suite(suite(TWO_UNSURE))
    pytester.runpytest(MODEL, "suites").assert_outcomes(passed=4)
    assert prompts(pytester.path, "unseen-four-shot-2") != by_encoder


def test_a_backend_that_encodes_no_texts_is_refused_before_the_run(
    pytester, mini_suite
):
    mini_suite(suite(TWO_UNSURE, "  retrieval: vllm/org/name\n"))
    result = pytester.runpytest(MODEL, "suites")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["*retrieval: vllm/org/name: vllm/ has no encoders of texts; allowed: tfidf,*"]
    )
