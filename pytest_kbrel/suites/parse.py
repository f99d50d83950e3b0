"""Parser of suite files: every key, type and range is checked before any fact is read."""

from __future__ import annotations

import dataclasses
import datetime
import functools
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pytest_kbrel.bounds import COUNT, LIMIT, SEED, SHARE, UNSEEN
from pytest_kbrel.bounds import SHOTS as SHOT_BOUNDS
from pytest_kbrel.catalogue.metrics import OVERALL_METRICS, SLICE_METRICS, Metric
from pytest_kbrel.catalogue.probes import PROBES, Probe, Setting
from pytest_kbrel.errors import SuiteError, nearest
from pytest_kbrel.facts.located import Node, nearest_file, read_document, unknown
from pytest_kbrel.facts.readers import FORMATS, Format, format_by_suffix
from pytest_kbrel.records import (
    CLUSTERS,
    LANGUAGE_TAG,
    ROUNDINGS,
    UNINFORMATIVE,
    Gate,
    Integrity,
    Pairs,
    Waiver,
    record,
    template_error,
)
from pytest_kbrel.suites.gates import (
    SUITE,
    keys_beside_gates,
    read_gates,
    read_integrity,
    read_waivers,
)

SUITE_KEYS = (
    "suite",
    "facts",
    "format",
    "relations",
    "seed",
    "uninformative",
    "language",
    "as_of",
    "integrity",
    *PROBES,
    "overall",
    "waivers",
)
COMMON_KEYS = ("slices", "limit", "cluster", "gates", "overall", "integrity")
SLICE_KEYS = ("limit", "cluster", "gates")
# What a slice says in place of gates to have none, those of its probe neither.
NO_GATES = "none"
WORDINGS = "wordings"
UNSEEN_KEYS = ("count", "as_of", "expires")
# The sizes of the paper's two repositories (section 3.4).
SHOTS = {"known": 280, "unseen": 40}
# How many examples are made of known and unseen facts, or a file of examples.
Shots = dict[str, int] | Path
PROMPT_KEYS = {"setting": "prompt", "text": "prompt_text"}
Limit = int | float | None
Value = str | int | list[str]


@record
class WrittenSlice:
    """A slice that the file names, with its own limit, cluster (empty: the probe's), gates and wordings.

    ``gates`` are ``None`` where those of the probe do not hold either.
    """

    name: str
    node: Node
    limit: Limit = None
    gates: tuple[Gate, ...] | None = ()
    cluster: str = ""
    wordings: int | None = None


@record
class WrittenUnseen:
    """The key ``unseen``: how many questions are made, and for which days."""

    count: int
    as_of: datetime.date
    expires: datetime.date
    line: int


@record
class WrittenProbe:
    """One probe's part of the file. ``slices`` is ``None`` where the file leaves the choice open."""

    probe: Probe
    entry: Node
    settings: dict[str, Value]
    gates: tuple[Gate, ...]
    overall_line: int
    overall_gates: tuple[Gate, ...]
    integrity: Integrity
    slices: tuple[WrittenSlice, ...] | None = None
    limit: Limit = None
    cluster: str = "object"
    relations: tuple[Node, ...] | None = None
    unseen: WrittenUnseen | None = None
    shots: Shots = dataclasses.field(default_factory=lambda: SHOTS)
    also_as: tuple[str, ...] = ()


@record
class WrittenSuite:
    """A parsed suite file."""

    name: str
    root: Node
    facts: tuple[Path, ...]
    format: Format
    relations: Path | None
    probes: tuple[WrittenProbe, ...]
    seed: int = 0
    uninformative: Path | None = None
    language: str = ""
    as_of: datetime.date = datetime.date.max
    overall_line: int = 0
    overall_gates: tuple[Gate, ...] = ()
    waivers: tuple[Waiver, ...] = ()


