"""Cases: the slices of each probe that run, and the aggregates over them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

from pytest_kbrel.catalogue.metrics import CHANGE_METRICS, SLICE_METRICS
from pytest_kbrel.catalogue.probes import PROBES, Slicing
from pytest_kbrel.errors import SuiteError
from pytest_kbrel.facts.distractors import (
    DrawnNegatives,
    fewest_negatives,
    with_negatives,
)
from pytest_kbrel.facts.located import Node, unknown
from pytest_kbrel.facts.sampling import in_domain_examples, sample
from pytest_kbrel.records import (
    AggregateCase,
    Case,
    CaseKind,
    ExampleWording,
    Fact,
    Gate,
    MonitorSettings,
    ProbeSettings,
    Shot,
    record,
)
from pytest_kbrel.serialization import from_wire
from pytest_kbrel.suites.dataset import World, bucket_groups
from pytest_kbrel.suites.gates import merged_gates
from pytest_kbrel.suites.parse import Limit, WrittenProbe, WrittenSlice, WrittenSuite
from pytest_kbrel.suites.reliability import (
    reliability_groups,
    sample_of_slice,
    with_distractors,
    with_examples_and_controls,
)

_SHOWN = 6


@record
class SharedSettings:
    """Settings of a run that all cases share: names, sampling and judge.

    ``limit`` is the user's own, on top of the suite's; ``language`` is that of facts that name none.
    """

    suite: str
    limit: Limit
    judge: str = "rules"
    uninformative: tuple[tuple[str, str], ...] = ()
    language: str = ""


def probe_cases(
    written: WrittenProbe, world: World, shared: SharedSettings
) -> tuple[Case, ...]:
    """Return the cases of one probe, in the order of the file."""
    groups = _GROUPS[written.probe.slicing](written, world)
    chosen = written.slices
    if chosen is None:
        whole = Node(path=written.entry.path, line=written.entry.line, value=None)
        chosen = tuple(
            WrittenSlice(name=name, node=whole)
            for name, facts in groups.items()
            if facts
        )
        if not chosen:
            raise whole.error(
                f"no slice of {written.probe.name} has facts; allowed: facts of at least one relation"
            )
    for part in chosen:
        if not groups[part.name]:
            full = [name for name, facts in groups.items() if facts][:_SHOWN]
            fault, allowed = f"no fact for it in {world.path.name}", "at least 1 fact"
            if full:
                allowed += f"; {', '.join(full)} have some"
            if written.unseen is None and written.probe.kind(part.name) == "unseen":
                fault = f"no 'unseen' key under {written.probe.name}"
                allowed = (
                    "unseen: {count: 200, as_of: 2026-11-01, expires: 2028-01-01} there, or facts whose "
                    "object is null"
                )
            raise part.node.error(
                f"empty slice {part.name!r}: found {fault}; allowed: {allowed}"
            )
    cases = tuple(
        _case(written, part, groups[part.name], world, shared) for part in chosen
    )
    if written.probe.reads != "distractors":
        return cases
    return with_examples_and_controls(written, chosen, groups, cases, world)


def fact_ids(written: WrittenSuite, world: World) -> set[str]:
    """Return the ids of all facts that the suite may ask under its own seed, whatever the limits."""
    ids = set(world.locations)
    own = dataclasses.replace(world, seed=written.seed)
    for probe in written.probes:
        # No line of the facts files has those that are made.
        if probe.probe.slicing == "knowledge":
            groups = reliability_groups(probe, own)
            ids |= {fact.id for facts in groups.values() for fact in facts}
    return ids


def _case(
    written: WrittenProbe,
    part: WrittenSlice,
    group: tuple[Fact, ...],
    world: World,
    shared: SharedSettings,
) -> Case:
    cluster = part.cluster or written.cluster
    facts = sample(
        sample_of_slice(written, part, group, world),
        shared.limit,
        world.seed,
        cluster,
    )
    metrics = {*SLICE_METRICS[written.probe.kind(part.name)], *CHANGE_METRICS}
    settings: ProbeSettings
    try:
        if written.probe.reads == "question":
            world.need_questions(facts, written.probe.name)
            drawn, settings = (
                DrawnNegatives(facts=facts),
                from_wire(written.probe.settings, written.settings),
            )
        elif written.probe.reads == "contexts":
            drawn, settings = _with_contexts(written, part, facts, group, world)
        else:
            drawn, settings = with_distractors(written, part, facts, world)
    except SuiteError as error:
        if error.path is not None:
            raise
        raise part.node.error(f"slice {part.name!r}: {error}") from None
    settings, facts = (
        _with_wordings(written, part, settings, world, drawn.facts),
        drawn.facts,
    )
    if shared.language:
        facts = tuple(
            fact
            if fact.language
            else dataclasses.replace(fact, language=shared.language)
            for fact in facts
        )
    shots: tuple[tuple[str, tuple[Shot, ...]], ...] = ()
    if getattr(settings, "prompt", "") == "in-domain":
        shots = in_domain_examples(
            facts, world.by_relation, world.relations, world.seed
        )
    return Case(
        id=f"{written.probe.name}[{part.name}]",
        suite=shared.suite,
        probe=written.probe.name,
        slice=part.name,
        facts=facts,
        relations=world.used(facts),
        settings=settings,
        gates=merged_gates(
            (gate for gate in written.gates if gate.metric in metrics), part.gates
        ),
        seed=world.seed,
        line=part.node.line,
        judge=shared.judge,
        uninformative=shared.uninformative,
        integrity=written.integrity,
        shots=shots,
        alike=drawn.alike,
        notes=_notes(drawn, shots),
        cluster=cluster,
    )


def _with_wordings(
    written: WrittenProbe,
    part: WrittenSlice,
    settings: ProbeSettings,
    world: World,
    facts: Sequence[Fact],
) -> ProbeSettings:
    """Return the settings with the slice's number of wordings, which every fact must have."""
    if not isinstance(settings, ExampleWording):
        return settings
    count = settings.wordings if part.wordings is None else part.wordings
    if written.probe.kind(part.name) == "unseen":
        count = 1
    if count == 1:
        return dataclasses.replace(settings, wordings=1)
    fewest, fact = min(
        (
            (len(fact.questions(world.relations.get(fact.relation))), fact)
            for fact in facts
        ),
        key=lambda pair: pair[0],
    )
    if count > fewest:
        raise part.node.error(
            f"slice {part.name!r}: found wordings: {count}, and {fewest} of the question of fact "
            f"{fact.id!r}; allowed: 1 to {fewest}, or more 'frames' of relation {fact.relation!r}"
        )
    return dataclasses.replace(settings, wordings=count)


