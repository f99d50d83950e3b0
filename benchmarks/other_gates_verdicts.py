"""The verdicts of several gates on the same paired answers. Part of other_gates.py.

A gate takes the slices of many sessions at once and returns verdicts of shape (sessions, slices), or
(sessions, 1) where it has one verdict on all slices together. Packages are called as their documentation
says a candidate is compared with a baseline; what depends on counts only is called once for each count.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import deltagate
import evalsig
import numpy as np
from evalgate.decide import decide as evalgate_decide
from evalgate.stats import mcnemar_test as evalgate_mcnemar
from evalsig.inference.mde import estimate_icc
from gate_power_draws import judged, passed
from scipy.stats import binom

from benchmarks.fewest_lost import fewest_lost
from benchmarks.rate_verdicts import most_within
from pytest_kbrel import stats
from pytest_kbrel.gates import rules
from pytest_kbrel.gates.figures import figures_of
from pytest_kbrel.gates.measurement import measure_figures, pair
from pytest_kbrel.metrics import metrics_for
from pytest_kbrel.records import Gate, Outcome, Table

Array = Any
GREEN, UNDECIDED, RED = range(3)
ALPHA = 0.05
# The default of `evalsig gate`, in its documentation.
MIN_DELTA = 0.005
RESAMPLES = 10_000
WORLD = Gate(metric="accuracy", rule="max_drop", bound=0.08, beyond=0.02)
SINGLE = Gate(metric="accuracy", rule="max_drop", bound=0.05)


@dataclass(frozen=True, eq=False)
class Slice:
    """Answers of many sessions to the facts of one slice, which are in the order of their objects.

    ``x`` is 1 where a fact was lost, -1 where it was gained, else 0, shape (sessions, facts). ``right`` is
    how many the baseline had right, shape (sessions,). ``sizes`` are facts by object; ``None``: each is
    alone.
    """

    x: Array
    right: Array
    sizes: tuple[int, ...] | None = None

    @property
    def n(self) -> int:
        """The number of facts."""
        return int(self.x.shape[1])

    @functools.cached_property
    def lost(self) -> Array:
        """Facts lost in each session."""
        return (self.x > 0).sum(1)

    @functools.cached_property
    def gained(self) -> Array:
        """Facts gained in each session."""
        return (self.x < 0).sum(1)

    @functools.cached_property
    def objects(self) -> list[str]:
        """The name of each fact's object; names sort in the order of the facts."""
        return [
            f"{number:05}"
            for number, size in enumerate(self.sizes or [1] * self.n)
            for _ in range(size)
        ]

    def by_counts(self, verdict: Callable[[int, int, int], Any]) -> Array:
        """Return what a function of facts, lost and gained says of each session."""
        pairs = zip(self.lost.tolist(), self.gained.tolist(), strict=True)
        return np.array([verdict(self.n, lost, gained) for lost, gained in pairs])


@dataclass(frozen=True)
class OtherGate:
    """A gate with what it was given and what it cannot know."""

    name: str
    version: str
    red: str
    blind: str
    judge: Callable[[Sequence[Slice]], Array]
    names_slices: bool = True
    undecided: bool = False


def each(judge: Callable[[Slice], Array]) -> Callable[[Sequence[Slice]], Array]:
    """Return the gate that judges each slice by itself."""
    return lambda slices: np.stack([judge(part) for part in slices], 1)


# pytest-kbrel.


def kbrel(gate: Gate) -> Callable[[Sequence[Slice]], Array]:
    """Return the gate of a suite file whose slices all have ``gate``."""

    def judge(slices: Sequence[Slice]) -> Array:
        return np.stack(
            [_kbrel(part, gate, stats.sidak(len(slices))) for part in slices], 1
        )

    return judge


def _kbrel(part: Slice, gate: Gate, level: float) -> Array:
    beyond = gate.bound / 2 if gate.beyond is None else gate.beyond

    def within(bound: float) -> Array:
        if part.sizes is None:
            return part.lost <= most_within(part.n, bound)[part.gained]
        return passed(part.x, part.sizes, bound)

    if part.sizes is None:
        failed = (
            part.lost
            >= fewest_lost(part.n, int(part.gained.max()), level, beyond)[part.gained]
        )
    else:
        failed = judged(part.x, part.sizes, beyond, level)[1]
    return np.where(
        within(gate.bound) | (part.lost == 0), GREEN, np.where(failed, RED, UNDECIDED)
    )


