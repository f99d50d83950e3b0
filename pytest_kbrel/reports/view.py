"""What of a run is shown where: key metrics, tables, the order of cases and verdicts. No statistics."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import PurePosixPath

from pytest_kbrel.catalogue import verdicts
from pytest_kbrel.catalogue.probes import PROBES, probe_named
from pytest_kbrel.records import (
    JUDGEMENTS,
    CaseResult,
    Correlation,
    Judgement,
    MetricValue,
    Run,
    is_published,
)


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
    """Return the cases that asked a model."""
    return tuple(case for case in ordered(run) if not case.aggregate)


def aggregates(run: Run) -> tuple[CaseResult, ...]:
    """Return the cases over several cases, those over a whole suite first: they have most power."""
    found = [case for case in ordered(run) if case.aggregate]
    return tuple(sorted(found, key=lambda case: case.probe != "pooled"))


def metric(case: CaseResult, name: str) -> MetricValue | None:
    """Return the metric called ``name``, or ``None``."""
    return next((value for value in case.metrics if value.name == name), None)


def key_metrics(case: CaseResult) -> tuple[str, ...]:
    """Return the names of the metrics that tell most about this case, those it has."""
    names = [value.name for value in case.metrics]
    probe = probe_named(case.probe)
    if probe is None:
        return tuple(names)
    if case.aggregate:
        shown = {*probe.headlines, *(gate.metric for gate in case.gates)} if probe.brief_overall else names
        return tuple(name for name in names if name in shown)
    wanted = probe.headline[probe.kind(case.slice)]
    # A column of noughts says nothing: most judges are read without fail.
    idle = {value.name for value in case.metrics if value.name == "unparsable" and not value.value}
    # What a gate is about is shown, whatever else tells little.
    gated = [gate.metric for gate in case.gates if gate.metric in names]
    return tuple(dict.fromkeys([name for name in wanted if name in names and name not in idle] + gated))


def controls(case: CaseResult, name: str) -> tuple[tuple[str, MetricValue], ...]:
    """Return what the metric ``name`` is held against: (kind of control, value), those that have one."""
    start = f"{name}_control_"
    found = [value for value in case.metrics if value.name.startswith(start) and value.value is not None]
    return tuple((value.name.removeprefix(start), value) for value in found)


def groups(run: Run) -> tuple[Group, ...]:
    """Return the tables of a run: one a probe, or one a kind of slice where these have their own metrics.

    Tests in Python that came to no case have one of their own: what they would have asked nobody knows.
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
    """Return the slice, with the suite's name where the run has several."""
    if len(suites) == 1:
        return case.slice
    stems = {suite: PurePosixPath(suite).name.removesuffix(".kb.yaml") for suite in suites}
    unique = len(set(stems.values())) == len(suites)
    return f"{case.slice} ({stems[case.suite] if unique else case.suite})"


def names(run: Run) -> dict[str, str]:
    """Return a name for each node id: the short one where the run has one suite."""
    short = len({case.suite for case in run.cases}) == 1
    return {case.nodeid: case.id if short else case.nodeid for case in run.cases}


def verdict(run: Run) -> Judgement:
    """Return the run's verdict: its worst case's; a run that is empty or broke off is never a pass.

    A run over a selection of cases is partial, not broken: it is judged by the cases it has. A waived
    failure is none.
    """
    found: set[Judgement] = {"pass" if case.waived else case.verdict for case in run.cases}
    if not run.cases or run.problems:
        found.add("invalid")
    return verdicts.worst(found)


def worst(run: Run) -> CaseResult | None:
    """Return the case that lost most facts."""
    losing = [case for case in slices(run) if case.lost]
    return max(losing, key=lambda case: len(case.lost)) if losing else None


def tally(run: Run) -> dict[str, int]:
    """Return how many cases have each verdict, all verdicts named."""
    return {word: sum(case.verdict == word for case in run.cases) for word in JUDGEMENTS}


def is_blessed(run: Run) -> bool:
    """Tell whether a blessed run was asked for as baseline, and not a paper's figures."""
    return bool(run.baseline) and not is_published(run.baseline)


def against(run: Run) -> str:
    """Return what a reader should know of the baseline beside its name, in words."""
    return " (published figures, unpaired)" if is_published(run.baseline) else ""


def helped_by(run: Run) -> tuple[tuple[str, str], ...]:
    """Return which models judged the answers and wrote distractors: (what it did, its spec) each.

    With the last one stands how much of what they said was known; rules and facts are not named.
    """
    judge = dict(run.settings).get("judge", "rules")
    judges = [] if judge == "rules" else [("judged by", judge)]
    wrote = any(metric(case, "distractors_written") is not None for case in run.cases)
    others = [helper.spec for helper in run.helpers if helper.spec != judge]
    # The one model there is may do both.
    writers = others or ([judge] if wrote and judges else [])
    found = [*judges, *(("distractors by", spec) for spec in writers)]
    asked = dict(run.environment)
    if found and "helpers_asked" in asked:
        known = f" ({asked['helpers_reused']} of {asked['helpers_asked']} replies reused from earlier runs)"
        found[-1] = (found[-1][0], found[-1][1] + known)
    return tuple(found)


def unsettled(run: Run) -> tuple[CaseResult, ...]:
    """Return the cases that did not pass, worst verdict first.

    Where no blessed run was asked for, a case without one is not unsettled: :func:`unjudged` counts it.
    """
    settled = {"pass"} if is_blessed(run) else {"pass", "no baseline"}
    found = [case for case in ordered(run) if case.verdict not in settled]
    return tuple(sorted(found, key=lambda case: verdicts.SEVERITY.index(case.verdict)))


def not_run(run: Run) -> tuple[CaseResult, ...]:
    """Return the cases that the session stopped before."""
    return tuple(case for case in ordered(run) if case.verdict == "not run")


def unjudged(run: Run) -> int:
    """Return how many gates were left unjudged because no baseline was asked for, or a paper lacks them."""
    if is_blessed(run):
        return 0
    return sum(gate.verdict == "no baseline" for case in run.cases for gate in case.gates)


def headline(run: Run) -> str:
    """Return how many cases have each verdict, worst first: ``2 fail (1 waived), 18 pass``."""
    found = tally(run)
    waived = Counter(case.verdict for case in run.cases if case.waived)
    parts = [
        f"{found[word]} {word}" + (f" ({waived[word]} waived)" if waived[word] else "")
        for word in verdicts.SEVERITY
        if found[word]
    ]
    return ", ".join(parts) or "no case was decided"


def correlated(run: Run) -> tuple[tuple[Correlation, Correlation], ...]:
    """Return Pearson's and Spearman's correlation of each pair of figures that could be correlated."""
    found: dict[tuple[str, str, str], dict[str, Correlation]] = {}
    for one in run.correlations:
        found.setdefault((one.x, one.y, one.over), {})[one.method] = one
    pairs = [(both["pearson"], both["spearman"]) for both in found.values() if len(both) == 2]
    return tuple(pair for pair in pairs if pair[0].r is not None)