def _notes(
    drawn: DrawnNegatives, shots: tuple[tuple[str, tuple[Shot, ...]], ...]
) -> tuple[str, ...]:
    """Return notes on facts of a case that are not asked as the others are."""
    of_all, notes = f"of {len(drawn.facts)} facts", []
    if few := sum(share < 1 for _, share in drawn.alike):
        notes.append(
            f"{few} {of_all}: the data have too few wrong answers of the kind of the right one, so that some "
            "distractors are of another (distractors_alike)"
        )
    if bare := sum(not examples for _, examples in shots):
        notes.append(
            f"{bare} {of_all}: no other fact of the relation can be an in-domain example, so that the "
            "examples of 'few-shot' are shown"
        )
    return tuple(notes)


def _with_contexts(
    written: WrittenProbe,
    part: WrittenSlice,
    facts: tuple[Fact, ...],
    group: tuple[Fact, ...],
    world: World,
) -> tuple[DrawnNegatives, MonitorSettings]:
    """Return the facts with equally many negatives each, and the settings with their number."""
    pool = world.by_relation[part.name]
    relation = world.relations[part.name]
    if not relation.frames:
        raise world.error(
            group[0],
            f"cannot be asked by {written.probe.name}: relation {part.name!r} has no frames; allowed: "
            f"'frames', questions with [X], under {part.name} in the relations file, or 'slices' without it",
        )
    settings = from_wire(MonitorSettings, written.settings)
    if settings.formats == "all" and not relation.openings:
        raise part.node.error(
            f"'formats: all' needs 'statements' of relation {part.name!r}, one of them with [Y] at its "
            f"end; found {len(relation.statements)}, none of which ends so"
        )
    # Over the whole relation, so that a sampled run asks what the full one asks.
    count = min(settings.negatives, fewest_negatives(group, pool))
    drawn = DrawnNegatives(facts=with_negatives(facts, pool, count, world.seed))
    return drawn, dataclasses.replace(settings, negatives=count)


def _relation_groups(
    written: WrittenProbe, world: World
) -> dict[str, tuple[Fact, ...]]:
    for part in written.slices or ():
        if part.name not in world.relations:
            raise part.node.error(
                unknown("slice", part.name, world.by_relation, where=written.probe.name)
            )
    return {name: world.by_relation.get(name, ()) for name in world.relations}


