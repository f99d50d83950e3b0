"""Cases: the slices of each probe that run, and the aggregates over them."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

from pytest_kbrel.catalogue.metrics import CHANGE_METRICS, SLICE_METRICS
from pytest_kbrel.catalogue.probes import PROBES, Slicing, reliability_slice, slice_name
from pytest_kbrel.errors import SuiteError
from pytest_kbrel.facts.distractors import (
    Alike,
    fewest_negatives,
    with_alike_negatives,
    with_negatives,
)
from pytest_kbrel.facts.located import Node, unknown
from pytest_kbrel.facts.readers.base import relation_id
from pytest_kbrel.facts.sampling import in_domain_examples, sample
from pytest_kbrel.records import (
    AggregateCase,
    Case,
    CaseKind,
    Control,
    ExampleWording,
    Fact,
    Gate,
    MonitorSettings,
    Pairs,
    ProbeSettings,
    Relation,
    ReliabilitySettings,
    Shot,
    base_language,
    record,
)
from pytest_kbrel.serialization import from_wire
from pytest_kbrel.suites.dataset import (
    World,
    bucket_groups,
    controls_of,
    example_repository,
    reliability_groups,
)
from pytest_kbrel.suites.edits import role_groups
from pytest_kbrel.suites.gates import merged_gates
from pytest_kbrel.suites.parse import Limit, WrittenProbe, WrittenSlice, WrittenSuite

_SHOWN = 6


@record
class SharedSettings:
    """Settings of a run that all cases share: names, sampling and judge.

    ``limit`` is the user's own, on top of the suite's; ``language`` is that of facts that name none.
    """

    suite: str
    limit: Limit
    judge: str = "rules"
    uninformative: Pairs = ()
    language: str = ""


def probe_cases(
    written: WrittenProbe, world: World, shared: SharedSettings
) -> tuple[Case, ...]:
    """Return the cases of one probe, in the order of the file."""
    groups = _GROUPS[written.probe.slicing](written, world)
    full = [name for name, facts in groups.items() if facts]
    chosen = written.slices
    if chosen is None:
        whole = Node(path=written.entry.path, line=written.entry.line, value=None)
        chosen = tuple(WrittenSlice(name=name, node=whole) for name in full)
        if not chosen:
            raise whole.error(
                f"no slice of {written.probe.name} has facts; allowed: facts of at least one relation"
            )
    for part in chosen:
        if part.name not in groups:
            raise part.node.error(
                unknown("slice", part.name, groups, where=written.probe.name)
            )
        if not groups[part.name]:
            fault, allowed = f"no fact for it in {world.path.name}", "at least 1 fact"
            if full:
                allowed += f"; {', '.join(full[:_SHOWN])} have some"
            if written.unseen is None and written.probe.kind(part.name) == "unseen":
                fault = f"no 'unseen' key under {written.probe.name}"
                allowed = (
                    "unseen: {count: 200, as_of: 2026-11-01, expires: 2028-01-01} there, or facts whose "
                    "object is null"
                )
            raise part.node.error(
                f"empty slice {part.name!r}: found {fault}; allowed: {allowed}"
            )
    sampled = {}
    for part in chosen:
        # A probe's general limit is for known facts.
        limit, is_unseen = part.limit, written.probe.kind(part.name) == "unseen"
        if limit is None and not is_unseen:
            limit = written.limit
        cluster = part.cluster or written.cluster
        sampled[part.name] = sample(groups[part.name], limit, world.seed, cluster)
    return tuple(
        _case(written, part, groups[part.name], sampled, world, shared)
        for part in chosen
    )


def _case(
    written: WrittenProbe,
    part: WrittenSlice,
    group: tuple[Fact, ...],
    sampled: Mapping[str, tuple[Fact, ...]],
    world: World,
    shared: SharedSettings,
) -> Case:
    cluster = part.cluster or written.cluster
    facts = sample(sampled[part.name], shared.limit, world.seed, cluster)
    metrics = {*SLICE_METRICS[written.probe.kind(part.name)], *CHANGE_METRICS}
    stated, reads = written.settings, written.probe.reads
    alike: Alike = ()
    try:
        if reads == "contexts":
            count = _contexts(written, part, group, world)
            stated = {**stated, "negatives": count}
            pool = world.by_relation[part.name]
            facts = with_negatives(facts, pool, count, world.seed)
        else:
            for fact in facts:
                if not fact.questions(world.relations.get(fact.relation)):
                    raise world.error(
                        fact,
                        f"has no question, which {written.probe.name} needs: found neither frames of relation "
                        f"{fact.relation!r} nor 'question' in the fact; allowed: either",
                    )
        if written.probe.slicing == "role":
            stated = {**stated, "rounding": part.name.partition("-")[2]}
        if reads == "distractors":
            parts = reliability_slice(part.name)
            stated = {**stated, "prompt": parts.prompt if parts else ""}
        if reads == "distractors" or written.probe.kind(part.name) == "forget":
            facts, alike = with_alike_negatives(
                facts,
                world.facts,
                world.relations,
                from_wire(ReliabilitySettings, stated),
                world.seed,
            )
    except SuiteError as error:
        if error.path is not None:
            raise
        raise part.node.error(f"slice {part.name!r}: {error}") from None
    if shared.language:
        facts = tuple(
            fact
            if fact.language
            else dataclasses.replace(fact, language=shared.language)
            for fact in facts
        )
    settings: ProbeSettings = from_wire(written.probe.settings, stated)
    if isinstance(settings, ExampleWording):
        wordings = _wordings(written, part, settings, world, facts)
        settings = dataclasses.replace(settings, wordings=wordings)
        if settings.instructions == "translated":
            spoken, *others = sorted({base_language(fact.language) for fact in facts})
            if others:
                raise part.node.error(
                    f"slice {part.name!r}: 'instructions: translated' needs facts in one language, found: "
                    f"{', '.join([spoken, *others])}; allowed: slices by language, or no translation"
                )
            settings = dataclasses.replace(settings, instructions=spoken)
    shots: tuple[tuple[str, tuple[Shot, ...]], ...] = ()
    if getattr(settings, "prompt", "") == "in-domain":
        shots = in_domain_examples(
            facts, world.by_relation, world.relations, world.seed
        )
    controls: tuple[Control, ...] = ()
    repository: tuple[Shot, ...] = ()
    if reads == "distractors":
        is_known = written.probe.kind(part.name) == "known"
        pool = world.facts if is_known else group
        is_asked = getattr(settings, "controls", "") == "asked"
        controls = controls_of(facts, pool if is_asked else None, world, part)
        repository = example_repository(written, sampled, world, settings)
    used = {fact.relation for fact in facts}
    relations = tuple(of for name, of in world.relations.items() if name in used)
    return Case(
        id=f"{written.probe.name}[{part.name}]",
        suite=shared.suite,
        probe=written.probe.name,
        slice=part.name,
        facts=facts,
        relations=relations,
        settings=settings,
        gates=()
        if part.gates is None
        else merged_gates(
            (gate for gate in written.gates if gate.metric in metrics), part.gates
        ),
        seed=world.seed,
        line=part.node.line,
        judge=shared.judge,
        uninformative=shared.uninformative,
        integrity=written.integrity,
        repository=repository,
        shots=shots,
        controls=controls,
        alike=alike,
        notes=_notes(len(facts), alike, shots) + _proxies(written, relations),
        cluster=cluster,
        dated=any(fact.former for fact in world.facts),
    )


def _wordings(
    written: WrittenProbe,
    part: WrittenSlice,
    settings: ExampleWording,
    world: World,
    facts: Sequence[Fact],
) -> int:
    """Return the slice's number of wordings, which every fact must have."""
    if written.probe.kind(part.name) == "unseen":
        return 1
    count = part.wordings or settings.wordings
    for fact in facts if count > 1 else ():
        own = len(fact.questions(world.relations.get(fact.relation)))
        if own < count:
            raise part.node.error(
                f"slice {part.name!r}: found wordings: {count}, and {own} of the question of fact "
                f"{fact.id!r}; allowed: 1 to {own}, or more 'frames' of relation {fact.relation!r}"
            )
    return count


