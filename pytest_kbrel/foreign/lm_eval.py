"""lm-evaluation-harness: ``samples_TASK_DATE.jsonl`` of ``--log_samples``, with ``results_DATE.json`` beside.

A row is one document after one filter. A metric is called as the harness does: ``exact_match,strict-match``,
and by its name alone after the filter ``none``. Documents are paired by ``doc_id``; what ``prompt_hash``,
``doc_hash`` and ``target_hash`` cover must be equal. On demand the tasks of a group, such as MMLU's 57, are
one case: their rows count alike, as the harness counts those of a group with ``weight_by_size``.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pytest_kbrel.errors import KbrelError
from pytest_kbrel.foreign.lines import json_object, json_rows
from pytest_kbrel.foreign.scored import (
    Answer,
    ScoredRun,
    Wanted,
    metric_score,
    number,
    scored_run,
)

TOOL = "lm_eval"
_SAMPLES = re.compile(r"samples_(?P<task>.+)_(?P<date>\d{4}-\d\d-\d\dT[\d.-]+)\.jsonl")
_RESULTS = re.compile(r"results_(?P<date>.+)\.json")
_HASHES = ("doc_hash", "prompt_hash", "target_hash")
# What a row has besides its metrics, in versions before it listed these.
_OWN = {
    *(
        "doc_id",
        "doc",
        "target",
        "arguments",
        "resps",
        "filtered_resps",
        "filter",
        "metrics",
    ),
    *_HASHES,
}


def read_lm_eval(path: Path, wanted: Wanted) -> ScoredRun:
    """Read a folder of one run, one of its ``samples`` files, or the samples beside a ``results`` file.

    Raises ``KbrelError`` where a folder has several runs, of which the error names the files.
    """
    files = _files(path)
    # Tasks that were run one after another have a results file each.
    read = functools.cache(json_object)
    results = {task: read(file.with_name(name)) for task, (file, name) in files.items()}
    pools = _pools(path, results, wanted.pool)
    answers = (
        answer
        for task, (file, _) in files.items()
        for answer in _answers(task, file, pools.get(task, ""), results[task])
    )
    return scored_run(path, TOOL, answers, wanted)


def _files(path: Path) -> dict[str, tuple[Path, str]]:
    """Return the samples of one run by task, each with the name of its results file."""
    if path.is_file() and (match := _RESULTS.fullmatch(path.name)) is not None:
        paths = sorted(path.parent.glob(f"samples_*_{match['date']}.jsonl"))
        if not paths:
            raise KbrelError(
                f"{path}: found no samples_TASK_{match['date']}.jsonl beside it; allowed: lm_eval --log_samples"
            )
    elif path.is_file():
        paths = [path]
    else:
        paths = sorted({*path.glob("samples_*.jsonl"), *path.glob("*/samples_*.jsonl")})
        # The harness makes a folder for each model.
        if len(folders := sorted({str(one.parent) for one in paths})) > 1:
            raise KbrelError(
                f"{path}: found several runs: {', '.join(folders)}; allowed: the folder of one run"
            )
    by_task: dict[str, tuple[Path, str]] = {}
    for one in paths:
        match = _SAMPLES.fullmatch(one.name)
        task = match["task"] if match else one.stem.removeprefix("samples_")
        if task in by_task:
            raise KbrelError(
                f"{path}: found two runs of {task}: {by_task[task][0]} and {one}; "
                "allowed: the folder of one run, or its results_DATE.json"
            )
        by_task[task] = one, f"results_{match['date'] if match else ''}.json"
    return by_task


def _higher(task: str, results: Mapping[str, Any]) -> dict[str, bool]:
    """Return of which metrics of a task more is better: another task may have the same with less."""
    directions = results.get("higher_is_better")
    of_task = directions.get(task) if isinstance(directions, dict) else None
    named = of_task.items() if isinstance(of_task, dict) else ()
    return {name: more for name, more in named if isinstance(more, bool)}


def _pools(
    path: Path, results: Mapping[str, Mapping[str, Any]], groups: Sequence[str]
) -> dict[str, str]:
    """Return the group of each task that belongs to one of ``groups``, directly or by a group within.

    ``results`` has the results file of each task.
    """
    if not groups:
        return {}
    members = {
        name: [str(one) for one in within]
        for of_task in results.values()
        if isinstance(listed := of_task.get("group_subtasks"), dict)
        for name, within in listed.items()
        if isinstance(within, list) and within
    }
    pools: dict[str, str] = {}
    for group in groups:
        if group not in members:
            raise KbrelError(
                f"{path}: --pool {group}: the results file names no such group; "
                f"allowed here: {', '.join(members) or 'none, since it names no group'}"
            )
        tasks = {group}
        # A group may be within a group.
        for _ in members:
            tasks = tasks.union(*(members.get(one, ()) for one in tasks))
        tasks &= results.keys()
        for twice in sorted(tasks & pools.keys()):
            raise KbrelError(
                f"{path}: --pool {group}: the task {twice} is in {pools[twice]} as well; "
                "allowed: groups without a task in common"
            )
        if not tasks:
            raise KbrelError(
                f"{path}: --pool {group}: found no samples of its tasks; allowed: --log_samples"
            )
        pools |= dict.fromkeys(tasks, group)
    return pools


def _answers(
    task: str, path: Path, pool: str, results: Mapping[str, Any]
) -> Iterator[Answer]:
    """Yield the rows of a task; those of a ``pool`` have the task in their id."""
    higher = _higher(task, results)
    model = str(results.get("model_name") or "")
    for where, row in json_rows(path):
        if "doc_id" not in row:
            raise KbrelError(
                f"{where}: found no doc_id; allowed: a row of lm_eval --log_samples"
            )
        listed = row.get("metrics")
        names = (
            listed
            if isinstance(listed, list)
            else [name for name in row if name not in _OWN]
        )
        filtered = str(row.get("filter") or "none")
        scores = {
            name if filtered == "none" else f"{name},{filtered}": score
            for name, score in _scores(row, names)
        }
        doc = row.get("doc")
        expected, answer = _expected_and_answer(row)
        fields = (row, doc) if isinstance(doc, dict) else (row,)
        yield Answer(
            where=where,
            task=pool or task,
            id=f"{task}/{row['doc_id']}" if pool else str(row["doc_id"]),
            scores=scores,
            higher=higher,
            model=model,
            fields=(*fields, {"task": task}),
            asked=".".join(str(row.get(name) or "") for name in _HASHES),
            question=_question(row),
            expected=expected,
            answer=answer,
        )


def _scores(
    row: Mapping[str, Any], names: Sequence[object]
) -> Iterator[tuple[str, float | None]]:
    """Yield the metrics of a row with their values."""
    for name in names:
        value = row.get(name) if isinstance(name, str) else None
        # What is no number, such as the parts of a perplexity of words, has no score of its own.
        if not isinstance(name, str) or not isinstance(value, int | float):
            continue
        yield metric_score(name, number(value))


def _expected_and_answer(row: Mapping[str, Any]) -> tuple[str, str]:
    """Return both as text: of multiple choice the words of the choices, which rows have by number."""
    target, responses = str(row.get("target", "")), row.get("filtered_resps")
    if not isinstance(responses, list) or len(responses) == 1:
        return target, str(responses[0] if isinstance(responses, list) else responses)
    arguments = row.get("arguments")
    asked = list(arguments.values()) if isinstance(arguments, dict) else []
    try:
        choices = [str(one["arg_1"]).strip() for one in asked]
        likelihoods = [float(one[0]) for one in responses]
        best = choices[: len(likelihoods)][likelihoods.index(max(likelihoods))]
        return choices[int(target)] if target.isdecimal() else target, best
    except (KeyError, IndexError, TypeError, ValueError):
        # No multiple choice, or of a kind that has requests besides its choices.
        return target, str(responses)


def _question(row: Mapping[str, Any]) -> str:
    """Return the question of a row, as its task has it, else its prompt."""
    doc = row.get("doc")
    if isinstance(doc, dict):
        for name in ("question", "query", "input", "prompt"):
            if isinstance(doc.get(name), str):
                return str(doc[name])
    arguments = row.get("arguments")
    if isinstance(arguments, dict) and isinstance(
        first := arguments.get("gen_args_0"), dict
    ):
        return str(first.get("arg_0", ""))
    return ""
