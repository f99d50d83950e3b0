"""The facts and relations of a suite, with file and line, and the facts, examples and controls of its slices.

Buckets are those of Head-to-Tail (Sun et al. 2023, section 2.1).
"""

from __future__ import annotations

import dataclasses
import functools
import random
import re
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from pathlib import Path

from pytest_kbrel.catalogue.probes import (
    KINDS,
    PROBES,
    PROMPTS,
    TOP10,
    reliability_slices,
    slice_name,
)
from pytest_kbrel.errors import SuiteError
from pytest_kbrel.facts.answer_kinds import answer_type_of
from pytest_kbrel.facts.distractors import is_spelt
from pytest_kbrel.facts.files import read_relations, read_shots
from pytest_kbrel.facts.located import unknown
from pytest_kbrel.facts.readers import Relations, facts_of
from pytest_kbrel.facts.sampling import fact_buckets, rank
from pytest_kbrel.facts.unseen import make_unseen, unseen_examples, with_options
from pytest_kbrel.records import (
    BUCKETS,
    Bucket,
    Case,
    Control,
    Fact,
    ProbeSettings,
    Relation,
    Shot,
    base_language,
    record,
)
from pytest_kbrel.suites.parse import WrittenProbe, WrittenSlice, WrittenSuite


@record
class World:
    """All facts of a suite by relation; every fact's relation is defined.

    ``unseen`` are the facts without an object: questions of the facts files that nobody can answer.
    ``locations`` are file and line of each fact by id, ``path`` is the first facts file, ``seed``
    fixes all draws. ``without_object`` are the facts of which nothing is right on the suite's day.
    """

    path: Path
    facts: tuple[Fact, ...]
    unseen: tuple[Fact, ...]
    locations: dict[str, tuple[Path, int]]
    relations: dict[str, Relation]
    by_relation: dict[str, tuple[Fact, ...]]
    seed: int
    without_object: tuple[str, ...] = ()

    def error(self, fact: Fact, message: str) -> SuiteError:
        """Return the error ``message`` at a fact's line; a fact that stands in no line is only named."""
        path, line = self.locations.get(fact.id, (self.path, None))
        return SuiteError(f"fact {fact.id!r} {message}", path, line)


def read_world(written: WrittenSuite, seed: int) -> World:
    """Read a suite's facts and relations.

    Own facts use the relations of the file. A public dataset brings relations; those of the file come on top:
    what an entry says replaces what the dataset says, and where it has no frames or statements, the dataset's
    are kept.
    """
    given = read_relations(written.relations) if written.relations else ()
    own = {relation.id: relation for relation in given}
    is_own = written.format.own
    # An own table's relations are those of the relations file only.
    brought = Relations()
    locations = {}
    groups = defaultdict(list)
    facts, unseen, without_object = [], [], []
    for path, line, fact in facts_of(written.format, written.facts, brought):
        if is_own and fact.relation not in own:
            hint = f" (relations are defined in {written.relations})"
            raise SuiteError(unknown("relation", fact.relation, own) + hint, path, line)
        locations[fact.id] = path, line
        day = written.as_of.isoformat()
        if (dated := fact.on(day)) is None:
            without_object.append(fact.id)
            continue
        fact = dated
        if fact.object is None:
            unseen.append(fact)
            continue
        groups[fact.relation].append(fact)
        facts.append(fact)
    relations = own
    if not is_own:
        over = {name: _over(of, brought.get(name)) for name, of in own.items()}
        relations = {**brought, **over}
    return World(
        path=written.facts[0],
        facts=tuple(facts),
        unseen=tuple(unseen),
        locations=locations,
        relations=relations,
        by_relation={name: tuple(groups[name]) for name in relations if name in groups},
        seed=seed,
        without_object=tuple(without_object),
    )


def _over(given: Relation, brought: Relation | None) -> Relation:
    if brought is None:
        return given
    return dataclasses.replace(
        given,
        frames=given.frames or brought.frames,
        statements=given.statements or brought.statements,
        answer_type=given.answer_type or brought.answer_type,
    )


