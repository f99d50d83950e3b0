"""Scored answers of any tool as one record a task: a table for each metric, rows by id.

The rows of a file are read one after another, and only what is compared or shown of each is held.
"""

from __future__ import annotations

import dataclasses
import hashlib
import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pytest_kbrel.bounds import FIGURE
from pytest_kbrel.errors import KbrelError
from pytest_kbrel.foreign.directions import higher_is_better
from pytest_kbrel.records import NOT_KNOWN, Outcome, Table, record

SCORE = "score"
LOG_PERPLEXITY = "log_perplexity"
# The case of rows that name no task.
ONE_TASK = "all"
# The expected answer of a row where none exists. Right and wrong are a matter of its score all the same.
NO_ANSWER = "(no answer exists)"
# How much of a question, an expected answer and an answer is held to show what changed.
EXCERPT = 160
_DIGEST = 16
_SHOWN = 8
_TRUE = {"true": 1.0, "false": 0.0}


@record
class Wanted:
    """What the user wants read of a file: keys of its rows, and metrics by name. Empty: the format's own.

    A key with dots leads into objects. ``group`` splits tasks into cases, ``cluster`` names the group of rows
    that change together, ``lower`` are metrics of which less is better. Each of ``pool`` is a group of
    lm_eval whose tasks are one case.
    """

    id: str = ""
    metrics: tuple[str, ...] = ()
    lower: tuple[str, ...] = ()
    group: str = ""
    cluster: str = ""
    pool: tuple[str, ...] = ()


@record
class Answer:
    """One row of a file, at ``where`` (file and line). A score of ``None`` was not given.

    ``asked`` is a digest of how it was asked, empty where the tool keeps none. ``fields`` are the objects in
    which keys are looked up, the first one first. ``higher`` says of metrics of the task whether more is
    better, as far as the tool says it. ``model`` is who answered.
    """

    where: str
    task: str
    id: str
    scores: Mapping[str, float | None]
    higher: Mapping[str, bool]
    model: str
    fields: tuple[Mapping[str, Any], ...] = ()
    asked: str = ""
    question: str = ""
    expected: str = ""
    answer: str = ""


@record
class ScoredCase:
    """One task, or a group of it: a table with the column ``score`` for each metric.

    ``higher`` says of a metric whether more is better, where that is known: those of another case may have
    the same names. ``repeated`` has by metric the ids that stand several times, of which the mean counts,
    each with the number of its scores; ``unscored`` are the ids without a score, by metric.
    """

    tables: Mapping[str, Table]
    higher: Mapping[str, bool]
    repeated: Mapping[str, Mapping[str, int]]
    unscored: Mapping[str, Sequence[str]]


@record
class ScoredRun:
    """A run that another tool recorded."""

    path: Path
    tool: str
    model: str
    cases: Mapping[str, ScoredCase]


def number(value: object) -> float | None:
    """Return a score as a number: ``True`` is 1, ``"0.5"`` is 0.5; ``None`` where it is no finite number."""
    if isinstance(value, str):
        text = value.strip().lower()
        try:
            value = _TRUE[text] if text in _TRUE else float(text)
        except ValueError:
            return None
    if not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) else None


def metric_score(metric: str, score: float | None) -> tuple[str, float | None]:
    """Return the name and the score of a metric as they are compared.

    lm_eval has in each row of ``perplexity`` the logarithm of a likelihood, of which more is better.
    """
    # No perplexity is below 1.
    if metric == "perplexity" and score is not None and score <= 0:
        return LOG_PERPLEXITY, -score
    return metric, score


def field(answer: Answer, key: str, flag: str) -> str:
    """Return the value of a key of a row as text; raises ``KbrelError`` where it has none."""
    for fields in answer.fields:
        for value in (fields.get(key), _inner(fields, key.split("."))):
            if value is not None and not isinstance(value, dict | list):
                return str(value)
    keys = list(dict.fromkeys(name for fields in answer.fields for name in fields))
    shown = ", ".join(keys[:_SHOWN]) + (", ..." if len(keys) > _SHOWN else "")
    raise KbrelError(
        f"{answer.where}: {flag} {key}: the row has no such value; allowed: one of {shown}"
    )


def _inner(fields: Any, path: Sequence[str]) -> Any:
    for name in path:
        fields = fields.get(name) if isinstance(fields, Mapping) else None
    return fields


