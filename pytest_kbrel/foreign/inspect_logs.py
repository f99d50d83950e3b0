"""Inspect's logs (``.eval`` and ``.json``), read by Inspect's own reader."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pytest_kbrel.errors import KbrelError, MissingExtraError
from pytest_kbrel.foreign.scored import Answer, ScoredRun, Wanted, number, scored_run

TOOL = "inspect_ai"
# Correct, partially correct, incorrect, no answer: as Inspect's own metrics count them.
_GRADES = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}


def read_inspect(path: Path, wanted: Wanted) -> ScoredRun:
    """Read a log, or a folder with one log a task; the epochs of a sample count with their mean.

    A metric is the name of a scorer, with the key where its value is an object. Raises
    ``MissingExtraError`` without Inspect, ``KbrelError`` on a log that did not end well.
    """
    try:
        from inspect_ai.log import list_eval_logs, read_eval_log
    except ModuleNotFoundError:
        raise MissingExtraError("inspect-ai", "inspect", f"{path}: reading a log of Inspect") from None
    names = [str(path)] if path.is_file() else sorted(info.name for info in list_eval_logs(str(path)))
    logs = []
    for name in names:
        try:
            logs.append(read_eval_log(name, resolve_attachments=False))
        except Exception as error:  # Inspect's reader raises whatever its libraries do.
            raise KbrelError(f"{name}: Inspect cannot read it: {type(error).__name__}: {error}") from None
    tasks: dict[str, str] = {}
    for name, log in zip(names, logs, strict=True):
        if log.status != "success":
            raise KbrelError(
                f"{name}: found status {log.status}; allowed: success (inspect eval-retry {name})"
            )
        if log.eval.task in tasks:
            raise KbrelError(
                f"{path}: found two logs of {log.eval.task}: {tasks[log.eval.task]} and {name}; "
                "allowed: one a task"
            )
        tasks[log.eval.task] = name
    models = sorted({str(log.eval.model) for log in logs})
    answers = (answer for name, log in zip(names, logs, strict=True) for answer in _answers(name, log))
    return scored_run(path, TOOL, answers, wanted, model=", ".join(models))


def _answers(name: str, log: Any) -> Iterator[Answer]:
    samples = [(sample, _scores(sample)) for sample in log.samples or ()]
    # A sample that ended in an error has no score of any scorer.
    metrics = dict.fromkeys(metric for _, scores in samples for metric in scores)
    for sample, scores in samples:
        target = sample.target
        yield Answer(
            where=f"{name}: sample {sample.id}",
            task=str(log.eval.task),
            id=str(sample.id),
            scores={metric: scores.get(metric) for metric in metrics},
            fields=({"epoch": sample.epoch}, sample.metadata or {}),
            question=sample.input if isinstance(sample.input, str) else "",
            expected=target if isinstance(target, str) else ", ".join(map(str, target)),
            answer=sample.output.completion if sample.output else "",
        )


def _scores(sample: Any) -> dict[str, float | None]:
    scores: dict[str, float | None] = {}
    for scorer, score in (sample.scores or {}).items():
        if isinstance(score.value, dict):
            scores |= {f"{scorer}/{key}": _number(value) for key, value in score.value.items()}
        elif not isinstance(score.value, list):
            scores[scorer] = _number(score.value)
    return scores


def _number(value: object) -> float | None:
    return _GRADES[value] if isinstance(value, str) and value in _GRADES else number(value)
