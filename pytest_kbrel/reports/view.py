"""Views of a run that all reports share: key metrics, tables, order of cases and verdicts, changed facts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from pathlib import PurePosixPath
from types import MappingProxyType

from pytest_kbrel.catalogue import verdicts
from pytest_kbrel.catalogue.probes import PROBES, Probe, probe_named
from pytest_kbrel.catalogue.rules import GATE_RULES
from pytest_kbrel.records import (
    JUDGEMENTS,
    Case,
    CaseResult,
    Correlation,
    Judgement,
    MetricValue,
    Run,
    is_published,
)
from pytest_kbrel.reports.formatting import (
    count,
    metric_title,
    number,
    one_line,
    thousands,
)

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


def better(cases: Iterable[CaseResult], name: str) -> str:
    """Return whether ``higher`` or ``lower`` is better of a metric; empty where no case has it."""
    values = (metric(case, name) for case in cases)
    return next((value.better for value in values if value is not None), "")


def key_metrics(case: CaseResult) -> tuple[str, ...]:
    """Return the names of the headline metrics of this case, those it has."""
    figures = {value.name: value.value for value in case.metrics}
    gated = [gate.metric for gate in case.gates]
    probe = probe_named(case.probe)
    if probe is None or (case.aggregate and not probe.brief_overall):
        return tuple(figures)
    if case.aggregate:
        return tuple(name for name in figures if name in (*probe.headlines, *gated))
    # A column of zeros is left out: most judges' replies can all be parsed.
    wanted = [
        name
        for name in probe.headline[probe.kind(case.slice)]
        if name != "unparsable" or figures.get(name)
    ]
    # A gated metric is always shown.
    return tuple(name for name in dict.fromkeys(wanted + gated) if name in figures)


def key_figures(case: CaseResult) -> list[MetricValue]:
    """Return the headline metrics of a case."""
    values = {value.name: value for value in case.metrics}
    return [values[name] for name in key_metrics(case)]


def columns_of(
    cases: Iterable[CaseResult], probe: Probe | None
) -> tuple[list[str], list[str]]:
    """Return the key metrics of cases: those that tell most of the probe, and all."""
    present = list(dict.fromkeys(chain.from_iterable(map(key_metrics, cases))))
    first = probe.headlines if probe is not None else ()
    return [name for name in first if name in present], present


def groups(run: Run) -> tuple[Group, ...]:
    """Return the tables of a run: one a probe, or one a kind of slice where these have their own metrics.

    Tests in Python have one of their own: their metrics are theirs.
    """
    tables: list[Group] = []
    suites = _suites(run)

    def add(
        row: str, title: str, columns: Sequence[str], cases: list[CaseResult]
    ) -> None:
        if cases:
            labels = tuple(_label(case, suites) for case in cases)
            tables.append(Group(row, title, tuple(columns), tuple(cases), labels))

    for probe in PROBES.values():
        of_probe = [case for case in slices(run) if case.probe == probe.name]
        for kind in probe.kinds:
            # By the name: a case that was not run, or is invalid, has no metrics to tell by.
            cases = [case for case in of_probe if probe.kind(case.slice) == kind]
            columns = dict.fromkeys(chain(*columns_of(cases, probe)))
            title = f"{probe.title}, {kind}" if len(probe.kinds) > 1 else probe.title
            add("slice", title, [*columns], cases)
    tests = [case for case in slices(run) if case.probe == "test"]
    # A run of another tool has tasks, and nothing is known of its model.
    row, title = ("test", "Tests in Python") if run.model else ("task", "Tasks")
    add(row, title, columns_of(tests, None)[1], tests)
    return tuple(tables)


def _label(case: CaseResult, suites: set[str]) -> str:
    """Return the slice with its label, and the suite's name where the run has several. A paper has none."""
    title = relation_title(case.slice, case.label)
    if len(suites) < 2 or not case.suite:
        return title
    stems = {
        suite: PurePosixPath(suite).name.removesuffix(".kb.yaml") for suite in suites
    }
    unique = len(set(stems.values())) == len(suites)
    return f"{title} ({stems[case.suite] if unique else case.suite})"


def relation_title(relation: str, label: str) -> str:
    """Return id and label of a relation, ``P176 manufacturer``; the id alone where no label is known."""
    return f"{relation} {label}" if label else relation


def case_title(case: Case | CaseResult) -> str:
    """Return what a report calls a case: its id, with the label of its relation.

    ``monitor[P176 manufacturer]``
    """
    part = f"[{case.slice}]"
    if not case.label or not case.id.endswith(part):
        return case.id
    return f"{case.id.removesuffix(part)}[{relation_title(case.slice, case.label)}]"


def names(run: Run) -> dict[str, str]:
    """Return a name for each node id: with its suite where the run has several."""
    short = len(_suites(run)) < 2
    return {
        case.nodeid: case_title(case)
        if short or not case.suite
        else f"{case.suite}::{case_title(case)}"
        for case in run.cases
    }


def _suites(run: Run) -> set[str]:
    """Return the suites of a run's cases; those of a paper's figures have none."""
    return {case.suite for case in run.cases} - {""}


def verdict(run: Run) -> Judgement:
    """Return the run's verdict: its worst case's; a run that is empty or broke off is never a pass.

    A run over a selection of cases is partial, not broken: it is judged by the cases it has. A waived
    failure is none.
    """
    words: set[Judgement] = {
        "pass" if case.waived else case.verdict for case in run.cases
    }
    if not run.cases or run.problems:
        words.add("invalid")
    return verdicts.worst(words)