def bucket_groups(written: WrittenProbe, world: World) -> dict[str, tuple[Fact, ...]]:
    """Return the facts of every slice of head_to_tail; a top tenth only where the file names it.

    A slice may pool the bucket of several domains: ``society+culture-head``. Raises ``SuiteError``
    on a slice that cannot be, and on a fact or relation without the popularity needed.
    """
    domains = dict.fromkeys(relation.domain for relation in world.relations.values())
    names = [f"{domain}-{bucket}" for domain in domains for bucket in (*BUCKETS, TOP10)]
    # The top tenth is asked for by name only, since its facts are the head's as well.
    wanted = [name for name in names if not name.endswith(f"-{TOP10}")]
    if written.slices is not None:
        wanted = [part.name for part in written.slices]
    pooled = {name: of for name in wanted if {*(of := _pooled(name))} <= {*names}}
    chosen = {name for parts in pooled.values() for name in parts}
    by = str(written.settings.get("bucket_by", "relation"))
    groups: dict[str, list[Fact]] = {name: [] for name in names}
    for domain in domains:
        if chosen.isdisjoint(f"{domain}-{of}" for of in (*BUCKETS, TOP10)):
            continue
        # Where the popularity is a proxy, a subject without one is not known to be rare.
        facts = [
            fact
            for fact in world.facts
            if (relation := world.relations[fact.relation]).domain == domain
            and (fact.bucket or fact.popularity is not None or not relation.proxy)
        ]
        of_relation = _of_predicates(facts, world) if by == "predicate" else {}
        # What the source has bucketed was bucketed among entities that are not all here.
        given = () if of_relation else facts
        bucket_of = {fact.id: fact.bucket for fact in given if fact.bucket}
        own = [fact for fact in facts if fact.id not in bucket_of]
        for scope in _scopes(own, by):
            keys = [_key(of, of_relation, world, written.probe.name) for of in scope]
            bucket_of |= fact_buckets(scope, keys)
        for fact in facts:
            groups[f"{domain}-{bucket_of[fact.id]}"].append(fact)
        if f"{domain}-{TOP10}" in chosen:
            head = groups[f"{domain}-head"]
            groups[f"{domain}-{TOP10}"] = _top_tenth(head, by, of_relation, world)
    single = {name: tuple(facts) for name, facts in groups.items()}
    return single | {
        name: tuple(fact for part in parts for fact in single[part])
        for name, parts in pooled.items()
    }


def _key(
    fact: Fact, of_relation: Mapping[str, float], world: World, what: str
) -> tuple[str, float]:
    """Return what of a fact is popular, and how much: its relation, where these are bucketed, or its subject."""
    if of_relation:
        return fact.relation, of_relation[fact.relation]
    if fact.popularity is None:
        raise world.error(
            fact, f"has no 'popularity', which {what} needs; allowed: a number from 0"
        )
    return fact.subject, fact.popularity


def _pooled(name: str) -> tuple[str, ...]:
    """Return the slices of single domains that a slice is made of: itself, or those it joins with +."""
    domains, dash, bucket = name.rpartition("-")
    return tuple(
        dict.fromkeys(f"{domain}{dash}{bucket}" for domain in domains.split("+"))
    )


def _scopes(facts: Sequence[Fact], by: str) -> list[list[Fact]]:
    """Return the facts whose popularities can be compared, together."""
    scopes = defaultdict(list)
    for fact in facts:
        scopes[fact.relation if by == "relation" else ""].append(fact)
    return list(scopes.values())


def _of_predicates(facts: Sequence[Fact], world: World) -> dict[str, float]:
    """Return the popularity of each relation of a domain (section 3.3): its number of facts.

    Where all of them state one, it is their own.
    """
    counted = Counter(fact.relation for fact in facts)
    stated = {name: world.relations[name].popularity for name in counted}
    own = {name: value for name, value in stated.items() if value is not None}
    if len(own) == len(counted):
        return own
    return {name: float(count) for name, count in counted.items()}


