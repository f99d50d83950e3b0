"""The first screen of a failed run, to the letter: at three widths, quiet, verbose, and without colour."""

import json
import shlex

import pytest

from pytest_kbrel.resources import suites
from tests.plugin.conftest import INVENTS, MODEL, OVERCONFIDENT, script

SUITE = """\
suite: mini
facts: facts.jsonl
monitor:
  slices: [P36]
  negatives: 2
  gates:
    accuracy_base: {max_drop: 0.1}
reliability:
  choices: 3
  distractors: 6
  unseen: {count: 20, as_of: 2026-11-01, expires: 2090-01-01}
  gates:
    ur: {max_drop: 0.05}
"""
HEAD = "knowledge reliability"
SCREENS = {
    60: """\
FAILED: 1 failed, 1 inconclusive, 3 passed
model    scripted/overconfident.jsonl (float32, cpu) against
         baseline prod
changes  21 of 40 facts lost, 0 gained; 22 of 60 answers
         changed; 20 of the 21 are unanswerable; worst P36
         capital and 20 others
open     not ruled out: accuracy base worse by 0.236 in
         monitor[P36 capital] (0.212 in a slice like it
         that lost nothing)
the baseline's model is scripted/knows.jsonl

FAILED        reliability[unseen]
    UR 1.000 to 0.000, allowed 0.05
    20 facts lost, such as: On which day of 2096 did South
      Korea last hold an election? unsure → New South (no
      answer exists)
INCONCLUSIVE  monitor[P36 capital]
    accuracy base 1.000 to 0.950, drop [-0.119, 0.236],
      allowed 0.1; about 139 facts would decide
    1 fact lost, such as: What is the capital of United
      Kingdom? London → unsure
""",
    80: """\
FAILED: 1 failed, 1 inconclusive, 3 passed
model    scripted/overconfident.jsonl (float32, cpu) against baseline prod
changes  21 of 40 facts lost, 0 gained; 22 of 60 answers changed; 20 of the 21
         are unanswerable; worst P36 capital and 20 others
open     not ruled out: accuracy base worse by 0.236 in monitor[P36 capital]
         (0.212 in a slice like it that lost nothing)
the baseline's model is scripted/knows.jsonl

FAILED        reliability[unseen]
    UR 1.000 to 0.000, allowed 0.05
    20 facts lost, such as: On which day of 2096 did South Korea last hold an
      election? unsure → New South (no answer exists)
INCONCLUSIVE  monitor[P36 capital]
    accuracy base 1.000 to 0.950, drop [-0.119, 0.236], allowed 0.1; about 139
      facts would decide
    1 fact lost, such as: What is the capital of United Kingdom? London → unsure
""",
    # No line is wider than a hundred columns.
    120: """\
FAILED: 1 failed, 1 inconclusive, 3 passed
model    scripted/overconfident.jsonl (float32, cpu) against baseline prod
changes  21 of 40 facts lost, 0 gained; 22 of 60 answers changed; 20 of the 21 are unanswerable;
         worst P36 capital and 20 others
open     not ruled out: accuracy base worse by 0.236 in monitor[P36 capital] (0.212 in a slice like
         it that lost nothing)
the baseline's model is scripted/knows.jsonl

FAILED        reliability[unseen]
    UR 1.000 to 0.000, allowed 0.05
    20 facts lost, such as: On which day of 2096 did South Korea last hold an election? unsure → New
      South (no answer exists)
INCONCLUSIVE  monitor[P36 capital]
    accuracy base 1.000 to 0.950, drop [-0.119, 0.236], allowed 0.1; about 139 facts would decide
    1 fact lost, such as: What is the capital of United Kingdom? London → unsure
""",
}


def screen(lines):
    """Return the lines from the verdict to the blank line before what to do next."""
    at = next(at for at, line in enumerate(lines) if HEAD in line)
    ends = ("rerun the failed", "reports written to")
    end = next(at for at, line in enumerate(lines) if line.startswith(ends))
    return "\n".join(lines[at + 1 : end]).rstrip("\n") + "\n"


