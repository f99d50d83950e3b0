"""The rules of gates: what each may demand, what it needs, and its words in reports.

How a rule is judged is in :mod:`pytest_kbrel.gates.rules`, which has one function for each.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pytest_kbrel.bounds import SHARE, Bounds
from pytest_kbrel.catalogue.metrics import BASELINE_METRICS, Metric
from pytest_kbrel.records import Gate, Rule, Suite, record

# The keys of a two-sided tolerance, as suite files write it, with their meaning.
THRESHOLDS: Mapping[str, str] = {
    "within": "The gate passes if the worse end of the 95 % interval is within this.",
    "beyond": "The gate fails if the change is significantly larger than this allows; default: half of what "
    "'within' allows.",
}


@record
class GateRule:
    """A rule of a gate.

    ``about`` is what it demands, in one sentence. Its bound is a ``value`` of the metric, a ``distance``
    between two, or a ``share``.

    Rules that have a bound which allows ``nothing`` are ``relative``, that is, they compare with a baseline:
    the bound is what the interval of the change must stay within for a pass, and half of what it allows is
    what a change must exceed for a failure where the gate does not say (``beyond``); a larger bound allows
    more where ``allows_more`` is 1, and less where it is -1;
    ``not_shown`` are the words for a change that may be no more than ``{beyond}``. ``controlled`` rules
    compare with a control of the metric; a ``ratio`` is not defined for metrics that can be negative.

    In the reason of a verdict, ``limit`` stands before the bound. In failure messages, ``allowed`` says what
    the rule allows (``{bound}``, ``{baseline}``), and ``explain`` is what they show besides the metric and
    its difference from the baseline: the observed value, or the reason. ``observed`` is that value's name.

    ``synonyms`` are its names in other tools.
    """

    name: Rule
    about: str
    bound: Literal["value", "distance", "share"]
    allowed: str
    observed: str
    limit: Literal["at least", "at most", ""] = "at least"
    nothing: float | None = None
    allows_more: Literal[1, -1] = 1
    not_shown: str = ""
    controlled: bool = False
    ratio: bool = False
    explain: Literal["observed", "reason", ""] = ""
    synonyms: tuple[str, ...] = ()

    @property
    def relative(self) -> bool:
        """Whether the rule compares with a baseline."""
        return self.nothing is not None

    def beyond(self, gate: Gate) -> float:
        """Return what a change must significantly exceed for the gate to fail."""
        if gate.beyond is not None:
            return gate.beyond
        assert self.nothing is not None
        return (self.nothing + gate.bound) / 2

    def is_for(self, metric: Metric) -> bool:
        """Return True if a gate on ``metric`` may have the rule."""
        if metric.name in BASELINE_METRICS:
            return self.name == metric.plain_rule
        return (
            (metric.low >= 0 or not self.ratio)
            and (metric.comparable or not self.relative)
            and (metric.controlled or not self.controlled)
        )

    def bounds(self, metric: Metric) -> Bounds:
        """Return what the bound may be."""
        if self.bound == "share":
            return SHARE
        if self.bound == "distance":
            return Bounds(0, metric.most - metric.low, whole=False)
        return Bounds(metric.low, metric.most, whole=False)

    def range_in_words(self, metric: Metric) -> str:
        """Return what the bound may be: ``at least 0 and at most 1``."""
        bounds = self.bounds(metric)
        least = "above" if bounds.above else "at least"
        return f"{least} {bounds.least:g} and at most {bounds.most:g}"


GATE_RULES: Mapping[Rule, GateRule] = {
    rule.name: rule
    for rule in (
        GateRule(
            name="min",
            about="The value must be at least this.",
            bound="value",
            allowed="at least {bound}",
            observed="measured",
            synonyms=("gte", "ge", "minimum"),
        ),
        GateRule(
            name="max",
            about="The value must be at most this.",
            bound="value",
            limit="at most",
            allowed="at most {bound}",
            observed="measured",
            synonyms=("lte", "le", "maximum"),
        ),
        GateRule(
            name="max_drop",
            about="Against the baseline, how much worse the value may become, in its own direction.",
            nothing=0.0,
            not_shown="by more than {beyond}",
            bound="distance",
            limit="",
            allowed="at most {bound} worse than {baseline}",
            observed="drop",
            synonyms=("max_regression",),
        ),
        GateRule(
            name="recovery",
            about="Share of the baseline's value to recover; where lower is better, of its inverse.",
            nothing=1.0,
            allows_more=-1,
            not_shown="that less than {beyond} of it was recovered",
            ratio=True,
            bound="share",
            allowed="at least {bound} of {baseline}'s value recovered",
            observed="recovered",
            explain="observed",
            synonyms=("recovery_threshold", "min_recovery"),
        ),
        GateRule(
            name="above_control",
            about="How much better than its best control the value must be.",
            controlled=True,
            bound="distance",
            allowed="at least {bound} better than the control",
            observed="above its control by",
            explain="reason",
        ),
    )
}


def compares(rule: Rule, metric: str) -> bool:
    """Return True if a gate needs a baseline: by its rule, or since its metric is measured against one."""
    return GATE_RULES[rule].relative or metric in BASELINE_METRICS


def family_size(suite: Suite) -> int:
    """Return the number of cases of a suite that compare with a baseline: m, the size of its family of tests.

    All cases of the file count, slices and those over several, whatever is selected: a verdict depends on
    nothing else that ran.
    """
    gates = [case.gates for case in suite.cases]
    gates += [aggregate.gates for aggregate in suite.aggregates]
    return sum(
        any(GATE_RULES[gate.rule].relative for gate in of_case) for of_case in gates
    )
