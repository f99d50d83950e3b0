"""Rules as users of other tools write them, each with its precise meaning here."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_kbrel.catalogue.metrics import CONTROLS, Metric
from pytest_kbrel.catalogue.rules import GATE_RULES
from pytest_kbrel.facts.located.node import unknown
from pytest_kbrel.records import RULES, Rule

# The same demand by another name: evidently, pytest, llm-compressor.
SAME: Mapping[str, Rule] = {name: rule.name for rule in GATE_RULES.values() for name in rule.synonyms}
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
SYNONYMS: tuple[str, ...] = (*SAME, *WORSE_WHEN, DIRECTED, ABSOLUTE_CHANGE, RELATIVE_CHANGE)

# What other tools have and nothing here means exactly.
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


def plain_rule(metric: Metric) -> Rule:
    """Return the rule that a bare number stands for: the worst value that is still good."""
    return "min" if metric.better == "higher" else "max"


def as_gate(key: str, value: float, metric: Metric, controlled: bool = False) -> tuple[Rule, float]:
    """Return the rule and bound that ``key: value`` demands of the metric.

    ``controlled`` says that a control of the metric is measured beside it.

    Raises ``ValueError`` with what was found and what is allowed.
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
            raise ValueError(f"{key!r} would forbid an improvement of {metric.name}; use 'max_drop'")
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
        raise ValueError(f"rule {key!r} has no equal here: {REFUSED[key]}; allowed: {', '.join(RULES)}")
    else:
        raise ValueError(unknown("rule", key, (*RULES, *SYNONYMS), where=metric.name))
    if GATE_RULES[rule].controlled and not controlled:
        raise ValueError(
            f"{key!r} compares a metric with its control, and {metric.name} has none here; "
            f"allowed: on {', '.join(CONTROLS)} of single slices of reliability"
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
        raise ValueError(f"{what} is a ratio, and {metric.name} can be negative; use 'max_drop'")
    if bound not in GATE_RULES[rule].range(metric.low, metric.most):
        allowed = GATE_RULES[rule].range_in_words(metric.low, metric.most)
        percent = f"; did you mean {bound / 100:g}?" if 1 < bound <= 100 else ""
        raise ValueError(f"{what} of {metric.name} must be {allowed}, found {bound:g}{percent}")
