"""Pages of docs/reference, made from the tables of the code: flags, keys of suites, metrics and commands.

``python -m tests.reference_pages --write`` writes them; without ``--write`` they are printed.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pytest_kbrel import resources
from pytest_kbrel.catalogue.metrics import (
    CHANGE_METRICS,
    CONTROLS,
    OVERALL_METRICS,
    SHOWN_ONLY,
    SLICE_METRICS,
    Metric,
)
from pytest_kbrel.catalogue.probes import PROBES, Probe
from pytest_kbrel.catalogue.rules import GATE_RULES, THRESHOLDS
from pytest_kbrel.cli import command_parser
from pytest_kbrel.plugin.options import FLAGS
from pytest_kbrel.suites.gates import (
    ABSOLUTE_CHANGE,
    DIRECTED,
    REFUSED,
    RELATIVE_CHANGE,
    WORSE_WHEN,
)

Schema = Mapping[str, Any]
FOLDER = Path(__file__).parents[1] / "docs" / "reference"
_SUITES = "suites.md"
_MADE = "<!-- Made by `python -m tests.reference_pages --write`. -->"
# What a key that is a mapping has a table of its own for.
_OWN_TABLE = ("integrity", "waivers", "gates", "overall", "unseen", "shots")
# How figures over slices are made of those of slices.
_OVER: Mapping[str, str] = {
    "questions": "Over all questions alike",
    "head_to_tail": "Means over the buckets that the suite has, each over the facts of all domains",
    "reliability": "Over the facts of all known or all unseen slices of a prompt setting; `c_wrong` is the "
    "mean of both",
}
# What argparse has as the default of an argument that has none.
_NO_DEFAULT = ("None", "False", "", "[]", argparse.SUPPRESS)
# Numbers beyond this are only there to stop a slip of the finger.
_ANY = 100_000
_NAME = re.compile(r"(?<![\w`/-])(--[a-z][\w-]*|\{\w+\}|[a-z]\w*_\w+)(?![\w`=/])")


def flags() -> str:
    """Return the page of pytest's flags."""
    parts = [
        "# Flags",
        _MADE,
        "Flags that the plugin adds to pytest. Each can also be given as an environment variable or as a key "
        "of pytest's configuration file. A flag takes precedence over the environment, and the environment "
        "over the file. A switch is `true` or `false` there.",
        "The keys of `--kb-model-args` are those of the backend: see [My model](../models.md).",
    ]
    for flag in FLAGS:
        value = (
            ""
            if not flag.metavar
            else f"[={flag.metavar}]"
            if flag.bare is not None
            else f" {flag.metavar}"
        )
        default = f" · default `{flag.default}`" if flag.default else ""
        parts += [
            f"## `{flag.flag}`",
            f"`{flag.flag}{value}` · ini `{flag.ini}` · environment `{flag.environment}`{default}",
            _sentence(flag.help),
        ]
    return _page(parts)


