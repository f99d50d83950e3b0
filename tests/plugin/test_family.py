"""The verdict of a case does not depend on which other cases ran: the family is that of the suite file."""

import pytest

from tests.plugin.conftest import INVENTS, KNOWN, KNOWS, script

# Three slices by popularity, of whose last the model under test has lost most, and what asks all facts.
SUITE = """\
suite: mini
facts: facts.jsonl
head_to_tail:
  prompt: zero-shot
  gates:
    accuracy: {max_drop: {within: 0.1, beyond: 0.02}}
    missing: {max_drop: 0.1}
  overall: {gates: {accuracy: {max_drop: 0.3}}}
reliability:
  choices: 3
  distractors: 6
  gates:
    cr: {max_drop: 0.05}
"""
SELECTED = "head_to_tail[places-tail]"
COMPARED = ("verdict", "p", "p_sidak", "observed", "low", "high")
FLAGS = (
    "--kb-model=scripted/lossy.jsonl",
    f"--kb-baseline-model={KNOWS}",
    "--kb-use-cache=off",
)


@pytest.mark.parametrize(
    "selection",
    [
        ("suites", "-k", "places-tail"),
        # The slice has seven facts and stays whole, others ask fewer.
        ("suites", "--kb-limit=7"),
        (f"suites/mini.kb.yaml::{SELECTED}",),
        ("suites", "--deselect", "suites/mini.kb.yaml::head_to_tail[places-head]"),
    ],
    ids=lambda selection: selection[-1],
)
def test_a_case_is_judged_alike_whatever_else_ran(
    pytester, mini_suite, cases, selection
):
    mini_suite(SUITE)
    lossy = script(KNOWN[:5], INVENTS)
    (pytester.path / "lossy.jsonl").write_text(lossy, "utf-8")
    pytester.runpytest(*FLAGS, "suites")
    everything = cases()
    pytester.runpytest(*FLAGS, *selection)
    some = cases()
    assert sum(case["n"] for case in some.values()) < sum(
        case["n"] for case in everything.values()
    )
    before, after = (
        [[gate[key] for key in COMPARED] for gate in run[SELECTED]["gates"]]
        for run in (everything, some)
    )
    assert after == before
    accuracy = everything[SELECTED]["gates"][0]
    # p is corrected for the cases of the file: six slices and the one over them, not for those that ran.
    assert accuracy["p"] < accuracy["p_sidak"] < 1
    assert some[SELECTED]["verdict"] == everything[SELECTED]["verdict"]
