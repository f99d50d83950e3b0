"""Runs compared with figures that a paper prints."""

import json

import pytest

from tests.plugin.conftest import MODEL, script

# Facts of two relations: the MONITOR paper has the second, not the first.
LANGUAGES = (
    ("Germany", "German"),
    ("France", "French"),
    ("Italy", "Italian"),
    ("Portugal", "Portuguese"),
    ("Poland", "Polish"),
    ("Japan", "Japanese"),
    ("Norway", "Norwegian"),
    ("Russia", "Russian"),
)
CAPITALS = (
    ("Germany", "Berlin"),
    ("France", "Paris"),
    ("Italy", "Rome"),
    ("Portugal", "Lisbon"),
)
RELATIONS = """\
P36:
  label: capital
  domain: places
  frames: ["What is the capital of [X]?", "Which city is the capital of [X]?"]
P37:
  label: official language
  domain: languages
  frames: ["What is the official language of [X]?", "Which language is official in [X]?"]
"""
SUITE = """\
suite: languages
facts: facts.jsonl
monitor:
  negatives: 2
  slices:
    P36:
    P37: {gates: {pfd: {max: 1.0}}}
  gates:
    monitor: {max_drop: 5.0}
    anchor_prob: {recovery: 0.01}
    pfd: {max_drop: 0.5}
"""
STRICT = """\
suite: languages
facts: facts.jsonl
monitor:
  negatives: 2
  slices: [P37]
  gates:
    monitor: {max_drop: 0.0}
"""
PUBLISHED = "published/monitor/vicuna-7b"
RUN = (MODEL, "suites", f"--kb-baseline={PUBLISHED}")


@pytest.fixture
def languages(pytester):
    def write(suite=SUITE):
        folder = pytester.path / "suites"
        folder.mkdir(exist_ok=True)
        lines = [
            {"relation": relation, "subject": subject, "object": answer}
            for relation, facts in (("P36", CAPITALS), ("P37", LANGUAGES))
            for subject, answer in facts
        ]
        (folder / "facts.jsonl").write_text(
            "".join(json.dumps(line) + "\n" for line in lines)
        )
        (folder / "relations.yaml").write_text(RELATIONS)
        (folder / "languages.kb.yaml").write_text(suite)
        answers = [(f"capital of {country}", city) for country, city in CAPITALS]
        answers += [
            (f"language of {country}", language) for country, language in LANGUAGES
        ]
        (pytester.path / "knows.jsonl").write_text(script(answers))

    return write


def slices(report):
    return {
        case["slice"]: case for case in report()["cases"] if case["probe"] != "pooled"
    }


def test_a_run_is_compared_with_the_paper_unpaired(pytester, languages, report):
    languages()
    result = pytester.runpytest(*RUN)
    assert result.ret == pytest.ExitCode.OK
    actual = slices(report)
    ours = actual["P37"]["metrics"]["monitor"]
    assert (ours["unpaired"], ours["paired"]) == (True, 0)
    assert ours["baseline"] == pytest.approx(0.408, abs=0.3)
    assert ours["delta"] == pytest.approx(ours["value"] - ours["baseline"])
    assert ours["delta_low"] < ours["delta"] < ours["delta_high"]
    relative = [one for one in actual["P37"]["gates"] if one["rule"] != "max"]
    gates = {gate["metric"]: gate["verdict"] for gate in relative}
    # Table 11 has no PFD, and the paper no P36: neither is judged, and neither fails.
    assert (gates["monitor"], gates["pfd"]) == ("pass", "no baseline")
    assert {gate["verdict"] for gate in actual["P36"]["gates"]} == {"no baseline"}
    assert actual["P37"]["verdict"] == "pass"
    assert (actual["P37"]["lost"], actual["P37"]["gained"]) == ([], [])
    # The paper's overall figure is over 20 relations and not these two.
    assert actual["overall"]["metrics"]["monitor"]["baseline"] is None
    assert "4 gates not judged" in result.stdout.str()


def test_a_model_that_is_worse_than_the_paper_is_red(pytester, languages, report):
    languages(STRICT)
    path = pytester.path / "baselines" / "published" / "monitor"
    path.mkdir(parents=True)
    figures = {"monitor": {"value": 0.0001, "table": "11"}}
    own = {"schema_version": 1, "paper": "ours", "model": "m"}
    own["cases"] = {"monitor[P37]": {"figures": figures}}
    (path / "strict.json").write_text(json.dumps(own))
    flag = "--kb-baseline=published/monitor/strict"
    assert pytester.runpytest(MODEL, "suites", flag).ret == pytest.ExitCode.TESTS_FAILED
    assert slices(report)["P37"]["verdict"] == "fail"