def suite_keys() -> str:
    """Return the page of the keys of suite files."""
    schema = json.loads(resources.schema("suite"))
    top, required = schema["properties"], schema["required"]
    probes = {name: top[name]["properties"] for name in PROBES}
    shared = [
        key
        for key in probes["monitor"]
        if len({_text(keys.get(key)) for keys in probes.values()}) == 1
    ]
    slice_keys = _slice_keys(probes["head_to_tail"]["slices"])
    reliability = probes["reliability"]
    counts = next(
        part for part in reliability["shots"]["anyOf"] if part.get("type") == "object"
    )
    of_waiver = top["waivers"]["items"]

    def own_keys(keys: Schema) -> str:
        others = ("slices", *shared, "gates", "overall")
        return _table_of_keys(
            {key: value for key, value in keys.items() if key not in others}
        )

    return _page(
        [
            "# Keys of a suite",
            _MADE,
            f"Keys of a suite file (`*.kb.yaml`). [Writing a suite](../{_SUITES}) explains them with "
            "examples. `kbrel schema` prints them as a JSON Schema, with which an editor completes them.",
            "## The file",
            "`suite`, `facts` and at least one of the probes are required.",
            _table_of_keys(
                {key: value for key, value in top.items() if key not in PROBES},
                required,
            ),
            "## Every probe",
            _table_of_keys(
                {
                    key: probes["monitor"][key]
                    for key in ("slices", *shared, "gates", "overall")
                }
            ),
            *(
                part
                for name, keys in probes.items()
                for part in (f"## `{name}`", own_keys(keys))
            ),
            "### `unseen`",
            _table_of_keys(
                reliability["unseen"]["properties"], reliability["unseen"]["required"]
            ),
            "### `shots`",
            _table_of_keys(counts["properties"]),
            "## One slice",
            "Where `slices` is a mapping, each slice may have these keys of its own, `wordings` where its "
            "probe has it.",
            _table_of_keys(slice_keys),
            "## `integrity`",
            top["integrity"]["description"],
            _table_of_keys(top["integrity"]["properties"]),
            "## `waivers`",
            "A list. Each entry has either `fact` or `slice`, and all of the others.",
            _table_of_keys(of_waiver["properties"], of_waiver["required"]),
            "## `gates`",
            "A gate is `METRIC: NUMBER` or `METRIC: {RULE: NUMBER, ...}`, see [Metrics](metrics.md). A bare "
            "number is `min` where higher is better, and `max` where lower is better.",
            _rules(),
            "`max_drop` and `recovery` need a baseline. Their number may be a mapping:",
            _table(
                ("key", "meaning"),
                ((f"`{key}`", about) for key, about in THRESHOLDS.items()),
            ),
            "### Names from other tools",
            _table(("written", "means"), _other_names()),
            "### Names that are refused",
            _table(
                ("written", "the error says"),
                ((f"`{name}`", text) for name, text in REFUSED.items()),
            ),
        ]
    )


def metrics() -> str:
    """Return the page of the metrics."""
    parts = [
        "# Metrics",
        _MADE,
        "Metrics that reports show and [gates](suite-keys.md#gates) can be about, with their lowest and "
        "highest value. [The three papers](../papers.md) has the formulas.",
    ]
    for probe in PROBES.values():
        for kind in probe.kinds:
            name = (
                f"`{probe.name}`" if kind == probe.name else f"`{probe.name}`, {kind}"
            )
            if kind in PROBES.keys() - {probe.name}:
                parts += [f"## `{probe.name}`", f"A slice has the metrics of `{kind}`."]
                continue
            headline = ", ".join(f"`{name}`" for name in probe.headline[kind])
            parts += [
                f"## {name}",
                f"Metrics of a slice. Reports show {headline} first.",
                _table_of_metrics(SLICE_METRICS[kind], probe),
            ]
        overall = OVERALL_METRICS[probe.name]
        names = ", ".join(f"`{name}`" for name in overall if name in probe.metrics)
        further = {
            name: metric
            for name, metric in overall.items()
            if name not in probe.metrics
        }
        parts += [
            f"## `{probe.name}[overall]`",
            f"{_OVER.get(probe.name, 'Means over the slices')}: {names}.",
        ]
        if further:
            parts.append(_table_of_metrics(further, probe, overall=True))
    parts += [
        "## `pooled[overall]`",
        "Over all slices of all probes of a suite.",
        _table_of_metrics(OVERALL_METRICS["pooled"]),
        "## Changes against a baseline",
        "Every slice and every figure over slices has these where there is a baseline. Each has one rule: "
        "`max` where lower is better, `min` where higher is better.",
        _table_of_metrics(CHANGE_METRICS),
        "## Without gates",
        "What would be measured without knowledge (`above_control` compares with the best of a metric's "
        "controls), and what the distractors are like.",
        _table_of_metrics(SHOWN_ONLY),
    ]
    return _page(parts)


