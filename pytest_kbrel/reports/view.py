"""The view of a finished run that all reports lay out: its sentences, tables, and cases in their order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from types import MappingProxyType
from typing import NamedTuple

from pytest_kbrel.catalogue import verdicts
from pytest_kbrel.catalogue.probes import PROBES, probe_named
from pytest_kbrel.catalogue.rules import GATE_RULES
from pytest_kbrel.records import (
    CaseResult,
    Churn,
    Correlation,
    Judgement,
    MetricValue,
    Run,
    is_published,
)
from pytest_kbrel.reports import phrases, reasons
from pytest_kbrel.reports.changes import UNBUCKETED, ChangedFacts, changed_facts
from pytest_kbrel.reports.formatting import (
    count,
    is_blessed,
    metric,
    metric_title,
    names,
    number,
    one_line,
    ordered,
    relation_title,
    reused,
    slices,
    suites,
)

_LONGEST = 60


class Group(NamedTuple):
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


def better(cases: Iterable[CaseResult], name: str) -> str:
    """Return whether ``higher`` or ``lower`` is better of a metric; empty where no case has it."""
    values = (metric(case, name) for case in cases)
    return next((value.better for value in values if value is not None), "")


def key_figures(case: CaseResult) -> list[MetricValue]:
    """Return the headline metrics of a case, those it has; a gated metric is one."""
    values = {value.name: value for value in case.metrics}
    probe, gated = probe_named(case.probe), [gate.metric for gate in case.gates]
    wanted = list(values)
    if probe is not None and not case.aggregate:
        wanted = [*probe.headline[probe.kind(case.slice)], *gated]
    elif probe is not None and probe.brief_overall:
        wanted = [name for name in values if name in (*probe.headlines, *gated)]
    # A column of zeros is left out: most judges' replies can all be parsed.
    if "unparsable" not in gated and not getattr(values.get("unparsable"), "value", 0):
        wanted = [name for name in wanted if name != "unparsable"]
    return [values[name] for name in dict.fromkeys(wanted) if name in values]


def named_apart(
    figures: Iterable[tuple[str, CaseResult, float | None]],
) -> list[tuple[str, float | None]]:
    """Return figures by name; where two suites have the same one, the node ids keep them apart."""
    figures = list(figures)
    counts = Counter(name for name, _, _ in figures)
    return [
        (name if counts[name] == 1 else f"{name} ({case.nodeid})", value)
        for name, case, value in figures
    ]


@dataclass(frozen=True)
class View:
    """What the reports say of a finished run; each of them only lays it out.

    An empty sentence says that there is nothing to tell.
    """

    run: Run

    @cached_property
    def verdict(self) -> Judgement:
        """The worst verdict of the cases; of a run that is empty or broke off never a pass.

        A run over a selection of cases is partial, not broken: it is judged by the cases it has. A waived
        failure is none.
        """
        words: set[Judgement] = {
            "pass" if case.waived else case.verdict for case in self.run.cases
        }
        if not self.run.cases or self.run.problems:
            words.add("invalid")
        return verdicts.worst(words)

    @cached_property
    def names(self) -> dict[str, str]:
        """The name of each case by node id: with its suite where the run has several."""
        return names(self.run)

    @cached_property
    def slices(self) -> tuple[CaseResult, ...]:
        """The cases of single slices by node id."""
        return slices(self.run)

    @cached_property
    def aggregates(self) -> tuple[CaseResult, ...]:
        """The cases over several cases, those over a whole suite first: they have most power."""
        cases = [case for case in ordered(self.run) if case.aggregate]
        return tuple(sorted(cases, key=lambda case: case.probe != "pooled"))

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """The tables of slices: one a probe, or one a kind of slice where these have their own metrics.

        Tests in Python have one of their own: their metrics are theirs.
        """
        several, made = len(suites(self.run)) > 1, []
        kinds = [(probe, kind) for probe in PROBES.values() for kind in probe.kinds]
        for probe, kind in (*kinds, (None, "")):
            # By the name: a case that was not run, or is invalid, has no metrics to tell by.
            cases = [
                case
                for case in self.slices
                if probe_named(case.probe) is probe
                and (probe is None or probe.kind(case.slice) == kind)
            ]
            # A run of another tool has tasks, and nothing is known of its model.
            row, title = (
                ("test", "Tests in Python") if self.run.model else ("task", "Tasks")
            )
            first: tuple[str, ...] = ()
            if probe is not None:
                row, title, first = "slice", probe.title, probe.headlines
                title += f", {kind}" if probe.kinds[1:] else ""
            names = dict.fromkeys(of.name for case in cases for of in key_figures(case))
            shown = [*filter(names.__contains__, first), *names]
            labels = [
                relation_title(case.slice, case.label)
                + (f" ({case.suite.removesuffix('.kb.yaml')})" if several else "")
                for case in cases
            ]
            metrics = tuple(dict.fromkeys(shown))
            if cases:
                made.append(Group(row, title, metrics, tuple(cases), tuple(labels)))
        return tuple(made)

    @cached_property
    def deciding(self) -> tuple[CaseResult, ...]:
        """The cases that did not pass, in the order in which a reader should look at them."""
        return reasons.deciding(self.run)

    @cached_property
    def cases(self) -> list[CaseResult]:
        """All cases: those that did not pass, then the others, those that were not run last."""
        told = {case.nodeid for case in self.deciding}
        cases = [
            case for case in (*self.aggregates, *self.slices) if case.nodeid not in told
        ]
        cases.sort(key=lambda case: verdicts.SEVERITY.index(case.verdict))
        cases.sort(key=lambda case: case.verdict == "not run")
        return [*self.deciding, *cases]

    @cached_property
    def changed(self) -> ChangedFacts:
        """The facts that were lost and gained."""
        return changed_facts(self.run)

    @property
    def model(self) -> str:
        """The name of the model: where it was never loaded, as it was given, if it was."""
        model = self.run.model
        return model.title if model else dict(self.run.settings).get("model", "")

    @property
    def baseline_note(self) -> str:
        """A note behind the baseline's name, such as `` (blessed 12 days before, 2026-11-11)``.

        A paper's figures have one too; it is empty where the age of the blessed run is not known.
        """
        if is_published(self.run.baseline):
            return " (published figures, unpaired)"
        try:
            ended = datetime.fromisoformat(self.run.created)
            # Days of the run's own time zone.
            made = datetime.fromisoformat(self.run.blessed).astimezone(ended.tzinfo)
        except (ValueError, OverflowError):
            return ""
        days = (ended.date() - made.date()).days
        when = f"{count(days, 'day')} before" if days > 0 else "on the same day"
        sha256 = self.run.baseline_sha256[:12]
        return f" (blessed {when}, {made.date()}{sha256 and f', sha256 {sha256}'})"

    def headline(self, words: Mapping[str, str] = MappingProxyType({})) -> str:
        """Return how many cases have each verdict, worst first: ``2 fail (1 waived), 18 pass``.

        With ``words`` for the verdicts in these.
        """
        counts = Counter(case.verdict for case in self.run.cases)
        waived = Counter(case.verdict for case in self.run.cases if case.waived)
        parts = []
        for word in filter(counts.get, verdicts.SEVERITY):
            note = f" ({waived[word]} waived)" if waived[word] else ""
            parts.append(f"{counts[word]} {words.get(word, word)}{note}")
        return ", ".join(parts) or "no case was decided"

    @cached_property
    def changes(self) -> str:
        """What was lost and gained, and how many answers changed; empty where nothing was compared.

        ``12 of 1,240 facts lost, 5 gained; 45 of 1,694 answers changed; 9 of the 12 are head; worst P108``

        Where facts could not be compared, "no fact lost or gained" names how many facts that is said of. First
        stands how many facts of the baseline the suites have lost.
        """
        lost, gained = len(self.changed.lost), len(self.changed.gained)
        compared, of_all = self.run.compared or (0, 0)
        facts = {
            (of.suite, fact) for of in self.slices for fact in of.unmatched.lacking
        }
        gone = f"{count(len(facts), 'fact')} of the baseline not asked any more"
        parts = [gone] if facts else []
        if lost or gained:
            of = f"{lost} of {compared:,} facts" if compared else count(lost, "fact")
            parts.append(f"{of} lost, {gained} gained")
        elif any(value.paired for case in self.slices for value in case.metrics):
            some = f" of the {compared:,} of {of_all:,} facts that were compared"
            parts.append(f"no fact lost or gained{some if compared < of_all else ''}")
            if not facts and self._is_alike:
                alike = "answers exactly as the baseline does"
                parts.append(f"{alike}: is the change applied?")
        parts += self._churn
        if lost:
            bucket = max(self.changed.buckets, key=lambda part: part.lost)
            if bucket.name != UNBUCKETED and bucket.lost > max(1, lost / 2):
                some = f"{bucket.lost} of the {lost}"
                who = "all of them" if bucket.lost == lost else some
                parts.append(f"{who} are {bucket.name}")
            case = max(self.slices, key=lambda case: len(case.lost))
            worst = [part.title for part in self.changed.worst]
            more = f" and {count(len(worst) - 1, 'other')}" if worst[1:] else ""
            first = (worst or [self.names[case.nodeid]])[0]
            parts.append(f"worst {one_line(first, _LONGEST)}{more}")
        return "; ".join(parts)

    @property
    def _churns(self) -> list[Churn]:
        return [case.churn for case in self.slices if case.churn is not None]

    @property
    def _is_alike(self) -> bool:
        """True if no answer and no figure differs from the baseline's, which is of another model."""
        ours, theirs = self.run.model, self.run.base
        if ours is None or theirs is None:
            return False
        # A served model's weights are not known.
        same = (ours.weights_digest or ours.spec) == (
            theirs.weights_digest or theirs.spec
        )
        changed = [churn.texts for churn in self._churns]
        moved = [value.delta for case in self.slices for value in case.metrics]
        return bool(changed) and not (same or any(changed) or any(moved))

    @property
    def _churn(self) -> Iterator[str]:
        """How many answers changed, whichever way, and the divergence where it was measured."""
        if changed := sum(of.texts for of in self._churns):
            asked = sum(of.facts for of in self._churns)
            yield f"{changed:,} of {asked:,} answers changed"
        if moved := [of.divergence for of in self._churns if of.divergence is not None]:
            facts = sum(of.facts for of in moved)
            places = sum(of.positions for of in moved)
            kl = sum(of.kl * of.facts for of in moved) / facts
            agreed = sum(of.top1_agreement * of.positions for of in moved) / places
            yield f"KL {number(kl)} nats, top-1 agreement {number(agreed)}"

    @cached_property
    def not_excluded(self) -> str:
        """What could not be ruled out: the undecided slice whose drop may be largest.

        ``not ruled out: accuracy worse by 0.105 in head_to_tail[culture-tail] (0.094 in a slice like it that
        lost nothing), and at most that in 4 more slices``
        """
        ends = [
            (gate.high, gate, case)
            for case in self.slices
            for gate in case.gates
            if case.verdict == gate.verdict == "inconclusive"
            and gate.high is not None
            and gate.unchanged is not None
            and GATE_RULES[gate.rule].allows_more > 0
        ]
        if not ends:
            return ""
        high, gate, case = max(ends, key=lambda end: end[0])
        like = f"{number(gate.unchanged)} in a slice like it that lost nothing"
        where = f"{one_line(self.names[case.nodeid])} ({like})"
        others = len({case.nodeid for *_, case in ends}) - 1
        more = f", and at most that in {count(others, 'more slice')}" if others else ""
        title = metric_title(gate.metric)
        return f"not ruled out: {title} worse by {number(high)} in {where}{more}"

    @cached_property
    def helpers(self) -> list[tuple[str, str]]:
        """The models that judged the answers and wrote distractors: (what it did, its spec) each.

        The last one also has the share of replies that came from the cache; rules and facts are not named.
        """
        judge = dict(self.run.settings).get("judge", "rules")
        roles = [] if judge == "rules" else [("judged by", judge)]
        writers = [helper.spec for helper in self.run.helpers if helper.spec != judge]
        written = (metric(case, "distractors_written") for case in self.run.cases)
        # The one model there is may do both.
        if roles and not writers and any(written):
            writers = [judge]
        roles += [("distractors by", spec) for spec in writers]
        environment = dict(self.run.environment)
        if roles and "helpers_asked" in environment:
            share = reused(environment, "helpers")
            what, spec = roles.pop()
            roles.append((what, f"{spec} ({share} replies reused from earlier runs)"))
        return roles

    @property
    def problems(self) -> list[str]:
        """Why the run is partial or unsound."""
        notes = phrases.partial_note(self.run), phrases.not_run_note(self.run)
        return [*filter(None, notes), *sorted(self.run.problems)]

    @property
    def explained(self) -> list[CaseResult]:
        """The cases that need eyes: where no blessed run was asked for, one without it needs none."""
        silent = {"not run"} if is_blessed(self.run) else {"not run", "no baseline"}
        return [case for case in self.cases if case.verdict not in silent]

    @property
    def unjudged(self) -> int:
        """How many gates were left unjudged because no baseline was asked for, or a paper lacks them."""
        gates = (gate for case in self.run.cases for gate in case.gates)
        left = sum(gate.verdict == "no baseline" for gate in gates)
        return 0 if is_blessed(self.run) else left

    @property
    def notes(self) -> Iterator[str]:
        """The notes on the run as a whole, a sentence each."""
        yield from phrases.run_notes(self.run)
        # Without a baseline nobody expects gates to be judged.
        if self.run.baseline and self.unjudged:
            gates = count(self.unjudged, "gate")
            yield f"nothing published to compare with: {gates} not judged"

    @property
    def correlations(self) -> list[tuple[Correlation, Correlation]]:
        """Pearson's and Spearman's correlation of each pair of figures that could be correlated."""
        known = {
            (one.x, one.y, one.over, one.method): one
            for one in self.run.correlations
            if one.r is not None
        }
        return [
            (one, other)
            for (x, y, over, method), one in known.items()
            if method == "pearson"
            and (other := known.get((x, y, over, "spearman"))) is not None
        ]