def read_suite_file(path: Path) -> WrittenSuite:
    """Read and check a suite file; raises ``SuiteError`` with the line of the first mistake."""
    root = read_document(path)
    keys = keys_beside_gates(root, SUITE, SUITE_KEYS, ("suite", "facts"))
    facts, form = _facts(keys)
    relations = _relations(keys, facts[0]) if "relations" in keys or form.own else None
    limits = read_integrity(keys, "a suite", Integrity())
    probes = tuple(
        _probe(probe, keys[name], limits)
        for name, probe in PROBES.items()
        if name in keys
    )
    if not probes:
        raise root.error(f"no probe found; at least one is needed: {', '.join(PROBES)}")
    overall = keys.get("overall")
    return WrittenSuite(
        name=keys["suite"].text("suite"),
        root=root,
        facts=facts,
        format=form,
        relations=relations,
        probes=probes,
        overall_line=(overall or root).line,
        overall_gates=_overall_gates(overall, OVERALL_METRICS["pooled"], "overall"),
        **_stated(
            keys,
            "",
            seed=lambda node, what: node.integer(what, SEED),
            uninformative=_file,
            language=_language,
            as_of=lambda node, what: node.date(what),
            waivers=lambda node, what: read_waivers(node),
        ),
    )


def _stated(
    keys: Mapping[str, Node], where: str, **readers: Callable[[Node, str], Any]
) -> dict[str, Any]:
    """Return what ``readers`` make of those of their keys that are there; the others have defaults."""
    return {
        key: read(keys[key], key + where)
        for key, read in readers.items()
        if key in keys
    }


def _language(node: Node, what: str) -> str:
    tag = node.text(what)
    if not re.fullmatch(LANGUAGE_TAG, tag):
        raise node.wrong(what, "a language tag such as de or pt-BR")
    return tag


def _facts(keys: dict[str, Node]) -> tuple[tuple[Path, ...], Format]:
    """Return the facts files and the format they are in."""
    node = keys["facts"]
    nodes = _names(node, "facts") if isinstance(node.value, tuple) else (node,)
    if "format" in keys:
        form = FORMATS[keys["format"].choice("format", tuple(FORMATS))]
    else:
        form = format_by_suffix(node.path.parent / nodes[0].text("facts"))
    return tuple(_file(one, "facts", folders=form.folders) for one in nodes), form


def _relations(keys: dict[str, Node], facts: Path) -> Path:
    if "relations" in keys:
        return _file(keys["relations"], "relations")
    beside = facts.parent / "relations.yaml"
    if not beside.is_file():
        raise keys["facts"].error(
            f"no relations.yaml beside the facts file: {beside} was not found; allowed: "
            "that file, or its path under the key 'relations'"
        )
    return beside


def _file(node: Node, what: str, *, folders: bool = False) -> Path:
    path = node.path.parent / node.text(what)
    try:
        if path.is_file() or (folders and path.is_dir()):
            return path
        hint = nearest_file(path)
    except OSError as error:
        raise node.wrong(what, "a file", f": {error.strerror}") from None
    raise node.error(
        f"{what} must be a file, found {node.value!r}, which is none (looked for {path}){hint}"
    )


def _probe(probe: Probe, entry: Node, limits: Integrity) -> WrittenProbe:
    if isinstance(entry.value, str):
        raise entry.wrong(probe.name, "a mapping", "; a file stands under 'facts'")
    keys = (
        {}
        if entry.value is None
        else keys_beside_gates(entry, probe.name, probe_keys(probe))
    )
    settings = _wording(probe, keys)
    settings |= {
        name: _setting(keys[name], f"{name} of {probe.name}", setting)
        for name, setting in probe.options.items()
        if name in keys
    }
    overall = keys.get("overall")
    return WrittenProbe(
        probe=probe,
        entry=entry,
        settings=settings,
        gates=read_gates(keys, probe.metrics, probe.name),
        overall_line=(overall or entry).line,
        overall_gates=_overall_gates(
            overall, probe.overall_metrics, f"overall of {probe.name}"
        ),
        integrity=read_integrity(keys, probe.name, limits),
        **_stated(
            keys,
            f" of {probe.name}",
            slices=functools.partial(_slices, probe),
            limit=_limit,
            cluster=_cluster,
            relations=_names,
            unseen=_unseen,
            shots=_shots,
            also_as=lambda node, what: tuple(
                item.choice(f"each of {what}", tuple(ROUNDINGS))
                for item in _names(node, what)
            ),
        ),
    )


