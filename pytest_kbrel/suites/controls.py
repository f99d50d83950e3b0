"""What answers are held against: the most frequent answer, and the same question about another subject."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence

from pytest_kbrel.facts.distractors import is_spelt
from pytest_kbrel.records import Case, Control, Fact
from pytest_kbrel.suites.dataset import World
from pytest_kbrel.suites.examples import question_text
from pytest_kbrel.suites.parse import WrittenSlice

# Other subjects that are tried until one has another answer.
_TRIES = 50


def controls_of(case: Case, pool: Sequence[Fact], world: World, part: WrittenSlice) -> tuple[Control, ...]:
    """Return one control for each fact of ``case``; other subjects come from ``pool``, whatever its order.

    With ``controls: asked`` each holds the fact's question about another subject of the same relation, one
    with another answer where there is one. Raises ``SuiteError`` on a fact whose question names no subject.
    """
    majorities = {
        relation.id: _majority(world.by_relation.get(relation.id, ())) for relation in case.relations
    }
    others: dict[str, list[Fact]] = {}
    asked = getattr(case.settings, "controls", "counted") == "asked"
    if asked:
        for fact in sorted(pool, key=lambda fact: fact.id):
            others.setdefault(fact.relation, []).append(fact)
    controls = []
    for fact in case.facts:
        shuffled = ""
        if asked:
            other = _other(fact, others, case.seed)
            shuffled = question_text(fact, world, other.subject) if other is not None else ""
            if not shuffled:
                raise part.node.error(
                    f"slice {part.name!r}: fact {fact.id!r} cannot be asked about another subject: found no "
                    "other subject, or a question without its own; allowed: 'controls: counted'"
                )
        controls.append(
            Control(fact_id=fact.id, majority=majorities.get(fact.relation, ""), shuffled=shuffled)
        )
    return tuple(controls)


def _majority(facts: Sequence[Fact]) -> str:
    """Return the most frequent object, case apart; of equally frequent ones the least.

    One without letter or digit does not count: as an answer it says nothing.
    """
    spelling: dict[str, str] = {}
    counts: Counter[str] = Counter()
    for fact in facts:
        if fact.object is not None and is_spelt(fact.object):
            folded = fact.object.casefold()
            counts[folded] += 1
            spelling[folded] = min(fact.object, spelling.get(folded, fact.object))
    return spelling[min(counts, key=lambda name: (-counts[name], name))] if counts else ""


def _other(fact: Fact, others: Mapping[str, Sequence[Fact]], seed: int) -> Fact | None:
    draws = random.Random(f"{seed}/shuffled/{fact.id}")
    right = {name.casefold() for name in fact.accepted}
    for name in (fact.relation, *sorted(others.keys() - {fact.relation})):
        facts = others.get(name, ())
        for other in draws.sample(facts, min(len(facts), _TRIES)):
            another = other.subject.casefold() != fact.subject.casefold()
            if another and right.isdisjoint(answer.casefold() for answer in other.accepted):
                return other
    return None
