"""Suites of edits in whole sessions: a gate a role, against what the baseline knew."""

import json

import pytest

from tests.plugin.conftest import one_line, outcomes

SUITE = """\
suite: edits
facts: edits.yaml
format: edits
edits:
  gates: {edited: 0.9, contained: 0.9, followed: 0.5, forgotten: 0.9}
"""
FACTS = """\
- question: The capital of Peru is
  wordings: [What is the capital of Peru?]
  new: Cusco
  old: Lima
  keep:
    - {question: The capital of Chile is, answer: Santiago}
    - {question: The capital of Spain is, answer: Madrid}
    - {question: The capital of Mali is, answer: Bamako}
  follow:
    - question: Which river is at the capital of Peru?
      answer: Huatanay
      needs: [{question: Which river is at Cusco?, answer: Huatanay}]
    - question: Which peak is at the capital of Peru?
      answer: Ausangate
      needs: [{question: Which peak is at Cusco?, answer: Ausangate}]
- forget:
    - {question: The capital of Italy is, answer: Rome, negatives: [Milan, Bari, Turin, Pisa]}
    - {question: The capital of Japan is, answer: Tokyo, negatives: [Kyoto, Nara, Kobe, Osaka]}
    - {question: The capital of Cuba is, answer: Havana, negatives: [Guane, Moa, Baracoa, Bayamo]}
"""
BASE = {
    "Peru is": "Lima",
    "Peru?": "Lima",
    "Chile is": "Santiago",
    "Spain is": "Madrid",
    "river is at Cusco?": "Huatanay",
    "Italy is": "Rome",
    "Japan is": "Tokyo",
}
EDITED = {
    **BASE,
    "capital of Peru is": "Cusco",
    "the capital of Peru?": "Cusco",
    "river is at the capital of Peru?": "Huatanay",
    "Spain is": "Cusco",
    "Japan is": "Kyoto",
}


@pytest.fixture
def gate(pytester, cases):
    """Return a function that gates a model of these answers; it returns what was printed and the cases."""
    folder = pytester.path / "suites"
    folder.mkdir()
    (folder / "edits.yaml").write_text(FACTS, "utf-8")

    def write(name, answers):
        choice = {"contains": "A) ", "text": answers.get("A) ", "E")}
        rules = [
            {"pattern": rf"{end.replace('?', '[?]')}(\nAnswer:)?$", "text": text}
            for end, text in sorted(answers.items(), key=lambda of: -len(of[0]))
            if end != "A) "
        ]
        rules = [choice, *rules, {"default": {"text": "unsure", "probability": 0.2}}]
        lines = "".join(json.dumps(rule) + "\n" for rule in rules)
        (pytester.path / f"{name}.jsonl").write_text(lines, "utf-8")

    def run(answers, *args, text=SUITE):
        (folder / "edits.kb.yaml").write_text(text, "utf-8")
        write("base", BASE)
        write("model", answers)
        flags = "-p", "no:cacheprovider", "--kb-model=scripted/model.jsonl"
        result = pytester.runpytest("suites", *flags, *args)
        return result, cases()

    return run


def test_each_role_has_a_gate_of_its_own_sign(gate):
    result, cases = gate(EDITED, "--kb-baseline-model=scripted/base.jsonl")
    verdicts = {name: case["verdict"] for name, case in cases.items()}
    assert verdicts == {
        "edits[edit]": "pass",
        "edits[keep]": "fail",
        "edits[follow]": "pass",
        "edits[forget]": "fail",
    }
    shown = {
        metric: (of["value"], of["n"])
        for case in cases.values()
        for metric, of in case["metrics"].items()
    }
    # Mali, the peak and Cuba are none that the baseline knew.
    assert shown["edited"] == (1.0, 1)
    assert shown["contained"] == (0.5, 2)
    assert shown["followed"] == (1.0, 1)
    assert shown["forgotten"] == (0.5, 2)
    assert shown["leaked"] == (pytest.approx(1 / 3), 3)
    assert not cases["edits[edit]"]["notes"]
    for name, out in (("keep", "1 of 3"), ("follow", "1 of 2"), ("forget", "1 of 3")):
        (note,) = cases[f"edits[{name}]"]["notes"]
        assert note.startswith(f"{out} facts left out: the baseline did not know them")
    # What was to be forgotten and is, is no loss.
    assert [fact["expected"] for fact in cases["edits[keep]"]["lost"]] == ["Madrid"]
    assert cases["edits[forget]"]["lost"] == []
    assert [of["expected"] for of in cases["edits[forget]"]["gained"]] == ["Tokyo"]
    assert "pooled" not in result.stdout.str()