# Functions that return the facts of every slice a probe could have; those not chosen may be empty.
_GROUPS: dict[Slicing, Callable[[WrittenProbe, World], dict[str, tuple[Fact, ...]]]] = {
    "relation": _relation_groups,
    "bucket": bucket_groups,
    "knowledge": reliability_groups,
}


def aggregate_cases(
    written: WrittenProbe, cases: Sequence[Case]
) -> tuple[AggregateCase, ...]:
    """Make the cases over the slices of a probe: with two or more slices, or with gates for it.

    That is one over all slices; where a probe asks in several prompt settings, one a setting.
    """
    if not written.probe.overall_by:
        return _aggregate(written, cases, "overall")
    settings: dict[str, list[Case]] = {}
    for case in cases:
        settings.setdefault(
            getattr(case.settings, written.probe.overall_by), []
        ).append(case)
    several = len(settings) > 1
    return tuple(
        aggregate
        for setting, members in settings.items()
        for aggregate in _aggregate(
            written, members, f"overall-{setting}" if several else "overall"
        )
    )


def _aggregate(
    written: WrittenProbe, cases: Sequence[Case], name: str
) -> tuple[AggregateCase, ...]:
    if len(cases) < 2 and not written.overall_gates:
        return ()
    probe = written.probe
    needs = probe.overall_needs
    slices = [case.slice for case in cases]
    present = [probe.part(name) for name in slices]
    setting = getattr(cases[0].settings, probe.overall_by) if probe.overall_by else ""
    for gate in written.overall_gates:
        lacking = [part for part in needs.get(gate.metric, ()) if part not in present]
        if gate.metric not in needs and not {*present} & {*probe.any_part}:
            lacking = [", ".join(probe.any_part)]
        if lacking and lacking[0]:
            wanted = f"{lacking[0]}-{setting}" if setting else lacking[0]
            message = (
                f"{gate.metric} needs a slice {wanted}, found: {', '.join(slices)}"
            )
            raise _error(written, gate, f"{message}; allowed: such a slice, or no gate")
    return (_over(written, cases, probe.name, name),)


def _over(
    written: WrittenProbe | WrittenSuite,
    cases: Sequence[Case],
    kind: CaseKind,
    name: str,
) -> AggregateCase:
    return AggregateCase(
        id=f"{kind}[{name}]",
        suite=cases[0].suite,
        probe=kind,
        slice=name,
        members=tuple(case.id for case in cases),
        gates=written.overall_gates,
        line=written.overall_line,
    )


def _error(written: WrittenProbe, gate: Gate, message: str) -> SuiteError:
    return SuiteError(message, written.entry.path, gate.line)


def pooled_case(
    written: WrittenSuite, cases: Sequence[Case]
) -> tuple[AggregateCase, ...]:
    """Make the case over all slices of all probes: with two or more of them, or with gates for it.

    A slice that is part of another (the top tenth is part of the head) would count twice.
    """
    members = [
        case
        for case in cases
        if PROBES[case.probe].part(case.slice) not in PROBES[case.probe].subsets
    ]
    if written.overall_gates and not members:
        slices = ", ".join(case.id for case in cases)
        raise SuiteError(
            f"'overall' needs a slice that is not part of another, found: {slices}; allowed: one such slice",
            written.root.path,
            written.overall_line,
        )
    if not members or (len(members) < 2 and not written.overall_gates):
        return ()
    return (_over(written, members, "pooled", "overall"),)


def check_gate_metrics(written: WrittenProbe, cases: Sequence[Case]) -> None:
    """Raise ``SuiteError`` on a gate of the probe that no slice has a metric for: nothing would decide it."""
    for gate in written.gates:
        metrics = {
            name
            for case in cases
            for name in SLICE_METRICS[written.probe.kind(case.slice)]
        }
        if gate.metric not in metrics | CHANGE_METRICS.keys():
            slices = ", ".join(case.slice for case in cases)
            message = f"no slice has the metric {gate.metric}, found: {slices}"
            raise _error(
                written, gate, f"{message}; allowed: a slice with it, or no gate"
            )


def check_gate_settings(written: WrittenProbe, cases: Sequence[Case]) -> None:
    """Raise ``SuiteError`` on a gate whose metric needs a setting that the probe does not have."""
    gates = [(case.settings, gate) for case in cases for gate in case.gates]
    for settings, gate in gates:
        key, value = written.probe.setting_needs.get(gate.metric, ("", ""))
        setting = getattr(settings, key) if key else value
        if setting != value:
            name = written.probe.name
            message = f"{gate.metric} is measured with '{key}: {value}' of {name}, found: {setting}"
            raise _error(written, gate, f"{message}; allowed: that setting, or no gate")
