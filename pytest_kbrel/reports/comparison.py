"""Several models side by side, as terminal and page of ``kbrel compare`` show them: cases by models."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import PurePath

from pytest_kbrel.catalogue.probes import probe_named
from pytest_kbrel.catalogue.verdicts import SEVERITY
from pytest_kbrel.records import CaseResult, Correlation, Run, is_published
from pytest_kbrel.reports import REPORT, phrases, reasons
from pytest_kbrel.reports.cases import names
from pytest_kbrel.reports.changes import changed_facts
from pytest_kbrel.reports.view import Group, View, columns_of

# What stands in the place of a verdict where a model was not asked a case that another one was.
NOT_ASKED = "not asked"
_ORDER = (*SEVERITY[:-1], NOT_ASKED, SEVERITY[-1], "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One of the models: its number (from 1), its source as the user named it, and its result in each case.

    ``results`` are by the node ids of :class:`Comparison`. ``run`` is that of a candidate which was compared
    with the first model fact by fact, with ``p_holm`` by (node id in it, figure) and ``obstacles`` by node
    id; it is ``None`` of the first model itself, and where ``unpaired`` says why. ``title`` is what a heading
    calls it, where its name does not tell it from others. ``parameters`` is 0 where unknown, ``family`` what
    models of several sizes have in common, ``same_as`` the number of an earlier model with the same figures
    in all cases, or 0. ``settings`` are those in which its run differs.
    """

    number: int
    name: str
    spec: str
    about: str
    results: Mapping[str, CaseResult]
    title: str = ""
    parameters: int = 0
    family: str = ""
    settings: str = ""
    unpaired: str = ""
    same_as: int = 0
    run: Run | None = None
    p_holm: Mapping[tuple[str, str], float | None] = field(default_factory=dict)
    obstacles: Mapping[str, str] = field(default_factory=dict)

    @property
    def short(self) -> str:
        """Its title, or the last part of its name; of a paper's model, with the setting it was asked in."""
        if self.title:
            return self.title
        path = PurePath(self.name)
        if is_published(self.name):
            return str(PurePath(*path.parts[2:]))
        return (
            path.parent.name
            if path.name == REPORT and path.parent.name
            else path.name or self.name
        )

    @property
    def parameter_text(self) -> str:
        """The number of parameters, empty where it is not known."""
        return f"{self.parameters:,}" if self.parameters else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scatter:
    """Two figures of the models within a case or a group of slices, with both coefficients of correlation.

    ``nodeid`` is that of the case, empty of a group. ``points`` are (number of a model, x, y); ``whole`` says
    that all slices of a probe, or all in one prompt setting, are behind them.
    """

    within: str
    whole: bool
    points: tuple[tuple[int, float, float], ...]
    pearson: Correlation
    spearman: Correlation
    nodeid: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Models with their cases. ``cases`` has each case once, with all figures and gates that any model has.

    ``differing`` says how a case was not asked alike, by its node id.
    """

    sides: tuple[Side, ...]
    cases: Run
    scatters: tuple[Scatter, ...] = ()
    differing: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_paired(self) -> bool:
        """True if at least one model was compared with the first one fact by fact."""
        return any(side.run is not None for side in self.sides)


def groups(comparison: Comparison) -> tuple[Group, ...]:
    """Return the tables of cases: those over all slices first, then one a probe, or a kind of slice."""
    view = View(comparison.cases)
    overall = view.aggregates
    called = names(comparison.cases)
    tables = []
    for kind in dict.fromkeys(case.probe for case in overall):
        cases = tuple(case for case in overall if case.probe == kind)
        probe = probe_named(kind)
        first, present = columns_of(cases, probe)
        # Of a probe's figures over slices those tell most that its slices have, and those with a gate.
        gated = {gate.metric for case in cases for gate in case.gates}
        others = (name for name in present if not first or name in gated)
        columns = tuple(dict.fromkeys([*first, *others]))
        title = f"{probe.title}, all slices" if probe else "All slices together"
        labels = tuple(
            called[case.nodeid].replace(case.id, case.slice) for case in cases
        )
        tables.append(Group("case", title, columns, cases, labels))
    return (*tables, *view.groups)


def word(side: Side, nodeid: str) -> str:
    """Return the verdict on a case of a model in one word; empty where nothing judges it."""
    case = side.results.get(nodeid)
    if case is None:
        return NOT_ASKED
    if case.verdict == "invalid" or side.run is None:
        return "invalid" if case.verdict == "invalid" else ""
    if phrases.is_waived(case, side.run):
        return "waived"
    if case.gates or case.expired:
        return case.verdict
    return side.obstacles.get(case.nodeid, "").partition(":")[0]


def severity(word: str) -> int:
    """Return the place of a verdict's word, from the worst; a waived failure counts as inconclusive."""
    return _ORDER.index("inconclusive" if word == "waived" else word)


def worst_word(comparison: Comparison, nodeid: str) -> str:
    """Return the worst word of all models on a case."""
    return min((word(side, nodeid) for side in comparison.sides), key=severity)


def failed_first(comparison: Comparison, nodeids: Iterable[str]) -> list[str]:
    """Return cases by their worst verdict, then by name."""
    return sorted(
        nodeids,
        key=lambda one: (severity(worst_word(comparison, one)), reasons.natural(one)),
    )


def gate_counts(side: Side, *, passed: bool = True) -> str:
    """Return how many gates of a candidate have each verdict, ``gates: 4 fail, 82 pass``, or only the others.

    Empty of the first model, and of one that was not compared fact by fact.
    """
    if side.run is None:
        return ""
    gates = _gate_words(side.run)
    shown = sorted(set(gates), key=lambda word: (severity(word), word))
    if not passed and len(shown) > 1:
        shown = [word for word in shown if word != "pass"]
    counts = ", ".join(f"{gates.count(word)} {word}" for word in shown)
    return f"gates: {counts}" if counts else "no gates are known"


def change_counts(side: Side) -> str:
    """Return how many facts a candidate lost and gained; empty where it was not compared fact by fact."""
    if side.run is None:
        return ""
    changes = changed_facts(side.run)
    return f"{len(changes.lost)} lost, {len(changes.gained)} gained"


def worst_gate(side: Side) -> str:
    """Return the worst verdict of a candidate's gates; empty where it has none."""
    if side.run is None:
        return ""
    return min(_gate_words(side.run), key=severity, default="")


def _gate_words(run: Run) -> list[str]:
    """Return the verdicts of all gates, ``waived`` of one whose failure a waiver excuses."""
    return [
        "waived"
        if gate.verdict != "pass" and phrases.is_waived(case, run)
        else gate.verdict
        for case in run.cases
        for gate in case.gates
    ]


def unasked_count(comparison: Comparison, side: Side) -> int:
    """Return how many of the first model's cases another model was not asked."""
    return len(comparison.sides[0].results.keys() - side.results.keys())
