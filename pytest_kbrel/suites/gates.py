"""Gates as a suite file writes them."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping

from pytest_kbrel.catalogue.metrics import CONTROLS, Metric
from pytest_kbrel.errors import SuiteError
from pytest_kbrel.facts.located.node import Entry, Node, unknown
from pytest_kbrel.records import Gate
from pytest_kbrel.suites.synonyms import as_gate, plain_rule


def read_gates(
    entries: Mapping[str, Entry],
    metrics: Mapping[str, Metric],
    where: str,
    elsewhere: Mapping[str, str],
    controls: Container[str] = CONTROLS,
) -> tuple[Gate, ...]:
    """Read the mapping under ``gates`` of ``entries``, if there is one.

    ``elsewhere`` tells, for metrics that exist but not here, where they belong. ``controls`` are the metrics
    that have a control here.
    """
    if "gates" not in entries:
        return ()
    gates: list[Gate] = []
    for name, entry in entries["gates"].node.mapping(f"gates of {where}").items():
        if name not in metrics:
            hint = f"; {name!r} {elsewhere[name]}" if name in elsewhere else ""
            raise entry.error(unknown("metric", name, metrics, where=f"gates of {where}") + hint)
        gates += _metric_gates(entry, metrics[name], name in controls)
    return tuple(gates)


def override(general: Iterable[Gate], special: Iterable[Gate]) -> tuple[Gate, ...]:
    """Return the general gates with those of the same metric and rule replaced by the special ones."""
    merged = {(gate.metric, gate.rule): gate for gate in general}
    merged.update({(gate.metric, gate.rule): gate for gate in special})
    return tuple(merged.values())


def _metric_gates(entry: Entry, metric: Metric, controlled: bool) -> list[Gate]:
    node = entry.node
    if not isinstance(node.value, dict):
        bound = node.number(f"the gate on {metric.name}", "a number or a mapping such as {max_drop: 0.02}")
        return [_gate(entry.line, node, plain_rule(metric), bound, metric, controlled)]
    if not node.value:
        raise entry.error(
            f"the gate on {metric.name} must have a rule, found none; allowed: {{max_drop: 0.02}}"
        )
    gates: dict[str, Gate] = {}
    for key, rule in node.value.items():
        bound = rule.node.number(f"{key!r} of {metric.name}")
        gate = _gate(rule.line, rule.node, key, bound, metric, controlled)
        if gate.rule in gates:
            raise rule.error(f"{key!r} of {metric.name} says {gate.rule!r} a second time; allowed: once")
        gates[gate.rule] = gate
    if "min" in gates and "max" in gates and gates["min"].bound > gates["max"].bound:
        low, high = gates["min"].bound, gates["max"].bound
        raise entry.error(
            f"no {metric.name} can pass: found min {low:g} above max {high:g}; allowed: min <= max"
        )
    return list(gates.values())


def _gate(line: int, node: Node, key: str, value: float, metric: Metric, controlled: bool) -> Gate:
    try:
        rule, bound = as_gate(key, value, metric, controlled)
    except ValueError as error:
        raise SuiteError(str(error), node.path, line) from None
    return Gate(metric=metric.name, rule=rule, bound=float(bound), line=line)
