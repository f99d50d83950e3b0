"""What candidates are compared with: a blessed run fact by fact, or the figures that a paper prints."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pytest_kbrel.baselines.layout import case_key
from pytest_kbrel.records import AggregateCase, Case, CaseResult, Fingerprint, Table, record
from pytest_kbrel.wire import to_wire

# What two models must share for any case to be comparable; prompts are compared fact by fact.
MUST_BE_EQUAL = ("scoring_version", "chat_template")
# What makes two judges one. Where a judge runs, and under which version of its library, does not matter; a
# judge behind a server has no digests and is known by its name, its ``architecture``.
SAME_JUDGE = (
    "backend",
    "architecture",
    "weights_digest",
    "tokenizer_digest",
    "derived",
    "chat_template",
    "scoring_version",
)


@record
class BaselineCase:
    """One case of a blessed run. Its rows have no question and no expected answer: the suite has these."""

    key: str
    table: Table
    metrics: tuple[tuple[str, float | None], ...]


@record
class PublishedFigure:
    """One figure of a paper, as our metric ``name`` gives it. ``source`` is paper and table.

    ``n`` is the number of questions where the figure is a plain rate over a known number, else 0.
    """

    name: str
    value: float
    source: str
    n: int = 0


@record
class PublishedCase:
    """One case as a paper has it; there are no outcomes behind it to pair with.

    ``questions`` is how many the paper asked, 0 where it does not say. ``members`` are the ids of the cases
    that a figure over several is over.
    """

    id: str
    figures: tuple[PublishedFigure, ...]
    questions: int = 0
    members: tuple[str, ...] = ()


@record
class Baseline:
    """A blessed run, or a model of a paper. ``versions`` and ``settings`` are pairs of name and value.

    ``helpers`` are the models that judged or wrote distractors. ``paper`` is empty for a run; for a paper
    ``cases`` go by the case's id, and ``model`` is ``None``.
    """

    path: Path
    kbrel_version: str
    created: str
    reason: str
    commit: str
    versions: tuple[tuple[str, str], ...]
    model: Fingerprint | None
    settings: tuple[tuple[str, str], ...]
    cases: Mapping[str, BaselineCase | PublishedCase]
    paper: str = ""
    helpers: tuple[Fingerprint, ...] = ()

    @property
    def judge(self) -> Fingerprint | None:
        """The model that judged the answers of this run; ``None``: rules did."""
        spec = dict(self.settings).get("judge", "rules")
        return next((helper for helper in self.helpers if helper.spec == spec), None)

    def case(self, case: Case | AggregateCase | CaseResult | str) -> BaselineCase | PublishedCase | None:
        """Return the same case of this run, by record, node id or key; ``None`` when it has no such case.

        A paper knows no suites: its cases are found by id, in whatever suite they are.
        """
        key = case if isinstance(case, str) else f"{case.suite}::{case.id}"
        if self.paper:
            return self.cases.get(key.rpartition("::")[2])
        return self.cases.get(case_key(*key.split("::", 1)) if "::" in key else key)


def fingerprint_differences(a: Fingerprint, b: Fingerprint) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return what two fingerprints must share and do not, and what else differs, each in words."""
    must: list[str] = []
    may: list[str] = []
    ours, theirs = to_wire(a), to_wire(b)
    for name, value in ours.items():
        if value != theirs[name]:
            words = f"{name} ({value!r} and {theirs[name]!r})"
            (must if name in MUST_BE_EQUAL else may).append(words)
    return tuple(must), tuple(may)


def judge_differences(ours: Fingerprint | None, theirs: Fingerprint | None) -> tuple[str, ...]:
    """Return in words why two judges are not the same one, nothing if they are; ``None`` stands for rules."""
    if ours is None or theirs is None:
        same = ours is theirs
        names = [judge.spec if judge else "rules" for judge in (ours, theirs)]
        return () if same else (f"judge ({names[0]} and {names[1]})",)
    return helper_differences("judge", ours, theirs)


def helper_differences(role: str, ours: Fingerprint, theirs: Fingerprint) -> tuple[str, ...]:
    """Return in words why two helping models are not the same one, nothing if they are."""
    a, b = to_wire(ours), to_wire(theirs)
    found = [f"{name} {a[name]!r} and {b[name]!r}" for name in SAME_JUDGE if a[name] != b[name]]
    return (f"{role} ({ours.spec} and {theirs.spec}: {', '.join(found)})",) if found else ()