def _top_tenth(
    head: Sequence[Fact], by: str, of_relation: Mapping[str, float], world: World
) -> list[Fact]:
    """Return the most popular tenth of the head's questions (Table 5), in the order of the file.

    It is taken wherever popularities can be compared: within each relation, or over the domain. A tenth is
    rounded up; of equally popular facts those come first whose id, with the seed, has the lower sha256.
    """
    chosen = set()
    for scope in _scopes(head, by):
        ranked = []
        for fact in scope:
            _, score = _key(fact, of_relation, world, f"the slice {TOP10}")
            ranked.append((-score, rank(f"{world.seed}\0{fact.id}"), fact.id))
        chosen |= {name for *_, name in sorted(ranked)[: -(-len(ranked) // 10)]}
    return [fact for fact in head if fact.id in chosen]


def with_buckets(cases: Sequence[Case], world: World) -> tuple[Case, ...]:
    """Return the cases with the popularity buckets of their facts, for reports.

    A bucket is the source's own, that of the slice which asks about it, or one among all facts of the same
    relation that have a popularity. Unseen knowledge has none, nor has a fact without popularity.
    """
    by_fact: dict[str, Bucket] = {}
    for facts in world.by_relation.values():
        by_fact |= {fact.id: fact.bucket for fact in facts if fact.bucket}
        # As for the slices: what the source has bucketed is no measure for the rest.
        known = [of for of in facts if of.popularity is not None and not of.bucket]
        by_fact |= fact_buckets(
            known, [(of.subject, of.popularity or 0.0) for of in known]
        )
    made = []
    for case in cases:
        probe = PROBES[case.probe]
        own: Bucket | None = None
        if probe.slicing == "bucket":
            part = probe.part(case.slice)
            # The top tenth is the most popular part of the head.
            own = next((bucket for bucket in BUCKETS if bucket == part), "head")
        named = ((fact.id, own or by_fact.get(fact.id)) for fact in case.facts)
        pairs = tuple((name, bucket) for name, bucket in named if bucket is not None)
        made.append(dataclasses.replace(case, buckets=pairs))
    return tuple(made)


# Datasets become part of pytest node ids and of -k expressions.
_DATASET = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")

# How many other subjects are tried until one has another answer.
_TRIES = 50


def reliability_groups(
    written: WrittenProbe, world: World
) -> dict[str, tuple[Fact, ...]]:
    """Return the facts of every slice the probe could have; those that are not chosen may be empty.

    Where the file names no slices, these are the ones whose names have no setting.
    """
    chosen = written.slices or ()
    slice_by = str(written.settings.get("slice_by", "none"))
    groups: dict[str, list[Fact]] = {name: [] for name in reliability_slices(slice_by)}
    kinds = {written.probe.kind(part.name) for part in chosen} or {*KINDS}
    for kind, read in (("known", known_facts), ("unseen", _unseen)):
        for fact in read(written, world) if kind in kinds else ():
            group = _group(fact, slice_by, world)
            for prompt in PROMPTS if chosen else PROMPTS[:1]:
                groups.setdefault(slice_name(kind, group, prompt), []).append(fact)
    return {name: tuple(facts) for name, facts in groups.items()}


def known_facts(written: WrittenProbe, world: World) -> tuple[Fact, ...]:
    """Return the facts of the relations the file chooses, by default all."""
    if written.relations is None:
        return world.facts
    ids = {str(node.value): node for node in written.relations}
    for name, node in ids.items():
        if name not in world.by_relation:
            raise node.error(
                unknown("relation", name, world.by_relation, where=written.probe.name)
            )
    return tuple(fact for fact in world.facts if fact.relation in ids)


def _unseen(written: WrittenProbe, world: World) -> tuple[Fact, ...]:
    read, unseen = with_options(world.unseen, world.facts, world.seed), written.unseen
    if unseen is None:
        return read
    made = make_unseen(
        world.facts,
        count=unseen.count,
        seed=world.seed,
        as_of=unseen.as_of,
        expires=unseen.expires,
    )
    return (*read, *made)


def _group(fact: Fact, slice_by: str, world: World) -> str:
    if slice_by == "answer_type":
        return answer_type_of(fact, world.relations.get(fact.relation))
    if slice_by == "language":
        return base_language(fact.language) if fact.language else ""
    if slice_by != "dataset" or not fact.dataset:
        return ""
    if not _DATASET.fullmatch(fact.dataset):
        allowed = "ASCII letters, digits, _, . and -, since slices are named by it"
        raise world.error(fact, f"has the dataset {fact.dataset!r}; allowed: {allowed}")
    return fact.dataset


def controls_of(
    facts: Sequence[Fact], pool: Sequence[Fact] | None, world: World, part: WrittenSlice
) -> tuple[Control, ...]:
    """Return one control for each of ``facts``; other subjects come from ``pool``, whatever its order.

    With a pool each holds the fact's question about another subject of the same relation, one
    with another answer where there is one. Raises ``SuiteError`` on a fact whose question names no subject.
    """
    majority = functools.cache(lambda name: _majority(world.by_relation.get(name, ())))
    others = defaultdict(list)
    for fact in sorted(pool or (), key=lambda fact: fact.id):
        others[fact.relation].append(fact)
    controls = []
    for fact in facts:
        other = _other(fact, others, world.seed) if others else None
        shuffled = question_text(fact, world, other.subject) if other else ""
        if pool is not None and not shuffled:
            raise part.node.error(
                f"slice {part.name!r}: fact {fact.id!r} cannot be asked about another subject: found no "
                "other subject, or a question without its own; allowed: 'controls: counted'"
            )
        most = majority(fact.relation)
        controls.append(Control(fact_id=fact.id, majority=most, shuffled=shuffled))
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
    return (
        spelling[min(counts, key=lambda name: (-counts[name], name))] if counts else ""
    )


def _other(fact: Fact, others: Mapping[str, Sequence[Fact]], seed: int) -> Fact | None:
    draws = random.Random(f"{seed}/shuffled/{fact.id}")
    right = {name.casefold() for name in fact.accepted}
    for name in (fact.relation, *sorted(others.keys() - {fact.relation})):
        facts = others.get(name, ())
        for other in draws.sample(facts, min(len(facts), _TRIES)):
            another = other.subject.casefold() != fact.subject.casefold()
            if another and right.isdisjoint(
                answer.casefold() for answer in other.accepted
            ):
                return other
    return None


def example_repository(
    written: WrittenProbe,
    sampled: Mapping[str, Sequence[Fact]],
    world: World,
    settings: ProbeSettings,
) -> tuple[Shot, ...]:
    """Return the examples for a slice's ``settings``; none where they choose none.

    They come from the file the suite names, or are made: of the known facts those that are not ``sampled``
    in any slice first, in an order by seed and fact id, and unanswerable questions of other invented names than
    the suite's own. What is sampled is so under the suite's limit, not the user's, so that a sampled run is
    shown the same examples. Raises ``SuiteError`` when there are too few.
    """
    if not sum(settings.shown):
        return ()
    wanted = written.shots
    if isinstance(wanted, Path):
        shots = read_shots(wanted)
    else:
        asked = {fact.id: fact.question for of in sampled.values() for fact in of}
        unseen = unseen_examples(
            world.facts,
            count=wanted["unseen"],
            seed=world.seed,
            after=written.unseen.expires.year if written.unseen is not None else None,
            avoid=filter(None, asked.values()),
        )
        known = known_facts(written, world)
        shots = _known_shots(known, asked, world, wanted["known"])
        shots += tuple(
            Shot(
                question=fact.question or "",
                answer=None,
                subject=fact.subject,
                valid_until=fact.valid_until,
            )
            for fact in unseen
        )
    answered = sum(shot.answer is not None for shot in shots)
    have = {"with": answered, "without": len(shots) - answered}
    for need, sort in zip(settings.shown, have, strict=True):
        if have[sort] < need:
            prompt = getattr(settings, written.probe.overall_by)
            raise written.entry.error(
                f"{prompt} needs at least {need} examples {sort} an answer, found {have[sort]}; "
                "allowed: more facts, or more examples under 'shots'"
            )
    return shots


def _known_shots(
    facts: Iterable[Fact], sampled: Container[str], world: World, count: int
) -> tuple[Shot, ...]:
    def order(fact: Fact) -> tuple[bool, bytes]:
        return fact.id in sampled, rank(f"{world.seed}\0shots\0{fact.id}")

    shots: dict[str, Shot] = {}
    for fact in sorted(facts, key=order):
        if len(shots) == count:
            break
        question = question_text(fact, world)
        if fact.object is not None and question and not fact.duplicate_of:
            shots.setdefault(
                question,
                Shot(question=question, answer=fact.object, subject=fact.subject),
            )
    return tuple(shots.values())


def question_text(fact: Fact, world: World, subject: str | None = None) -> str:
    """Return the question about a fact, or about another ``subject``; empty where there is none."""
    if subject is not None:
        question = fact.question
        if question is not None:
            if fact.subject not in question:
                return ""
            question = question.replace(fact.subject, subject)
        fact = dataclasses.replace(fact, subject=subject, question=question)
    return next(iter(fact.questions(world.relations.get(fact.relation))), "")