def commands() -> str:
    """Return the page of the command ``kbrel``."""
    parser = command_parser()
    parts = [
        "# The command kbrel",
        _MADE,
        "The exit code is 0, or 2 with one line on standard error when the call or a file is wrong. `kbrel "
        "merge` has the exit codes of pytest; `kbrel compare --exit-code` exits with 1 when a gate fails, and `kbrel check` on an error of the checkpoint.",
    ]
    for name, about, command in _commands(parser):
        parts += [f"## `{name}`", _sentence(command.description or about)]
        parts += [
            f"```text\n{_usage(name, command)}\n```",
            _table(("argument", "meaning"), _arguments(command)),
        ]
        if command.epilog:
            parts.append(_sentence(command.epilog))
    return _page(parts)


PAGES: Mapping[str, Callable[[], str]] = {
    "flags.md": flags,
    "suite-keys.md": suite_keys,
    "metrics.md": metrics,
    "commands.md": commands,
}


def _page(parts: Iterable[str]) -> str:
    return "\n\n".join(parts) + "\n"


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [
        "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |"
        for row in (head, *rows)
    ]
    return "\n".join([lines[0], "|---" * len(head) + "|", *lines[1:]])


def _marked(text: str) -> str:
    """Return a text with its flags, keys and places in backticks."""
    return _NAME.sub(r"`\1`", text)


def _sentence(text: str) -> str:
    words = " ".join(text.split())
    return f"{words[0].upper()}{_marked(words[1:])}{'' if words.endswith('.') else '.'}"


def _text(value: object) -> str:
    return json.dumps(value, sort_keys=True)


def _table_of_keys(keys: Schema, required: Iterable[str] = ()) -> str:
    def row(key: str, schema: Schema) -> tuple[str, str, str]:
        default = ""
        if key in required:
            default = "required"
        elif "default" in schema and schema["default"] is not None:
            default = f"`{json.dumps(schema['default'])}`".replace('"', "")
        name = f"[`{key}`](#{key})" if key in _OWN_TABLE[:3] else f"`{key}`"
        return name, _marked(schema["description"]), _values(schema), default

    return _table(
        ("key", "meaning", "value", "default"),
        (row(key, schema) for key, schema in keys.items()),
    )


def _values(schema: Schema) -> str:
    """Return in words what a key may hold."""
    if "enum" in schema:
        return ", ".join(f"`{option}`" for option in schema["enum"])
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_values(part) for part in schema["anyOf"]))
    kind = schema["type"][0] if isinstance(schema["type"], list) else schema["type"]
    if kind in ("integer", "number"):
        return f"{'whole number' if kind == 'integer' else 'number'}{_range(schema)}"
    if kind == "array":
        return (
            f"list of {_values(schema['items'])}s"
            if schema["items"].get("type") == "string"
            else "list"
        )
    if kind == "string":
        return "date" if schema.get("format") == "date" else "text"
    return "mapping"


def _range(schema: Schema) -> str:
    above, most = schema.get("exclusiveMinimum"), schema["maximum"]
    least = f" above {above:g}" if above is not None else f" from {schema['minimum']:,}"
    return f"{least} to {most:,}" if most <= _ANY else least


def _slice_keys(slices: Schema) -> Schema:
    mapping = next(part for part in slices["anyOf"] if part.get("type") == "object")
    keys: Schema = mapping["additionalProperties"]["properties"]
    return keys


def _rules() -> str:
    rows = []
    for rule in GATE_RULES.values():
        bounds = rule.range_in_words(SLICE_METRICS["known"]["cr"])
        names = ", ".join(f"`{name}`" for name in rule.synonyms)
        only = "; metrics that have a control only" if rule.controlled else ""
        only += "; not for metrics that can be negative" if rule.ratio else ""
        rows.append((f"`{rule.name}`", rule.about, f"{bounds}{only}", names))
    return _table(
        ("rule", "what it demands", "bound, of a metric from 0 to 1", "other names"),
        rows,
    )