def _notes(
    count: int, alike: Alike, shots: tuple[tuple[str, tuple[Shot, ...]], ...]
) -> tuple[str, ...]:
    """Return notes on facts of a case that are not asked as the others are."""
    of_all, notes = f"of {count} facts", []
    if few := sum(share < 1 for _, share in alike):
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


def _proxies(written: WrittenProbe, relations: Sequence[Relation]) -> tuple[str, ...]:
    """Return a note that names what stands for the popularity by which a case was chosen."""
    named = defaultdict(list)
    for one in relations:
        if one.proxy:
            named[f"{one.proxy} ({one.worth})"].append(one.id)
    if written.probe.slicing != "bucket" or not named:
        return ()
    listed = "; ".join(f"{name}: {', '.join(ids)}" for name, ids in named.items())
    return (f"buckets by proxies of popularity: {listed}",)


def _contexts(
    written: WrittenProbe, part: WrittenSlice, group: tuple[Fact, ...], world: World
) -> int:
    """Return the number of wrong contexts that every fact of the relation can have."""
    settings = from_wire(MonitorSettings, written.settings)
    relation = world.relations[part.name]
    if not relation.frames:
        raise world.error(
            group[0],
            f"cannot be asked by {written.probe.name}: relation {part.name!r} has no frames; allowed: "
            f"'frames', questions with [X], under {part.name} in the relations file, or 'slices' without it",
        )
    if settings.formats == "all" and not relation.openings:
        raise part.node.error(
            f"'formats: all' needs 'statements' of relation {part.name!r}, one of them with [Y] at its "
            f"end; found {len(relation.statements)}, none of which ends so"
        )
    # Over the whole relation, so that a sampled run asks what the full one asks.
    fewest = fewest_negatives(group, world.by_relation[part.name])
    return min(settings.negatives, fewest)


