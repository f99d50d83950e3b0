"""Views of a run that all reports share: key metrics, tables, order of cases and verdicts, changed facts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from pytest_kbrel.catalogue import verdicts
from pytest_kbrel.catalogue.probes import PROBES, probe_named
from pytest_kbrel.catalogue.rules import GATE_RULES
from pytest_kbrel.records import (
    BUCKETS,
    JUDGEMENTS,
    CaseResult,
    Change,
    Correlation,
    Divergence,
    Judgement,
    MetricValue,
    Run,
    is_published,
)
from pytest_kbrel.reports.formatting import count, number, one_line, signed

# So many slices are named whose drop could not be excluded.
_OPEN = 3


@dataclass(frozen=True, slots=True)
class Group:
    """The cases of one table, what their rows are called, and the metrics that are its columns.

    ``row`` is what one row is about.
    """

    row: str
    title: str
    metrics: tuple[str, ...]
    cases: tuple[CaseResult, ...]
    labels: tuple[str, ...]

    @property
    def labelled(self) -> tuple[tuple[CaseResult, str], ...]:
        """The cases with their labels."""
        return tuple(zip(self.cases, self.labels, strict=True))


def ordered(run: Run) -> tuple[CaseResult, ...]:
    """Return the cases by node id: workers finish in any order, reports have one."""
    return tuple(sorted(run.cases, key=lambda case: case.nodeid))


def slices(run: Run) -> tuple[CaseResult, ...]:
    """Return the cases of single slices, not the aggregates."""
    return tuple(case for case in ordered(run) if not case.aggregate)


def aggregates(run: Run) -> tuple[CaseResult, ...]:
    """Return the cases over several cases, those over a whole suite first: they have most power."""
    cases = [case for case in ordered(run) if case.aggregate]
    return tuple(sorted(cases, key=lambda case: case.probe != "pooled"))


def metric(case: CaseResult, name: str) -> MetricValue | None:
    """Return the metric called ``name``, or ``None``."""
    return next((value for value in case.metrics if value.name == name), None)


def key_metrics(case: CaseResult) -> tuple[str, ...]:
    """Return the names of the headline metrics of this case, those it has."""
    names = [value.name for value in case.metrics]
    probe = probe_named(case.probe)
    if probe is None:
        return tuple(names)
    if case.aggregate:
        shown = {*probe.headlines, *(gate.metric for gate in case.gates)} if probe.brief_overall else names
        return tuple(name for name in names if name in shown)
    wanted = probe.headline[probe.kind(case.slice)]
    # A column of zeros is left out: most judges' replies can all be parsed.
    idle = {value.name for value in case.metrics if value.name == "unparsable" and not value.value}
    # A gated metric is always shown.
    gated = [gate.metric for gate in case.gates if gate.metric in names]
    return tuple(dict.fromkeys([name for name in wanted if name in names and name not in idle] + gated))


def controls(case: CaseResult, name: str) -> tuple[tuple[str, MetricValue], ...]:
    """Return what the metric ``name`` is held against: (kind of control, value), those that have one."""
    start = f"{name}_control_"
    values = [value for value in case.metrics if value.name.startswith(start) and value.value is not None]
    return tuple((value.name.removeprefix(start), value) for value in values)


def groups(run: Run) -> tuple[Group, ...]:
    """Return the tables of a run: one a probe, or one a kind of slice where these have their own metrics.

    Tests in Python that came to no case have one of their own: their probe is not known.
    """
    tables: list[Group] = []
    suites = {case.suite for case in run.cases}
    for probe in PROBES.values():
        of_probe = [case for case in slices(run) if case.probe == probe.name]
        for kind in probe.kinds:
            # By the name: a case that was not run, or is invalid, has no metrics to tell by.
            cases = tuple(case for case in of_probe if probe.kind(case.slice) == kind)
            if not cases:
                continue
            present = dict.fromkeys(name for case in cases for name in key_metrics(case))
            first = [name for name in probe.headlines if name in present]
            columns = tuple(dict.fromkeys([*first, *present]))
            title = f"{probe.title}, {kind}" if len(probe.kinds) > 1 else probe.title
            labels = tuple(_label(case, suites) for case in cases)
            tables.append(Group("slice", title, columns, cases, labels))
    tests = tuple(case for case in slices(run) if case.probe == "test")
    if tests:
        labels = tuple(_label(case, suites) for case in tests)
        tables.append(Group("test", "Tests in Python", (), tests, labels))
    return tuple(tables)


def _label(case: CaseResult, suites: set[str]) -> str:
    """Return the slice with its label, and the suite's name where the run has several."""
    title = relation_title(case.slice, case.label)
    if len(suites) == 1:
        return title
    stems = {suite: PurePosixPath(suite).name.removesuffix(".kb.yaml") for suite in suites}
    unique = len(set(stems.values())) == len(suites)
    return f"{title} ({stems[case.suite] if unique else case.suite})"


