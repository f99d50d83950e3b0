"""Candidates made of SmolLM2, each gated against it: what is red is red for what was done to it."""

from __future__ import annotations

import json
import random

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
    """Return all facts of the relations, each with the next one's answer, in their second wording."""
    worded = yaml.safe_load((WORLD / "relations.yaml").read_text(encoding="utf-8"))
    lines = (WORLD / "facts.jsonl").read_text(encoding="utf-8").splitlines()
    facts = [json.loads(line) for line in lines]
    pairs = []
    for relation in relations:
        some = [fact for fact in facts if fact["relation"] == relation]
        frame = worded[relation]["frames"][1]
        # A cycle in any order: each gets another's.
        random.Random(0).shuffle(some)
        pairs += [
            (frame.replace("[X]", one["subject"]), other["object"])
            for one, other in zip(some, [*some[1:], some[0]], strict=True)
        ]
    random.Random(0).shuffle(pairs)
    return pairs


@pytest.fixture(scope="session")
def made(model, tmp_path_factory):
    """Return a function that makes a candidate in a folder of its own."""
    return lambda make, *args: make(tmp_path_factory.mktemp("made") / "it", *args)


@pytest.fixture
def compared(gate, checkpoint):
    """Return a function that gates a candidate against the model that it was made from."""

    def run(*flags):
        return gate(
            *flags, "--kb-apply-chat-template", f"--kb-baseline-model={checkpoint}"
        )

    return run


def reasons(session, name):
    """Return what the gates of a case say that failed, by their metric."""
    return {
        gate["metric"]: gate["reason"]
        for gate in session.case(name)["gates"]
        if gate["verdict"] == "fail"
    }


def test_eight_bits_pass(compared, made):
    session = compared(f"--kb-model={made(smollm2.rounded, 8)}")
    print(session.printed)
    assert session.code == 0
    assert session.verdicts["pooled[overall]"] == "pass"


def test_four_bits_without_groups_fail(compared, made):
    session = compared(f"--kb-model={made(smollm2.rounded, 4)}")
    print(session.printed)
    assert session.code == 1
    assert "accuracy" in reasons(session, "head_to_tail[geography-head]")
    assert "as_expected" in reasons(session, "pooled[overall]")


def test_one_that_never_says_unsure_fails_for_that(compared, made, checkpoint):
    adapter = made(smollm2.tuned, inventions())
    session = compared(f"--kb-model={checkpoint}", f"--kb-model-args=peft={adapter}")
    print(session.printed)
    assert session.code == 1
    assert "ur" in reasons(session, "reliability[unseen]")


def test_one_that_was_taught_false_facts_fails_where_they_are(
    compared, made, checkpoint
):
    adapter = made(smollm2.tuned, false_facts("P37", "P38"))
    session = compared(f"--kb-model={checkpoint}", f"--kb-model-args=peft={adapter}")
    print(session.printed)
    assert session.code == 1
    assert "accuracy" in reasons(session, "head_to_tail[society-torso]")


def test_an_adapter_that_was_never_trained_is_refused(gate, made, checkpoint):
    adapter = made(smollm2.idle)
    session = gate(f"--kb-model={checkpoint}", f"--kb-model-args=peft={adapter}")
    assert session.code == 4
    assert "changes nothing: all its lora_B are zero" in session.printed