def _overall_gates(
    node: Node | None, metrics: Mapping[str, Metric], what: str
) -> tuple[Gate, ...]:
    return (
        read_gates(keys_beside_gates(node, what, ("gates",)), metrics, what)
        if node
        else ()
    )


def _cluster(node: Node, what: str) -> str:
    return node.choice(what, CLUSTERS)


def probe_keys(probe: Probe) -> tuple[str, ...]:
    """Return all keys that may stand under a probe."""
    return (*COMMON_KEYS, *probe.wording, *probe.options, *probe.own_keys)


def slice_keys(probe: Probe, name: str) -> tuple[str, ...]:
    """Return all keys that may stand under a slice; questions that nobody can answer have one wording."""
    worded = WORDINGS in probe.options and probe.kind(name) != "unseen"
    return (*SLICE_KEYS, WORDINGS) if worded else SLICE_KEYS


def _setting(node: Node, what: str, setting: Setting) -> str | int:
    if setting.options:
        return node.choice(what, setting.options)
    if not setting.plain:
        return node.integer(what, setting.bounds)
    spec = node.text(what)
    is_spec = spec.split(":")[0] == "reference" or "/" in spec
    if spec in setting.plain or is_spec or os.path.exists(node.path.parent / spec):
        return spec
    allowed = (
        f"{', '.join(setting.plain)}, openai/NAME, hf/NAME or a folder beside the suite"
    )
    raise node.wrong(what, allowed, nearest(spec, setting.plain))


def _shots(node: Node, what: str) -> Shots:
    if isinstance(node.value, str):
        return _file(node, what)
    if not isinstance(node.value, dict):
        raise node.wrong(what, "a file of examples or {known: 280, unseen: 40}")
    counts = {
        key: entry.integer(f"{key} of shots", SHOT_BOUNDS)
        for key, entry in node.keys(what, tuple(SHOTS)).items()
    }
    return SHOTS | counts


def _limit(node: Node, what: str) -> Limit:
    # 1.0 is all of them, and 1 one of them.
    bounds = LIMIT if isinstance(node.value, int) else SHARE
    return node.number(what, f"{LIMIT}, or a share above 0 and up to 1.0", bounds)


def _names(node: Node, what: str) -> tuple[Node, ...]:
    first: dict[str, int] = {}
    for item in node.items(what):
        name = item.text(f"each of {what}")
        if name in first:
            raise item.error(
                f"{name!r} stands twice in {what}; the first is on line {first[name]}"
            )
        first[name] = item.line
    return node.items(what)


def _slices(probe: Probe, node: Node, what: str) -> tuple[WrittenSlice, ...]:
    if not node.value or not isinstance(node.value, (tuple, dict)):
        allowed = "a list of names or a mapping of names, with at least one"
        raise node.wrong(what, allowed)
    written = {}
    if isinstance(node.value, dict):
        written = node.value
    else:
        for item in _names(node, what):
            written[str(item.value)] = dataclasses.replace(item, value=None)
    return tuple(_slice(probe, name, of) for name, of in written.items())


def _slice(probe: Probe, name: str, node: Node) -> WrittenSlice:
    where = f"slice {name} of {probe.name}"
    keys = (
        {}
        if node.value is None
        else keys_beside_gates(node, where, slice_keys(probe, name))
    )
    ungated = "gates" in keys and keys["gates"].value == NO_GATES
    return WrittenSlice(
        name=name,
        node=node,
        gates=None
        if ungated
        else read_gates(keys, SLICE_METRICS[probe.kind(name)], where),
        **_stated(
            keys,
            f" of {where}",
            limit=_limit,
            cluster=_cluster,
            wordings=lambda node, what: node.integer(what, COUNT),
        ),
    )


def _unseen(node: Node, what: str) -> WrittenUnseen:
    keys = node.keys("unseen", UNSEEN_KEYS, required=UNSEEN_KEYS)
    as_of, expires = (keys["as_of"].date("as_of"), keys["expires"].date("expires"))
    if expires <= as_of:
        raise keys["expires"].error(
            f"expires must be later than as_of ({as_of}), found {expires}"
        )
    return WrittenUnseen(
        count=keys["count"].integer("count of unseen", UNSEEN),
        as_of=as_of,
        expires=expires,
        line=keys["expires"].line,
    )


