"""JSON Schema of suite files, made from the tables that the parser uses.

``python -m tests.suite_schema --write`` writes it into the package; without ``--write`` it is printed.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pytest_kbrel import suites
from pytest_kbrel.bounds import LIMIT, SEED, UNSEEN, Bounds
from pytest_kbrel.bounds import SHOTS as SHOT_BOUNDS
from pytest_kbrel.catalogue.metrics import (
    CHANGE_METRICS,
    OVERALL_METRICS,
    SLICE_METRICS,
    Metric,
    by_all_names,
)
from pytest_kbrel.catalogue.probes import (
    EDITS,
    KINDS,
    PROBES,
    PROMPTS,
    TOP10,
    Places,
    Probe,
    Slicing,
)
from pytest_kbrel.catalogue.rules import GATE_RULES, THRESHOLDS, GateRule
from pytest_kbrel.facts.readers import FORMATS
from pytest_kbrel.records import (
    BUCKETS,
    CLUSTERS,
    DEFAULT_LANGUAGE,
    LANGUAGE_TAG,
    ROUNDINGS,
    Integrity,
    Rule,
)
from pytest_kbrel.suites.gates import (
    ABSOLUTE_CHANGE,
    CHOICES,
    DIRECTED,
    LIMITS,
    RELATIVE_CHANGE,
    SAME,
    WAIVER_KEYS,
    WORSE_WHEN,
)
from pytest_kbrel.suites.parse import (
    NO_GATES,
    PROMPT_KEYS,
    SHOTS,
    WORDINGS,
    slice_keys,
)

Schema = dict[str, Any]


def _key(about: str, **schema: Any) -> Schema:
    """Return the schema of a key with its description."""
    return {**schema, "description": about}


_TEXT: Schema = {"type": "string", "pattern": r"^[^\r\n]*\S[^\r\n]*$"}
_DATE: Schema = {"type": "string", "format": "date", "pattern": r"^\d{4}-\d\d-\d\d$"}
_LIMIT = _key(
    "How many facts: a whole number, or a share of them.",
    anyOf=[
        {"type": "integer", "minimum": LIMIT.least, "maximum": LIMIT.most},
        {"type": "number", "exclusiveMinimum": 0, "maximum": 1},
    ],
)
_CLUSTER = _key(
    "What facts share that change together; default: object, the right answer.",
    enum=list(CLUSTERS),
)


def make_schema() -> Schema:
    """Return the schema of the tables."""
    tables = (*SLICE_METRICS.values(), *OVERALL_METRICS.values(), CHANGE_METRICS)
    metrics = [metric for table in tables for metric in table.values()]
    relations = "The wordings; default: relations.yaml beside facts in an own format."
    languages = (
        "What the facts that name no language are in: a tag such as de or pt-BR."
    )
    properties: Schema = {
        "suite": _key("The name of the suite in reports.", **_TEXT),
        "facts": _key(
            "The facts: a path relative to this file, or a list of them.",
            anyOf=[_TEXT, _names(_TEXT)],
        ),
        "format": _key(
            "What the facts are in; default: own JSON Lines.", enum=list(FORMATS)
        ),
        "relations": _key(relations, **_TEXT),
        "seed": _key("Fixes every draw.", **_whole(SEED), default=0),
        "uninformative": _key("Own rules for answers that say nothing, YAML.", **_TEXT),
        "language": _key(
            languages,
            type="string",
            pattern=f"^{LANGUAGE_TAG}$",
            default=DEFAULT_LANGUAGE,
        ),
        "as_of": _key("The day on which answers must be right; default: now.", **_DATE),
        "integrity": _integrity(),
        **{name: _probe(probe) for name, probe in PROBES.items()},
        "overall": _overall(
            "What must hold over all slices of all probes.", OVERALL_METRICS["pooled"]
        ),
        "waivers": _key(
            "Known losses that somebody answers for, until a day.",
            type="array",
            items=_waiver(),
            minItems=1,
        ),
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Suite file of pytest-kbrel (*.kb.yaml)",
        **_object(properties, required=["suite", "facts"]),
        "anyOf": [{"required": [probe]} for probe in PROBES],
        "$defs": {_shape(metric): _gate(metric) for metric in metrics},
    }


def _object(properties: Schema, **more: Any) -> Schema:
    return {
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
        **more,
    }


def _overall(about: str, metrics: Mapping[str, Metric]) -> Schema:
    return _key(about, **_object({"gates": _gates(metrics)}))


def _whole(bounds: Bounds) -> Schema:
    return {"type": "integer", "minimum": bounds.least, "maximum": bounds.most}


def _or_nothing(schema: Schema) -> Schema:
    return {**schema, "type": ["object", "null"]}


def _waiver() -> Schema:
    case = (
        "The id of a case, such as monitor[P36], whose failure does not fail the run."
    )
    properties: Schema = {
        "fact": _key(
            "The id of a fact that is left out of comparisons with the baseline.",
            **_TEXT,
        ),
        "slice": _key(case, **_TEXT),
        "owner": _key("Who answers for it.", **_TEXT),
        "reason": _key("Why it is waived.", **_TEXT),
        "expires": _key("The last day on which it is waived.", **_DATE),
    }
    one_of_two = [{"required": [key]} for key in WAIVER_KEYS[:2]]
    return _object(properties, required=list(WAIVER_KEYS[2:]), oneOf=one_of_two)


def _probe(probe: Probe) -> Schema:
    names = "The cases: names, or a mapping with keys of their own."
    properties: Schema = {
        "slices": _key(names, **_slices(probe)),
        "limit": _LIMIT,
        "cluster": _CLUSTER,
        "gates": _gates(probe.metrics),
        "overall": _overall(
            "What must hold over all slices of the probe.", probe.overall_metrics
        ),
        "integrity": _integrity(),
        **{name: _worded(probe, name) for name in probe.wording},
        **{name: _setting(probe, name) for name in probe.options},
        **{name: _own(name) for name in probe.own_keys},
    }
    about = f"The probe {probe.title}; without keys all of its slices are asked, and no gate holds."
    return _key(about, **_or_nothing(_object(properties)))


def _own(key: str) -> Schema:
    if key == "relations":
        return _key("Which facts are the known ones.", **_names(_TEXT))
    if key == "unseen":
        expires = "The day after which a run warns: they may have answers then."
        unseen = {
            "count": _key("How many questions are made.", **_whole(UNSEEN)),
            "as_of": _key("The day they are made for.", **_DATE),
            "expires": _key(expires, **_DATE),
        }
        about = "Questions that nobody can answer; default: none."
        return _key(about, **_object(unseen, required=list(unseen)))
    if key == "also_as":
        one = {"enum": list(ROUNDINGS)}
        about = "Roundings of the weights after which all roles are asked again."
        return _key(about, type="array", items=one, minItems=1, uniqueItems=True)
    assert key == "shots", key
    counts = {
        key: _key(f"How many are of {key} facts.", **_whole(SHOT_BOUNDS), default=count)
        for key, count in SHOTS.items()
    }
    return _key(
        "The examples to choose from: how many are made, or a file of own ones.",
        anyOf=[_TEXT, _object(counts)],
    )


def _worded(probe: Probe, name: str) -> Schema:
    kind: Schema = {"type": "string"}
    if name == "stop":
        one = {"type": "string", "minLength": 1}
        kind = {"anyOf": [one, {"type": "array", "items": one}]}
    elif name in probe.places:
        kind = _template(probe.places[name])
    if name == "prompt" and probe.prompts:
        named = _key(
            "Which examples are shown.",
            enum=list(probe.prompts),
            default=probe.prompts[0],
        )
        kind = _key("The text around a question.", **kind)
        both = _object(dict(zip(PROMPT_KEYS, (named, kind), strict=True)))
        kind = {"anyOf": [named, kind, both]}
    return {**kind, "description": probe.wording[name]}


def _template(placeholders: Places) -> Schema:
    """Return the schema of a text in which each placeholder stands once, and no other name in braces."""
    needed, allowed = placeholders
    names = "|".join((*needed, *allowed))
    conditions: list[Schema] = [{"not": {"pattern": rf"\{{(?!({names})\}})\w+\}}"}}]
    for name in needed:
        conditions.append({"pattern": rf"\{{{name}\}}"})
    for name in (*needed, *allowed):
        conditions.append({"not": {"pattern": rf"\{{{name}\}}[^\0]*\{{{name}\}}"}})
    for name in allowed:
        conditions.append({"not": {"pattern": rf"\{{{needed[0]}\}}[^\0]*\{{{name}\}}"}})
    return {"type": "string", "allOf": conditions}


def _integrity() -> Schema:
    properties: Schema = {}
    for name, about in LIMITS.items():
        default = getattr(Integrity(), name)
        kind: Schema = {"type": "number", "minimum": 0, "maximum": 1}
        if isinstance(default, str):
            kind = {"enum": list(CHOICES)}
        properties[name] = _key(about, **kind, default=default)
    return _key(
        "What responses may be like for anything to be measured; beyond it a case is invalid.",
        **_object(properties),
    )


def _slices(probe: Probe) -> Schema:
    names: dict[Slicing, Schema] = {
        "relation": _TEXT,
        "group": _TEXT,
        "bucket": {"type": "string", "pattern": f"-({'|'.join((*BUCKETS, TOP10))})$"},
        "knowledge": {
            "type": "string",
            "pattern": _reliability_pattern(f"({'|'.join(KINDS)})"),
        },
        "role": {"type": "string", "pattern": _role_pattern("|".join(EDITS.kinds))},
    }
    one = names[probe.slicing]
    mapping: Schema = {"type": "object", "minProperties": 1}
    if len(probe.kinds) > 1:
        pattern = _role_pattern if probe is EDITS else _reliability_pattern
        mapping["patternProperties"] = {
            pattern(kind): _slice(probe, kind) for kind in probe.kinds
        }
        mapping["additionalProperties"] = False
    else:
        mapping["propertyNames"] = one
        mapping["additionalProperties"] = _slice(probe, "")
    return {"anyOf": [_names(one), mapping]}


def _role_pattern(kind: str) -> str:
    return f"^({kind})(-({'|'.join(ROUNDINGS)}))?$"


def _reliability_pattern(kind: str) -> str:
    settings = "|".join(PROMPTS[1:])
    return f"^{kind}(-(.+-)?({settings})|-(?!.*-shot$).+)?$"


def _names(one: Schema) -> Schema:
    return {"type": "array", "items": one, "minItems": 1, "uniqueItems": True}


def _slice(probe: Probe, name: str) -> Schema:
    metrics = SLICE_METRICS[probe.kind(name)]
    properties: Schema = {
        "limit": _LIMIT,
        "cluster": _CLUSTER,
        "gates": _key(
            "What must hold of each metric, or none: what holds in the probe does not either.",
            anyOf=[_gates(metrics), {"enum": [NO_GATES]}],
        ),
    }
    if WORDINGS in slice_keys(probe, name):
        properties[WORDINGS] = _setting(probe, WORDINGS)
    return _or_nothing(_object(properties))


def _setting(probe: Probe, name: str) -> Schema:
    setting = probe.options[name]
    kind = _whole(setting.bounds)
    if setting.options:
        kind = {"enum": list(setting.options)}
    elif setting.plain:
        kind = _TEXT
    return _key(setting.help, **kind, default=probe.default(name))


def _gates(metrics: Mapping[str, Metric]) -> Schema:
    refs = {
        name: {"$ref": f"#/$defs/{_shape(metric)}", "description": _about(metric)}
        for name, metric in {**by_all_names(metrics), **CHANGE_METRICS}.items()
    }
    return _key("What must hold of each metric: a number, or rules.", **_object(refs))


def _about(metric: Metric) -> str:
    most = (
        f" to {metric.high:g}" if math.isfinite(metric.high) else ", without upper end"
    )
    return f"{metric.about} {metric.better.capitalize()} is better; from {metric.low:g}{most}."


def _other_name(bound: Schema, of: str) -> Schema:
    """Return the schema of a rule under a name of other tools."""
    return {**bound, "description": f"Other name of {of}: {bound['description']}"}


def _shape(metric: Metric) -> str:
    """Return the name of the schema of gates on a metric, shared by metrics of one range and direction."""
    if metric.name in CHANGE_METRICS:
        return f"gate-change-{metric.better}-{metric.high:g}"
    ending = "" if metric.comparable else "-value"
    if metric.controlled:
        ending = "-controlled"
    return f"gate-{metric.better}-{metric.low:g}-{metric.high:g}{ending}"


def bound_schema(rule: GateRule, metric: Metric) -> Schema:
    """Return the schema of a rule's bound, with what the rule demands as its description."""
    bounds = rule.bounds(metric)
    least = "exclusiveMinimum" if bounds.above else "minimum"
    number = {"type": "number", least: bounds.least, "maximum": bounds.most}
    if not rule.relative:
        return _key(rule.about, **number)
    parts = {key: _key(about, **number) for key, about in THRESHOLDS.items()}
    about = f"{rule.about} A single number is 'within'."
    return _key(about, anyOf=[number, _object(parts, required=["within"])])


