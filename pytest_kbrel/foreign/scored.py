"""Scored answers of any tool as one record: cases by task, of each its rows by id.

The rows of a file are read one after another, and only what is compared or shown of each is held.
"""

from __future__ import annotations

import dataclasses
import hashlib
import math
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from pytest_kbrel.bounds import FIGURE
from pytest_kbrel.errors import KbrelError
from pytest_kbrel.records import NOT_KNOWN, Label, Outcome, Table, record

_LESS = re.compile(
    r"perplex|brier|toxic|halluc|cross.?ent|error|mistake|stereotyp|violat|harmful|unsafe|incorrect|inaccura"
    r"|wrong|distance|levenshtein|diverg|latency|fail|unfaithful|inconsist|contradict|profan|plagiar|leak"
    r"|timeout|attack|jailbreak|mismatch|bits.?per"
    r"|\b(ppl|loss(es)?|nll|ece|mce|wer|cer|ter|mer|wil|[rm]?mse|mae|mape|bp[bc]|errs?|kl|fpr|fnr|eer|crps|edits?)\b"
)
_MORE = re.compile(
    r"(?<!in)accura|exact|(?<!mis)match|(?<!in)correct|recall|precision|bleu|rouge|chrf|meteor|bertscore|likelihood"
    r"|truthful|(?<!un)faithful|relevan|helpful|harmless|coheren|fluen|(?<!in)consisten|success|solved|pearson"
    r"|spearman|^scores?$"
    r"|\b(acc|em|f1|pass(ed)?|comet|mcc|auc|auroc|auprc|ndcg|mrr|hits?|kappa|iou|win|logprobs?|safe|mc[12]|includes)\b"
)
# The opposite of what the other words say, or a difference of which either sign may be better.
_TURNED = re.compile(
    r"detect|reduc|skill|avoid|resist|diff|delta|gap\b|\b(non?|not|free|without|inv|inverse|anti|minus)\b|^1\b"
)
_UNBOUNDED = re.compile(
    r"perplex|entropy|distance|latency|likelihood|bits.?per|\b(ppl|loss(es)?|nll|bp[bc]|logprobs?)\b"
)


def _words(metric: str) -> str:
    # What stands behind a comma is the filter of lm_eval.
    name = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", metric.partition(",")[0])
    return re.sub(r"[\W_]+", " ", name).lower()


def higher_is_better(metric: str) -> bool | None:
    """Return whether more of a metric is better; ``None`` where its name does not tell."""
    words = _words(metric)
    more, less = bool(_MORE.search(words)), bool(_LESS.search(words))
    return None if more == less or _TURNED.search(words) else more


def is_unbounded(metric: str) -> bool:
    """Return True if values within [0, 1] of one run and above 1 of another may be of one scale."""
    return bool(_UNBOUNDED.search(_words(metric)))


SCORE = "score"
LOG_PERPLEXITY = "log_perplexity"
# The case of rows that name no task.
ONE_TASK = "all"
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
    metrics: Sequence[str] = ()
    lower: Sequence[str] = ()
    group: str = ""
    cluster: str = ""
    pool: Sequence[str] = ()


@record
class Answer:
    """One row of a file, at ``where`` (file and line). A score of ``None`` was not given.

    ``asked`` is a digest of how it was asked, empty where the tool keeps none. ``fields`` are the objects in
    which keys are looked up, the first one first. ``higher`` says of metrics of the task whether more is
    better, as far as the tool says it. ``model`` is who answered. ``expected`` is empty where no answer exists.
    """

    where: str
    task: str
    id: str
    scores: Mapping[str, float | None]
    fields: tuple[Mapping[str, Any], ...]
    higher: Mapping[str, bool] = dataclasses.field(default_factory=dict)
    model: str = ""
    asked: str = ""
    question: str = ""
    expected: str = NOT_KNOWN
    answer: str = ""


@record
class Scores:
    """The scores of a metric in a case, each row with its mean in the column :data:`SCORE` of ``table``.

    ``times`` is how many scores each row has, by id; 0 where it stands there without one. ``higher`` says
    whether more is better, ``None`` where nothing tells: another case may have a metric of the same name.
    """

    table: Table
    times: Mapping[str, int]
    higher: bool | None


@record
class ScoredRun:
    """A run that another tool recorded."""

    path: Path
    tool: str
    model: str
    cases: Mapping[str, Mapping[str, Scores]]


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


def names_metric(name: str, metric: str) -> bool:
    """Whether a name means a metric: ``exact_match`` means ``exact_match,strict-match`` as well."""
    return name in (metric, metric.partition(",")[0])