def scored_run(
    path: Path, tool: str, answers: Iterable[Answer], wanted: Wanted
) -> ScoredRun:
    """Put the rows of a run together, case by case.

    A metric that ``wanted`` does not name is left out where it names any; ``exact_match`` names
    ``exact_match,strict-match`` as well. Raises ``KbrelError`` where no row or no wanted metric is there, where
    a row lacks a key that is wanted, and where several models answered.
    """
    rows: dict[str, dict[str, dict[str, _Row]]] = {}
    higher: dict[str, dict[str, bool]] = {}
    # The metrics that have any score.
    available: dict[str, None] = {}
    models: dict[str, None] = {}
    for answer in answers:
        name = answer.task
        models |= dict.fromkeys(filter(None, [answer.model]))
        if wanted.group:
            name = f"{name}[{field(answer, wanted.group, '--group-by')}]"
        case = rows.setdefault(name, {})
        said = higher.setdefault(name, {})
        for metric, more in answer.higher.items():
            said[metric] = more and said.get(metric, True)
        asked = _digest(answer.asked)
        for metric, score in answer.scores.items():
            if score is not None and abs(score) > FIGURE:
                raise KbrelError(
                    f"{answer.where}: {metric} is {score:g}; allowed: from {-FIGURE:g} to {FIGURE:g}"
                )
            if score is not None:
                available[metric] = None
            if not wanted.metrics or _named(metric, wanted.metrics):
                by_id = case.setdefault(metric, {})
                row = by_id.get(answer.id) or by_id.setdefault(
                    sys.intern(answer.id), _row(answer, wanted)
                )
                row.add(score, asked)
    if not rows:
        raise KbrelError(
            f"{path}: found no scored row; allowed: a file with a row for each question"
        )
    if len(models) > 1:
        raise KbrelError(
            f"{path}: found {len(models)} models: {', '.join(models)}; allowed: one"
        )
    missing = [
        name
        for name in (*wanted.metrics, *wanted.lower)
        if not any(names_metric(name, metric) for metric in available)
    ]
    if missing:
        allowed = ", ".join(available) or "none"
        raise KbrelError(
            f"{path}: found no score named {', '.join(missing)}; allowed here: {allowed}"
        )
    return ScoredRun(
        path=path,
        tool=tool,
        model=", ".join(models),
        # Where metrics are named, a task without any of them is not asked about.
        cases={
            name: _case(by_id, higher[name], wanted.lower)
            for name, by_id in rows.items()
            if by_id or not wanted.metrics
        },
    )


def _named(metric: str, names: Iterable[str]) -> bool:
    return any(names_metric(name, metric) for name in names)


def names_metric(name: str, metric: str) -> bool:
    """Whether a name means a metric: ``exact_match`` means ``exact_match,strict-match`` as well."""
    return name in (metric, metric.partition(",")[0])


def _case(
    metrics: Mapping[str, dict[str, _Row]],
    said: Mapping[str, bool],
    lower: Sequence[str],
) -> ScoredCase:
    """Return the tables of a case; ``metrics`` is emptied, since both at once would be twice as large.

    ``said`` is what the tool says of which way is better, and of ``lower`` less is.
    """
    tables: dict[str, Table] = {}
    higher: dict[str, bool] = {}
    unscored: dict[str, list[str]] = {}
    repeated: dict[str, dict[str, int]] = {}
    for metric, by_id in metrics.items():
        more = said.get(metric, said.get(metric.partition(",")[0]))
        if more is None:
            more = higher_is_better(metric)
        if _named(metric, lower):
            more = False
        if more is not None:
            higher[metric] = more
        outcomes = []
        for id_ in list(by_id):
            row = by_id.pop(id_)
            if row.times > 1:
                repeated.setdefault(metric, {})[id_] = row.scores
            if row.scores:
                outcomes.append(row.outcome(id_))
            else:
                unscored.setdefault(metric, []).append(id_)
        tables[metric] = Table(columns=(SCORE,), rows=tuple(outcomes))
    return ScoredCase(
        tables=tables, higher=higher, repeated=repeated, unscored=unscored
    )


@dataclasses.dataclass(slots=True)
class _Row:
    """What is held of the rows of one id: the texts of the first, and the sum of all scores."""

    question: str
    expected: str
    answer: str
    cluster: str
    asked: str
    times: int = 0
    scores: int = 0
    total: float = 0.0

    def add(self, score: float | None, asked: str) -> None:
        """Count one more row of the id, asked as ``asked`` says."""
        self.times += 1
        if score is not None:
            self.scores += 1
            self.total += score
        if asked != self.asked:
            self.asked = "+".join(sorted({*self.asked.split("+"), asked}))

    def outcome(self, id_: str) -> Outcome:
        """Return the row as the gates compare it: by its mean."""
        mean = self.total / self.scores
        return Outcome(
            fact_id=id_,
            question=self.question or id_,
            expected=self.expected or NOT_KNOWN,
            answer=self.answer or f"{mean:g}",
            label="correct" if mean == 1 else "wrong",
            values=(mean,),
            prompt_digest=self.asked,
            cluster=self.cluster,
        )


def _row(answer: Answer, wanted: Wanted) -> _Row:
    return _Row(
        question=_excerpt(answer.question),
        expected=_excerpt(answer.expected),
        answer=_excerpt(answer.answer),
        cluster=sys.intern(field(answer, wanted.cluster, "--cluster"))
        if wanted.cluster
        else "",
        asked=_digest(answer.asked),
    )


def _excerpt(text: str) -> str:
    # Interned: the other run has the same questions.
    return sys.intern(text if len(text) <= EXCERPT else f"{text[: EXCERPT - 3]}...")


def _digest(text: str) -> str:
    if len(text) > 2 * _DIGEST:
        text = hashlib.blake2b(
            text.encode(errors="surrogatepass"), digest_size=_DIGEST
        ).hexdigest()
    return sys.intern(text)
