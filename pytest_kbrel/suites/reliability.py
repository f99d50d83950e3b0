"""Slices of the reliability probe: facts by group and prompt setting, worked examples and controls."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import random
import re
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from pathlib import Path

from pytest_kbrel.catalogue.probes import (
    KINDS,
    PROMPTS,
    reliability_slices,
    slice_name,
)
from pytest_kbrel.facts.answer_kinds import answer_type_of
from pytest_kbrel.facts.distractors import (
    is_spelt,
)
from pytest_kbrel.facts.files import read_shots
from pytest_kbrel.facts.located import unknown
from pytest_kbrel.facts.sampling import sample
from pytest_kbrel.facts.unseen import make_unseen, unseen_examples, with_options
from pytest_kbrel.records import (
    Control,
    Fact,
    ProbeSettings,
    Shot,
)
from pytest_kbrel.suites.dataset import World
from pytest_kbrel.suites.parse import WrittenProbe, WrittenSlice

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


def sample_of_slice(
    written: WrittenProbe, part: WrittenSlice, group: Sequence[Fact], world: World
) -> tuple[Fact, ...]:
    """Return the facts of a slice under the suite's own limit; a probe's general one is for known facts."""
    limit = part.limit
    if limit is None and written.probe.kind(part.name) != "unseen":
        limit = written.limit
    return sample(group, limit, world.seed, part.cluster or written.cluster)


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
    if slice_by != "dataset" or not fact.dataset:
        return ""
    if not _DATASET.fullmatch(fact.dataset):
        allowed = "ASCII letters, digits, _, . and -, since slices are named by it"
        raise world.error(fact, f"has the dataset {fact.dataset!r}; allowed: {allowed}")
    return fact.dataset


def controls_of(
    facts: Sequence[Fact],
    pool: Sequence[Fact] | None,
    world: World,
    part: WrittenSlice,
) -> tuple[Control, ...]:
    """Return one control for each of ``facts``; other subjects come from ``pool``, whatever its order.

    With a pool each holds the fact's question about another subject of the same relation, one
    with another answer where there is one. Raises ``SuiteError`` on a fact whose question names no subject.
    """
    majority = functools.cache(lambda name: _majority(world.by_relation.get(name, ())))
    others: dict[str, list[Fact]] = {}
    for fact in sorted(pool or (), key=lambda fact: fact.id):
        others.setdefault(fact.relation, []).append(fact)
    controls = []
    for fact in facts:
        other = _other(fact, others, world.seed)
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
    def rank(fact: Fact) -> tuple[bool, bytes]:
        text = f"{world.seed}\0shots\0{fact.id}"
        return fact.id in sampled, hashlib.sha256(text.encode()).digest()

    shots: dict[str, Shot] = {}
    for fact in sorted(facts, key=rank):
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
