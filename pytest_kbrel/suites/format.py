"""What a suite file says, checked key by key, before any fact is read."""

from __future__ import annotations

import datetime
from pathlib import Path

from pytest_kbrel.errors import nearest
from pytest_kbrel.facts.document import Entry, Node, unknown
from pytest_kbrel.facts.yaml_tree import read_document
from pytest_kbrel.records import PROBES, Gate, ProbeName, record
from pytest_kbrel.suites.demands import read_gates
from pytest_kbrel.suites.keys import SETTINGS, SLICE_KEYS, SUITE_KEYS, UNSEEN_KEYS, probe_keys
from pytest_kbrel.suites.names import (
    OVERALL_METRICS,
    RELIABILITY_SLICES,
    SLICE_METRICS,
    probe_metrics,
    slice_kind,
)

Limit = int | float | None


@record
class WrittenSlice:
    """A slice that the file names, with what it says about it."""

    name: str
    node: Node
    limit: Limit = None
    gates: tuple[Gate, ...] = ()


@record
class Unseen:
    """The unseen questions a suite asks for."""

    count: int
    as_of: datetime.date
    expires: datetime.date
    as_of_line: int
    expires_line: int


@record
class WrittenProbe:
    """One probe's part of the file. ``slices`` is ``None`` where the file leaves the choice open."""

    probe: ProbeName
    entry: Entry
    settings: dict[str, str | int]
    slices: tuple[WrittenSlice, ...] | None
    limit: Limit
    gates: tuple[Gate, ...]
    overall_line: int
    overall_gates: tuple[Gate, ...]
    relations: tuple[Node, ...] | None
    unseen: Unseen | None


@record
class WrittenSuite:
    """A suite file as it stands, every type and range checked."""

    name: str
    root: Node
    facts: Path
    relations: Path
    seed: int
    probes: tuple[WrittenProbe, ...]


def read_suite_file(path: Path) -> WrittenSuite:
    """Read and check a suite file; raises ``SuiteError`` with the line of the first mistake."""
    root = read_document(path)
    keys = root.keys("a suite file", SUITE_KEYS, required=("suite", "facts"))
    name = keys["suite"].node.text("suite")
    facts = _file(keys["facts"].node, "facts", path.parent)
    if "relations" in keys:
        relations = _file(keys["relations"].node, "relations", path.parent)
    else:
        relations = facts.parent / "relations.yaml"
        if not relations.is_file():
            raise keys["facts"].error(
                f"no relations.yaml beside the facts file: {relations} was not found; allowed: "
                "that file, or its path under the key 'relations'"
            )
    seed = keys["seed"].node.integer("seed", 0) if "seed" in keys else 0
    probes = tuple(_probe(probe, keys[probe]) for probe in PROBES if probe in keys)
    if not probes:
        raise root.error(f"no probe found; at least one is needed: {', '.join(PROBES)}")
    return WrittenSuite(name=name, root=root, facts=facts, relations=relations, seed=seed, probes=probes)


def _file(node: Node, what: str, folder: Path) -> Path:
    path = folder / node.text(what)
    if path.is_file():
        return path
    beside = sorted(p.name for p in path.parent.iterdir()) if path.parent.is_dir() else []
    raise node.error(
        f"{what} must be a file, found {node.value!r}, which is none (looked for {path})"
        f"{nearest(path.name, beside)}"
    )


def _probe(probe: ProbeName, entry: Entry) -> WrittenProbe:
    keys = {} if entry.node.value is None else entry.node.keys(probe, probe_keys(probe))
    settings: dict[str, str | int] = {}
    for name, setting in SETTINGS[probe].items():
        if name in keys:
            node, what = keys[name].node, f"{name} of {probe}"
            settings[name] = (
                node.choice(what, setting.options) if setting.options else node.integer(what, setting.least)
            )
    overall = keys.get("overall")
    slice_names, overall_names = probe_metrics(probe), OVERALL_METRICS[probe]
    inside = dict.fromkeys(
        slice_names, "is a figure of single slices: it stands under the probe's own 'gates'"
    )
    across = dict.fromkeys(
        overall_names, "is a figure over all slices: it stands under 'overall: {gates: ...}'"
    )
    overall_keys = overall.node.keys(f"overall of {probe}", ("gates",)) if overall else {}
    return WrittenProbe(
        probe=probe,
        entry=entry,
        settings=settings,
        slices=_slices(probe, keys["slices"].node) if "slices" in keys else None,
        limit=_limit(keys, probe),
        gates=read_gates(keys, slice_names, probe, across),
        overall_line=overall.line if overall else entry.line,
        overall_gates=read_gates(overall_keys, overall_names, f"overall of {probe}", inside),
        relations=_names(keys["relations"].node, "relations of reliability") if "relations" in keys else None,
        unseen=_unseen(keys["unseen"].node) if "unseen" in keys else None,
    )


def _limit(keys: dict[str, Entry], where: str) -> Limit:
    if "limit" not in keys:
        return None
    node, what = keys["limit"].node, f"limit of {where}"
    allowed = "a whole number from 1, or a share above 0 and up to 1.0"
    value = node.number(what, allowed)
    if value < 1 if isinstance(value, int) else not 0 < value <= 1:
        raise node.wrong(what, allowed)
    return value


def _names(node: Node, what: str) -> tuple[Node, ...]:
    first: dict[str, int] = {}
    for item in node.items(what):
        name = item.text(f"each of {what}")
        if name in first:
            raise item.error(f"{name!r} stands twice in {what}; the first is on line {first[name]}")
        first[name] = item.line
    return node.items(what)


def _slices(probe: ProbeName, node: Node) -> tuple[WrittenSlice, ...]:
    what = f"slices of {probe}"
    if not isinstance(node.value, dict):
        if not isinstance(node.value, tuple) or not node.value:
            raise node.wrong(what, "a list of names or a mapping of names, with at least one")
        for item in _names(node, what):
            _known(probe, item)
        return tuple(WrittenSlice(name=item.text(what), node=item) for item in node.value)
    if not node.value:
        raise node.wrong(what, "a list of names or a mapping of names, with at least one")
    slices = []
    for name, entry in node.value.items():
        place = Node(path=entry.node.path, line=entry.line, value=name)
        _known(probe, place)
        where = f"slice {name} of {probe}"
        keys = {} if entry.node.value is None else entry.node.keys(where, SLICE_KEYS)
        metrics = SLICE_METRICS[slice_kind(probe, name)]
        across = dict.fromkeys(
            OVERALL_METRICS[probe], "is a figure over all slices: it stands under 'overall'"
        )
        gates = read_gates(keys, metrics, where, across)
        slices.append(WrittenSlice(name=name, node=place, limit=_limit(keys, where), gates=gates))
    return tuple(slices)


def _known(probe: ProbeName, node: Node) -> None:
    # The slices of the other probes are names from the facts, which are not read yet.
    if probe == "reliability" and node.value not in RELIABILITY_SLICES:
        raise node.error(unknown("slice", str(node.value), RELIABILITY_SLICES, where=probe))


def _unseen(node: Node) -> Unseen:
    keys = node.keys("unseen", UNSEEN_KEYS, required=UNSEEN_KEYS)
    as_of, expires = keys["as_of"].node.date("as_of"), keys["expires"].node.date("expires")
    if expires <= as_of:
        raise keys["expires"].error(f"expires must be later than as_of ({as_of}), found {expires}")
    return Unseen(
        count=keys["count"].node.integer("count of unseen", 1),
        as_of=as_of,
        expires=expires,
        as_of_line=keys["as_of"].line,
        expires_line=keys["expires"].line,
    )
