"""The facts of edits by role, paraphrases with the fact that they paraphrase."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from pytest_kbrel.facts.distractors import with_alike_negatives
from pytest_kbrel.records import ROLES, Fact, ReliabilitySettings
from pytest_kbrel.suites.dataset import World
from pytest_kbrel.suites.parse import WrittenProbe

# As many as a set of three can be drawn from; a writer's name lets there be fewer.
_WRONG = ReliabilitySettings(choices=4, distractors=8, distractors_from="facts/few")
_PARAPHRASED = ("edit", "forget")


def role_groups(written: WrittenProbe, world: World) -> dict[str, tuple[Fact, ...]]:
    """Return the facts of each role, and of each rounding of the suite; facts without a role are in none.

    A paraphrase becomes a wording of the edit of its group, or of what that is to forget: of the one with its
    object, where there are several. ``SuiteError`` where there is none.
    """
    facts = {fact.id: fact for fact in world.facts if fact.role}
    groups: dict[str, list[str]] = {}
    for fact in facts.values():
        if fact.role in _PARAPHRASED:
            groups.setdefault(fact.group, []).append(fact.id)
    for fact in [of for of in facts.values() if of.role == "paraphrase"]:
        own = groups.get(fact.group, []) if fact.group else []
        alike = [name for name in own if {*facts[name].accepted} & {*fact.accepted}]
        chosen = alike or (own if len(own) == 1 else [])
        wordings = fact.questions(world.relations.get(fact.relation))
        if not chosen or not wordings:
            raise world.error(
                fact,
                f"is a paraphrase of nothing: found {len(own)} edits in the group {fact.group!r}, none with its "
                "object; allowed: a 'question', and an edit or a fact to forget with the same group and object",
            )
        edit = facts[chosen[0]]
        facts[edit.id] = dataclasses.replace(
            edit,
            wordings=(*edit.wordings, *wordings[:1]),
            aliases=tuple(
                name
                for name in dict.fromkeys((*edit.aliases, *fact.accepted))
                if name != edit.object
            ),
        )
    roundings = written.also_as
    return {
        "-".join(filter(None, (role, rounding))): tuple(
            fact for fact in facts.values() if fact.role == role
        )
        for rounding in ("", *roundings)
        for role in ROLES
        if role != "paraphrase"
    }


def with_wrong_answers(facts: Sequence[Fact], world: World) -> tuple[Fact, ...]:
    """Return facts to forget with wrong answers for multiple choice, where there are some; others as they are."""
    if not facts or facts[0].role != "forget":
        return tuple(facts)
    return with_alike_negatives(
        facts, world.facts, world.relations, _WRONG, world.seed
    )[0]