def _own_groups(written: WrittenProbe, world: World) -> dict[str, tuple[Fact, ...]]:
    groups = defaultdict(list)
    rest = "other" if any(fact.group for fact in world.facts) else "all"
    for fact in world.facts:
        try:
            name = relation_id(fact.group or rest)
        except ValueError as error:
            raise world.error(
                fact, f"has a group that names no slice: {error}"
            ) from None
        if written.probe.is_overall(name):
            raise world.error(
                fact, f"has the group {name!r}, which names the case over all groups"
            )
        groups[name].append(fact)
    return {name: tuple(facts) for name, facts in groups.items()}


# Functions that return the facts of every slice a probe could have; those not chosen may be empty.
_GROUPS: dict[Slicing, Callable[[WrittenProbe, World], dict[str, tuple[Fact, ...]]]] = {
    "relation": lambda written, world: {
        name: world.by_relation.get(name, ()) for name in world.relations
    },
    "bucket": bucket_groups,
    "group": _own_groups,
    "knowledge": reliability_groups,
    "role": role_groups,
}


def aggregate_cases(
    written: WrittenProbe, cases: Sequence[Case]
) -> tuple[AggregateCase, ...]:
    """Make the cases over the slices of a probe: with two or more slices, or with gates for it.

    That is one over all slices; where a probe asks in several prompt settings, one a setting.
    """
    settings = defaultdict(list)
    by = written.probe.overall_by
    for case in cases:
        setting = getattr(case.settings, by) if by else ""
        settings[setting].append(case)
    several = len(settings) > 1
    return tuple(
        _over(
            written,
            members,
            written.probe.name,
            slice_name("overall", "", setting) if several else "overall",
        )
        for setting, members in settings.items()
        if _has_overall(written, members, setting)
    )


