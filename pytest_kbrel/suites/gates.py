"""Gates, limits of integrity and waivers, as suite files write them.

A gate may also be written as users of other tools do; each synonym has one precise meaning here.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pytest_kbrel.bounds import SHARE_OR_NONE, shown
from pytest_kbrel.catalogue.metrics import (
    BASELINE_METRICS,
    CHANGE_METRICS,
    CONTROLS,
    METRICS,
    OVERALL_METRICS,
    SLICE_METRICS,
    Metric,
    by_all_names,
)
from pytest_kbrel.catalogue.probes import PROBES
from pytest_kbrel.catalogue.rules import GATE_RULES, THRESHOLDS, GateRule
from pytest_kbrel.errors import SuiteError
from pytest_kbrel.facts.located import Node, located, unknown
from pytest_kbrel.records import RULES, Gate, Integrity, Rule, Waiver
from pytest_kbrel.resources import tsv_rows

# The same demand by another name: evidently, pytest, llm-compressor.
SAME = {name: rule.name for rule in GATE_RULES.values() for name in rule.synonyms}
# By all their names, those that may state two numbers.
_RELATIVE = {
    name: rule
    for rule in GATE_RULES.values()
    if rule.relative
    for name in (rule.name, *rule.synonyms)
}
# A rise is a drop in quality only where lower is better, and the other way round.
WORSE_WHEN = {"max_rise": "lower", "max_increase": "lower", "max_decrease": "higher"}
# promptfoo, deepeval and MLflow: the worst value that is still good.
DIRECTED = "threshold"
# MLflow: how much better, in the metric's own direction, the candidate must at least be.
ABSOLUTE_CHANGE = "min_absolute_change"
RELATIVE_CHANGE = "min_relative_change"
SYNONYMS = (*SAME, *WORSE_WHEN, DIRECTED, ABSOLUTE_CHANGE, RELATIVE_CHANGE)


def _texts(table: str) -> dict[str, str]:
    rows = tsv_rows("suites/gates.tsv")
    return {name: text for kind, name, text in rows if kind == table}


# What messages call the outermost mapping.
SUITE = "a suite file"
_RULE_NAMES = {*GATE_RULES, *SYNONYMS}


# Rules of other tools without an exact equal here, each with what to write instead.
REFUSED = _texts("refused")
# The meaning of each limit of integrity; the JSON Schema follows it.
LIMITS = _texts("limit")
CHOICES = ("invalid", "allowed")
WAIVER_KEYS = ("fact", "slice", "owner", "reason", "expires")


def read_gates(
    entries: Mapping[str, Node], metrics: Mapping[str, Metric], where: str
) -> tuple[Gate, ...]:
    """Read the mapping under ``gates`` of ``entries``, if there is one.

    Raises ``SuiteError`` with the line of the first mistake.
    """
    if "gates" not in entries:
        return ()
    metrics = {**by_all_names(metrics), **CHANGE_METRICS}
    gates = []
    stated: dict[str, str] = {}
    for name, node in entries["gates"].mapping(f"gates of {where}").items():
        if name in _RULE_NAMES:
            raise _too_high(node, name, f"gates of {where}")
        if name not in metrics:
            fault = unknown("metric", name, metrics, where=f"gates of {where}")
            raise node.error(fault + _elsewhere(name))
        metric = metrics[name]
        if (other := stated.setdefault(metric.name, name)) != name:
            raise node.error(
                f"{name!r} and {other!r} of {where} are one figure; allowed: one of both"
            )
        gates += metric_gates(node, metric)
    return tuple(gates)


def keys_beside_gates(
    node: Node, what: str, allowed: Sequence[str], required: Sequence[str] = ()
) -> dict[str, Node]:
    """Return ``node.keys`` of a mapping that has gates, or gates in its mappings.

    Raises ``SuiteError`` that says where a gate belongs which stands a level too high.
    """
    for key, entry in node.mapping(what).items():
        if key not in allowed and key in ("gates", *METRICS, *_RULE_NAMES):
            raise _too_high(entry, key, what)
    return node.keys(what, allowed, required)


def _too_high(node: Node, key: str, what: str) -> SuiteError:
    """Return the error of a rule, a metric or ``gates`` above the level where it belongs."""
    if key == "gates":
        allowed = f"in {', '.join(PROBES)} or overall"
    elif key in _RULE_NAMES:
        allowed = f"in a metric: gates: {{METRIC: {{{key}: ...}}}}"
    else:
        inside = "a probe" if what == SUITE else what
        allowed = f"in gates of {inside}: gates: {{{key}: ...}}"
    return node.error(f"{key!r} stands too high in {what}; allowed: {allowed}")


def _elsewhere(name: str) -> str:
    """Return in words which slices have a metric, or which gates over slices."""
    slices = [kind for kind, metrics in SLICE_METRICS.items() if name in metrics]
    overall = [kind for kind, metrics in OVERALL_METRICS.items() if name in metrics]
    hint = f"; {name!r} is a figure of slices of {', '.join(slices)}" if slices else ""
    return hint + (f"; over slices of {', '.join(overall)}" if overall else "")


def merged_gates(general: Iterable[Gate], special: Iterable[Gate]) -> tuple[Gate, ...]:
    """Return the general gates with those of the same metric and rule replaced by the special ones."""
    merged = {(gate.metric, gate.rule): gate for gate in general}
    merged.update({(gate.metric, gate.rule): gate for gate in special})
    return tuple(merged.values())


def metric_gates(node: Node, metric: Metric) -> list[Gate]:
    """Read the gates on a metric: a number, or a mapping of rules."""
    if not isinstance(node.value, dict):
        allowed = "a number or a mapping such as {max_drop: 0.02}"
        node.number(f"the gate on {metric.name}", allowed)
        return [_gate(node, metric.plain_rule, metric)]
    if not node.value:
        raise node.error(
            f"the gate on {metric.name} must have a rule, found none; allowed: {{max_drop: 0.02}}"
        )
    gates = {}
    for key, rule in node.value.items():
        relative = _RELATIVE.get(key)
        if relative is not None and isinstance(rule.value, dict):
            gate = _two_sided(rule, key, relative, metric)
        else:
            gate = _gate(rule, key, metric)
        if gate.rule in gates:
            raise rule.error(
                f"{key!r} of {metric.name} says {gate.rule!r} a second time; allowed: once"
            )
        gates[gate.rule] = gate
    if "min" in gates and "max" in gates and gates["min"].bound > gates["max"].bound:
        low, high = gates["min"].bound, gates["max"].bound
        raise node.error(
            f"no {metric.name} can pass: found min {low:g} above max {high:g}; allowed: min <= max"
        )
    return list(gates.values())


def _gate(node: Node, key: str, metric: Metric, what: str = "") -> Gate:
    """Read a rule of one number."""
    value = node.number(what or f"{key!r} of {metric.name}")
    with located(node.path, node.line):
        rule, bound = as_gate(key, value, metric)
    return Gate(metric=metric.name, rule=rule, bound=float(bound), line=node.line)


def _two_sided(entry: Node, key: str, rule: GateRule, metric: Metric) -> Gate:
    """Read ``{within: T, beyond: S}`` of a rule that compares with a baseline."""
    what = f"{key!r} of {metric.name}"
    written = entry.keys(what, tuple(THRESHOLDS), required=("within",))
    bounds = {
        name: _gate(of, key, metric, f"{name!r} of {what}").bound
        for name, of in written.items()
    }
    within, beyond = (bounds.get(name) for name in THRESHOLDS)
    assert within is not None
    less = "below" if rule.allows_more > 0 else "above"
    # Of a tolerance of nothing nothing is left for the other.
    if (
        beyond is not None
        and rule.allows_more * (within - beyond) <= 0
        and not within == beyond == rule.nothing
    ):
        raise written["beyond"].error(
            f"'beyond' of {what} must be {less} 'within' ({within:g}), found {beyond:g}: what fails the gate "
            "once it is sure must be less than what can no longer pass"
        )
    return Gate(
        metric=metric.name, rule=rule.name, bound=within, line=entry.line, beyond=beyond
    )


def as_gate(key: str, value: float, metric: Metric) -> tuple[Rule, float]:
    """Return the rule and bound that ``key: value`` means for the metric.

    Raises ``ValueError`` with what was found and what is allowed.
    """
    rule: Rule
    bound = value
    if key in RULES:
        rule = key
    elif key in SAME:
        rule = SAME[key]
    elif key == DIRECTED:
        rule = metric.plain_rule
    elif key in WORSE_WHEN:
        if metric.better != WORSE_WHEN[key]:
            raise ValueError(
                f"{key!r} would forbid an improvement of {metric.name}; use 'max_drop'"
            )
        rule = "max_drop"
    elif key in (ABSOLUTE_CHANGE, RELATIVE_CHANGE):
        rule = "max_drop" if key == ABSOLUTE_CHANGE else "recovery"
        if value > 0:
            raise ValueError(
                f"{key!r} must be at most 0, found {value:g}: no gate demands an improvement; "
                f"the loss that is allowed is {rule!r}"
            )
        if key == RELATIVE_CHANGE and metric.better == "lower":
            raise ValueError(
                f"{key!r} is not defined for {metric.name}, where lower is better; use 'recovery'"
            )
        bound = abs(value) if key == ABSOLUTE_CHANGE else 1 + value
    elif key in REFUSED:
        raise ValueError(
            f"rule {key!r} has no equal here: {REFUSED[key]}; allowed: {', '.join(RULES)}"
        )
    else:
        raise ValueError(unknown("rule", key, (*RULES, *SYNONYMS), where=metric.name))
    _check(key, GATE_RULES[rule], bound, metric)
    return rule, bound


def _check(key: str, rule: GateRule, bound: float, metric: Metric) -> None:
    what = repr(key) if key == rule.name else f"{key!r} (here {rule.name!r})"
    if rule.controlled and not metric.controlled:
        raise ValueError(
            f"{what} compares a metric with its control, and {metric.name} has none here; "
            f"allowed: on {', '.join(CONTROLS)} of single slices of reliability"
        )
    if rule.ratio and metric.low < 0:
        raise ValueError(
            f"{what} is a ratio, and {metric.name} can be negative; use 'max_drop'"
        )
    if not rule.is_for(metric):
        why = "it depends on the order or the bins of all facts, so that no test says how surely it changed"
        instead = f"{metric.plain_rule}, or {key!r} of brier"
        if metric.name in BASELINE_METRICS:
            why, instead = "it says by itself how much changed", metric.plain_rule
        raise ValueError(f"{key!r} of {metric.name}: {why}; allowed: {instead}")
    if bound not in rule.bounds(metric):
        allowed = rule.range_in_words(metric)
        raise ValueError(f"{what} of {metric.name} must be {allowed}, found {bound:g}")


def read_integrity(
    entries: Mapping[str, Node], where: str, general: Integrity
) -> Integrity:
    """Return the limits under ``integrity`` of ``entries``; those it does not state come from ``general``.

    Raises ``SuiteError`` on an unknown limit, and on a value that is no share (0..1) or none of
    :data:`CHOICES`.
    """
    if "integrity" not in entries:
        return general
    what = f"integrity of {where}"
    stated: dict[str, Any] = {}
    for name, node in entries["integrity"].keys(what, tuple(LIMITS)).items():
        own = f"{name} in {what}"
        if isinstance(getattr(general, name), str):
            stated[name] = node.choice(own, CHOICES)
        else:
            allowed = f"a share, {SHARE_OR_NONE}"
            stated[name] = float(node.number(own, allowed, SHARE_OR_NONE))
    return dataclasses.replace(general, **stated)


def read_waivers(node: Node) -> tuple[Waiver, ...]:
    """Read the list under ``waivers``; ``with_waivers`` checks that these facts and slices exist."""
    waivers: dict[tuple[str, str], Waiver] = {}
    for item in node.items("waivers", "waivers"):
        keys = item.keys("a waiver", WAIVER_KEYS, required=WAIVER_KEYS[2:])
        named = [key for key in WAIVER_KEYS[:2] if key in keys]
        if len(named) != 1:
            raise item.error(
                f"a waiver is of one 'fact' or one 'slice', found: {', '.join(keys)}; needed: one of both"
            )
        (kind,) = named
        what = keys[kind].text(f"{kind} of a waiver")
        if (kind, what) in waivers:
            first = waivers[kind, what].line
            raise item.error(
                f"{kind} {shown(what)} stands twice in waivers; the first is on line {first}"
            )
        waivers[kind, what] = Waiver(
            owner=keys["owner"].text("owner of a waiver"),
            reason=keys["reason"].text("reason of a waiver"),
            expires=keys["expires"].date("expires of a waiver").isoformat(),
            fact=what if kind == "fact" else "",
            case=what if kind == "slice" else "",
            line=item.line,
        )
    return tuple(waivers.values())