def relation_title(relation: str, label: str) -> str:
    """Return id and label of a relation, ``P176 manufacturer``; the id alone where no label is known."""
    return f"{relation} {label}" if label else relation


def case_title(case: CaseResult) -> str:
    """Return what a report calls a case: its id, with the label of its relation.

    ``monitor[P176 manufacturer]``
    """
    part = f"[{case.slice}]"
    if not case.label or not case.id.endswith(part):
        return case.id
    return f"{case.id.removesuffix(part)}[{relation_title(case.slice, case.label)}]"


def names(run: Run) -> dict[str, str]:
    """Return a name for each node id: with its suite where the run has several."""
    short = len({case.suite for case in run.cases}) == 1
    return {
        case.nodeid: case_title(case) if short else f"{case.suite}::{case_title(case)}" for case in run.cases
    }


def verdict(run: Run) -> Judgement:
    """Return the run's verdict: its worst case's; a run that is empty or broke off is never a pass.

    A run over a selection of cases is partial, not broken: it is judged by the cases it has. A waived
    failure is none.
    """
    words: set[Judgement] = {"pass" if case.waived else case.verdict for case in run.cases}
    if not run.cases or run.problems:
        words.add("invalid")
    return verdicts.worst(words)


def worst(run: Run) -> CaseResult | None:
    """Return the case that lost most facts."""
    losing = [case for case in slices(run) if case.lost]
    return max(losing, key=lambda case: len(case.lost)) if losing else None


def verdict_counts(run: Run) -> dict[str, int]:
    """Return how many cases have each verdict, all verdicts named, ``part`` only of a shard."""
    words = [word for word in JUDGEMENTS if word != "part" or run.shard is not None]
    return {word: sum(case.verdict == word for case in run.cases) for word in words}


def is_blessed(run: Run) -> bool:
    """Return True if the baseline is a blessed run, not a paper's figures."""
    return bool(run.baseline) and not is_published(run.baseline)


def baseline_note(run: Run) -> str:
    """Return the note that follows the name of a published baseline; empty for a blessed run."""
    return " (published figures, unpaired)" if is_published(run.baseline) else ""


def helper_models(run: Run) -> tuple[tuple[str, str], ...]:
    """Return which models judged the answers and wrote distractors: (what it did, its spec) each.

    The last one also has the share of replies that came from the cache; rules and facts are not named.
    """
    judge = dict(run.settings).get("judge", "rules")
    judges = [] if judge == "rules" else [("judged by", judge)]
    wrote = any(metric(case, "distractors_written") is not None for case in run.cases)
    others = [helper.spec for helper in run.helpers if helper.spec != judge]
    # The one model there is may do both.
    writers = others or ([judge] if wrote and judges else [])
    roles = [*judges, *(("distractors by", spec) for spec in writers)]
    environment = dict(run.environment)
    if roles and "helpers_asked" in environment:
        reused = f"{environment['helpers_reused']} of {environment['helpers_asked']} replies reused"
        roles[-1] = (roles[-1][0], f"{roles[-1][1]} ({reused} from earlier runs)")
    return tuple(roles)


