"""The facts of edits by role, paraphrases with the fact that they paraphrase."""

from __future__ import annotations

import dataclasses

from pytest_kbrel.catalogue.probes import ROLE_KINDS
from pytest_kbrel.records import Fact
from pytest_kbrel.suites.dataset import World
from pytest_kbrel.suites.parse import WrittenProbe


def role_groups(written: WrittenProbe, world: World) -> dict[str, tuple[Fact, ...]]:
    """Return the facts of each role, and of each rounding of the suite; facts without a role are in none.

    A paraphrase becomes a wording of the edit of its group, or of what that is to forget, with its object.
    ``SuiteError`` where there is none.
    """
    facts = {fact.id: fact for fact in world.facts if fact.role}
    groups: dict[str, list[str]] = {}
    for fact in facts.values():
        if fact.role in ("edit", "forget"):
            groups.setdefault(fact.group, []).append(fact.id)
    for fact in [of for of in facts.values() if of.role == "paraphrase"]:
        own = groups.get(fact.group, []) if fact.group else []
        alike = [name for name in own if {*facts[name].accepted} & {*fact.accepted}]
        wordings = fact.questions(world.relations.get(fact.relation))
        if not alike or not wordings:
            raise world.error(
                fact,
                f"is a paraphrase of nothing: found {len(own)} edits in the group {fact.group!r}, none with its "
                "object; allowed: a 'question', and an edit or a fact to forget with the same group and object",
            )
        edit = facts[alike[0]]
        facts[edit.id] = dataclasses.replace(
            edit,
            wordings=(*edit.wordings, *wordings[:1]),
            aliases=tuple(dict.fromkeys((*edit.aliases, *fact.accepted))),
        )
    return {
        "-".join(filter(None, (role, rounding))): tuple(
            fact for fact in facts.values() if fact.role == role
        )
        for rounding in ("", *written.also_as)
        for role in ROLE_KINDS
    }