def kbrel_one(part: Slice, session: int, gate: Gate, comparisons: int) -> int:
    """Return the verdict that the gates' own code gives on one slice of one session."""
    x = part.x[session]
    unchanged = part.right[session] - part.lost[session]
    before = np.where(x == 0, np.cumsum(x == 0) <= unchanged, x > 0).astype(float)

    def table(right: Array) -> Table:
        rows = [
            Outcome(
                fact_id=f"f{i:05}",
                question="?",
                expected="",
                answer=str(value),
                label="correct" if value else "wrong",
                values=(value,),
                prompt_digest="",
                cluster=name,
            )
            for i, (value, name) in enumerate(
                zip(right.tolist(), part.objects, strict=True)
            )
        ]
        return Table(columns=("correct",), rows=tuple(rows))

    tables = table(before - x), table(before)
    figures = [
        f
        for f in figures_of(metrics_for("head_to_tail", "", ("correct",)))
        if f.name == gate.metric
    ]
    measurement = measure_figures(
        figures, tables[:1], [pair(*tables)], comparisons=comparisons
    )
    (result,) = rules.decide([gate], measurement)
    return {"pass": GREEN, "inconclusive": UNDECIDED, "fail": RED}[result.verdict]


# evalgate-cli: `evalgate paired`, slice by slice.


@functools.cache
def _evalgate(_: int, lost: int, gained: int) -> int:
    return (
        RED if evalgate_decide(evalgate_mcnemar(lost, gained)).is_regression else GREEN
    )


# deltagate: `reliability_report` over the slices, or with clusters the same by `paired_delta`.


def changed(n: int, lost: int, gained: int) -> Array:
    """Return how much worse each fact became, shape (n,)."""
    return np.repeat([1.0, -1.0, 0.0], [lost, gained, n - lost - gained])


@functools.cache
def _deltagate(n: int, lost: int, gained: int) -> tuple[float, bool]:
    """Return the p-value, and whether `evaluate_comparison` would say UNRESOLVED.

    The bootstrap interval of that function is not drawn: it is slow, and Holm's correction uses p-values.
    """
    x = changed(n, lost, gained)
    test = deltagate.paired_delta(x, np.zeros(n))
    if not lost + gained:
        return test["p_value"], False
    detectable = deltagate.minimum_detectable_delta(
        n, float(x.std(ddof=1)), alpha=ALPHA
    )
    return test["p_value"], test["p_value"] >= ALPHA and abs(test["delta"]) < detectable


def _deltagate_slice(part: Slice) -> Array:
    """Return p-value and whether the slice is unresolved, shape (sessions, 2)."""
    if part.sizes is None:
        return part.by_counts(_deltagate)
    # Only differences of scores enter.
    none, objects = np.zeros(part.n), np.array(part.objects, dtype=int)
    tests = [deltagate.paired_delta(row, none, clusters=objects) for row in part.x]
    return np.array([(test["p_value"], False) for test in tests])


def deltagate_suite(slices: Sequence[Slice]) -> Array:
    """Red: worse, and it survives Holm's correction over the slices."""
    results = np.stack([_deltagate_slice(part) for part in slices], 1)
    worse = np.stack([part.lost > part.gained for part in slices], 1)
    rejected = np.array(
        [deltagate.holm_bonferroni(ps, alpha=ALPHA).rejected for ps in results[..., 0]]
    )
    return np.where(
        rejected & worse,
        RED,
        np.where(~rejected & (results[..., 1] > 0), UNDECIDED, GREEN),
    )


# evalsig: `gate` slice by slice, and `compare` of all slices with Holm's correction.


def frames(part: Slice, session: int) -> tuple[evalsig.RunFrame, evalsig.RunFrame]:
    """Return one slice of one session as evalsig reads it; what did not change is wrong."""
    x, names = part.x[session], part.objects if part.sizes else [None] * part.n

    def run(right: Array) -> evalsig.RunFrame:
        items = [
            evalsig.ItemResult(f"{i:05}", float(value), name)
            for i, (value, name) in enumerate(zip(right.tolist(), names, strict=True))
        ]
        return evalsig.RunFrame("run", "model", "task", "accuracy", items)

    return run(x > 0), run(x < 0)


@functools.cache
def _evalsig(n: int, lost: int, gained: int) -> tuple[str, float]:
    return evalsig_one(
        Slice(x=changed(n, lost, gained)[None], right=np.array([lost])), 0
    )


def evalsig_one(part: Slice, session: int) -> tuple[str, float]:
    """Return evalsig's own verdict on one slice of one session, and the two-sided p-value of `compare`."""
    cluster = "object" if part.sizes else None
    pair_of_runs = frames(part, session)
    verdict = evalsig.gate(
        *pair_of_runs, min_delta=MIN_DELTA, alpha=ALPHA, cluster=cluster
    ).verdict.value
    return verdict, evalsig.compare(*pair_of_runs, alpha=ALPHA, cluster=cluster).p_value


