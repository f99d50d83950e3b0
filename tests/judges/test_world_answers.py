"""Answers about the facts that ship: only the own object is right, and no other one of the relation."""

from __future__ import annotations

import random
from collections import defaultdict

import pytest

from pytest_kbrel import resources
from pytest_kbrel.facts.readers import read_own_facts
from pytest_kbrel.judges.rules import judge

SENTENCES = (
    "{answer}",
    "It is {answer}.",
    "The answer for {subject} is {answer}.",
    "{answer}, I think",
)


def label(sentence, answer, fact):
    text = sentence.format(answer=answer, subject=fact.subject)
    question = fact.question or f"What is said of {fact.subject}?"
    return judge(text, (fact.object, *fact.aliases), question).label


@pytest.mark.slow
def test_the_own_object_is_right_and_no_other_one():
    relations = defaultdict(list)
    for fact in read_own_facts(resources.suites() / "world/facts.jsonl"):
        relations[fact.relation].append(fact)
    chance = random.Random(0)
    judged = 0
    for facts in relations.values():
        objects = sorted({fact.object for fact in facts})
        for fact in chance.sample(facts, min(12, len(facts))):
            # A capital that bears its country's name stands in the question already.
            if fact.object not in fact.subject and fact.subject not in fact.object:
                for sentence in SENTENCES:
                    assert label(sentence, fact.object, fact) == "correct", fact
            for other in chance.sample(objects, min(25, len(objects))):
                if other not in (fact.object, *fact.aliases):
                    judged += 1
                    for sentence in SENTENCES:
                        assert label(sentence, other, fact) != "correct", (fact, other)
    assert judged > 2000
