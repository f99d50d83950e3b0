"""Several models side by side, as text, JSON and page of ``kbrel compare`` have them: cases by models."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from pytest_kbrel.catalogue.metrics import BESIDE
from pytest_kbrel.catalogue.probes import probe_named
from pytest_kbrel.catalogue.verdicts import SEVERITY
from pytest_kbrel.records import CaseResult, Correlation, Run, record
from pytest_kbrel.reports import phrases, reasons
from pytest_kbrel.reports.changes import changed_facts

# What stands in the place of a verdict where a model was not asked a case that another one was.
NOT_ASKED = "not asked"
_ORDER = (*SEVERITY[:-1], NOT_ASKED, SEVERITY[-1], "")


@record
class Side:
    """One of the models, called ``name`` by the user; ``about`` says what it is, and ``spec`` the model itself.

    ``results`` are its cases, by suite (its file name) and id, or by the id alone in a paper: as recorded, or
    as decided against the first model. ``recorded`` is the run with its outcomes, where there are any, and
    ``run`` the decided one: ``None`` of the first model, and where ``unpaired`` says why. ``fails``: a gate of it does.
    ``setting`` is the prompt setting of a paper that asks in several,
    ``parameters`` is 0 where unknown, and ``family`` what models of several sizes have in common.
    """

    name: str
    about: str
    results: Mapping[str, CaseResult]
    spec: str = ""
    parameters: int = 0
    family: str = ""
    setting: str = ""
    recorded: Run | None = None
    run: Run | None = None
    fails: bool = False
    unpaired: str = ""

    @property
    def gates(self) -> Counter[str]:
        """How many of its gates have each verdict; ``waived`` is one whose failure a waiver excuses."""
        return Counter(
            "waived"
            if gate.verdict != "pass" and self.word(case) == "waived"
            else gate.verdict
            for case in (self.run.cases if self.run else ())
            for gate in case.gates
        )

    def word(self, case: CaseResult | None) -> str:
        """Return the verdict on a case of it in one word; empty where nothing judges it."""
        if case is None:
            return NOT_ASKED
        if self.run is not None and phrases.is_waived(case, self.run):
            return "waived"
        judged = self.run is not None and (case.gates or case.expired)
        shown = judged or case.verdict in ("invalid", "not run")
        return case.verdict if shown else ""

    @property
    def summary(self) -> str:
        """What became of its gates against the first model in words; empty where nothing did."""
        if self.run is None:
            return ""
        words = sorted(self.gates, key=severity)
        verdicts = ", ".join(f"{self.gates[word]} {word}" for word in words)
        changes = changed_facts(self.run)
        lost = f"{len(changes.lost)} lost, {len(changes.gained)} gained"
        return f"{verdicts or 'none are known'}; {lost}"


@record
class CaseRow:
    """One case with its result in each model, ``None`` where one has none; ``name`` tells it from others."""

    name: str
    results: tuple[CaseResult | None, ...]

    @property
    def known(self) -> list[CaseResult]:
        """The results that are there."""
        return [case for case in self.results if case is not None]

    @property
    def title(self) -> str:
        """Its name with the label of its relation: ``monitor[P176 manufacturer]``."""
        label = next((case.label for case in self.known if case.label), "")
        return f"{self.name.removesuffix(']')} {label}]" if label else self.name

    @property
    def table(self) -> str:
        """The title of the table in which it stands: a probe's, a kind of slice's, or one over slices."""
        case = self.known[0]
        probe = probe_named(case.probe)
        if probe is None:
            return "All slices together" if case.aggregate else "Tests in Python"
        if case.aggregate:
            return f"{probe.title}, all slices"
        kind = f", {probe.kind(case.slice)}" if len(probe.kinds) > 1 else ""
        return f"{probe.title}{kind}"

    def values(self, name: str) -> tuple[float | None, ...]:
        """Return the value of a figure in each model."""
        return tuple(of.figures.get(name) if of else None for of in self.results)

    @property
    def figures(self) -> dict[str, tuple[float | None, ...]]:
        """The figures that at least two models have, with their value in each model."""
        names = dict.fromkeys(of.name for case in self.known for of in case.metrics)
        figures = {name: self.values(name) for name in names}
        shared = [
            name
            for name, values in figures.items()
            if len(values) - values.count(None) > 1
        ]
        # Some never stand without others, though only one of the models has these.
        shared += [beside for name in shared for beside in BESIDE.get(name, ())]
        return {name: of for name, of in figures.items() if name in shared}


@record
class Scatter:
    """Two figures of the models within a case or a group of slices, with both coefficients of correlation.

    ``figures`` are those of each model, by its number from 1; ``whole`` says that all slices of a probe, or all in one
    prompt setting, are behind them.
    """

    within: str
    whole: bool
    figures: Mapping[int, Mapping[str, float | None]]
    pearson: Correlation
    spearman: Correlation


@record
class SideBySide:
    """Models with their cases, and how their figures go together."""

    sides: tuple[Side, ...]
    rows: tuple[CaseRow, ...] = ()
    scatters: tuple[Scatter, ...] = ()

    @property
    def is_paired(self) -> bool:
        """True if at least one model was compared with the first one fact by fact."""
        return any(side.run is not None for side in self.sides)

    @property
    def correlated(self) -> list[Scatter]:
        """The pairs of figures that have coefficients."""
        return [one for one in self.scatters if one.pearson.r is not None]

    @property
    def numbered(self) -> list[tuple[int, Side]]:
        """The models with their numbers, from 1."""
        return list(enumerate(self.sides, start=1))

    def worst(self, row: CaseRow) -> str:
        """Return the worst word of all models on a case."""
        pairs = zip(self.sides, row.results, strict=True)
        return min((side.word(case) for side, case in pairs), key=severity)

    def groups(self) -> dict[str, list[CaseRow]]:
        """Return the rows by their table, those over slices first; in each the worst verdict first."""
        rows = sorted(
            self.rows,
            key=lambda row: (severity(self.worst(row)), reasons.natural(row.name)),
        )
        tables = dict.fromkeys(
            row.table
            for over in (True, False)
            for row in self.rows
            if row.known[0].aggregate is over
        )
        return {table: [row for row in rows if row.table == table] for table in tables}


def severity(word: str) -> int:
    """Return the place of a verdict's word, from the worst; a waived failure counts as inconclusive."""
    return _ORDER.index("inconclusive" if word == "waived" else word)