@functools.lru_cache(maxsize=32)
def resamples(groups: int) -> Array:
    """How often evalsig's cluster bootstrap draws each object, with its default seed."""
    rng = np.random.default_rng(0)
    drawn = [
        np.bincount(rng.integers(0, groups, size=groups), minlength=groups)
        for _ in range(RESAMPLES)
    ]
    return np.array(drawn, dtype=np.float32)


@functools.lru_cache(maxsize=64)
def _evalsig_slice(part: Slice) -> tuple[Array, Array]:
    """Verdicts of `gate` and p-values of `compare` for all sessions.

    In clusters this is evalsig's bootstrap with its own draws, for all sessions in one product: its loop
    would take hours. :func:`check` compares it with evalsig itself.
    """
    if part.sizes is None:
        verdicts, ps = zip(*part.by_counts(_evalsig).tolist(), strict=True)
        return np.array(verdicts), np.array(ps, dtype=float)
    sizes = np.array(part.sizes)
    sums = np.add.reduceat(-part.x, np.cumsum([0, *sizes[:-1]]), axis=1)
    drawn = resamples(len(sizes))
    means = (drawn @ sums.T.astype(np.float32)).astype(float) / (
        drawn @ sizes.astype(np.float32)
    )[:, None]
    observed = sums.sum(1).astype(float) / part.n
    centered = means - observed
    least = 1 / (RESAMPLES + 1)
    p_two = np.maximum((np.abs(centered) >= np.abs(observed)).mean(0), least)
    p_one = np.maximum((centered >= observed).mean(0), least)
    verdicts = np.array([
        _evalsig_verdict(part, row, delta, p) for row, delta, p in zip(-part.x, observed, p_one, strict=True)
    ])  # fmt: skip
    return verdicts, p_two


def _evalsig_verdict(part: Slice, d: Array, delta: float, p: float) -> str:
    if p < ALPHA and delta > 0:
        return "ALLOW" if delta >= MIN_DELTA else "REJECT"
    deviation = float(d.std(ddof=1, dtype=float))
    detectable = evalsig.mde(deviation, part.n, alpha=ALPHA, one_sided=True).mde
    if 0 < detectable <= MIN_DELTA:
        # The design effect can only make it larger, and is slow.
        icc = estimate_icc(d, np.array(part.objects))
        detectable = evalsig.mde(
            deviation,
            part.n,
            alpha=ALPHA,
            one_sided=True,
            n_clusters=len(part.sizes or ()),
            icc=icc,
        ).mde
    return "INCONCLUSIVE" if detectable > MIN_DELTA else "REJECT"


def evalsig_gate(part: Slice) -> Array:
    """`evalsig gate`: REJECT is red, INCONCLUSIVE undecided."""
    verdicts, _ = _evalsig_slice(part)
    return np.where(
        verdicts == "REJECT",
        RED,
        np.where(verdicts == "INCONCLUSIVE", UNDECIDED, GREEN),
    )


def evalsig_compare(slices: Sequence[Slice]) -> Array:
    """`evalsig compare` slice by slice; red: worse, and rejected by evalsig's Holm correction."""
    ps = np.stack([_evalsig_slice(part)[1] for part in slices], 1)
    worse = np.stack([part.lost > part.gained for part in slices], 1)
    rejected = np.array([evalsig.holm(row, alpha=ALPHA).reject for row in ps])
    return np.where(rejected & worse, RED, GREEN)


# Kübler et al.: there is no package, so that these two are written after the description of the tests.


def pooled_mcnemar(slices: Sequence[Slice]) -> Array:
    """The exact one-sided McNemar test over the facts of all slices together."""
    lost, gained = (
        sum(getattr(part, side) for part in slices) for side in ("lost", "gained")
    )
    return np.where(binom.sf(lost - 1, lost + gained, 0.5) < ALPHA, RED, GREEN)[:, None]


def largest_drop(slices: Sequence[Slice]) -> Array:
    """The largest standardized drop of a slice against what chance alone gives; that slice is red."""
    lost, gained = (
        np.stack([getattr(part, side) for part in slices], 1)
        for side in ("lost", "gained")
    )
    flips = lost + gained
    z = (lost - gained) / np.sqrt(np.maximum(flips, 1))
    largest = z.max(1, keepdims=True)
    fewest = np.ceil((flips + largest * np.sqrt(flips)) / 2 - 1e-9)
    reached = np.where(flips > 0, binom.sf(fewest - 1, flips, 0.5), largest <= 0)
    p = 1 - (1 - reached).prod(1, keepdims=True)
    return np.where((p < ALPHA) & (z == largest), RED, GREEN)


