"""Gates, limits of integrity and waivers, as suite files write them.

A gate may also be written as users of other tools do; each synonym has one precise meaning here.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Container, Iterable, Mapping
from typing import Any

from pytest_kbrel.bounds import SHARE_OR_NONE, shown
from pytest_kbrel.catalogue.metrics import CHANGE_METRICS, CONTROLS, Metric
from pytest_kbrel.catalogue.rules import GATE_RULES, THRESHOLDS, GateRule
from pytest_kbrel.errors import SuiteError
from pytest_kbrel.facts.located import Node, unknown
from pytest_kbrel.records import RULES, Gate, Integrity, Rule, Waiver

# The same demand by another name: evidently, pytest, llm-compressor.
SAME: Mapping[str, Rule] = {
    name: rule.name for rule in GATE_RULES.values() for name in rule.synonyms
}
# A rise is a drop in quality only where lower is better, and the other way round.
WORSE_WHEN: Mapping[str, str] = {
    "max_rise": "lower",
    "max_increase": "lower",
    "max_decrease": "higher",
}
# promptfoo, deepeval and MLflow: the worst value that is still good.
DIRECTED = "threshold"
# MLflow: how much better, in the metric's own direction, the candidate must at least be.
ABSOLUTE_CHANGE = "min_absolute_change"
RELATIVE_CHANGE = "min_relative_change"
SYNONYMS: tuple[str, ...] = (
    *SAME,
    *WORSE_WHEN,
    DIRECTED,
    ABSOLUTE_CHANGE,
    RELATIVE_CHANGE,
)


# Rules of other tools without an exact equal here, each with what to write instead.
REFUSED: Mapping[str, str] = {
    "gt": "a strict bound is not supported; use 'min' (the bound itself passes)",
    "lt": "a strict bound is not supported; use 'max' (the bound itself passes)",
    "eq": "use 'min' and 'max'",
    "not_eq": "use 'min' and 'max'",
    "tolerance": "it would forbid an improvement as well; use 'max_drop'",
    "rtol": "it would forbid an improvement as well; use 'recovery'",
    "atol": "it would forbid an improvement as well; use 'max_drop'",
    "relative": "use 'recovery'",
    "absolute": "use 'max_drop'",
    "greater_is_better": "each metric knows its own direction; leave it out",
    "higher_is_better": "each metric knows its own direction; leave it out",
    "weight": "every gate must hold; leave it out",
}


# The meaning of each limit, in the order of the record; the JSON Schema follows it.
LIMITS: Mapping[str, str] = {
    "answered": "Least share of the facts with an answer that is not empty.",
    "empty": "Largest share of the answers that may be empty.",
    "truncated": "Largest share of the answers that may be cut short at max_new_tokens.",
    "repeated": "Largest share of the facts that may get one and the same wrong answer.",
    "errored": "Largest share of the facts that may be without usable response; they are in no figure.",
    "unparsable": "Largest share of a judge's replies that may not be readable.",
    "unread": "Largest share of the replies to multiple-choice questions that may pick no option.",
    "below_random": "Whether answers may be right less often than random objects of the relation would be.",
    "constant": "Whether MONITOR's probabilities may all be equal.",
    "anchor_prob": "Least mean probability of the right answers behind MONITOR's prompt that states them.",
    "first_token": "Least share of MONITOR's right answers whose scored first token the model wrote first.",
}
CHOICES = ("invalid", "allowed")
WAIVER_KEYS = ("fact", "slice", "owner", "reason", "expires")


def read_gates(
    entries: Mapping[str, Node],
    metrics: Mapping[str, Metric],
    where: str,
    elsewhere: Mapping[str, str],
    controls: Container[str] = CONTROLS,
) -> tuple[Gate, ...]:
    """Read the mapping under ``gates`` of ``entries``, if there is one.

    ``elsewhere`` are hints for metrics that belong to another part of the file. ``controls`` are the metrics
    that have a control here. Raises ``SuiteError`` with the line of the first mistake.
    """
    if "gates" not in entries:
        return ()
    metrics = {**metrics, **CHANGE_METRICS}
    gates: list[Gate] = []
    for name, entry in entries["gates"].mapping(f"gates of {where}").items():
        if name not in metrics:
            hint = f"; {name!r} {elsewhere[name]}" if name in elsewhere else ""
            raise entry.error(
                unknown("metric", name, metrics, where=f"gates of {where}") + hint
            )
        gates += metric_gates(entry, metrics[name], name in controls)
    return tuple(gates)


def merged_gates(general: Iterable[Gate], special: Iterable[Gate]) -> tuple[Gate, ...]:
    """Return the general gates with those of the same metric and rule replaced by the special ones."""
    merged = {(gate.metric, gate.rule): gate for gate in general}
    merged.update({(gate.metric, gate.rule): gate for gate in special})
    return tuple(merged.values())


def metric_gates(entry: Node, metric: Metric, controlled: bool = False) -> list[Gate]:
    """Read the gates on a metric: a number, or a mapping of rules; ``controlled`` as for :func:`as_gate`."""
    node = entry
    if not isinstance(node.value, dict):
        bound = node.number(
            f"the gate on {metric.name}",
            "a number or a mapping such as {max_drop: 0.02}",
        )
        return [_gate(entry.line, node, plain_rule(metric), bound, metric, controlled)]
    if not node.value:
        raise entry.error(
            f"the gate on {metric.name} must have a rule, found none; allowed: {{max_drop: 0.02}}"
        )
    gates: dict[str, Gate] = {}
    for key, rule in node.value.items():
        relative = next(
            (
                of
                for of in GATE_RULES.values()
                if of.relative and key in (of.name, *of.synonyms)
            ),
            None,
        )
        if relative is not None and isinstance(rule.value, dict):
            gate = _two_sided(rule, key, relative, metric)
        else:
            bound = rule.number(f"{key!r} of {metric.name}")
            gate = _gate(rule.line, rule, key, bound, metric, controlled)
        if gate.rule in gates:
            raise rule.error(
                f"{key!r} of {metric.name} says {gate.rule!r} a second time; allowed: once"
            )
        gates[gate.rule] = gate
    if "min" in gates and "max" in gates and gates["min"].bound > gates["max"].bound:
        low, high = gates["min"].bound, gates["max"].bound
        raise entry.error(
            f"no {metric.name} can pass: found min {low:g} above max {high:g}; allowed: min <= max"
        )
    return list(gates.values())


def _gate(
    line: int, node: Node, key: str, value: float, metric: Metric, controlled: bool
) -> Gate:
    try:
        rule, bound = as_gate(key, value, metric, controlled)
    except ValueError as error:
        raise SuiteError(str(error), node.path, line) from None
    return Gate(metric=metric.name, rule=rule, bound=float(bound), line=line)


def _two_sided(entry: Node, key: str, rule: GateRule, metric: Metric) -> Gate:
    """Read ``{within: T, beyond: S}`` of a rule that compares with a baseline."""
    what = f"{key!r} of {metric.name}"
    _refuse_never(entry, what)
    written = entry.keys(what, tuple(THRESHOLDS), required=("within",))
    bounds: dict[str, float] = {}
    for name, of in written.items():
        value = of.number(f"{name!r} of {what}")
        bounds[name] = _gate(of.line, of, key, value, metric, controlled=False).bound
    within, beyond = (bounds.get(name) for name in THRESHOLDS)
    assert within is not None
    less = "below" if rule.allows_more > 0 else "above"
    # Of a tolerance of nothing nothing is left for the other.
    least = within == rule.half_of(within)
    if (
        beyond is not None
        and rule.allows_more * (within - beyond) <= 0
        and not (least and beyond == within)
    ):
        raise written["beyond"].error(
            f"'beyond' of {what} must be {less} 'within' ({within:g}), found {beyond:g}: what fails the gate "
            "once it is sure must be less than what can no longer pass"
        )
    return Gate(
        metric=metric.name,
        rule=rule.name,
        bound=within,
        line=entry.line,
        beyond=beyond,
    )


def _refuse_never(entry: Node, what: str) -> None:
    """Raise ``SuiteError`` for the third number that a tolerance had in earlier versions."""
    keys = entry.value
    if isinstance(keys, dict) and "never" in keys:
        raise keys["never"].error(
            f"'never' of {what} was removed: it failed models that lost nothing; leave it out, and use "
            "--kb-inconclusive=fail where a gate that cannot tell must fail"
        )


def plain_rule(metric: Metric) -> Rule:
    """Return the rule that a bare number stands for: the worst value that is still good."""
    return "min" if metric.better == "higher" else "max"


def as_gate(
    key: str, value: float, metric: Metric, controlled: bool = False
) -> tuple[Rule, float]:
    """Return the rule and bound that ``key: value`` means for the metric.

    ``controlled``: a control of the metric is measured too. Raises ``ValueError`` with what was found and
    what is allowed.
    """
    rule: Rule
    if key in RULES:
        rule, bound = key, value
    elif key in SAME:
        rule, bound = SAME[key], value
    elif key == DIRECTED:
        rule, bound = plain_rule(metric), value
    elif key in WORSE_WHEN:
        if metric.better != WORSE_WHEN[key]:
            raise ValueError(
                f"{key!r} would forbid an improvement of {metric.name}; use 'max_drop'"
            )
        rule, bound = "max_drop", value
    elif key == ABSOLUTE_CHANGE:
        rule, bound = "max_drop", _loss(key, value, "max_drop")
    elif key == RELATIVE_CHANGE:
        if metric.better == "lower":
            raise ValueError(
                f"{key!r} is not defined for {metric.name}, where lower is better; use 'recovery'"
            )
        rule, bound = "recovery", 1 - _loss(key, value, "recovery")
    elif key in REFUSED:
        raise ValueError(
            f"rule {key!r} has no equal here: {REFUSED[key]}; allowed: {', '.join(RULES)}"
        )
    else:
        raise ValueError(unknown("rule", key, (*RULES, *SYNONYMS), where=metric.name))
    if GATE_RULES[rule].controlled and not controlled:
        raise ValueError(
            f"{key!r} compares a metric with its control, and {metric.name} has none here; "
            f"allowed: on {', '.join(CONTROLS)} of single slices of reliability"
        )
    if metric.name in CHANGE_METRICS and rule != plain_rule(metric):
        raise ValueError(
            f"{key!r} of {metric.name}: it says by itself how much changed; allowed: {plain_rule(metric)}"
        )
    if GATE_RULES[rule].relative and not metric.comparable:
        raise ValueError(
            f"{key!r} of {metric.name}: it depends on the order or the bins of all facts, so that no test "
            f"says how surely it changed; allowed: {plain_rule(metric)}, or {key!r} of brier"
        )
    _check(key, rule, bound, metric)
    return rule, bound


def _loss(key: str, value: float, instead: str) -> float:
    if value > 0:
        raise ValueError(
            f"{key!r} must be at most 0, found {value:g}: no gate demands an improvement; "
            f"the loss that is allowed is {instead!r}"
        )
    return abs(value)


def _check(key: str, rule: Rule, bound: float, metric: Metric) -> None:
    what = repr(key) if key == rule else f"{key!r} (here {rule!r})"
    if GATE_RULES[rule].ratio and metric.low < 0:
        raise ValueError(
            f"{what} is a ratio, and {metric.name} can be negative; use 'max_drop'"
        )
    if bound not in GATE_RULES[rule].range(metric.low, metric.most):
        allowed = GATE_RULES[rule].range_in_words(metric.low, metric.most)
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
    written = entries["integrity"].keys(what, tuple(LIMITS))
    stated: dict[str, Any] = {
        name: _limit(name, entry, what) for name, entry in written.items()
    }
    return dataclasses.replace(general, **stated)


def _limit(name: str, node: Node, where: str) -> float | str:
    what = f"{name} in {where}"
    if isinstance(getattr(Integrity(), name), str):
        return node.choice(what, CHOICES)
    return float(node.number(what, f"a share, {SHARE_OR_NONE}", SHARE_OR_NONE))


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
