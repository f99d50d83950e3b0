"""Inspect's logs (``.eval`` and ``.json``), read by Inspect's own reader."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pytest_kbrel.errors import KbrelError, MissingExtraError
from pytest_kbrel.foreign.scored import Answer, ScoredRun, Wanted, scored_run

TOOL = "inspect_ai"


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
    from inspect_ai.scorer import value_to_float

    as_number = value_to_float()
    for sample in log.samples or ():
        scores: dict[str, float | None] = {}
        for scorer, score in (sample.scores or {}).items():
            values = score.value
            if isinstance(values, dict):
                scores |= {f"{scorer}/{key}": as_number(value) for key, value in values.items()}
            elif not isinstance(values, list):
                scores[scorer] = as_number(values)
        target = sample.target
        yield Answer(
            where=f"{name}: sample {sample.id}",
            task=str(log.eval.task),
            id=str(sample.id),
            scores=scores,
            fields=({"epoch": sample.epoch}, sample.metadata or {}),
            question=sample.input if isinstance(sample.input, str) else "",
            expected=target if isinstance(target, str) else ", ".join(map(str, target)),
            answer=sample.output.completion if sample.output else "",
        )