# Thresholds.


def recovery(part: Slice) -> Array:
    """Accuracy divided by the baseline's, rounded to two digits, is below 0.95."""
    after = part.right - part.lost + part.gained
    return np.where(np.round(after / part.right, 2) < 0.95, RED, GREEN)


def fixed(part: Slice) -> Array:
    """Accuracy fell by more than 0.02."""
    return np.where((part.lost - part.gained) / part.n > 0.02 + 1e-9, RED, GREEN)


def gates() -> list[OtherGate]:
    """Return all gates, in the order of the tables."""
    return [
        OtherGate(
            "pytest-kbrel: within .08, beyond .02",
            version("pytest-kbrel"),
            "the slice fails (level of 20 slices, Šidák)",
            "groups of facts that the suite does not name",
            kbrel(WORLD),
            undecided=True,
        ),
        OtherGate(
            "pytest-kbrel: max_drop 0.05",
            version("pytest-kbrel"),
            "the same; within .05, beyond .025",
            "the same",
            kbrel(SINGLE),
            undecided=True,
        ),
        OtherGate(
            "evalsig: gate",
            version("evalsig"),
            f"REJECT (exit code 1) with `--min-delta {MIN_DELTA}`, and `--cluster` where there are clusters; "
            "INCONCLUSIVE (exit code 2) is undecided",
            "a loss as such, since it asks whether the candidate is better; the family",
            each(evalsig_gate),
            undecided=True,
        ),
        OtherGate(
            "evalsig: compare, holm",
            version("evalsig"),
            "worse, and the two-sided p of `compare` is rejected by `holm` over the slices",
            "a drop that is allowed",
            evalsig_compare,
        ),
        OtherGate(
            "deltagate",
            version("deltagate"),
            "worse, and survives Holm in `reliability_report`; UNRESOLVED is undecided. In clusters, "
            "which that function does not take: `paired_delta(clusters=...)` and `holm_bonferroni`",
            "a drop that is allowed; has no exit code",
            deltagate_suite,
            undecided=True,
        ),
        OtherGate(
            "evalgate-cli",
            version("evalgate-cli"),
            "`regression` (exit code 1) of `evalgate paired` in a slice",
            "clusters, the family, a drop that is allowed",
            each(lambda part: part.by_counts(_evalgate)),
        ),
        OtherGate(
            "Kübler et al.: pooled",
            "arXiv 2602.10144",
            "the exact one-sided McNemar test of all facts together is below 5 %",
            "slices, clusters, a drop that is allowed",
            pooled_mcnemar,
            names_slices=False,
        ),
        OtherGate(
            "Kübler et al.: largest drop",
            "arXiv 2602.10144",
            "the largest (lost - gained) / sqrt(lost + gained) of a slice is beyond that of 95 % of null "
            "sessions",
            "clusters, a drop that is allowed",
            largest_drop,
        ),
        OtherGate(
            "recovery 0.95, rounded",
            "-",
            "round(accuracy / baseline's, 2) < 0.95 in a slice, as in llm-compressor's `tests/lmeval`",
            "chance, clusters, the family",
            each(recovery),
        ),
        OtherGate(
            "fixed 0.02",
            "-",
            "accuracy is lower by more than 0.02 in a slice",
            "chance, clusters, the family",
            each(fixed),
        ),
    ]


def check(slices: Sequence[Slice], sessions: int) -> None:
    """Raise where the packages' own code says something else of some sessions of the first slice.

    These are the first for pytest-kbrel, and one for evalsig where facts share at most 100 objects: its
    bootstrap takes seconds.
    """
    part = slices[0]
    for gate in (WORLD, SINGLE):
        verdicts = _kbrel(part, gate, stats.sidak(len(slices)))
        for session in range(sessions):
            own = kbrel_one(part, session, gate, len(slices))
            assert own == verdicts[session], (gate, part.sizes, session)
    if part.sizes is not None and len(part.sizes) <= 100:
        verdicts, ps = _evalsig_slice(part)
        # The best session: evalsig's gate asks for a gain.
        best = int((part.gained - part.lost).argmax())
        verdict, p = evalsig_one(part, best)
        assert verdict == verdicts[best], (part.sizes, verdict)
        assert math.isclose(p, ps[best]), (part.sizes, p)
