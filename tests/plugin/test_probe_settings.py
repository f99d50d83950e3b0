"""Settings of the probes in whole sessions: prompts, retrieval, distractors, controls, slices."""

import json

import pytest

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
TWO_UNSURE = "seen-four-shot-2, unseen-four-shot-2"


def suite(slices, more=""):
    return RELIABILITY.format(slices=slices, more=more)


def exchanges(folder):
    text = (folder / "kbrel-report" / "responses.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def prompts(folder, slice_, role="answer"):
    return sorted(
        actual["request"]["prompt"]
        for actual in exchanges(folder)
        if actual.get("role") == role and f"[{slice_}]" in actual["case"]
    )


@pytest.mark.slow
def test_four_shot_with_two_unsure_is_the_same_on_any_number_of_workers(
    pytester, mini_suite, report
):
    mini_suite(suite(f"{TWO_UNSURE}, seen-zero-shot, unseen-zero-shot"))
    pytester.runpytest(MODEL, "suites").assert_outcomes(passed=7)
    shown_prompts = prompts(pytester.path, "seen-four-shot-2")
    assert len(shown_prompts) == 12
    for prompt in shown_prompts:
        *shown, question = prompt.split("Question: ")[1:]
        assert [block.splitlines()[1] == "Answer: unsure" for block in shown] == [
            False,
            False,
            True,
            True,
        ]
        # No example is about the country that is asked about.
        assert not any(question.splitlines()[0] in block for block in shown)
    actual = report()
    ids = {case["id"].partition("::")[2] for case in actual["cases"]}
    assert {"reliability[overall-zero-shot]", "reliability[overall-four-shot-2]"} <= ids
    pytester.runpytest(MODEL, "-n2", "suites").assert_outcomes(passed=7)
    assert prompts(pytester.path, "seen-four-shot-2") == shown_prompts
    parallel = report()
    for case in actual["cases"]:
        twin = next(other for other in parallel["cases"] if other["id"] == case["id"])
        assert twin["metrics"] == case["metrics"]


def test_controls_stand_in_the_report(pytester, mini_suite, report):
    mini_suite(suite("seen-zero-shot, unseen-zero-shot", "  controls: asked\n"))
    pytester.runpytest(MODEL, "suites").assert_outcomes(passed=4)
    cases = {
        case["id"].partition("::")[2]: case["metrics"] for case in report()["cases"]
    }
    seen = cases["reliability[seen-zero-shot]"]
    assert seen["cr_control_majority"]["value"] == pytest.approx(1 / 12)
    assert seen["c_correct_control_random"]["value"] == pytest.approx(0.2)
    assert seen["c_correct"]["value"] > seen["c_correct_control_shuffled"]["value"]
    assert {"unsure", "none", "repetition"} <= set(
        cases["reliability[unseen-zero-shot]"]
    )
    shuffled = [
        actual
        for actual in exchanges(pytester.path)
        if actual.get("role", "").startswith("shuffled/")
    ]
    assert (
        len([actual for actual in shuffled if actual["role"] == "shuffled/answer"])
        == 12
    )


@pytest.mark.parametrize("writer", ["openai/writer", "scripted/writer.yaml"])
def test_a_model_writes_the_distractors(
    pytester, mini_suite, openai_server, writer, report
):
    pytest.importorskip("openai")
    openai_server.say = lambda text: (
        "1. Springfield\n2. Shelbyville\n3. Ogdenville\n4. Paris"
    )
    (pytester.path / "writer.yaml").write_text(
        'default: {text: "1. Springfield\\n2. Shelbyville\\n3. Ogdenville\\n4. Paris"}'
    )
    mini_suite(suite("seen-zero-shot", f"  distractors_from: {writer}\n"))
    args = (
        [f"--kb-judge-args=base_url={openai_server.base_url}"]
        if "openai" in writer
        else []
    )
    result = pytester.runpytest(MODEL, *args, "suites")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(
        [f"distractors by {writer} (0 of 12 replies reused from earlier runs)"]
    )
    page = (pytester.path / "kbrel-report" / "report.html").read_text(encoding="utf-8")
    assert f"<dt>distractors by</dt><dd>{writer} " in page
    (case,) = report()["cases"]
    assert 0 <= case["metrics"]["distractors_written"]["value"] <= 4 / 6
    written = prompts(pytester.path, "seen-zero-shot", "distractors")
    assert len(written) == 12
    if args:
        assert len(openai_server.calls_to("chat/completions")) == 12
        assert any(
            "Ogdenville" in prompt
            for prompt in prompts(pytester.path, "seen-zero-shot", "choice:0")
        )
