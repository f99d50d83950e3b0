"""``wordings`` in whole sessions: blessed, compared, replayed and planned."""

import openai  # noqa: F401  (in-process sessions forget new modules, and this one takes a second to load)
import pytest

from tests.plugin.conftest import KNOWN, MODEL, script
from tests.reported import comparable, read_responses

SUITE = """\
suite: mini
facts: facts.jsonl
head_to_tail:
  prompt: zero-shot
  wordings: 2
  slices: [places-tail]
  gates: {accuracy: {max_drop: 0.5}}
reliability:
  wordings: 2
  slices: [known-zero-shot]
  choices: 3
  distractors: 6
  controls: asked
  gates: {cr: {max_drop: 0.3}}
overall: {gates: {as_expected: {min: 0.1}}}
"""
# It has forgotten one of the capitals in one of its wordings.
FORGETS = script((("Which city is the capital of Norway", "Bergen"), *KNOWN))


@pytest.fixture
def gate(pytester, mini_suite):
    mini_suite(SUITE)
    pytester.path.joinpath("forgets.jsonl").write_text(FORGETS, "utf-8")
    pytester.runpytest(
        MODEL, "suites", "--kb-baseline-update=two", "--kb-output-path=before"
    )

    def gate(*flags):
        return pytester.runpytest("--kb-model=scripted/forgets.jsonl", "suites", *flags)

    return gate


def by_slice(report):
    return {case["slice"]: case for case in report["cases"]}


def test_a_fact_lost_in_one_of_two_wordings_is_half_lost(pytester, gate, report):
    assert gate("--kb-baseline=two").ret == 0
    seen = by_slice(report())["known-zero-shot"]
    (lost,) = seen["lost"]
    assert (lost["question"], lost["old_answer"], lost["new_answer"]) == (
        "Which city is the capital of Norway?", "Oslo", "Bergen",
    )  # fmt: skip
    rate = seen["metrics"]["cr"]
    assert rate["delta"] == pytest.approx(-0.5 / seen["n"])
    assert rate["paired"] == seen["n"]
    assert (seen["churn"]["texts"], seen["churn"]["facts"]) == (1, 2 * seen["n"])
    # Answers, choices and the shuffled ones of both wordings are recorded, each once.
    folder = pytester.path / "kbrel-report"
    roles = [
        one.ask.role
        for one in read_responses(folder / "responses.jsonl")
        if one.case.endswith("[known-zero-shot]") and one.ask.fact_id == lost["fact_id"]
    ]
    own = ["answer", *(f"choice:{n}" for n in range(3))]
    own += [f"shuffled/{role}" for role in own]
    assert sorted(roles) == sorted([*own, *(f"wording2/{role}" for role in own)])
    # Decided again they are the same.
    flags = ("--kb-from-run=kbrel-report", "--kb-output-path=again")
    assert pytester.runpytest("suites", "--kb-baseline=two", *flags).ret == 0
    assert comparable(report("again")) == comparable(report())
