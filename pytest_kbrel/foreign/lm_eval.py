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
from pytest_kbrel.foreign.plain import as_object, json_object, rows_of
from pytest_kbrel.foreign.scored import Answer, Wanted, metric_score, number
from pytest_kbrel.records import NOT_KNOWN

_SAMPLES = re.compile(r"samples_(?P<task>.+)_(?P<date>\d{4}-\d\d-\d\dT[\d.-]+)\.jsonl")
_RESULTS = re.compile(r"results_(?P<date>.+)\.json")
_HASHES = ("doc_hash", "prompt_hash", "target_hash")
# What a row has besides its metrics, in versions before it listed these.
_OWN = {
    *("doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter"),
    *("metrics", *_HASHES),
}


def read_lm_eval(path: Path, wanted: Wanted) -> Iterator[Answer]:
    """Yield the rows of a folder of one run, of one ``samples`` file, or of those beside a ``results`` file.

    Raises ``KbrelError`` where a folder has several runs, of which the error names the files.
    """
    files = _files(path)
    # Tasks that were run one after another have a results file each.
    read = functools.cache(json_object)
    results = {task: read(file.with_name(name)) for task, (file, name) in files.items()}
    pools = _pools(path, results, wanted.pool)
    for task, (file, _) in files.items():
        yield from _answers(task, file, pools.get(task, ""), results[task])


def _files(path: Path) -> dict[str, tuple[Path, str]]:
    """Return the samples of one run by task, each with the name of its results file."""
    if path.is_dir():
        paths = sorted({*path.glob("samples_*.jsonl"), *path.glob("*/samples_*.jsonl")})
        # The harness makes a folder for each model.
        if len(folders := sorted({str(one.parent) for one in paths})) > 1:
            raise KbrelError(
                f"{path}: found several runs: {', '.join(folders)}; allowed: the folder of one run"
            )
    elif (match := _RESULTS.fullmatch(path.name)) is None:
        paths = [path]
    elif not (paths := sorted(path.parent.glob(f"samples_*_{match['date']}.jsonl"))):
        raise KbrelError(
            f"{path}: found no samples_TASK_{match['date']}.jsonl beside it; allowed: lm_eval --log_samples"
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


def _pools(
    path: Path, results: Mapping[str, Mapping[str, Any]], groups: Sequence[str]
) -> dict[str, str]:
    """Return the group of each task that belongs to one of ``groups``, directly or by a group within.

    ``results`` has the results file of each task.
    """
    members: dict[str, list[Any]] = {}
    for of_task in results.values():
        listed = as_object(of_task.get("group_subtasks"))
        members |= {
            name: within
            for name, within in listed.items()
            if isinstance(within, list) and within
        }
    pools: dict[str, str] = {}
    for group in groups:
        where = f"{path}: --pool {group}"
        if group not in members:
            raise KbrelError(
                f"{where}: the results file names no such group; "
                f"allowed here: {', '.join(members) or 'none, since it names no group'}"
            )
        tasks = {group}
        # A group may be within a group.
        for _ in members:
            tasks = tasks.union(*(map(str, members.get(one, ())) for one in tasks))
        tasks &= results.keys()
        if not tasks:
            raise KbrelError(
                f"{where}: found no samples of its tasks; allowed: --log_samples"
            )
        if twice := min(tasks & pools.keys(), default=""):
            raise KbrelError(
                f"{where}: the task {twice} is in {pools[twice]} as well; "
                "allowed: groups without a task in common"
            )
        pools |= dict.fromkeys(tasks, group)
    return pools


def _answers(
    task: str, path: Path, pool: str, results: Mapping[str, Any]
) -> Iterator[Answer]:
    """Yield the rows of a task; those of a ``pool`` have the task in their id."""
    # Of which metrics more is better: another task may have the same with less.
    directions = as_object(as_object(results.get("higher_is_better")).get(task))
    higher = {name: of for name, of in directions.items() if isinstance(of, bool)}
    for where, row in rows_of(path):
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
        scores = {}
        for name in map(str, names):
            # What is no number, such as the parts of a perplexity of words, has no score of its own.
            if isinstance(value := row.get(name), int | float):
                metric, score = metric_score(name, number(value))
                scores[metric if filtered == "none" else f"{metric},{filtered}"] = score
        doc = as_object(row.get("doc"))
        expected, answer = _expected_and_answer(row)
        yield Answer(
            where=where,
            task=pool or task,
            id=f"{task}/{row['doc_id']}" if pool else str(row["doc_id"]),
            scores=scores,
            higher=higher,
            model=str(results.get("model_name") or ""),
            fields=(row, doc, {"task": task}),
            asked=".".join(str(row.get(name) or "") for name in _HASHES),
            question=_question(doc, as_object(row.get("arguments"))),
            expected=expected,
            answer=answer,
        )


def _expected_and_answer(row: Mapping[str, Any]) -> tuple[str, str]:
    """Return both as text: of multiple choice the words of the choices, which rows have by number."""
    target, responses = str(row.get("target", NOT_KNOWN)), row.get("filtered_resps")
    if not isinstance(responses, list) or len(responses) == 1:
        return target, str(responses[0] if isinstance(responses, list) else responses)
    asked = as_object(row.get("arguments")).values()
    try:
        choices = [str(one["arg_1"]).strip() for one in asked]
        likelihoods = [float(one[0]) for one in responses]
        best = choices[: len(likelihoods)][likelihoods.index(max(likelihoods))]
        return choices[int(target)] if target.isdecimal() else target, best
    except (KeyError, IndexError, TypeError, ValueError):
        # No multiple choice, or of a kind that has requests besides its choices.
        return target, str(responses)


def _question(doc: Mapping[str, Any], arguments: Mapping[str, Any]) -> str:
    """Return the question as the task has it, else the prompt."""
    for name in ("question", "query", "input", "prompt"):
        if isinstance(doc.get(name), str):
            return str(doc[name])
    return str(as_object(arguments.get("gen_args_0")).get("arg_0", ""))