def _other_names() -> Iterator[tuple[str, str]]:
    yield f"`{DIRECTED}`", "`min` where higher is better, `max` where lower is better"
    for name, better in WORSE_WHEN.items():
        yield f"`{name}`", f"`max_drop`, where {better} is better"
    yield f"`{ABSOLUTE_CHANGE}: -v`", "`max_drop: v`"
    yield (
        f"`{RELATIVE_CHANGE}: -v`",
        "`recovery: 1 - v`, where higher is better and never negative",
    )


def _table_of_metrics(
    metrics: Mapping[str, Metric], probe: Probe | None = None, *, overall: bool = False
) -> str:
    return _table(
        ("metric", "what it is", "better", "from", "to"),
        (
            (
                f"`{metric.name}`",
                " ".join(
                    [_marked(metric.about), *_notes(metric, probe, overall=overall)]
                ),
                metric.better,
                f"{metric.low:g}",
                f"{metric.high:g}" if math.isfinite(metric.high) else "no end",
            )
            for metric in metrics.values()
        ),
    )


def _notes(metric: Metric, probe: Probe | None, *, overall: bool) -> Iterator[str]:
    if probe is not None and not overall:
        if metric.name in probe.setting_needs and (
            needs := probe.setting_needs[metric.name]
        ):
            note = f"({needs[0]}: {needs[1]})"
            if note not in metric.about:
                yield f"Needs `{needs[0]}: {needs[1]}`."
        if controls := [
            name
            for name in CONTROLS.get(metric.name, ())
            if probe.slicing == "knowledge"
        ]:
            yield f"Controls: {', '.join(f'`{name}`' for name in controls)}."
    if not metric.comparable:
        yield "Gates: `min` and `max` only."
    if (
        overall
        and probe is not None
        and (parts := probe.overall_needs.get(metric.name))
    ):
        yield f"Needs slices: {', '.join(parts)}."


def _commands(
    parser: argparse.ArgumentParser, about: str = ""
) -> Iterator[tuple[str, str, argparse.ArgumentParser]]:
    """Yield name, help and parser of each command that has no commands below it."""
    below = [
        action
        for action in parser._actions
        if isinstance(action, argparse._SubParsersAction)
    ]
    if not below:
        yield parser.prog, about, parser
    for action in below:
        texts = {choice.dest: choice.help or "" for choice in action._choices_actions}
        for name, command in action.choices.items():
            yield from _commands(command, texts.get(name, ""))


def _stated(command: argparse.ArgumentParser) -> list[argparse.Action]:
    return [
        action
        for action in command._actions
        if not isinstance(action, argparse._HelpAction)
    ]


def _written(action: argparse.Action) -> str:
    """Return an argument as a call writes it: ``--output DIR``, ``DIR [DIR ...]``."""
    value = action.metavar or (
        "|".join(action.choices) if action.choices else action.dest.upper()
    )
    assert isinstance(value, str)
    if action.option_strings:
        value = {0: "", "?": f"[={value}]"}.get(action.nargs, f" {value}")
        return action.option_strings[0] + value
    return {"+": f"{value} [{value} ...]", "?": f"[{value}]"}.get(
        str(action.nargs), value
    )


def _usage(name: str, command: argparse.ArgumentParser) -> str:
    needed = [
        _written(action)
        for action in _stated(command)
        if action.required or not action.option_strings
    ]
    return " ".join([name, *needed, "[options]"])


def _arguments(command: argparse.ArgumentParser) -> Iterator[tuple[str, str]]:
    for action in _stated(command):
        about = _marked((action.help or "").replace("%%", "%"))
        if str(action.default) not in _NO_DEFAULT and "default" not in about:
            about += f" (default: `{action.default}`)"
        yield f"`{_written(action)}`", about


def main() -> None:
    """Print the pages, or write them with ``--write``."""
    for name, page in PAGES.items():
        if sys.argv[1:] == ["--write"]:
            FOLDER.mkdir(exist_ok=True)
            (FOLDER / name).write_text(page(), encoding="utf-8")
        else:
            print(page())


if __name__ == "__main__":
    main()
