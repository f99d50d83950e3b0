"""Every Eval Ever: instance-level JSON lines of schema 0.2 and 0.3, and the aggregate JSON that names them.

One row is one sample of one ``evaluation_name``; ``evaluation_result_id`` tells which metric its score is of.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

from pytest_kbrel.errors import KbrelError
from pytest_kbrel.foreign.plain import as_object, json_object, rows_of
from pytest_kbrel.foreign.scored import (
    ONE_TASK,
    Answer,
    Wanted,
    metric_score,
    number,
)
from pytest_kbrel.records import NOT_KNOWN

KEYS = ("evaluation_id", "sample_id", "evaluation")


def read_eval_ever(path: Path, wanted: Wanted) -> Iterator[Answer]:
    """Yield the rows of a file of instances, or of an aggregate file with its instances beside it.

    The aggregate says what a metric is called and whether less is better. Raises ``KbrelError`` where it names
    no instances, or where they are not those that it was written with.
    """
    beside = path.with_suffix(".json")
    if not beside.is_file() and path.stem.endswith("_samples"):
        beside = path.with_name(f"{path.stem.removesuffix('_samples')}.json")
    aggregate = json_object(beside)
    detailed = as_object(aggregate.get("detailed_evaluation_results"))
    name = Path(str(detailed.get("file_path", ""))).name
    instances = path if path.suffix != ".json" else path.with_name(name or "?")
    if not instances.is_file():
        raise KbrelError(
            f"{path}: found no file of instances ({name or 'none is named'}); allowed: one beside it"
        )
    if name == instances.name and (stated := str(detailed.get("checksum") or "")):
        algorithm = str(detailed.get("hash_algorithm") or "sha256")
        with instances.open("rb") as stream:
            digest = hashlib.file_digest(stream, algorithm).hexdigest()
        if not stated.lower().endswith(digest):
            raise KbrelError(
                f"{instances}: its {algorithm} is {digest}; allowed: {stated}, which its aggregate states: rows "
                "were changed or lost"
            )
    results = aggregate.get("evaluation_results")
    metrics: dict[str, str] = {}
    higher: dict[str, bool] = {}
    for result in map(as_object, results if isinstance(results, list) else ()):
        config = as_object(result.get("metric_config"))
        metric = config.get("metric_id") or config.get("metric_name") or "score"
        result_id = str(result.get("evaluation_result_id") or "")
        metrics[result_id] = str(metric)
        if isinstance(less := config.get("lower_is_better"), bool):
            higher[result_id] = not less
    for where, row in rows_of(instances):
        if lacking := [key for key in KEYS if key not in row]:
            raise KbrelError(
                f"{where}: found no {', '.join(lacking)}; allowed: an instance of Every Eval Ever"
            )
        evaluation = row["evaluation"]
        if not isinstance(evaluation, dict):
            raise KbrelError(
                f"{where}: evaluation is no object; allowed: an object with score and is_correct"
            )
        value = evaluation.get("score")
        score = number(evaluation.get("is_correct") if value is None else value)
        # Converters write a score of 0 without the id of a metric for what has no score a row.
        result_id = str(row.get("evaluation_result_id") or "")
        metric = metrics.get(result_id, "" if metrics else "score")
        metric, score = metric_score(metric, score)
        given, output = as_object(row.get("input")), as_object(row.get("output"))
        yield Answer(
            where=where,
            task=str(row.get("evaluation_name", ONE_TASK)),
            id=str(row["sample_id"]),
            scores={metric: score} if metric else {},
            higher={metric: higher[result_id]} if result_id in higher else {},
            model=str(row.get("model_id", "")),
            fields=(row, as_object(row.get("metadata"))),
            asked=str(row.get("sample_hash") or ""),
            question=_first(given.get("raw")),
            expected=_first(given.get("reference")) or NOT_KNOWN,
            answer=_first(output.get("raw")),
        )


def _first(value: object) -> str:
    if isinstance(value, list):
        value = value[0] if value else None
    return "" if value is None else str(value)