def not_passed(run: Run) -> tuple[CaseResult, ...]:
    """Return the cases that did not pass, worst verdict first.

    Where no blessed run was asked for, a case without one is not unsettled: :func:`unjudged_count` counts it.
    """
    settled = {"pass"} if is_blessed(run) else {"pass", "no baseline"}
    cases = [case for case in ordered(run) if case.verdict not in settled]
    return tuple(sorted(cases, key=lambda case: verdicts.SEVERITY.index(case.verdict)))


def unjudged_count(run: Run) -> int:
    """Return how many gates were left unjudged because no baseline was asked for, or a paper lacks them."""
    if is_blessed(run):
        return 0
    return sum(gate.verdict == "no baseline" for case in run.cases for gate in case.gates)


def headline(run: Run) -> str:
    """Return how many cases have each verdict, worst first: ``2 fail (1 waived), 18 pass``."""
    counts = verdict_counts(run)
    waived = Counter(case.verdict for case in run.cases if case.waived)
    parts = [
        f"{counts[word]} {word}" + (f" ({waived[word]} waived)" if waived[word] else "")
        for word in verdicts.SEVERITY
        if counts.get(word)
    ]
    return ", ".join(parts) or "no case was decided"


def correlation_pairs(run: Run) -> tuple[tuple[Correlation, Correlation], ...]:
    """Return Pearson's and Spearman's correlation of each pair of figures that could be correlated."""
    rows: dict[tuple[str, str, str], dict[str, Correlation]] = {}
    for one in run.correlations:
        rows.setdefault((one.x, one.y, one.over), {})[one.method] = one
    pairs = [(both["pearson"], both["spearman"]) for both in rows.values() if len(both) == 2]
    return tuple(pair for pair in pairs if pair[0].r is not None)


UNANSWERABLE, UNBUCKETED = "unanswerable", "no bucket"
_LONGEST = 60
_ORDER: dict[str, int] = {bucket: at for at, bucket in enumerate(BUCKETS)}
_LAST = {UNANSWERABLE: len(BUCKETS) + 1, UNBUCKETED: len(BUCKETS) + 2}


@dataclass(frozen=True, slots=True)
class Part:
    """Numbers of facts of one bucket or relation that were lost and gained."""

    name: str
    lost: int
    gained: int
    label: str = ""

    @property
    def title(self) -> str:
        """The name with the label of a relation that has one."""
        return relation_title(self.name, self.label)


@dataclass(frozen=True, slots=True)
class ChangedFacts:
    """The facts lost and gained over all cases of a run, each once.

    Those of failed cases come first, then the group that lost most, then those that moved furthest.
    ``buckets`` go from head to tail and add up to all facts: those that have no answer are
    :data:`UNANSWERABLE`, and others of no bucket :data:`UNBUCKETED`. ``relations`` go from most to fewest
    lost facts; a fact without relation counts in none.
    """

    lost: tuple[Change, ...]
    gained: tuple[Change, ...]
    buckets: tuple[Part, ...]
    relations: tuple[Part, ...]

    @property
    def worst_relations(self) -> tuple[str, ...]:
        """The relation that lost most facts, or those that share this; empty where none lost any."""
        return tuple(part.name for part in self._worst)

    @property
    def worst_titles(self) -> tuple[str, ...]:
        """The titles of the :attr:`worst_relations`."""
        return tuple(part.title for part in self._worst)

    @property
    def _worst(self) -> tuple[Part, ...]:
        most = max((part.lost for part in self.relations), default=0)
        return tuple(part for part in self.relations if most and part.lost == most)