def verdict_counts(run: Run) -> dict[str, int]:
    """Return how many cases have each verdict, all verdicts named."""
    return {
        word: sum(case.verdict == word for case in run.cases) for word in JUDGEMENTS
    }


def model_name(run: Run) -> str:
    """Return the name of the run's model: where it was never loaded, as it was given, if it was."""
    return (
        run.model.title
        if run.model is not None
        else dict(run.settings).get("model", "")
    )


def is_blessed(run: Run) -> bool:
    """Return True if the baseline is a blessed run, not a paper's figures."""
    return bool(run.baseline) and not is_published(run.baseline)


def baseline_note(run: Run) -> str:
    """Return the note that follows a baseline's name, such as `` (blessed 12 days before, 2026-11-11)``.

    A paper's figures have one too; it is empty where the age of the blessed run is not known.
    """
    if is_published(run.baseline):
        return " (published figures, unpaired)"
    try:
        ended = datetime.fromisoformat(run.created)
        # Days of the run's own time zone.
        day = datetime.fromisoformat(run.blessed).astimezone(ended.tzinfo).date()
    except (ValueError, OverflowError):
        return ""
    days = (ended.date() - day).days
    when = f"{count(days, 'day')} before" if days > 0 else "on the same day"
    return f" (blessed {when}, {day.isoformat()})"


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
        note = f" ({reused(environment, 'helpers')} replies reused from earlier runs)"
        roles[-1] = (roles[-1][0], roles[-1][1] + note)
    return tuple(roles)


def reused(environment: Mapping[str, str], what: str) -> str:
    """Return how many ``answers`` or ``helpers``' replies came from a cache: ``1,200 of 1,240``."""
    figures = (environment.get(f"{what}_{kind}", "") for kind in ("reused", "asked"))
    return " of ".join(map(thousands, figures))


def not_passed(run: Run) -> tuple[CaseResult, ...]:
    """Return the cases that did not pass, worst verdict first.

    Where no blessed run was asked for, a case without one is not unsettled: :func:`unjudged_count` counts it.
    Nor is one that a shard leaves to the run that joins all.
    """
    settled = {"pass"} if is_blessed(run) else {"pass", "no baseline"}
    if run.shard is not None:
        settled.add("inconclusive")
    cases = [case for case in ordered(run) if case.verdict not in settled]
    return tuple(sorted(cases, key=lambda case: verdicts.SEVERITY.index(case.verdict)))


def unjudged_count(run: Run) -> int:
    """Return how many gates were left unjudged because no baseline was asked for, or a paper lacks them."""
    if is_blessed(run):
        return 0
    return sum(
        gate.verdict == "no baseline" for case in run.cases for gate in case.gates
    )


def headline(run: Run, words: Mapping[str, str] = MappingProxyType({})) -> str:
    """Return how many cases have each verdict, worst first: ``2 fail (1 waived), 18 pass``.

    With ``words`` for the verdicts in these.
    """
    counts = Counter(case.verdict for case in run.cases)
    waived = Counter(case.verdict for case in run.cases if case.waived)
    parts = []
    for word in verdicts.SEVERITY:
        if counts[word]:
            note = f" ({waived[word]} waived)" if waived[word] else ""
            parts.append(f"{counts[word]} {words.get(word, word)}{note}")
    return ", ".join(parts) or "no case was decided"


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


def correlation_pairs(run: Run) -> tuple[tuple[Correlation, Correlation], ...]:
    """Return Pearson's and Spearman's correlation of each pair of figures that could be correlated."""
    pearson, spearman = (
        {
            (one.x, one.y, one.over): one
            for one in run.correlations
            if one.method == method
        }
        for method in ("pearson", "spearman")
    )
    return tuple(
        (one, spearman[figures])
        for figures, one in pearson.items()
        if one.r is not None and figures in spearman
    )


def not_excluded(run: Run) -> str:
    """Return what a run could not exclude: the undecided slices whose drop may be largest.

    ``not ruled out: a drop of accuracy by 0.105 in head_to_tail[culture-tail] (0.094 in one that lost
    nothing), ... and 4 more``. Empty where every slice was decided.
    """
    ends = [
        (gate.high, gate, case)
        for case in slices(run)
        if case.verdict == "inconclusive"
        for gate in case.gates
        if gate.verdict == "inconclusive"
        and gate.high is not None
        and gate.unchanged is not None
        and GATE_RULES[gate.rule].allows_more > 0
    ]
    shown: dict[str, str] = {}
    called = names(run)
    for high, gate, case in sorted(ends, key=lambda end: -end[0]):
        alike = f"{number(gate.unchanged)} in a slice like it that lost nothing"
        where = f"{one_line(called[case.nodeid])} ({alike})"
        text = f"{metric_title(gate.metric)} worse by {number(high)} in {where}"
        shown.setdefault(case.nodeid, text)
    if not shown:
        return ""
    # Failures come first there, and each undecided slice is an entry behind them.
    most = _OPEN if verdict(run) == "inconclusive" else 1
    parts = [*shown.values()][:most]
    if len(shown) > most:
        parts.append(f"and {len(shown) - most} more")
    return f"not ruled out: {', '.join(parts)}"
