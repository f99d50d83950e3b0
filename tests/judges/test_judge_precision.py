"""No other entity may pass for a gold: held against the facts that ship and, where present, a human."""

from __future__ import annotations

import json
import random
from collections import defaultdict
from pathlib import Path

import pytest

from pytest_kbrel import resources
from pytest_kbrel.cli.judge import Agreement
from pytest_kbrel.facts.files import read_facts
from pytest_kbrel.judges.rules import judge

HUMAN_CHECK = (
    Path(__file__).resolve().parents[2].parent
    / "shared/public-data/qa-human-check/qa_human_check.part1.json"
)
SENTENCES = (
    "{answer}",
    "It is {answer}.",
    "The answer for {subject} is {answer}.",
    "{answer}, I think",
)


@pytest.mark.slow
def test_no_object_of_another_fact_is_right():
    relations = defaultdict(list)
    for fact in read_facts(resources.suites() / "world/facts.jsonl"):
        relations[fact.relation].append(fact)
    chance = random.Random(0)
    passed, judged = [], 0
    for facts in relations.values():
        objects = sorted({fact.object for fact in facts})
        for fact in chance.sample(facts, min(12, len(facts))):
            question = fact.question or f"What is said of {fact.subject}?"
            golds = {fact.object, *fact.aliases}
            for other in chance.sample(objects, min(25, len(objects))):
                if other in golds:
                    continue
                for sentence in SENTENCES:
                    answer = sentence.format(answer=other, subject=fact.subject)
                    judged += 1
                    if judge(answer, sorted(golds), question).label == "correct":
                        passed.append((fact.subject, sorted(golds), answer))
    assert judged > 5000
    assert not passed


@pytest.mark.slow
def test_an_object_in_a_list_of_others_is_seldom_right():
    relations = defaultdict(list)
    for fact in read_facts(resources.suites() / "world/facts.jsonl"):
        relations[fact.relation].append(fact)
    chance = random.Random(2)
    passed, judged = [], 0
    for facts in relations.values():
        # Dates and numbers have rules of their own; an object of the subject's name is told apart by no list.
        named = {
            fact.object
            for fact in facts
            if not any(letter.isdigit() for letter in fact.object)
        }
        for fact in chance.sample(facts, min(20, len(facts))):
            others = sorted(named - {fact.object, *fact.aliases})
            if (
                fact.object not in named
                or len(others) < 3
                or fact.object in fact.subject
            ):
                continue
            question = fact.question or f"What is said of {fact.subject}?"
            listed = [*chance.sample(others, 3), fact.object]
            chance.shuffle(listed)
            for sentence in (
                "It is {}.",
                "The answer is one of {}.",
                "{}",
                "I would say it is {}.",
            ):
                for tie in (", ", " / ", "; "):
                    judged += 1
                    answer = sentence.format(tie.join(listed))
                    if (
                        judge(answer, (fact.object, *fact.aliases), question).label
                        == "correct"
                    ):
                        passed.append((fact.subject, fact.object, answer))
    assert judged > 500
    # An item with words in small letters ("Chinese characters") ends the list: 0.011 when this was written.
    assert len(passed) <= 0.015 * judged, passed


def test_the_own_object_is_right_in_every_sentence():
    facts = read_facts(resources.suites() / "world/facts.jsonl")
    chance = random.Random(1)
    missed = []
    for fact in chance.sample(facts, 300):
        question = f"What is said of {fact.subject}?"
        for sentence in SENTENCES:
            answer = sentence.format(answer=fact.object, subject=fact.subject)
            # A capital that bears its country's name stands in the question already.
            if fact.object in fact.subject or fact.subject in fact.object:
                continue
            if judge(answer, (fact.object, *fact.aliases), question).label != "correct":
                missed.append(answer)
    assert not missed


@pytest.mark.skipif(
    not HUMAN_CHECK.is_file(), reason="the public human check is not there"
)
@pytest.mark.parametrize(
    # What was reached when this was written: see benchmarks/judging.md for what keeps the others from 0.93.
    ("model", "least", "most_wrong"),
    [("flan", 0.93, 0.01), ("llama", 0.88, 0.02), ("gpt", 0.82, 0.01)],
)
def test_the_rules_agree_with_a_human(model, least, most_wrong):
    agreement = _agreement(json.loads(HUMAN_CHECK.read_text(encoding="utf-8")), model)
    assert agreement.total() == 500
    assert agreement.agreeing / 500 >= least
    assert agreement.called_right / agreement.wrong <= most_wrong


def _agreement(rows, model):
    agreement = Agreement()
    for row in rows:
        result = judge(row[model]["pred"], row["answers"], row["question"])
        agreement[row[model]["human_eval"] == "1", result.label] += 1
    return agreement
