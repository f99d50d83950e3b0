"""Records of baselines: a blessed run fact by fact, or the figures that a paper prints."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from pathlib import Path, PurePath

from pytest_kbrel.baselines.format import case_key
from pytest_kbrel.records import (
    Case,
    CaseResult,
    Fingerprint,
    Pairs,
    Table,
    record,
)


@record
class BaselineCase:
    """One case of a blessed run. Its rows have no question and no expected answer: the suite has these.

    ``settings`` are those of :func:`pytest_kbrel.records.settings_of`.
    """

    table: Table
    metrics: tuple[tuple[str, float | None], ...] = ()
    settings: Pairs = ()


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

    ``helpers`` are the models that judged or wrote distractors. ``paper`` is empty for a run;
    a paper has what it ``published`` by the case's id, no ``cases``, and no ``model``. ``sha256`` is that of
    the file, where it is a pack.
    """

    path: Path
    model: Fingerprint | None
    settings: Pairs
    cases: Mapping[str, BaselineCase] = field(default_factory=dict)
    kbrel_version: str = ""
    created: str = ""
    reason: str = ""
    commit: str = ""
    versions: Pairs = ()
    paper: str = ""
    published: Mapping[str, PublishedCase] = field(default_factory=dict)
    helpers: tuple[Fingerprint, ...] = ()
    sha256: str = ""

    @property
    def judge(self) -> Fingerprint | None:
        """The model that judged the answers of this run; ``None``: rules did."""
        spec = dict(self.settings).get("judge")
        return next((helper for helper in self.helpers if helper.spec == spec), None)

    def case(self, case: Case | CaseResult) -> BaselineCase | None:
        """Return the same case of this run; ``None`` when it has no such case."""
        return self.cases.get(case_key(case.suite, case.id))

    def other_suites(self, suite: str) -> tuple[str, ...]:
        """Return the file names of this run's suites, nothing where ``suite`` (a path) is one of them."""
        names = dict.fromkeys(key.partition("::")[0] for key in self.cases)
        return () if PurePath(suite).name in names else tuple(names)


# A case's suite, id, outcomes and settings.
AnsweredCase = tuple[str, str, Table, Pairs]


def session_baseline(
    model: Fingerprint | None,
    cases: Iterable[AnsweredCase],
    *,
    judge: str,
    helpers: Iterable[Fingerprint] = (),
) -> Baseline:
    """Return what ``model`` answered in these cases, as if it had been blessed.

    ``judge`` is who judges the answers of both models in this session; ``helpers`` are the models that judge
    or write distractors.
    """
    return Baseline(
        path=Path(),
        model=model,
        settings=(("judge", judge),),
        cases={
            case_key(suite, case_id): BaselineCase(table=table, settings=settings)
            for suite, case_id, table, settings in cases
        },
        helpers=tuple(helpers),
    )
