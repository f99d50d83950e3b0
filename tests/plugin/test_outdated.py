"""Answers that were right once: facts with former objects, in suites over CLDR's currencies of countries."""

import datetime
import json

import pytest
from babel import Locale
from babel.core import get_global

from tests.plugin.conftest import one_line

RELATIONS = """\
P38:
  label: currency
  domain: money
  frames: ["What is the currency of [X]?"]
"""
SUITE = """\
suite: money
facts: facts.jsonl
head_to_tail:
  prompt: zero-shot
  gates: {outdated: {max: 0.1, max_drop: 0.1}, accuracy: {max_drop: 0.5}}
reliability: {slices: [known-zero-shot], choices: 3, distractors: 6}
"""
EURO = {"Austria", "Croatia", "Germany", "Italy", "Latvia", "Lithuania", "Spain"}
PRESENT, FORMER = "--kb-model=scripted/present.jsonl", "--kb-model=scripted/old.jsonl"


def currencies():
    """Yield the facts of countries with one currency, with all that were money before it."""
    english = Locale("en")
    for code, rows in sorted(get_global("territory_currencies").items()):
        named = [(english.currencies.get(row[0], ""), *row[1:]) for row in rows]
        dated = [
            (name, datetime.date(*since).isoformat(), until)
            for name, since, until, is_tender in named
            if name and since and is_tender
        ]
        now = [row for row in dated if row[2] is None]
        if len(now) != 1 or not english.territories.get(code):
            continue
        former = [
            {
                "object": name,
                "valid_from": since,
                "valid_until": datetime.date(*until).isoformat(),
            }
            for name, since, until in dated
            if until and name != now[0][0]
        ]
        yield {
            "relation": "P38",
            "subject": english.territories[code],
            "object": now[0][0],
            "valid_from": now[0][1],
            "popularity": len(rows),
            "former": former,
        }


def script(answers):
    rules = [
        {"pattern": rf"currency of {subject}\?[^?]*$", "text": answer}
        for subject, answer in answers.items()
    ]
    rules.append({"default": {"text": "unsure"}})
    return "".join(json.dumps(rule) + "\n" for rule in rules)


@pytest.fixture
def money(pytester):
    """Write the suite, and the models that know the present and only the former money of some countries."""
    facts = list(currencies())
    present = {fact["subject"]: fact["object"] for fact in facts}
    old = {
        fact["subject"]: fact["former"][-1]["object"]
        for fact in facts
        if fact["subject"] in EURO
    }
    assert old.keys() == EURO

    def write(suite=SUITE, facts=facts):
        folder = pytester.mkdir("suites")
        (folder / "money.kb.yaml").write_text(suite)
        (folder / "relations.yaml").write_text(RELATIONS)
        lines = "".join(json.dumps(fact) + "\n" for fact in facts)
        (folder / "facts.jsonl").write_text(lines)
        pytester.path.joinpath("present.jsonl").write_text(script(present))
        pytester.path.joinpath("old.jsonl").write_text(script(present | old))

    return write


def figures(case):
    return {name: metric["value"] for name, metric in case["metrics"].items()}


def test_an_answer_that_was_right_is_neither_right_nor_wrong(pytester, money, cases):
    money()
    assert pytester.runpytest(PRESENT, "suites", "--kb-baseline-update=b").ret == 0
    result = pytester.runpytest(FORMER, "suites", "--kb-baseline=b")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert "outdated: was right until 2023-01-14" in one_line(result)
    by_id = cases()
    known = by_id["reliability[known-zero-shot]"]
    shares = figures(known)
    assert shares["outdated"] == pytest.approx(len(EURO) / known["n"])
    assert shares["wr"] == 0
    assert shares["selective_risk"] == 0
    for case in by_id.values():
        shares = figures(case) if case["probe"] == "head_to_tail" else {}
        assert not shares.get("selective_risk")
        for right in ("accuracy", "accuracy_em", "accuracy_f1", "accuracy_rules"):
            wrong = right.replace("accuracy", "hallucination")
            if right in shares:
                names = (right, wrong, "missing", "outdated")
                assert sum(map(shares.get, names)) == pytest.approx(1)
                assert shares[wrong] == pytest.approx(0)
    lost = [fact for case in by_id.values() for fact in case["lost"]]
    assert {fact["fact_id"].removeprefix("P38:") for fact in lost} == EURO
    assert {fact["outdated"] for fact in lost} >= {"was right until 2023-01-14"}
    worst = [case for case in by_id.values() if case["verdict"] == "fail"]
    assert {gate["metric"] for case in worst for gate in case["gates"]} >= {"outdated"}


@pytest.mark.parametrize(
    ("day", "right_then"),
    [
        # Their euro is younger than that of the others.
        ("2013-07-01", {"Croatia", "Latvia", "Lithuania"}),
        # For some days two were right.
        ("2023-01-10", {"Croatia"}),
    ],
)
def test_as_of_says_what_is_right(pytester, money, cases, day, right_then):
    gone = {"relation": "P38", "subject": "Zubrowka", "object": "Klubeck"}
    gone |= {"popularity": 1, "valid_until": "1932-01-01"}
    money(f"as_of: {day}\n{SUITE}", [*currencies(), gone])
    result = pytester.runpytest(FORMER, "suites")
    case = cases()["reliability[known-zero-shot]"]
    share = len(EURO - right_then) / case["n"]
    assert figures(case)["outdated"] == pytest.approx(share)
    left_out = f"1 fact of which nothing is right on {day} (first: P38:Zubrowka)"
    assert left_out in one_line(result)


def test_a_baseline_from_before_there_were_former_objects_stays_comparable(
    pytester, money, cases
):
    facts = list(currencies())
    undated = [fact | {"former": []} for fact in facts]
    suite = SUITE.replace("outdated: {max: 0.1, max_drop: 0.1}, ", "")
    money(suite, undated)
    assert pytester.runpytest(PRESENT, "suites", "--kb-baseline-update=b").ret == 0
    one = next(fact for fact in facts if fact["subject"] == "Croatia")
    changed = [one if fact["subject"] == "Croatia" else fact for fact in undated]
    lines = "".join(json.dumps(fact) + "\n" for fact in changed)
    (pytester.path / "suites" / "facts.jsonl").write_text(lines)
    pytester.runpytest(FORMER, "suites", "--kb-baseline=b")
    case = cases()["reliability[known-zero-shot]"]
    metrics = case["metrics"]
    assert metrics["cr"]["paired"] == case["n"] - 1
    assert metrics["outdated"]["baseline"] == 0


def test_a_gate_on_outdated_answers_needs_former_objects(pytester, money):
    money(SUITE, [fact | {"former": []} for fact in currencies()])
    result = pytester.runpytest(PRESENT, "suites")
    assert result.ret != 0
    assert "outdated needs facts with 'former' objects" in one_line(result)
