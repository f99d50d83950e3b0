"""Inspect's logs (``.eval`` and ``.json``), read by Inspect's own reader."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from pytest_kbrel.errors import KbrelError, MissingExtraError
from pytest_kbrel.foreign.scored import Answer, Wanted, number
from pytest_kbrel.records import NOT_KNOWN

# Correct, partially correct, incorrect, no answer: as Inspect's own metrics count them.
_GRADES = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}
_LETTERS = tuple(_GRADES)


def read_inspect(path: Path, wanted: Wanted) -> Iterator[Answer]:
    """Yield the samples of a log, or of a folder with one log a task, each once an epoch.

    A metric is the name of a scorer, with the key where its value is an object. Raises
    ``MissingExtraError`` without Inspect, ``KbrelError`` on a log that did not end well.
    """
    try:
        from inspect_ai.log import list_eval_logs, read_eval_log, read_eval_log_samples
    except ModuleNotFoundError:
        raise MissingExtraError(
            "inspect-ai", "inspect", f"{path}: reading a log of Inspect"
        ) from None
    names = (
        [str(path)]
        if path.is_file()
        else sorted(info.name for info in list_eval_logs(str(path)))
    )
    tasks: dict[str, tuple[str, str]] = {}
    for name in names:
        log = _by_inspect(name, partial(read_eval_log, name, header_only=True))
        if log.status != "success":
            raise KbrelError(
                f"{name}: found status {log.status}; allowed: success (inspect eval-retry {name})"
            )
        if log.eval.task in tasks:
            raise KbrelError(
                f"{path}: found two logs of {log.eval.task}: {tasks[log.eval.task][0]} and {name}; "
                "allowed: one a task"
            )
        tasks[log.eval.task] = name, str(log.eval.model)
    for task, (name, model) in tasks.items():
        # One after another: a log may be larger than the memory.
        samples = read_eval_log_samples(
            name, all_samples_required=False, resolve_attachments=False
        )
        yield from _answers(name, task, model, samples)


def _by_inspect(name: str, read: Callable[[], Any]) -> Any:
    try:
        return read()
    except Exception as error:  # Inspect's reader raises whatever its libraries do.
        raise KbrelError(
            f"{name}: Inspect cannot read it: {type(error).__name__}: {error}"
        ) from None


def _answers(
    name: str, task: str, model: str, samples: Iterator[Any]
) -> Iterator[Answer]:
    metrics: dict[str, None] = {}
    # A sample that ended in an error has no score of any scorer: it comes last, when all scorers are known.
    unscored: list[Answer] = []
    while (sample := _by_inspect(name, partial(next, samples, None))) is not None:
        values = _values(sample)
        metrics |= dict.fromkeys(values)
        target = [sample.target] if isinstance(sample.target, str) else sample.target
        is_text = isinstance(sample.input, str)
        asked = [sample.input] if is_text else [one.text for one in sample.input]
        answer = Answer(
            where=f"{name}: sample {sample.id}",
            task=task,
            id=str(sample.id),
            scores={
                name: number(_GRADES.get(of, of) if isinstance(of, str) else of)
                for name, of in values.items()
            },
            higher={name: True for name, of in values.items() if of in _LETTERS},
            model=model,
            # Without ids of their own, samples are numbered in the order they ran.
            asked=json.dumps([asked, sample.choices, target]),
            fields=({"epoch": sample.epoch}, sample.metadata or {}, {"task": task}),
            question=sample.input if is_text else "",
            expected=", ".join(map(str, target)) or NOT_KNOWN,
            answer=sample.output.completion if sample.output else "",
        )
        if values:
            yield answer
        else:
            unscored.append(answer)
    for answer in unscored:
        yield dataclasses.replace(answer, scores=dict.fromkeys(metrics))


def _values(sample: Any) -> dict[str, object]:
    values: dict[str, object] = {}
    for scorer, score in (sample.scores or {}).items():
        if isinstance(score.value, dict):
            values |= {f"{scorer}/{key}": of for key, of in score.value.items()}
        elif not isinstance(score.value, list):
            values[scorer] = score.value
    return values