def _gate(metric: Metric) -> Schema:
    bounds: Schema = {
        rule.name: bound_schema(rule, metric)
        for rule in GATE_RULES.values()
        if rule.is_for(metric)
    }
    names: dict[str, Rule] = {**SAME, DIRECTED: metric.plain_rule}
    names |= {
        name: "max_drop"
        for name, better in WORSE_WHEN.items()
        if better == metric.better
    }
    rules: Schema = {
        **bounds,
        **{
            name: _other_name(bounds[rule], rule)
            for name, rule in names.items()
            if rule in bounds
        },
    }
    if "max_drop" in bounds:
        rules[ABSOLUTE_CHANGE] = _key(
            "-v means max_drop: v.",
            type="number",
            maximum=0,
            minimum=metric.low - metric.most,
        )
    if "recovery" in bounds and metric.better == "higher":
        rules[RELATIVE_CHANGE] = _key(
            "-v means recovery: 1 - v.", type="number", exclusiveMinimum=-1, maximum=0
        )
    about = f"A bare number means {metric.plain_rule}."
    plain = {**bounds[metric.plain_rule], "description": about}
    return {"anyOf": [plain, _object(rules, minProperties=1)]}


if __name__ == "__main__":
    text = json.dumps(make_schema(), indent=2, ensure_ascii=False) + "\n"
    if sys.argv[1:] == ["--write"]:
        Path(suites.__file__).with_name("suite.schema.json").write_text(text, "utf-8")
    else:
        print(text, end="")
