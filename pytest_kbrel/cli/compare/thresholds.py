"""What runs of other tools must meet: thresholds of every metric, and a file of gates by case and metric."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from pytest_kbrel.bounds import FIGURE, Bounds
from pytest_kbrel.catalogue.metrics import Metric
from pytest_kbrel.catalogue.rules import GATE_RULES
from pytest_kbrel.errors import KbrelError
from pytest_kbrel.facts.located import Node, read_document, unknown
from pytest_kbrel.foreign import ONE_TASK, names_metric
from pytest_kbrel.records import Gate, Rule, record
from pytest_kbrel.suites.gates import merged_gates, metric_gates

_TEXT = re.compile("(?:within:)?([^:,]+)(?:,beyond:([^:,]+))?")
_BOUND = Bounds(0, FIGURE, whole=False)


@record
class Demands:
    """What each case must meet.

    The gates of a file come before thresholds of the same rule; ``by_case`` has its metrics by case, those of
    every case as :data:`ONE_TASK`.
    """

    thresholds: tuple[Gate, ...] = ()
    by_case: Mapping[str, Mapping[str, Node]]

    def judges(self, case: str) -> bool:
        """Whether a case may have a gate."""
        return bool(self.thresholds) or case in self.by_case or ONE_TASK in self.by_case

    def gates(self, case: str, metric: Metric) -> tuple[Gate, ...]:
        """Return the gates on a metric of a case; raises ``SuiteError`` where the file has a wrong one."""
        gates = tuple(replace(gate, metric=metric.name) for gate in self.thresholds)
        for name in dict.fromkeys((ONE_TASK, case)):
            # The shorter name of a metric is the more general one.
            entries = self.by_case.get(name, {})
            for key in sorted(entries, key=len):
                if names_metric(key, metric.name):
                    gates = merged_gates(gates, metric_gates(entries[key], metric))
        return gates

    def check_names(self, runs: Iterable[Mapping[str, Iterable[str]]]) -> None:
        """Raise ``SuiteError`` where the file names a case or a metric that no run has."""
        metrics: dict[str, dict[str, None]] = {}
        for run in runs:
            for name, scored in run.items():
                metrics.setdefault(name, {}).update(dict.fromkeys(scored))
        metrics[ONE_TASK] = {one: None for of in metrics.values() for one in of}
        for case, entries in self.by_case.items():
            for key, entry in entries.items():
                if case not in metrics:
                    raise entry.error(unknown("case", case, metrics, where="the runs"))
                if not any(names_metric(key, one) for one in metrics[case]):
                    raise entry.error(
                        unknown("metric", key, metrics[case], where=f"case {case}")
                    )


def read_demands(
    max_drop: str | None, recovery: str | None, file: Path | None
) -> Demands:
    """Read what the flags say; raises ``KbrelError`` with what is allowed.

    The file has ``{CASE: {METRIC: {RULE: NUMBER}}}``.
    """
    stated: tuple[tuple[Rule, str | None], ...] = (
        ("max_drop", max_drop),
        ("recovery", recovery),
    )
    thresholds = tuple(
        _threshold(rule, text) for rule, text in stated if text is not None
    )
    by_case = {}
    document = read_document(file).mapping("a file of gates") if file else {}
    for case, entry in document.items():
        by_case[case] = entry.mapping(f"gates of the case {case}")
        if not by_case[case]:
            raise entry.error(
                f"the case {case} has no gate; allowed: {{METRIC: {{recovery: 0.95}}}}"
            )
    return Demands(thresholds=thresholds, by_case=by_case)


def _threshold(rule: Rule, text: str) -> Gate:
    """Read the gate that a flag demands of every metric, ``0.05`` or ``within:0.08,beyond:0.02``."""
    allowed = GATE_RULES[rule]
    bounds = Bounds(0, 1, whole=False) if allowed.ratio else _BOUND
    try:
        if not (written := _TEXT.fullmatch(text)):
            raise ValueError(f"found {text!r}; allowed: NUMBER or within:N,beyond:N")
        within = bounds.number(written[1])
        beyond = bounds.number(written[2]) if written[2] else None
        if (
            beyond is not None
            and within
            and allowed.allows_more * (within - beyond) <= 0
        ):
            raise ValueError(f"found {text!r}; allowed: beyond allows less than within")
    except ValueError as error:
        raise KbrelError(f"--{rule.replace('_', '-')}: {error}") from None
    return Gate(metric="", rule=rule, bound=within, beyond=beyond)
