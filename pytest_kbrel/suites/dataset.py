"""The facts and relations of a suite, with the file and line of each."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path

from pytest_kbrel.errors import SuiteError
from pytest_kbrel.facts.jsonl import numbered_facts
from pytest_kbrel.facts.located import unknown
from pytest_kbrel.facts.readers import Format, Relations, read
from pytest_kbrel.facts.relations import read_relations
from pytest_kbrel.records import Fact, Relation, record


@record
class World:
    """All facts of a suite by relation; every fact's relation is defined.

    ``unseen`` are the facts without an object: questions of the facts files that nobody can answer.
    ``places`` are file and line of each fact by id, ``path`` is the first facts file.
    """

    path: Path
    facts: tuple[Fact, ...]
    unseen: tuple[Fact, ...]
    places: dict[str, tuple[Path, int]]
    relations: dict[str, Relation]
    by_relation: dict[str, tuple[Fact, ...]]

    def error(self, fact: Fact, message: str) -> SuiteError:
        """Return the error ``message`` at a fact's line; a fact that stands in no line is only named."""
        path, line = self.places.get(fact.id, (self.path, None))
        return SuiteError(f"fact {fact.id!r} {message}", path, line)

    def used(self, facts: tuple[Fact, ...]) -> tuple[Relation, ...]:
        """Return the relations these facts use, in the order of the relations file."""
        ids = {fact.relation for fact in facts}
        return tuple(relation for name, relation in self.relations.items() if name in ids)

    def need_questions(self, facts: tuple[Fact, ...], probe: str) -> None:
        """Raise ``SuiteError`` on the first fact without a question."""
        for fact in facts:
            relation = self.relations.get(fact.relation)
            if fact.question is None and not (relation and relation.frames):
                raise self.error(
                    fact,
                    f"has no question, which {probe} needs: found neither frames of relation "
                    f"{fact.relation!r} nor 'question' in the fact; allowed: either",
                )


def read_world(paths: Sequence[Path], relations_path: Path | None, form: Format) -> World:
    """Read a suite's facts and relations.

    Own facts use the relations of the file. A public dataset brings relations; those of the file come on top:
    what an entry says replaces what the dataset says, and where it has no frames or statements, the dataset's
    are kept.
    """
    given = read_relations(relations_path) if relations_path else ()
    relations = Relations((relation.id, relation) for relation in given) if form.own else Relations()
    places: dict[str, tuple[Path, int]] = {}
    groups: dict[str, list[Fact]] = {}
    facts, unseen = [], []
    for path, line, fact in _numbered(paths, form, relations):
        if fact.relation not in relations:
            hint = f" (relations are defined in {relations_path})"
            raise SuiteError(unknown("relation", fact.relation, relations) + hint, path, line)
        if fact.id in places:
            first = ":".join(map(str, places[fact.id]))
            raise SuiteError(f"id {fact.id!r} stands twice; the first is in {first}", path, line)
        places[fact.id] = path, line
        if fact.object is None:
            unseen.append(fact)
            continue
        groups.setdefault(fact.relation, []).append(fact)
        facts.append(fact)
    for relation in () if form.own else given:
        relations[relation.id] = _over(relation, relations.get(relation.id))
    return World(
        path=paths[0],
        facts=tuple(facts),
        unseen=tuple(unseen),
        places=places,
        relations=dict(relations),
        by_relation={name: tuple(groups[name]) for name in relations if name in groups},
    )


def _numbered(paths: Sequence[Path], form: Format, relations: Relations) -> Iterator[tuple[Path, int, Fact]]:
    if form.name == "jsonl":
        for path in paths:
            for line, fact in numbered_facts(path):
                yield path, line, fact
        return
    # An own table's relations are those of the relations file only.
    for row in read(form, paths, Relations() if form.own else relations):
        if row.fact is None:
            assert row.error is not None
            raise row.error
        yield row.path, row.line, row.fact


def _over(given: Relation, brought: Relation | None) -> Relation:
    if brought is None:
        return given
    return dataclasses.replace(
        given,
        frames=given.frames or brought.frames,
        statements=given.statements or brought.statements,
        answer_type=given.answer_type or brought.answer_type,
    )
