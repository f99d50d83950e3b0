"""Why a gate has its verdict: the reasons as data, and the one renderer of their sentences."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pytest_kbrel.records.exchange import record

# One that ends in a blank leads the next one.
SENTENCES: Mapping[str, str] = {
    "told": "{text}",
    "were_less": "were less of it better: ",
    "lost_rows": "with {rows} lost rows at {end:g}, ",
    "undefined": "{metric} is undefined: {note}",
    "not_compared": "{metric} cannot be compared: {note}",
    "not_blessed": "the baseline has not measured what {metric} needs: bless all suites anew",
    "value": "{metric} is {value:.3f}{within} over {over}{note}",
    "control": "{metric} is {value:.3f}{within} over {over}, {above:.3f} {where} its control {control}, "
    "{best:.3f}{best_within}",
    "no_control": "{metric} has no control to compare with: {note}",
    "recovered": "{metric} recovered {share}{within} of the baseline: ",
    "no_ratio": "{metric} has no ratio to a baseline of {before:.3f}",
    "same": "{metric} did not change{within} from {before:.3f} ({details})",
    "changed": "{metric} {verb} by {by:.3f}{within} from {before:.3f} to {now:.3f} ({details})",
    "left_out": "{facts} not in the baseline left out",
    "limit": "allowed: {limit} {bound:.3f}",
    "tolerance": "allowed: within {bound:.3f}, beyond {beyond:.3f}",
    "worse": "worse than the baseline; {beyond} is not shown",
    "few_groups": "not decided: its facts share so few answers that they count as {groups:.1f} groups, and a "
    "gate that compares needs {least}",
    "power": "a {change} of {effect:.3f} would be found with 80 % power",
    "no_power": "no {change} would be found with 80 % power",
    "needed": "about {needed:,} facts would decide, were the difference the same",
    "endless": "no number of facts below a million would decide",
    "empty": "with the empty answers counted against it",
    "looks": "{how} after {asked} of {facts} facts, at look {taken} of {of}, whose intervals are of {level:.2f} %",
}


@record
class Reason:
    """One reason of a verdict: ``kind``, one of :data:`SENTENCES`, and the numbers and names of its sentence."""

    kind: str
    values: tuple[tuple[str, str | int | float], ...] = ()


def reason(kind: str, **values: str | float) -> Reason:
    """Return a reason of this kind."""
    return Reason(kind=kind, values=tuple(values.items()))


def sentence(reasons: Iterable[Reason]) -> str:
    """Return reasons in words."""
    parts = (SENTENCES[of.kind].format(**dict(of.values)) for of in reasons)
    joined = (part if part.endswith(" ") else f"{part}; " for part in parts)
    return "".join(joined).removesuffix("; ")