def scored_run(
    path: Path, tool: str, answers: Iterable[Answer], wanted: Wanted
) -> ScoredRun:
    """Put the rows of a run together, case by case.

    A metric that ``wanted`` does not name is left out where it names any. Raises ``KbrelError`` where no row
    or no wanted metric is there, where a row lacks a key that is wanted, and where several models answered.
    """
    cases: dict[str, dict[str, _Metric]] = {}
    # The metrics that have any score.
    available: dict[str, None] = {}
    models: dict[str, None] = {}
    for answer in answers:
        models |= dict.fromkeys(filter(None, [answer.model]))
        name = answer.task
        if wanted.group:
            name = f"{name}[{_field(answer, wanted.group, '--group-by')}]"
        case = cases.setdefault(name, {})
        # The first row of one task is no row of another.
        id_ = sys.intern(answer.id if name == ONE_TASK else f"{name}/{answer.id}")
        for metric, score in answer.scores.items():
            if score is not None:
                available[metric] = None
                if abs(score) > FIGURE:
                    raise KbrelError(
                        f"{answer.where}: {metric} is {score:g}; allowed: from {-FIGURE:g} to {FIGURE:g}"
                    )
            if not wanted.metrics or _named(metric, wanted.metrics):
                case.setdefault(metric, _Metric()).add(id_, answer, metric, wanted)
    if not cases:
        raise KbrelError(
            f"{path}: found no scored row; allowed: a file with a row for each question"
        )
    if len(models) > 1:
        raise KbrelError(
            f"{path}: found {len(models)} models: {', '.join(models)}; allowed: one"
        )
    if missing := [
        name
        for name in (*wanted.metrics, *wanted.lower)
        if not any(names_metric(name, metric) for metric in available)
    ]:
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
            name: {metric: of.scores(metric, wanted) for metric, of in case.items()}
            for name, case in cases.items()
            if case or not wanted.metrics
        },
    )


def _named(metric: str, names: Iterable[str]) -> bool:
    return any(names_metric(name, metric) for name in names)


@dataclasses.dataclass(slots=True)
class _Metric:
    """What is held of a metric while rows are read: of each id the first row, how it was asked, and its scores."""

    rows: dict[str, tuple[str, str, str, str]] = dataclasses.field(default_factory=dict)
    asked: dict[str, str] = dataclasses.field(default_factory=dict)
    given: dict[str, list[float]] = dataclasses.field(default_factory=dict)
    higher: bool | None = None

    def add(self, id_: str, answer: Answer, metric: str, wanted: Wanted) -> None:
        """Add a row; the other run has the same ids and questions, which are held once."""
        more = answer.higher.get(metric, answer.higher.get(metric.partition(",")[0]))
        if more is not None:
            # Where rows say both, less is better.
            self.higher = more and self.higher is not False
        asked = _digest(answer.asked)
        if id_ not in self.rows:
            cluster = (
                _field(answer, wanted.cluster, "--cluster") if wanted.cluster else ""
            )
            texts = answer.question or answer.id, answer.expected, answer.answer
            question, expected, said = map(_excerpt, texts)
            self.rows[id_] = question, expected, said, sys.intern(cluster)
            self.asked[id_], self.given[id_] = asked, []
        elif asked not in (known := self.asked[id_].split("+")):
            self.asked[id_] = "+".join(sorted((*known, asked)))
        if (score := answer.scores[metric]) is not None:
            self.given[id_].append(score)

    def scores(self, metric: str, wanted: Wanted) -> Scores:
        """Return the rows as the gates compare them."""
        higher = higher_is_better(metric) if self.higher is None else self.higher
        if _named(metric, wanted.lower):
            higher = False
        best, rows = float(higher is not False), []
        good: tuple[Label, Label] = ("correct", "uninformative")
        for id_, given in self.given.items():
            if given:
                question, expected, answer, cluster = self.rows[id_]
                mean = fmean(given)
                rows.append(
                    Outcome(
                        fact_id=id_,
                        question=question,
                        expected=expected,
                        answer=answer or f"{mean:g}",
                        label="wrong" if mean != best else good[expected == ""],
                        values=(mean,),
                        prompt_digest=self.asked[id_],
                        cluster=cluster,
                    )
                )
        return Scores(
            table=Table(columns=(SCORE,), rows=tuple(rows)),
            times={id_: len(given) for id_, given in self.given.items()},
            higher=higher,
        )


def _field(answer: Answer, key: str, flag: str) -> str:
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


def _excerpt(text: str) -> str:
    return sys.intern(text if len(text) <= EXCERPT else f"{text[: EXCERPT - 3]}...")


def _digest(text: str) -> str:
    if len(text) > 2 * _DIGEST:
        text = hashlib.blake2b(
            text.encode(errors="surrogatepass"), digest_size=_DIGEST
        ).hexdigest()
    return sys.intern(text)