@pytest.fixture
def blessed(pytester, mini_suite):
    """Bless a model that knows all capitals; the candidate knows one less and never says unsure."""
    capitals = [
        json.loads(line)
        for line in (suites() / "world" / "facts.jsonl").read_text("utf-8").splitlines()
        if json.loads(line)["relation"] == "P36"
    ][20:40]
    mini_suite(SUITE, facts="".join(json.dumps(fact) + "\n" for fact in capitals))
    answers = [(f"capital of {fact['subject']}", fact["object"]) for fact in capitals]
    candidate = [*answers[1:], ("capital of ", "Nowhere")]
    (pytester.path / "knows.jsonl").write_text(script(answers), "utf-8")
    (pytester.path / "overconfident.jsonl").write_text(
        script(candidate, INVENTS), "utf-8"
    )
    assert pytester.runpytest(MODEL, "suites", "--kb-baseline-update=prod").ret == 0


ARGS = (OVERCONFIDENT, "suites", "--kb-baseline=prod", "--tb=no", "--kb-use-cache=off")


@pytest.mark.parametrize("width", SCREENS)
def test_each_width_has_its_screen(width, pytester, blessed, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(width))
    result = pytester.runpytest(*ARGS)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert screen(result.outlines) == SCREENS[width]


def test_a_first_baseline_is_called_so(pytester, mini_suite, blessed):
    update = ("suites", "-k", "", "--kb-baseline-update=first", "--color=yes")
    first = pytester.runpytest(MODEL, *update).stdout.str()
    assert "\x1b[32m\x1b[1mFIRST BASELINE: 2 not compared yet, 3 passed" in first
    assert "nothing to compare with yet: 2 gates not judged" in first
    # Whoever blesses nothing may have forgotten the baseline.
    bare = pytester.runpytest(MODEL, "suites").stdout.str()
    assert "\nNO BASELINE: 2 no baseline, 3 passed" in bare
    assert "\nno baseline given (--kb-baseline): 2 gates not judged" in bare
    again = pytester.runpytest(
        MODEL, "suites", "--kb-baseline=prod", "--kb-baseline-update"
    ).stdout.str()
    assert "\nPASSED: 5 passed" in again


@pytest.mark.slow
def test_workers_and_a_pipe_without_colours_change_nothing(
    pytester, blessed, monkeypatch
):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("FORCE_COLOR", "1")
    result = pytester.runpytest_subprocess(*ARGS, "-n2")
    assert "\x1b" not in result.stdout.str()
    assert screen(result.outlines) == SCREENS[80]


def test_the_commands_can_be_typed_as_they_stand(pytester, blessed, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    result = pytester.runpytest(*ARGS, "-k", "P36 or unseen")
    typed = [line for line in result.outlines if " pytest " in line]
    assert [line.partition(" pytest ")[0].strip() for line in typed] == [
        "rerun the failed",
        "all tables",
    ]
    words = shlex.split(typed[0])[3:]
    assert words[:1] == ["pytest"]
    assert words[-1] == "--lf"
    assert words[words.index("-k") + 1] == "P36 or unseen"
    again = pytester.runpytest(
        *(word for word in words[1:] if not word.startswith("--basetemp"))
    )
    assert again.parseoutcomes() == {"failed": 1}
    # A variable that was set for one command is not there for the next one.
    with monkeypatch.context() as patch:
        patch.setenv("KB_INCONCLUSIVE", "fail")
        patch.setenv("KB_OUTPUT_PATH", "my report")
        patch.setenv("KB_BASELINE", "other")
        shown = pytester.runpytest(*ARGS).outlines
    (typed,) = [line for line in shown if line.startswith("all tables")]
    assert typed.split(None, 2)[2].startswith(
        "KB_INCONCLUSIVE=fail KB_OUTPUT_PATH='my report' pytest "
    )