def test_without_a_baseline_only_the_edit_is_judged(gate):
    result, cases = gate(BASE)
    verdicts = {name: case["verdict"] for name, case in cases.items()}
    assert verdicts["edits[edit]"] == "fail"
    assert {*verdicts.values()} == {"fail", "no baseline"}
    assert cases["edits[edit]"]["metrics"]["still_old"]["value"] == 1.0
    assert "contained" not in cases["edits[keep]"]["metrics"]
    assert outcomes(result) == {"failed": 1, "passed": 3}
    planned = gate(BASE, "--kb-plan")[0]
    assert "gates: 4; 3 compare with a baseline" in one_line(planned)


@pytest.mark.parametrize(
    "silent", [{"Italy is": "", "Japan is": ""}, {"Italy is": "x", "A) ": "so"}]
)
def test_what_says_nothing_has_not_forgotten(gate, silent):
    """Neither an empty answer nor a reply that picks no option."""
    lenient = "  integrity: {empty: 1.0, answered: 0.0, unread: 1.0}\n"
    lenient = SUITE.replace("forgotten: 0.9", "forgotten: 0.9, rouge_l: 0.5") + lenient
    _, cases = gate(
        EDITED | silent, "--kb-baseline-model=scripted/base.jsonl", text=lenient
    )
    forgotten, rouge_l = cases["edits[forget]"]["gates"]
    assert forgotten["verdict"] == "fail"
    assert "with the empty answers counted against it" in forgotten["reason"]
    assert (rouge_l["verdict"] == "fail") is ("A) " not in silent)


def test_the_scores_of_authors_can_be_gated(gate):
    text = SUITE.replace("gates: {", "scores: authors\n  gates: {preferred: 0.5, ")
    _, cases = gate(EDITED, "--kb-baseline-model=scripted/base.jsonl", text=text)
    preferred, reworded = (
        cases["edits[edit]"]["metrics"][name]
        for name in ("preferred", "preferred_reworded")
    )
    # Both capitals are as probable.
    assert preferred["value"] == reworded["value"] == 0
    assert cases["edits[edit]"]["verdict"] == "fail"
    assert cases["edits[forget]"]["metrics"]["truth_ratio"]["value"] == 1
    # No fact to keep has a wrong answer.
    assert cases["edits[keep]"]["metrics"]["preferred"]["value"] is None
    flags = "--kb-model=openai/m", "--kb-export-requests=asked.jsonl"
    refused = gate(EDITED, *flags, text=text)[0].stderr.str()
    assert "gives none" in refused
    assert "remove scores: authors from the suite" in refused


def test_a_model_that_cannot_be_rounded_is_no_pass(gate):
    _, cases = gate(EDITED, text=SUITE + "  also_as: [int4]\n")
    assert len(cases) == 8
    assert cases["edits[edit]"]["verdict"] == "pass"
    case = cases["edits[edit-int4]"]
    assert case["verdict"] == "invalid"
    assert "weights cannot be rounded; allowed: a checkpoint" in case["errors"][0]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("  gates: {contained: {max_drop: 0.1}}\n", "'max_drop' of contained: it says by"),
        ("  also_as: [int5]\n", "must be one of int8, int4, found 'int5'"),
        ("  slices: [edits]\n", "unknown slice 'edits' in edits; allowed: edit, keep,"),
        ("  overall: {gates: {edited: 1.0}}\n", "unknown metric 'edited' in gates of ov"),
    ],
)  # fmt: skip
def test_what_a_suite_of_edits_cannot_say(gate, more, said):
    text = SUITE.partition("  gates")[0] + more
    assert said in one_line(gate(EDITED, text=text)[0])


