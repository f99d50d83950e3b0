"""The rules of gates: what each may demand, what it needs, and its words in reports.

How a rule is judged is in :mod:`pytest_kbrel.gates.rules`, which has one function for each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

from pytest_kbrel.bounds import SHARE, Bounds
from pytest_kbrel.records import Gate, Rule, Suite, record

# The keys of a two-sided tolerance, as suite files write it, with their meaning.
THRESHOLDS: Mapping[str, str] = {
    "within": "The gate passes if the worse end of the 95 % interval is within this.",
    "beyond": "The gate fails if the change is significantly larger than this allows; default: half of what "
    "'within' allows.",
}
_PLAIN_NUMBER = "A single number is 'within'."


def _value(low: float, high: float) -> Bounds:
    return Bounds(low, high, whole=False)


def _distance(low: float, high: float) -> Bounds:
    return Bounds(0, high - low, whole=False)


def _share(low: float, high: float) -> Bounds:
    return SHARE


def _half_drop(bound: float) -> float:
    return bound / 2


def _half_loss(bound: float) -> float:
    return (1 + bound) / 2


@record
class GateRule:
    """A rule of a gate, for metrics with values from ``low`` to ``high``.

    ``about`` is what it demands, in one sentence. ``range(low, high)`` is what its bound may be.

    ``relative`` rules compare with a baseline: their bound is what the interval of the change must stay
    within for a pass, and ``half(bound)`` what a change must exceed for a failure where the gate does not say
    (``beyond``); a larger bound allows more where ``allows_more`` is 1, and less where it is -1;
    ``not_shown`` are the words for a change that may be no more than ``{beyond}``. ``controlled`` rules
    compare with a control of the metric; a ``ratio`` is not defined for metrics that can be negative.

    In the reason of a verdict, ``limit`` stands before the bound. In failure messages, ``allowed`` says what
    the rule allows (``{bound}``, ``{baseline}``), and ``explain`` is what they show besides the metric and
    its difference from the baseline: the observed value, or the reason. ``observed`` is that value's name.

    ``synonyms`` are its names in other tools.
    """

    name: Rule
    about: str
    range: Callable[[float, float], Bounds]
    allowed: str
    observed: str
    limit: Literal["at least", "at most", ""] = "at least"
    half: Callable[[float], float] | None = None
    allows_more: Literal[1, -1] = 1
    not_shown: str = ""
    controlled: bool = False
    ratio: bool = False
    explain: Literal["observed", "reason", ""] = ""
    synonyms: tuple[str, ...] = ()

    @property
    def relative(self) -> bool:
        """Whether the rule compares with a baseline."""
        return self.half is not None

    def half_of(self, bound: float) -> float:
        """Return half of what ``bound`` allows, in its own terms."""
        assert self.half is not None
        return self.half(bound)

    def beyond(self, gate: Gate) -> float:
        """Return what a change must significantly exceed for the gate to fail."""
        return self.half_of(gate.bound) if gate.beyond is None else gate.beyond

    def range_in_words(self, low: float, high: float) -> str:
        """Return what the bound may be: ``at least 0 and at most 1``."""
        bounds = self.range(low, high)
        return f"{'above' if bounds.above else 'at least'} {bounds.least:g} and at most {bounds.most:g}"

    def schema(self, low: float, high: float) -> dict[str, Any]:
        """Return the JSON Schema of the bound, with what the rule demands as its description."""
        bounds = self.range(low, high)
        least = "exclusiveMinimum" if bounds.above else "minimum"
        number = {"type": "number", least: bounds.least, "maximum": bounds.most}
        if not self.relative:
            return {**number, "description": self.about}
        parts = {
            "type": "object",
            "properties": {
                key: {**number, "description": about}
                for key, about in THRESHOLDS.items()
            },
            "required": ["within"],
            "additionalProperties": False,
        }
        return {
            "description": f"{self.about} {_PLAIN_NUMBER}",
            "anyOf": [number, parts],
        }


GATE_RULES: Mapping[Rule, GateRule] = {
    rule.name: rule
    for rule in (
        GateRule(
            name="min",
            about="The value must be at least this.",
            range=_value,
            allowed="at least {bound}",
            observed="measured",
            synonyms=("gte", "ge", "minimum"),
        ),
        GateRule(
            name="max",
            about="The value must be at most this.",
            range=_value,
            limit="at most",
            allowed="at most {bound}",
            observed="measured",
            synonyms=("lte", "le", "maximum"),
        ),
        GateRule(
            name="max_drop",
            about="Against the baseline, how much worse the value may become, in its own direction.",
            half=_half_drop,
            not_shown="by more than {beyond}",
            range=_distance,
            limit="",
            allowed="at most {bound} worse than {baseline}",
            observed="drop",
            synonyms=("max_regression",),
        ),
        GateRule(
            name="recovery",
            about="Share of the baseline's value to recover; where lower is better, of its inverse.",
            half=_half_loss,
            allows_more=-1,
            not_shown="that less than {beyond} of it was recovered",
            ratio=True,
            range=_share,
            allowed="at least {bound} of {baseline}'s value recovered",
            observed="recovered",
            explain="observed",
            synonyms=("recovery_threshold", "min_recovery"),
        ),
        GateRule(
            name="above_control",
            about="How much better than its best control the value must be.",
            controlled=True,
            range=_distance,
            allowed="at least {bound} better than the control",
            observed="above its control by",
            explain="reason",
        ),
    )
}


def family_size(suite: Suite) -> int:
    """Return the number of cases of a suite that compare with a baseline: m, the size of its family of tests.

    All cases of the file count, slices and those over several, whatever is selected: a verdict depends on
    nothing else that ran.
    """
    gates = [case.gates for case in suite.cases] + [
        aggregate.gates for aggregate in suite.aggregates
    ]
    return sum(
        any(GATE_RULES[gate.rule].relative for gate in of_case) for of_case in gates
    )
