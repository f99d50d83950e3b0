"""``kbrel compare`` over recorded runs: paired by fact, and judged as a run with a baseline is."""

import json
import lzma

import openai  # noqa: F401  (in-process sessions forget new modules, and this one takes a second to load)
import pytest

from pytest_kbrel.cli import main

SUITE = """\
suite: mini
facts: facts.jsonl
monitor:
  negatives: 2
  gates: {monitor: {max_drop: 0.02}, accuracy_base: {max_drop: 0.1}}
  overall: {gates: {monitor: {max_drop: 0.02}}}
head_to_tail:
  prompt: zero-shot
  gates: {accuracy: {min: 0.3, max_drop: 0.1}}
  overall: {gates: {accuracy: {recovery: 0.9}}}
reliability:
  choices: 3
  distractors: 6
  unseen: {count: 40, as_of: 2026-11-01, expires: 2090-01-01}
  gates: {ur: {max_drop: 0.1}}
"""
# What a comparison cannot know or what another family of tests makes of it.
OWN = ("p_holm", "p_bh", "p_sidak")


@pytest.fixture
def run(pytester, mini_suite):
    """Gate a model of the mini suite into a folder of this name."""

    def run(name, model, *flags, suite=SUITE):
        mini_suite(suite)
        return pytester.runpytest(
            f"--kb-model={model}", "suites", f"--kb-output-path={name}", *flags
        )

    return run


@pytest.fixture
def compare(pytester, monkeypatch, capsys):
    """Run the command; return its exit code, what it printed, and what it wrote as JSON."""
    monkeypatch.setenv("COLUMNS", "100")

    def compare(*arguments):
        capsys.readouterr()
        status = main(["compare", *arguments, "-v", "--json", "out.json", "--force"])
        return (
            status,
            capsys.readouterr(),
            json.loads((pytester.path / "out.json").read_text()),
        )

    return compare


def gates(cases):
    return {
        case["id"]: [
            {key: value for key, value in gate.items() if key not in OWN}
            for gate in case["gates"]
        ]
        for case in cases
    }


@pytest.mark.slow
def test_paired_runs_are_judged_as_with_the_baseline_itself(run, compare, report):
    run("a", "scripted/knows.jsonl", "--kb-baseline-update=blessed")
    run("b", "scripted/overconfident.jsonl", "--kb-baseline=blessed")
    candidate = report("b")
    status, _, result = compare("a", "b", "--exit-code")
    (paired,) = result["paired"]
    assert (status, paired["fails"]) == (1, True)
    assert gates(paired["cases"]) == gates(candidate["cases"])
    theirs = {case["id"]: case for case in candidate["cases"]}
    for case in paired["cases"]:
        gated = theirs[case["id"]]
        for figure, value in case["figures"].items():
            stated = gated["metrics"][figure]
            for name in ("value", "delta", "delta_low", "p"):
                assert value[name] == stated[name]
        assert questions(case, "lost") == questions(gated, "lost")
    # A blessed run has the same outcomes, no gates of its own, and no questions: the other's are taken.
    _, _, blessed = compare("./baselines/blessed", "b")
    assert gates(blessed["paired"][0]["cases"]) == gates(paired["cases"])
    status, _, other = compare("b", "./baselines/blessed", "--exit-code")
    assert status == 0
    gained, lost = (
        next(case for case in cases if "unseen" in case["id"])
        for cases in (other["paired"][0]["cases"], paired["cases"])
    )
    assert questions(gained, "gained") == questions(lost, "lost") != []
    # More candidates make a larger family, and the run itself is green.
    status, _, three = compare("a", "b", "a/report.json", "--exit-code")
    assert [pair["fails"] for pair in three["paired"]] == [True, False]


def questions(case, what):
    return [change["question"] for change in case[what]]


@pytest.mark.slow
def test_cases_with_other_prompts_are_reported_and_not_compared(
    run, compare, pytester, capsys
):
    run("a", "scripted/knows.jsonl")
    run(
        "b",
        "scripted/knows.jsonl",
        suite=SUITE.replace("prompt: zero-shot", "prompt: few-shot"),
    )
    status, printed, result = compare("a", "b", "--exit-code")
    assert status == 1
    cases = {
        case["id"].partition("::")[2]: case for case in result["paired"][0]["cases"]
    }
    tail = cases["head_to_tail[places-tail]"]
    assert tail["obstacle"].startswith("not comparable: head_to_tail[places-tail]: ")
    assert tail["figures"]["accuracy"]["delta"] is None
    assert "not comparable: head_to_tail[places-tail]:" in " ".join(printed.out.split())
    assert cases["monitor[P36]"]["obstacle"] == ""
    # Outcomes of another run beside a report are found out.
    lines = lzma.decompress(
        (pytester.path / "b" / "outcomes.jsonl.xz").read_bytes()
    ).splitlines()
    (pytester.path / "b" / "outcomes.jsonl.xz").write_bytes(
        lzma.compress(b"\n".join(lines[:-1]) + b"\n")
    )
    capsys.readouterr()
    assert main(["compare", "a", "b"]) == 2
    assert "is not the file that" in capsys.readouterr().err


def test_an_invalid_case_without_gates_fails_as_in_its_run(run, compare, pytester):
    head = ({"contains": of, "text": "Moscow"} for of in ("China?", "Russia?"))
    lines = map(json.dumps, (*head, {"default": {"text": ""}}))
    pytester.makefile(".jsonl", mute="\n".join(lines))
    suite = "suite: mini\nfacts: facts.jsonl\nhead_to_tail: {prompt: zero-shot}\n"
    run("sound", "scripted/knows.jsonl", suite=suite)
    assert run("mute", "scripted/mute.jsonl", suite=suite).ret == 1
    status, printed, _ = compare("sound", "mute", "--exit-code")
    assert (status, "INVALID: " in printed.out) == (1, True)


WAIVED = """\
suite: mini
facts: facts.jsonl
head_to_tail:
  prompt: zero-shot
  slices: {places-tail: {gates: {accuracy: {max: 0.0}}}}
waivers:
  - {slice: "head_to_tail[places-tail]", owner: Ann, reason: known, expires: 2999-12-31}
"""


def test_waivers_of_the_candidate_count_as_in_its_run(run, compare):
    open_suite = WAIVED.partition("waivers:")[0]
    expired = WAIVED.replace("max: 0.0", "min: 0.0").replace("2999-12-31", "2026-01-01")
    run("open", "scripted/knows.jsonl", suite=open_suite)
    run("waived", "scripted/knows.jsonl", suite=WAIVED)
    run("expired", "scripted/knows.jsonl", suite=expired)
    assert compare("waived", "open", "--exit-code")[0] == 1
    status, printed, result = compare("open", "waived", "--exit-code")
    (case,) = [
        case for case in result["paired"][0]["cases"] if "places-tail" in case["id"]
    ]
    assert (status, result["paired"][0]["fails"], case["verdict"]) == (0, False, "fail")
    assert (case["waiver"]["owner"], case["expired"]) == ("Ann", [])
    assert "waived until 2999-12-31 by Ann: known" in printed.out
    status, printed, result = compare("open", "expired", "--exit-code")
    (case,) = [
        case for case in result["paired"][0]["cases"] if "places-tail" in case["id"]
    ]
    assert (status, case["verdict"], case["gates"][0]["verdict"]) == (1, "fail", "pass")
    assert "expired on 2026-01-01" in " ".join(printed.out.split())
