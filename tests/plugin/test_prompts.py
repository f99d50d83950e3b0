"""Settings of a suite's prompts and language, and the prompt that a report shows of each case."""

import json

import pytest

from tests.plugin.conftest import GATE
from tests.reported import read_responses

PROMPTS = """\
suite: mini
facts: facts.jsonl
monitor:
  negatives: 2
  prompt: "Reply with a name only. {question}"
  stop: ["\\n", "."]
head_to_tail:
  prompt: {setting: few-shot, text: "Reply briefly.\\n\\n{examples}\\n\\nQuestion: {question}"}
  system: You know geography.
  example_style: turns
  gates: {accuracy: {min: 1.1}}
reliability: {slices: [known-zero-shot], choices: 1, distractors: 6, prompt: "Q: {question}", answer_cue: "A:"}
"""
MONITOR, HEAD, KNOWN = (
    f"suites/mini.kb.yaml::{name}"
    for name in (
        "monitor[P36]",
        "head_to_tail[places-head]",
        "reliability[known-zero-shot]",
    )
)
# A scripted model reads one text, as a checkpoint without a chat template does.
IN_TURNS = (
    "You know geography.\n\n"
    "Reply briefly.\n\nQuestion: Which planet is closest to the Sun?\nAnswer: Mercury\n\n"
    "Question: Which river flows through the town of Ombrelvane?\nAnswer: unsure\n\n"
    "Question: What is the capital of China?\nAnswer:"
)


def prompts(report):
    return {case["id"]: case["prompt"] for case in report["cases"]}


def test_each_case_shows_its_first_prompt_as_the_model_read_it(
    pytester, mini_suite, report
):
    mini_suite(PROMPTS.replace("1.1", "1.0"))
    # A script of one probability for all prompts is no measurement of MONITOR.
    pytester.runpytest(*GATE)
    actual = prompts(report())
    assert (
        actual[MONITOR]
        == "Reply with a name only. Beijing. What is the capital of China?"
    )
    assert actual[HEAD] == IN_TURNS
    # The question itself, and none of the multiple-choice questions that come later.
    assert actual[KNOWN] == "Q: What is the capital of China?\nA:"
    assert actual["suites/mini.kb.yaml::pooled[overall]"] == ""
    page = (pytester.path / "kbrel-report" / "report.html").read_text("utf-8")
    assert "Question: Which planet is closest to the Sun?\nAnswer: Mercury\n" in page
    systems = {
        (one.case, one.ask.request.system)
        for one in read_responses(pytester.path / "kbrel-report" / "responses.jsonl")
    }
    assert {(MONITOR, ""), (HEAD, "You know geography.")} <= systems


TAIL = """\
suite: mini
facts: facts.jsonl
head_to_tail:
  prompt: zero-shot
  slices: [places-tail]
  bucket_by: domain
  gates: {accuracy: {max_drop: 0.1}}
"""
GERMAN_FACTS = "".join(
    json.dumps(
        {
            "relation": "P36",
            "subject": country,
            "object": city,
            "popularity": 1,
            "bucket": "tail",
        }
    )
    + "\n"
    for country, city in (
        ("Peru", "Lima"),
        ("Chile", "Santiago"),
        ("Norwegen", "Oslo"),
        ("Polen", "Warschau"),
    )
)
GERMAN_ANSWERS = """\
rules:
  - {contains: 'capital of Peru?', text: Die Hauptstadt ist nicht Lima.}
  - {contains: 'capital of Chile?', text: Die Hauptstadt ist nicht Santiago.}
  - {contains: 'capital of Norwegen?', text: 'Soweit ich weiß, Oslo.'}
default: {text: Keine Ahnung.}
"""


@pytest.fixture
def run(pytester, mini_suite, report):
    (pytester.path / "answers.yaml").write_text(GERMAN_ANSWERS, "utf-8")

    def start(language, *flags):
        mini_suite(TAIL + language, GERMAN_FACTS)
        result = pytester.runpytest(
            "--kb-model=scripted/answers.yaml", "suites", *flags
        )
        (case,) = [case for case in report()["cases"] if not case["aggregate"]]
        return (
            result,
            case,
            {name: round(case["metrics"][name]["value"], 2) for name in RATES},
        )

    return start


RATES = ("accuracy", "hallucination", "missing")


def test_a_suite_is_judged_in_its_language(run):
    # An abstention is one in any language; what else is said is read in the suite's.
    assert run("")[2] == {"accuracy": 0.75, "hallucination": 0.0, "missing": 0.25}
    _, case, rates = run("language: de\n")
    assert rates == {"accuracy": 0.25, "hallucination": 0.5, "missing": 0.25}
    assert case["settings"]["language"] == "de"


def test_runs_in_two_languages_are_not_compared(run):
    run("language: de\n", "--kb-baseline-update=old")
    assert run("language: de\n", "--kb-baseline=old")[1]["verdict"] != "not comparable"
    result = run("", "--kb-baseline=old")[0]
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*candidate and baseline differ in settings on 4*"])
