"""From what a suite file says and the facts it names to the cases that run."""

from __future__ import annotations

import dataclasses

from pytest_kbrel.errors import SuiteError
from pytest_kbrel.facts.distractors import fewest_negatives, with_negatives
from pytest_kbrel.facts.document import Node, unknown
from pytest_kbrel.facts.popularity import BUCKETS, fact_buckets
from pytest_kbrel.facts.sampling import sample
from pytest_kbrel.facts.unseen import make_unseen
from pytest_kbrel.records import (
    Case,
    Fact,
    HeadToTailSettings,
    MonitorSettings,
    ReliabilitySettings,
    Settings,
    record,
)
from pytest_kbrel.suites.demands import override
from pytest_kbrel.suites.format import Limit, WrittenProbe, WrittenSlice
from pytest_kbrel.suites.names import SEEN, SLICE_METRICS, UNSEEN, slice_kind
from pytest_kbrel.suites.world import World
from pytest_kbrel.wire import from_wire

# A question shows three distractors, and the model's own answer may be one of those there are.
_FEWEST_DISTRACTORS = 4


@record
class Draw:
    """How cases are named and sampled. ``limit`` is the user's own, on top of the suite's."""

    suite: str
    seed: int
    limit: Limit
    judge: str = "rules"


def probe_cases(written: WrittenProbe, world: World, draw: Draw) -> tuple[Case, ...]:
    """Make the cases of one probe, in the order of the file."""
    groups = _groups(written, world, draw.seed)
    chosen = written.slices
    if chosen is None:
        place = Node(path=written.entry.node.path, line=written.entry.line, value=None)
        chosen = tuple(WrittenSlice(name=name, node=place) for name, facts in groups.items() if facts)
        if not chosen:
            raise place.error(
                f"no slice of {written.probe} has facts; allowed: facts of at least one relation"
            )
    for part in chosen:
        if not groups[part.name]:
            found = "no 'unseen' key" if part.name == UNSEEN else f"no fact for it in {world.path.name}"
            raise part.node.error(f"empty slice {part.name!r}: found {found}; allowed: at least 1 fact")
    return tuple(_case(written, part, groups[part.name], world, draw) for part in chosen)


def _case(
    written: WrittenProbe, part: WrittenSlice, group: tuple[Fact, ...], world: World, draw: Draw
) -> Case:
    limit = part.limit
    if limit is None and part.name != UNSEEN:
        limit = written.limit
    facts = sample(sample(group, limit, draw.seed), draw.limit, draw.seed)
    metrics = SLICE_METRICS[slice_kind(written.probe, part.name)]
    facts, settings = _prepared(written, part, facts, group, world, draw.seed)
    return Case(
        id=f"{written.probe}[{part.name}]",
        suite=draw.suite,
        probe=written.probe,
        slice=part.name,
        facts=facts,
        relations=world.used(facts),
        settings=settings,
        gates=override((gate for gate in written.gates if gate.metric in metrics), part.gates),
        seed=draw.seed,
        line=part.node.line,
        judge=draw.judge,
    )


def _prepared(
    written: WrittenProbe,
    part: WrittenSlice,
    facts: tuple[Fact, ...],
    group: tuple[Fact, ...],
    world: World,
    seed: int,
) -> tuple[tuple[Fact, ...], Settings]:
    """Check that the facts have what the probe needs, fill in negatives and settle the settings."""
    if written.probe == "head_to_tail":
        world.need_questions(facts, written.probe)
        return facts, from_wire(HeadToTailSettings, written.settings)
    try:
        if written.probe == "reliability":
            world.need_questions(facts, written.probe)
            reliability = from_wire(ReliabilitySettings, written.settings)
            count = reliability.distractors
            filled = with_negatives(facts, world.facts, count, seed, at_least=_FEWEST_DISTRACTORS)
            return filled, reliability
        pool = world.by_relation[part.name]
        if not world.relations[part.name].frames:
            raise world.error(group[0], f"cannot be asked by monitor: relation {part.name!r} has no frames")
        monitor = from_wire(MonitorSettings, written.settings)
        # Over the whole relation, so that a sampled run asks what the full one asks.
        count = min(monitor.negatives, fewest_negatives(group, pool))
        return with_negatives(facts, pool, count, seed), dataclasses.replace(monitor, negatives=count)
    except SuiteError as error:
        if error.path is not None:
            raise
        raise part.node.error(f"slice {part.name!r}: {error}") from None


def _groups(written: WrittenProbe, world: World, seed: int) -> dict[str, tuple[Fact, ...]]:
    """Return the facts of every slice the probe could have; those that are not chosen may be empty."""
    if written.probe == "monitor":
        names = tuple(world.relations)
        _check_known(written, names, tuple(world.by_relation))
        return {name: world.by_relation.get(name, ()) for name in names}
    if written.probe == "head_to_tail":
        return _bucket_groups(written, world)
    chosen = None if written.slices is None else [part.name for part in written.slices]
    groups: dict[str, tuple[Fact, ...]] = {SEEN: (), UNSEEN: ()}
    if chosen is None or SEEN in chosen:
        groups[SEEN] = _seen(written, world)
    unseen = written.unseen
    if unseen is not None and (chosen is None or UNSEEN in chosen):
        groups[UNSEEN] = make_unseen(
            world.facts, count=unseen.count, seed=seed, as_of=unseen.as_of, expires=unseen.expires
        )
    return groups


def _seen(written: WrittenProbe, world: World) -> tuple[Fact, ...]:
    if written.relations is None:
        return world.facts
    ids = [str(node.value) for node in written.relations]
    for node in written.relations:
        if node.value not in world.by_relation:
            raise node.error(unknown("relation", str(node.value), world.by_relation, where="reliability"))
    return tuple(fact for fact in world.facts if fact.relation in ids)


def _bucket_groups(written: WrittenProbe, world: World) -> dict[str, tuple[Fact, ...]]:
    domains = dict.fromkeys(relation.domain for relation in world.relations.values())
    names = tuple(f"{domain}-{bucket}" for domain in domains for bucket in BUCKETS)
    _check_known(written, names, names)
    chosen = names if written.slices is None else [part.name for part in written.slices]
    groups: dict[str, list[Fact]] = {name: [] for name in names}
    for domain in domains:
        if not any(f"{domain}-{bucket}" in chosen for bucket in BUCKETS):
            continue
        facts = [fact for fact in world.facts if world.relations[fact.relation].domain == domain]
        for fact in facts:
            if fact.popularity is None:
                raise world.error(
                    fact, "has no 'popularity', which head_to_tail needs; allowed: a number from 0"
                )
        by_domain = written.settings.get("bucket_by") == "domain"
        scopes = [facts] if by_domain else [[f for f in facts if f.relation == r] for r in world.by_relation]
        buckets = {name: bucket for scope in scopes for name, bucket in fact_buckets(scope).items()}
        for fact in facts:
            groups[f"{domain}-{buckets[fact.id]}"].append(fact)
    return {name: tuple(facts) for name, facts in groups.items()}


def _check_known(written: WrittenProbe, names: tuple[str, ...], allowed: tuple[str, ...]) -> None:
    for part in written.slices or ():
        if part.name not in names:
            raise part.node.error(unknown("slice", part.name, allowed, where=written.probe))
