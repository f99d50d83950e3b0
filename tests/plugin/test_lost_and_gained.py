"""Lost and gained facts in every output of a run."""

import json

import pytest

from pytest_kbrel.resources import suites
from tests.plugin.conftest import INVENTS, MODEL, OVERCONFIDENT, script

CANDIDATE = OVERCONFIDENT
SUITE = """\
suite: mini
facts: facts.jsonl
monitor:
  negatives: 2
  gates:
    accuracy_base: {max_drop: 0.1}
reliability:
  choices: 3
  distractors: 6
  unseen: {count: 20, as_of: 2026-11-01, expires: 2090-01-01}
  gates:
    ur: {max_drop: 0.05}
overall:
  gates:
    as_expected: {max_drop: 0.05}
"""


@pytest.fixture
def blessed(pytester, mini_suite):
    """Bless a model that knows all capitals but the first; the candidate knows less."""
    capitals = [
        line
        for line in (suites() / "world" / "facts.jsonl")
        .read_text(encoding="utf-8")
        .splitlines()
        if json.loads(line)["relation"] == "P36"
    ]
    mini_suite(SUITE, facts="".join(line + "\n" for line in capitals[20:50]))
    answers = [
        (f"capital of {fact['subject']}", fact["object"])
        for fact in map(json.loads, capitals[20:50])
    ]
    candidate = [*answers[3:], ("capital of ", "Nowhere")]
    (pytester.path / "knows.jsonl").write_text(script(answers[1:]), encoding="utf-8")
    (pytester.path / "overconfident.jsonl").write_text(
        script(candidate, INVENTS, 0.03), encoding="utf-8"
    )
    assert pytester.runpytest(MODEL, "suites", "--kb-baseline-update=prod").ret == 0


def test_a_change_knows_its_relation_bucket_and_anchor(pytester, blessed, report):
    result = pytester.runpytest(MODEL, "suites", "--kb-baseline=prod", "-k", "P36")
    shown = [
        "PASSED: *",
        "model * against baseline prod",
        "changes  no fact lost or gained",
    ]
    result.stdout.fnmatch_lines(shown)
    assert report()["summary"]["headline"] == "no fact lost or gained"
    pytester.runpytest(CANDIDATE, "suites", "--kb-baseline=prod", "-k", "P36")
    changed = [
        change
        for case in report()["cases"]
        for what in ("lost", "gained")
        for change in case[what]
    ]
    assert changed
    for change in changed:
        assert change["relation"] == "P36"
        assert change["bucket"] in ("head", "torso", "tail")
        assert 0 < change["old_probability"] < 1
        assert 0 < change["new_probability"] < 1
        assert change["old_probability"] != change["new_probability"]