def _wording(probe: Probe, keys: Mapping[str, Node]) -> dict[str, Value]:
    """Return the settings of the keys that word a probe's questions: prompt, system, cue, stop strings."""
    settings = _stated(
        keys,
        f" of {probe.name}",
        stop=_stop,
        system=_text,
        answer_cue=_text,
        choice_prompt=functools.partial(_template, probe, "choice_prompt"),
    )
    if "prompt" in keys:
        settings |= _prompt(probe, keys["prompt"], f"prompt of {probe.name}")
    # A stop and a cue that are the probe's own are left out: whoever writes them down asks nothing else.
    published = "variant" in keys and keys["variant"].value == "published"
    if settings.get("stop") == ["\n"] and not published:
        del settings["stop"]
    texts = [
        str(settings[name])
        for name in ("prompt_text", "choice_prompt")
        if name in settings
    ]
    if settings.get("answer_cue") == probe.cue and (
        not probe.cue or all(text.endswith("}") for text in texts)
    ):
        del settings["answer_cue"]
    return settings


def _prompt(probe: Probe, node: Node, what: str) -> dict[str, Value]:
    """Read the name of a setting, a text, or both in a mapping; a text alone of a probe without settings."""
    template = functools.partial(_template, probe, "prompt")
    if isinstance(node.value, dict) and probe.prompts:
        keys = node.keys(what, tuple(PROMPT_KEYS))
        stated = _stated(
            keys,
            f" of {what}",
            setting=lambda node, what: node.choice(what, probe.prompts),
            text=template,
        )
        return {PROMPT_KEYS[key]: value for key, value in stated.items()}
    text = str(node.value)
    # A single word without a placeholder is a name, though it may be misspelt.
    if not probe.prompts or len(text.split()) > 1 or "{" in text:
        return {"prompt_text": template(node, what)}
    named = f"{what}, unless it is a text with {{question}},"
    return {"prompt": node.choice(named, probe.prompts)}


def _template(probe: Probe, key: str, node: Node, what: str) -> str:
    text = _text(node, what)
    needed, allowed = probe.places[key]
    if wrong := template_error(text, needed, allowed):
        raise node.error(f"{what}: {wrong}; found {text!r}")
    return text


def _text(node: Node, what: str) -> str:
    """Return a text of any number of lines, without the white space around it; it may be empty."""
    if not isinstance(node.value, str):
        hint = "" if node.value is None else " (put it in quotes if text is meant)"
        raise node.wrong(what, "text", hint)
    return node.value.strip()


def _stop(node: Node, what: str) -> list[str]:
    allowed = "a list of texts, none of them empty"
    nodes = node.value if isinstance(node.value, tuple) else (node,)
    for one in nodes:
        if not isinstance(one.value, str) or not one.value:
            raise one.wrong(what if one is node else f"each of {what}", allowed)
    return [str(one.value) for one in nodes]


def read_uninformative(path: Path) -> Pairs:
    """Read a YAML file of patterns: a mapping from ``repetition``, ``none`` or ``unsure`` to a list of them.

    Returns (kind, Python regular expression) in the file's order. Raises ``SuiteError`` with file and line
    for another kind, an empty list, and an expression that is none or matches an empty answer.
    """
    kinds = read_document(path).mapping("a file of uninformative answers")
    patterns = []
    for kind, entry in kinds.items():
        if kind not in UNINFORMATIVE:
            raise entry.error(unknown("kind", kind, UNINFORMATIVE))
        patterns += [
            (kind, _pattern(kind, node))
            for node in entry.items(repr(kind), "regular expressions")
        ]
    if not patterns:
        raise SuiteError(
            f"no patterns; allowed: lists of regular expressions under {', '.join(UNINFORMATIVE)}",
            path,
            1,
        )
    return tuple(patterns)


def _pattern(kind: str, node: Node) -> str:
    expression = node.text(f"a pattern of {kind!r}")
    try:
        compiled = re.compile(expression)
    except (re.error, OverflowError, RecursionError) as error:
        raise node.error(
            f"not a regular expression: {expression!r} ({error})"
        ) from None
    if compiled.search(""):
        raise node.error(
            f"the pattern {expression!r} matches every answer, also an empty one"
        )
    return expression
