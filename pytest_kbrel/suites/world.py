"""The facts and relations of a suite, with the places where they stand."""

from __future__ import annotations

from pathlib import Path

from pytest_kbrel.errors import SuiteError
from pytest_kbrel.facts.document import unknown
from pytest_kbrel.facts.jsonl import numbered_facts
from pytest_kbrel.facts.relations import read_relations
from pytest_kbrel.records import Fact, Relation, record


@record
class World:
    """All facts of a suite by relation; every fact's relation is known."""

    path: Path
    facts: tuple[Fact, ...]
    lines: dict[str, int]
    relations: dict[str, Relation]
    by_relation: dict[str, tuple[Fact, ...]]

    def error(self, fact: Fact, message: str) -> SuiteError:
        """Return the error ``message`` at a fact's line; a fact that stands in no line is only named."""
        return SuiteError(f"fact {fact.id!r} {message}", self.path, self.lines.get(fact.id))

    def used(self, facts: tuple[Fact, ...]) -> tuple[Relation, ...]:
        """Return the relations these facts use, in the order of the relations file."""
        ids = {fact.relation for fact in facts}
        return tuple(relation for name, relation in self.relations.items() if name in ids)

    def need_questions(self, facts: tuple[Fact, ...], probe: str) -> None:
        """Raise on the first fact that nothing puts into a question."""
        for fact in facts:
            relation = self.relations.get(fact.relation)
            if fact.question is None and not (relation and relation.frames):
                raise self.error(
                    fact,
                    f"has no question, which {probe} needs: found neither frames of relation "
                    f"{fact.relation!r} nor 'question' in the fact; allowed: either",
                )


def read_world(facts_path: Path, relations_path: Path) -> World:
    """Read a suite's facts and relations."""
    relations = {relation.id: relation for relation in read_relations(relations_path)}
    lines: dict[str, int] = {}
    groups: dict[str, list[Fact]] = {}
    facts = []
    for line, fact in numbered_facts(facts_path):
        if fact.relation not in relations:
            hint = f" (relations are defined in {relations_path})"
            raise SuiteError(unknown("relation", fact.relation, relations) + hint, facts_path, line)
        lines[fact.id] = line
        groups.setdefault(fact.relation, []).append(fact)
        facts.append(fact)
    by_relation = {name: tuple(groups[name]) for name in relations if name in groups}
    return World(
        path=facts_path, facts=tuple(facts), lines=lines, relations=relations, by_relation=by_relation
    )