def _has_overall(written: WrittenProbe, cases: Sequence[Case], setting: str) -> bool:
    """Return True for two or more slices, or gates over them; ``SuiteError`` where a gate lacks a slice."""
    probe = written.probe
    slices = [case.slice for case in cases]
    present = {probe.part(name) for name in slices}
    for gate in written.overall_gates:
        needs = probe.overall_needs.get(gate.metric, ())
        lacking = [part for part in needs if part not in present]
        if not needs and probe.any_part and present.isdisjoint(probe.any_part):
            lacking = [", ".join(probe.any_part)]
        if lacking:
            wanted = slice_name(lacking[0], "", setting)
            fault = f"{gate.metric} needs a slice {wanted}, found: {', '.join(slices)}"
            raise _refused(written, gate, fault, "such a slice, or no gate")
        weak = {
            one.id for case in cases for one in case.relations if one.worth == "weak"
        }
        if gate.metric == "gap" and weak:
            fault = f"gap over popularities that are weak proxies, found: {', '.join(sorted(weak))}"
            allowed = "slices without them, page views as popularity, or no gate"
            raise _refused(written, gate, fault, allowed)
    return bool((cases[1:] and probe.overall_metrics) or written.overall_gates)


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


def pooled_case(
    written: WrittenSuite, cases: Sequence[Case], world: World
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
    facts = _parallel(written, members, world)
    unchecked = {
        base_language(fact.language)
        for case in members
        for fact in case.facts
        for of in case.relations
        if of.id == fact.relation and not of.checked
    }
    notes = (
        f"the questions in {', '.join(sorted(unchecked))} were not checked by a native speaker",
    )
    made = _over(written, members, "pooled", "overall")
    return (dataclasses.replace(made, facts=facts, notes=notes if unchecked else ()),)


def _parallel(
    written: WrittenSuite, cases: Sequence[Case], world: World
) -> tuple[Fact, ...]:
    """Return the facts to compare between the languages of cases, and others whose objects these may name.

    Raises ``SuiteError`` where a gate has none, or two are one.
    """
    spoken = {base_language(fact.language) for case in cases for fact in case.facts}
    named: dict[tuple[str, str], Fact] = {}
    for fact in filter(lambda fact: fact.parallel, world.facts):
        language = fact.language or written.language
        key = base_language(language), fact.parallel
        if key in named:
            raise world.error(
                fact,
                f"has the 'parallel' {fact.parallel!r} of {named[key].id!r}, found both in {key[0]!r}; allowed: "
                "one fact of that name in a language",
            )
        if key[0] in spoken:
            named[key] = dataclasses.replace(fact, language=language)
    languages = {language for language, _ in named}
    if len(languages) > 1:
        return tuple(named.values())
    for gate in written.overall_gates:
        if gate.metric in ("consistency", "agreement"):
            raise SuiteError(
                f"{gate.metric} needs facts with 'parallel' in two languages, found: "
                f"{', '.join(languages) or 'none'}; allowed: such facts, or no gate",
                written.root.path,
                gate.line,
            )
    return ()


def check_gates(written: WrittenProbe, cases: Sequence[Case]) -> None:
    """Raise ``SuiteError`` on a gate that nothing would decide.

    That is one of the probe whose metric no slice has, or one whose metric needs a setting that the probe
    does not have.
    """
    kinds = {written.probe.kind(case.slice) for case in cases}
    metrics = {name for kind in kinds for name in SLICE_METRICS[kind]}
    for gate in written.gates:
        if gate.metric not in metrics | CHANGE_METRICS.keys():
            slices = ", ".join(case.slice for case in cases)
            fault = f"no slice has the metric {gate.metric}, found: {slices}"
            raise _refused(written, gate, fault, "a slice with it, or no gate")
    for case in cases:
        for gate in case.gates:
            if gate.metric == "outdated" and not case.dated:
                fault = "outdated needs facts with 'former' objects, found none"
                raise _refused(written, gate, fault, "some that have, or no gate")
            key, value = written.probe.setting_needs.get(gate.metric, ("", ""))
            setting = getattr(case.settings, key) if key else value
            if setting != value:
                asked = f"'{key}: {value}' of {written.probe.name}"
                fault = f"{gate.metric} is measured with {asked}, found: {setting}"
                raise _refused(written, gate, fault, "that setting, or no gate")


def _refused(written: WrittenProbe, gate: Gate, fault: str, allowed: str) -> SuiteError:
    return SuiteError(f"{fault}; allowed: {allowed}", written.entry.path, gate.line)
