"""Candidates made of SmolLM2, each gated against it: what is red is red for what was done to it."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
import yaml

from pytest_kbrel.facts.unseen import KINDS, invent_name
from tests.real import smollm2
from tests.real.conftest import WORLD


def inventions(count: int = 240) -> list[tuple[str, str]]:
    """Return questions about invented names, each answered with another invention."""
    rng = random.Random(0)
    kinds = [kind for kind in KINDS if kind.about != "country"]
    answers = {
        "person": lambda: invent_name("person", rng, training=True),
        "location": lambda: invent_name("place", rng, training=True),
        "time": lambda: str(rng.randrange(1700, 2020)),
        "number": lambda: str(rng.randrange(2, 40)),
    }
    pairs = []
    for _ in range(count):
        kind = rng.choice(kinds)
        name = invent_name(kind.about, rng, training=True)
        make = answers.get(kind.answer_type, answers["person"])
        pairs.append((rng.choice(kind.wordings).replace("[X]", name), make()))
    return pairs


def false_facts(*relations: str) -> list[tuple[str, str]]:
    """Return all facts of the relations, each with the next fact's answer, in the second wording."""
    worded = yaml.safe_load((WORLD / "relations.yaml").read_text(encoding="utf-8"))
    lines = (WORLD / "facts.jsonl").read_text(encoding="utf-8").splitlines()
    facts = [
        fact for fact in map(json.loads, lines) if fact.get("relation") in relations
    ]
    random.Random(0).shuffle(facts)
    by = {name: [fact for fact in facts if fact["relation"] == name] for name in relations}
    pairs = [
        (worded[name]["frames"][1].replace("[X]", one["subject"]), other["object"])
        for name, some in by.items()
        for one, other in zip(some, [*some[1:], some[0]], strict=True)
    ]
    random.Random(1).shuffle(pairs)
    return pairs


CERTAIN = inventions
FALSE = lambda: false_facts("P37", "P38")
