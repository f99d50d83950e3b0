"""The slices of the reliability probe: seen and unseen knowledge, by group and prompt setting."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence

from pytest_kbrel.catalogue.slices import KINDS, PROMPTS, reliability_slice, reliability_slices, slice_name
from pytest_kbrel.facts.answer_types import answer_type_of
from pytest_kbrel.facts.distractors import SPARE, Drawn, with_alike_negatives
from pytest_kbrel.facts.located.node import unknown
from pytest_kbrel.facts.sampling import sample
from pytest_kbrel.facts.unseen import make_unseen
from pytest_kbrel.facts.unseen_from_file import with_options
from pytest_kbrel.records import Case, Fact, ReliabilitySettings
from pytest_kbrel.serialization import from_wire
from pytest_kbrel.suites.controls import controls_of
from pytest_kbrel.suites.dataset import World
from pytest_kbrel.suites.examples import example_repository
from pytest_kbrel.suites.parse import WrittenProbe, WrittenSlice

# A question shows three distractors, and the model's own answer may be one of those there are.
_FEWEST_DISTRACTORS = 4
# Datasets become part of pytest node ids and of -k expressions.
_DATASET = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")

Groups = Mapping[str, tuple[Fact, ...]]


def reliability_groups(written: WrittenProbe, world: World, seed: int) -> dict[str, tuple[Fact, ...]]:
    """Return the facts of every slice the probe could have; those that are not chosen may be empty.

    Where the file names no slices, these are the zero-shot ones.
    """
    chosen = None if written.slices is None else [part.name for part in written.slices]
    slice_by = str(written.settings.get("slice_by", "none"))
    prompts = PROMPTS[:1] if chosen is None else PROMPTS
    groups: dict[str, list[Fact]] = {name: [] for name in reliability_slices(slice_by)}
    for kind in KINDS:
        if chosen is not None and not any(written.probe.kind(name) == kind for name in chosen):
            continue
        for fact in seen_facts(written, world) if kind == "seen" else _unseen(written, world, seed):
            for prompt in prompts:
                name = slice_name(kind, _group(fact, slice_by, world), prompt)
                groups.setdefault(name, []).append(fact)
    for part in written.slices or ():
        if part.name not in groups:
            # Not a name that the next error would be about. Of the other kind no facts were made.
            other = KINDS[written.probe.kind(part.name) == "seen"]
            full = [name for name in groups if groups[name] or written.probe.kind(name) == other]
            raise part.node.error(unknown("slice", part.name, full or groups, where=written.probe.name))
    return {name: tuple(facts) for name, facts in groups.items()}


def limited(written: WrittenProbe, part: WrittenSlice, group: Sequence[Fact], seed: int) -> tuple[Fact, ...]:
    """Return the facts of a slice under the suite's own limit; a probe's general one is for seen facts."""
    limit = part.limit
    if limit is None and written.probe.kind(part.name) != "unseen":
        limit = written.limit
    return sample(group, limit, seed)


def reliability_prepared(
    written: WrittenProbe,
    part: WrittenSlice,
    facts: tuple[Fact, ...],
    group: tuple[Fact, ...],
    world: World,
    seed: int,
) -> tuple[Drawn, ReliabilitySettings]:
    """Fill in distractors and settle the settings, the slice's prompt among them.

    Where an encoder is to choose the nearest, there are more of them than the settings say.
    """
    world.need_questions(facts, written.probe.name)
    parts = reliability_slice(part.name)
    assert parts is not None
    settings = from_wire(ReliabilitySettings, {**written.settings, "prompt": parts.prompt})
    # A model that writes distractors needs none, and is helped out with those there are.
    at_least = 0 if settings.writer else _FEWEST_DISTRACTORS
    drawn = with_alike_negatives(
        facts,
        world.facts,
        world.relations,
        settings.distractors,
        seed,
        questions=settings.choices,
        at_least=at_least,
        spare=SPARE if settings.encoder and not settings.writer else 1,
    )
    return drawn, settings


def with_surroundings(
    written: WrittenProbe,
    chosen: Sequence[WrittenSlice],
    groups: Groups,
    cases: Sequence[Case],
    world: World,
    seed: int,
) -> tuple[Case, ...]:
    """Give the cases what their facts are asked beside: examples to choose from, and controls."""
    asked: dict[str, Fact] = {}
    for part in chosen:
        # Under the suite's limit, not the user's, so that a sampled run is shown the same examples.
        asked.update((fact.id, fact) for fact in limited(written, part, groups[part.name], seed))
    repository = example_repository(
        written,
        seen_facts(written, world),
        tuple(asked.values()),
        world,
        seed,
        [case.settings for case in cases],
    )
    made = []
    for part, case in zip(chosen, cases, strict=True):
        shots = repository if sum(case.settings.shown) else ()
        pool = world.facts if written.probe.kind(part.name) == "seen" else groups[part.name]
        controls = controls_of(case, pool, world, part)
        made.append(dataclasses.replace(case, repository=shots, controls=controls))
    return tuple(made)


def seen_facts(written: WrittenProbe, world: World) -> tuple[Fact, ...]:
    """Return the facts of the relations the file chooses, by default all."""
    if written.relations is None:
        return world.facts
    ids = {str(node.value) for node in written.relations}
    for node in written.relations:
        if node.value not in world.by_relation:
            raise node.error(
                unknown("relation", str(node.value), world.by_relation, where=written.probe.name)
            )
    return tuple(fact for fact in world.facts if fact.relation in ids)


def _unseen(written: WrittenProbe, world: World, seed: int) -> tuple[Fact, ...]:
    read, unseen = with_options(world.unseen, world.facts, seed), written.unseen
    if unseen is None:
        return read
    count, as_of, expires = unseen.count, unseen.as_of, unseen.expires
    try:
        made = make_unseen(world.facts, count=count, seed=seed, as_of=as_of, expires=expires)
    except ValueError as error:
        raise written.entry.error(f"unseen: {error}; found a count of {count:,}; allowed: fewer") from None
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