def changed_facts(run: Run) -> ChangedFacts:
    """Return the facts that ``run`` lost and gained: a fact that several cases lost is one fact.

    Its answers are those of a case that tells the probability of the anchor, if there is one.
    """
    lost = _first_of_each((case, change) for case in slices(run) for change in case.lost)
    gained = _first_of_each((case, change) for case in slices(run) for change in case.gained)
    labels = {change.relation: change.label for change in (*lost, *gained)}
    buckets = _parts(map(bucket_of, lost), map(bucket_of, gained))
    relations = _parts((change.relation for change in lost), (change.relation for change in gained))
    return ChangedFacts(
        lost=lost,
        gained=gained,
        buckets=tuple(sorted(buckets, key=lambda part: _bucket_order(part.name))),
        relations=tuple(
            replace(part, label=labels[part.name])
            for part in sorted(relations, key=lambda part: (-part.lost, -part.gained, part.name))
        ),
    )


def bucket_of(change: Change) -> str:
    """Return the popularity bucket of a fact; in words where it has no answer, or no bucket."""
    return (change.bucket or UNBUCKETED) if change.expected else UNANSWERABLE


def _bucket_order(bucket: str) -> int:
    return _ORDER.get(bucket, _LAST.get(bucket, len(_ORDER)))


def examples(changes: Sequence[Change], most: int) -> tuple[Change, ...]:
    """Return up to ``most`` of the changes that stand for all: one of each group, the largest group first.

    A group are the facts of one bucket and relation. Where there are fewer groups than ``most``, further
    facts follow in the order of :class:`ChangedFacts`.
    """
    first, others = dict[tuple[str, str], Change](), []
    for change in _largest_group_first(changes):
        if first.setdefault((bucket_of(change), change.relation), change) is not change:
            others.append(change)
    return (*first.values(), *others)[:most]


def _largest_group_first(changes: Iterable[Change]) -> list[Change]:
    changes = list(changes)
    buckets = Counter(map(bucket_of, changes))
    groups = Counter((bucket_of(change), change.relation) for change in changes)

    def place(change: Change) -> tuple[object, ...]:
        bucket = bucket_of(change)
        size = groups[bucket, change.relation]
        return (-buckets[bucket], _bucket_order(bucket), -size, change.relation, -abs(_fall(change) or 0.0))

    return sorted(changes, key=place)


def changes_headline(run: Run) -> str:
    """Return the headline of lost and gained facts; empty where no fact was compared with a baseline.

    ``12 facts lost, 5 gained; 45 of 1,694 answers changed; 9 of the 12 are head; worst P108``
    """
    changes = changed_facts(run)
    if not changes.lost and not changes.gained:
        compared = any(value.paired for case in slices(run) for value in case.metrics)
        return "; ".join(filter(None, ("no fact lost or gained", churn_text(run)))) if compared else ""
    parts = [f"{count(len(changes.lost), 'fact')} lost, {len(changes.gained)} gained", churn_text(run)]
    if changes.lost:
        parts.append(_share(changes.lost))
        case = worst(run)
        where = changes.worst_titles or ((names(run)[case.nodeid],) if case else ())
        parts.append(_worst([one_line(name, _LONGEST) for name in where]))
    return "; ".join(part for part in parts if part)


def churn_text(run: Run) -> str:
    """Return how many answers of all slices changed, whichever way: ``45 of 1,694 answers changed``.

    Empty where none was compared, and where none changed; the divergence stands there where it was measured.
    """
    churns = [case.churn for case in slices(run) if case.churn is not None]
    changed = sum(churn.texts for churn in churns)
    text = f"{changed:,} of {sum(churn.facts for churn in churns):,} answers changed" if changed else ""
    moved = [churn.divergence for churn in churns if churn.divergence is not None]
    return "; ".join(filter(None, (text, _divergence_text(moved) if moved else "")))


def _divergence_text(moved: Sequence[Divergence]) -> str:
    """Return the divergence over all slices: ``KL 0.031 nats, top-1 agreement 0.974``."""
    kl = sum(of.kl * of.facts for of in moved) / sum(of.facts for of in moved)
    agreed = sum(of.top1_agreement * of.positions for of in moved) / sum(of.positions for of in moved)
    return f"KL {number(kl)} nats, top-1 agreement {number(agreed)}"


