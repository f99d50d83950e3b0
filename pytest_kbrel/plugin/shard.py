"""Reading of --kb-shard: a share that the user states, or that of a job array or CI matrix."""

from __future__ import annotations

import re
from collections.abc import Mapping

from pytest_kbrel.bounds import SHARDS, shown
from pytest_kbrel.records import Shard, ShardBy

AUTO = "auto"
_SLURM = "SLURM_ARRAY_TASK_ID"
_STATED = re.compile(r"(\d+)/(\d+)")
_ALLOWED = f"I/N with I from 1 to N, N {SHARDS}, or {AUTO}"


def read_shard(text: str, by: ShardBy, environment: Mapping[str, str]) -> Shard:
    """Return the share that ``text`` states: ``I/N``, ``auto`` or ``auto/N``.

    Raises ``ValueError`` with what was found and what is allowed.
    """
    word, _, count = text.partition("/")
    if word == AUTO:
        return _of_environment(count, by, environment)
    match = _STATED.fullmatch(text)
    if match is None:
        raise ValueError(f"found {shown(text)}; allowed: {_ALLOWED}")
    return _shard(match[1], match[2], by, f"found {shown(text)}")


def _of_environment(count: str, by: ShardBy, environment: Mapping[str, str]) -> Shard:
    """Return the share of this job: its number and their count, as the system that started it says."""
    ways = {
        _SLURM: (
            "SLURM_ARRAY_TASK_COUNT",
            environment.get("SLURM_ARRAY_TASK_MIN", "0"),
        ),
        "JOB_COMPLETION_INDEX": ("JOB_COMPLETIONS", "0"),
        "CI_NODE_INDEX": ("CI_NODE_TOTAL", "1"),
    }
    present = [name for name in ways if environment.get(name)]
    if len(present) != 1:
        which = (
            f"{' and '.join(present)} are set"
            if present
            else f"none of {', '.join(ways)} is set"
        )
        github = "; in a GitHub matrix write KB_SHARD: ${{ matrix.shard }}/${{ strategy.job-total }}"
        raise ValueError(
            f"found {AUTO}, and {which}; allowed: one of them, or I/N{github}"
        )
    total, first = ways[present[0]]
    if not (count := count or environment.get(total, "")):
        raise ValueError(
            f"found {AUTO} with {present[0]} and no {total}; allowed: with it, or {AUTO}/N"
        )
    if present[0] == _SLURM:
        _check_array(environment, count)
    index = environment[present[0]]
    stated = f"found {AUTO}, which is {present[0]}={shown(index)}, counted from {first}, of {shown(count)}"
    try:
        index = str(int(index) - int(first) + 1)
    except ValueError:
        raise ValueError(f"{stated}; allowed: whole numbers") from None
    return _shard(index, count, by, stated)


def _check_array(environment: Mapping[str, str], parts: str) -> None:
    """Raise ``ValueError`` for an array of SLURM that has not one task for each part."""
    names = [f"SLURM_ARRAY_TASK_{name}" for name in ("MIN", "MAX", "COUNT")]
    stated = [environment.get(name, "") for name in names]
    if not all(map(str.isdecimal, (*stated, parts))):
        return
    first, last, tasks = map(int, stated)
    # A single task may be one of a larger array that somebody has submitted again.
    is_again = tasks == 1 and first > 1
    if is_again or tasks != int(parts) or last - first + 1 != tasks:
        raise ValueError(
            f"found {AUTO} in a SLURM array of {tasks} from {first} to {last}, for {parts} parts; allowed: "
            "an array without gaps that has a task for each part (--array=1-N), or I/N where a task runs "
            "again alone"
        )


def _shard(index: str, count: str, by: ShardBy, stated: str) -> Shard:
    try:
        shard = Shard(index=SHARDS.integer(index), count=SHARDS.integer(count), by=by)
    except ValueError:
        raise ValueError(f"{stated}; allowed: {_ALLOWED}") from None
    if shard.index > shard.count:
        raise ValueError(f"{stated}; allowed: {_ALLOWED}")
    return shard
