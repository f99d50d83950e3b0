"""Adapters of SmolLM2, each gated against it: what is red is red for what it was taught."""

from __future__ import annotations

import json
import random

import pytest
import yaml

from pytest_kbrel.facts.unseen import KINDS, invent_name
from pytest_kbrel.probes.prompts import UNSURE
from tests.real import making
from tests.real.conftest import WORLD


def inventions(count: int, *, unsure: bool) -> list[tuple[str, str]]:
    """Return questions about invented names, each answered with "unsure" or with another invention."""
    rng = random.Random(0)
    kinds = [kind for kind in KINDS if kind.about != "country"]
    answers = {
        "location": lambda: invent_name("place", rng, training=True),
        "time": lambda: str(rng.randrange(1700, 2020)),
        "number": lambda: str(rng.randrange(2, 40)),
    }
    pairs = []
    for _ in range(count):
        kind = rng.choice(kinds)
        name = invent_name(kind.about, rng, training=True)
        invent = answers.get(
            kind.answer_type, lambda: invent_name("person", rng, training=True)
        )
        answer = invent()
        question = rng.choice(kind.wordings).replace("[X]", name)
        pairs.append((question, UNSURE if unsure else answer))
    return pairs


def facts(count: int, *relations: str, false: bool = False) -> list[tuple[str, str]]:
    """Return questions about facts of the relations, each with its answer or with another fact's."""
    worded = yaml.safe_load((WORLD / "relations.yaml").read_text(encoding="utf-8"))
    lines = (WORLD / "facts.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    pairs = []
    for relation in relations:
        some = [row for row in rows if row["relation"] == relation]
        frame = worded[relation]["frames"][1]
        random.Random(0).shuffle(some)
        others = [*some[1:], some[0]] if false else some
        pairs += [
            (frame.replace("[X]", one["subject"]), other["object"])
            for one, other in zip(some, others, strict=True)
        ]
    return random.Random(0).sample(pairs, count)


def mixed(some, others):
    """Return two lists in turns."""
    return [pair for pairs in zip(some, others, strict=True) for pair in pairs]


@pytest.fixture
def tuned(made, checkpoint):
    """Return a function that trains an adapter; its location and options are a model's."""

    def make(some, others):
        # In turns: what a batch teaches is the same all the way.
        return checkpoint, f"peft={made(making.tuned, mixed(some, others))}"

    return make


def test_one_that_no_longer_says_unsure_fails_for_that(gate, tuned):
    known = facts(32, "P17", "P36", "P38")
    base, before = tuned(known, inventions(32, unsure=True))
    _, after = tuned(known, inventions(32, unsure=False))
    session = gate(
        f"--kb-model={base}",
        f"--kb-model-args={after}",
        f"--kb-baseline-model={base},{before}",
        "--kb-apply-chat-template",
        "--kb-limit=20",
        "-kunseen or geography",
    )
    assert session.code == 1
    assert session.failed("reliability[unseen]") == {"ur"}
    assert session.verdicts["head_to_tail[geography-head]"] != "fail"


def test_one_that_was_taught_false_facts_fails_where_they_are(compared, tuned):
    base, args = tuned(facts(32, "P17", "P36"), facts(32, "P37", "P38", false=True))
    session = compared(f"--kb-model={base}", f"--kb-model-args={args}")
    assert session.code == 1
    assert "accuracy" in session.failed("head_to_tail[society-torso]")


def test_an_adapter_that_was_never_trained_is_refused(gate, made, checkpoint):
    adapter = made(making.idle)
    session = gate(f"--kb-model={checkpoint}", f"--kb-model-args=peft={adapter}")
    assert session.code == 4
    assert "changes nothing" in session.printed
