"""A worked example for each fact, from its own relation: Head-to-Tail's in-domain prompt (section 3.5)."""

from __future__ import annotations

import bisect
import hashlib
from collections.abc import Mapping, Sequence

from pytest_kbrel.records import Fact, Relation, Shot


def in_domain_examples(
    facts: Sequence[Fact],
    by_relation: Mapping[str, Sequence[Fact]],
    relations: Mapping[str, Relation],
    seed: int,
) -> tuple[tuple[str, tuple[Shot, ...]], ...]:
    """Return for each fact its id and one answered question of the same template, none where there is none.

    ``by_relation`` are all facts there are, so a sampled run shows what the full one shows. The example is
    drawn by seed and fact ids; it has another subject and no answer in common with the fact, nor does it say
    the fact the other way round (which country borders Spain? France), case apart. A new fact changes few of
    the others' examples.
    A relation's template is its first frame, or what its facts' own questions follow.
    """
    pools: dict[tuple[str, bool], list[tuple[bytes, Fact]]] = {}
    for name in dict.fromkeys(fact.relation for fact in facts):
        for fact in by_relation.get(name, ()):
            if fact.object is not None:
                pools.setdefault(_template(fact), []).append((_place(seed, fact), fact))
    for pool in pools.values():
        pool.sort(key=lambda entry: entry[0])
    return tuple((fact.id, _example(fact, pools.get(_template(fact), []), relations, seed)) for fact in facts)


def _place(seed: int, fact: Fact, role: str = "") -> bytes:
    return hashlib.sha256(f"{seed}\0{role}\0{fact.id}".encode()).digest()


def _template(fact: Fact) -> tuple[str, bool]:
    return fact.relation, fact.question is None


def _example(
    fact: Fact, pool: Sequence[tuple[bytes, Fact]], relations: Mapping[str, Relation], seed: int
) -> tuple[Shot, ...]:
    own = {answer.casefold() for answer in fact.accepted}
    # The pool as a ring, from a place of the fact's own on to the first that fits: a draw costs no pass over
    # a large relation, and a new fact in the pool concerns those only whose search ends at it.
    start = bisect.bisect(pool, _place(seed, fact, "example"), key=lambda entry: entry[0])
    for step in range(len(pool)):
        other = pool[(start + step) % len(pool)][1]
        answers = {answer.casefold() for answer in other.accepted}
        names = fact.subject.casefold(), other.subject.casefold()
        if names[0] != names[1] and own.isdisjoint({*answers, names[1]}) and names[0] not in answers:
            frames = relations[other.relation].frames
            question = other.question or frames[0].replace("[X]", other.subject)
            return (Shot(question=question, answer=other.object),)
    return ()