def not_excluded(run: Run) -> str:
    """Return what a run without failures could not exclude: the open slices whose drop may be largest.

    ``not ruled out: a drop of accuracy by 0.105 in head_to_tail[culture-tail] (0.094 in one that lost
    nothing), ... and 4 more``. Empty where every slice passed, and where something failed.
    """
    if verdict(run) in ("fail", "invalid"):
        return ""
    ends = [
        (gate.high, gate, case)
        for case in slices(run)
        for gate in case.gates
        if gate.verdict == "inconclusive" and gate.high is not None and gate.unchanged is not None
        if GATE_RULES[gate.rule].allows_more > 0
    ]
    ends.sort(key=lambda end: -end[0])
    worst_of = {case.nodeid: (high, gate, case) for high, gate, case in reversed(ends)}
    if not worst_of:
        return ""
    shown = sorted(worst_of.values(), key=lambda end: -end[0])
    parts = [
        f"{gate.metric} worse by {number(high)} in {one_line(names(run)[case.nodeid])} "
        f"({number(gate.unchanged)} in a slice like it that lost nothing)"
        for high, gate, case in shown[:_OPEN]
    ]
    more = f", and {len(shown) - _OPEN} more" if len(shown) > _OPEN else ""
    return f"not ruled out: {', '.join(parts)}{more}"


def _worst(labels: Sequence[str]) -> str:
    if len(labels) < 3:
        return f"worst {' and '.join(labels)}" if labels else ""
    return f"worst {labels[0]} and {len(labels) - 1} others"


def origin(change: Change) -> str:
    """Return relation and bucket of a fact, those that are known: ``P36 capital, tail``."""
    relation = relation_title(change.relation, change.label)
    return ", ".join(one_line(part, _LONGEST) for part in (relation, change.bucket) if part)


def probability(change: Change) -> str:
    """Return how the anchor's probability moved, ``0.912 → 0.401 (-0.511)``; empty where it is unknown."""
    old, new = change.old_probability, change.new_probability
    if old is None and new is None:
        return ""
    by = "" if old is None or new is None else f" ({signed(new - old)})"
    return f"{number(old)} → {number(new)}{by}"


def _first_of_each(changes: Iterable[tuple[CaseResult, Change]]) -> tuple[Change, ...]:
    by_fact: dict[tuple[str, str], Change] = {}
    severity: dict[tuple[str, str], int] = {}
    for case, change in changes:
        key = (case.suite, change.fact_id)
        rank = verdicts.SEVERITY.index("pass" if case.waived else case.verdict)
        severity[key] = min(rank, severity.get(key, rank))
        first = by_fact.get(key)
        if first is None:
            by_fact[key] = change
            continue
        shown = change if _fall(first) is None and _fall(change) is not None else first
        by_fact[key] = replace(
            shown,
            relation=first.relation or change.relation,
            label=first.label or change.label,
            bucket=first.bucket or change.bucket,
        )
    places = {id(change): at for at, change in enumerate(_largest_group_first(by_fact.values()))}
    keys = sorted(by_fact, key=lambda key: (severity[key], places[id(by_fact[key])]))
    return tuple(by_fact[key] for key in keys)


def _fall(change: Change) -> float | None:
    if change.old_probability is None or change.new_probability is None:
        return None
    return change.old_probability - change.new_probability


def _parts(lost: Iterable[str], gained: Iterable[str]) -> list[Part]:
    of_lost, of_gained = Counter(filter(None, lost)), Counter(filter(None, gained))
    return [Part(name, of_lost[name], of_gained[name]) for name in sorted(of_lost | of_gained)]


def _share(lost: Sequence[Change]) -> str:
    """Return the bucket of at least half of the lost facts, in words; empty if there is none."""
    groups = Counter(map(bucket_of, lost))
    name = max(sorted(groups, key=_bucket_order), key=lambda group: groups[group])
    of = len(lost)
    if name == UNBUCKETED or 2 * groups[name] < of:
        return ""
    if of == 1:
        return f"it is {name}"
    if groups[name] == of:
        return f"all of them are {name}"
    return f"{groups[name]} of the {of} {'is' if groups[name] == 1 else 'are'} {name}"