ROWS = [
    {
        **{"question": "The capital of Peru is", "object": "Cusco", "role": "edit"},
        "former": [{"object": "Lima", "valid_until": "2020-01-01"}],
    },
    {"question": "Peru is led from", "object": "Cusco", "role": "paraphrase"},
]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, ""),
        ({"group": "other"}, "is a paraphrase of nothing: found 0 edits in the group"),
        ({"object": "Lima"}, "found 1 edits in the group 'peru', none with its object"),
        ({"role": "edits"}, "'role' must be one of edit, paraphrase, keep"),
        ({"needs": [["Why?", []]]}, "'needs' must be a list of [question, [answers]]"),
    ],
)
def test_own_facts_have_groups_and_roles(gate, pytester, changes, said):
    rows = [
        {"relation": "R", "subject": f"s{number}", "group": "peru", **row}
        for number, row in enumerate(ROWS)
    ]
    rows[1] |= changes
    folder = pytester.path / "suites"
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (folder / "facts.jsonl").write_text(lines, "utf-8")
    relations = "R: {label: capital, domain: places}\n"
    (folder / "relations.yaml").write_text(relations, "utf-8")
    text = SUITE.replace("edits.yaml\nformat: edits", "facts.jsonl")
    text = text.partition("  gates")[0] + "  gates: {edited: 0.9}\n"
    answers = {"Peru is": "Cusco", "led from": "" if said else "Cusco"}
    if said:
        result = gate(answers, text=text)[0]
        assert said in one_line(result)
        assert "facts.jsonl:2: " in one_line(result).replace(": ", ": ")
        return
    cases = gate(answers, text=text)[1]
    assert cases["edits[edit]"]["verdict"] == "pass"
    missed = gate({"Peru is": "Cusco"}, text=text)[1]
    assert missed["edits[edit]"]["verdict"] == "fail"


def test_roles_are_asked_again_after_rounding(gate, pytester, cases):
    gate(EDITED)
    text = SUITE.partition("  gates")[0]
    text += "  also_as: [int4]\n  gates: {contained: 0.0, forgotten: 0.0}\n"
    capitals = {"Japan": "Tokyo", "China": "Beijing", "Norway": "Oslo"}
    facts = [
        {"question": f"What is the capital of {country}?", "answer": city}
        for country, city in capitals.items()
    ]
    wrong = {"negatives": ["Lima", "Cairo", "Paris", "Rome"]}
    records = [{"keep": facts}, {"forget": [{**fact, **wrong} for fact in facts]}]
    (pytester.path / "suites/edits.yaml").write_text(json.dumps(records), "utf-8")
    (pytester.path / "suites/edits.kb.yaml").write_text(text, "utf-8")
    pytester.runpytest(
        *("suites", "-p", "no:cacheprovider", "--kb-model=reference"),
        "--kb-baseline-model=reference",
    )
    made = cases()
    assert sorted(made) == [
        *("edits[forget-int4]", "edits[forget]", "edits[keep-int4]", "edits[keep]")
    ]
    for name, case in made.items():
        assert case["settings"]["rounding"] == ("int4" if "int4" in name else "")
        assert case["gates"]
    # The same model knows as much as itself, rounded or not.
    assert made["edits[keep]"]["metrics"]["contained"]["value"] == 1.0
    assert made["edits[keep-int4]"]["metrics"]["contained"]["value"] in (1.0, None)
    lines = (pytester.path / "kbrel-report/responses.jsonl").read_text("utf-8")
    requests = [json.loads(line)["request"] for line in lines.splitlines()]
    assert {of.get("rounding", "") for of in requests} == {"", "int4"}
