"""``kbrel bisect``: the first of a folder of checkpoints that fails a suite."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pytest_kbrel.cli.arguments import (
    Options,
    argument,
    command,
    is_json_only,
    print_result,
)
from pytest_kbrel.errors import KbrelError, nearest

_FILES = ("config.json", "adapter_config.json")


@command(
    "bisect",
    "find the first of a folder of checkpoints that fails a suite, in few runs",
    argument(
        "folder",
        "a folder of checkpoints, or of scripts of models, in the order of their names",
        Path,
        metavar="DIR",
    ),
    argument("--suite", "the suite", Path, metavar="FILE", required=True),
    argument(
        "--gate",
        "let this gate decide alone, such as 'monitor[P36]:accuracy'; may be repeated (default: all)",
        metavar="CASE:METRIC",
        action="append",
        default=[],
    ),
    argument(
        "--reports",
        "folder of the reports, one a checkpoint (default: kbrel-bisect)",
        Path,
        metavar="DIR",
        default=Path("kbrel-bisect"),
    ),
    epilog="each run is one of pytest: settings are those of its configuration file and the environment, such as "
    "KB_LIMIT=50; without a baseline the first checkpoint is it",
)
def _run(options: Options) -> int:
    document: dict[str, Any] = {"steps": {}, "answer": ""}
    lines: Any = _search(options, document)
    if is_json_only(options):
        lines = [*lines]
    print_result(options, document, lines)
    return 0


def _search(options: Options, document: dict[str, Any]) -> Iterator[str]:
    """Yield a line a step and the answer, and write both into ``document``."""
    paths, steps = _checkpoints(options.folder), document["steps"]
    names = [path.name for path in paths]

    def step(at: int) -> str:
        steps[names[at]] = fails = _failing(options, paths[0], paths[at])
        return f"{names[at]}: {', '.join(fails) or 'passes'}"

    low, high = 0, len(paths) - 1
    for at in (low, high):
        yield step(at)
    if steps[names[low]] or not steps[names[high]]:
        first, last = ("fails" if steps[names[at]] else "passes" for at in (low, high))
        answer = f"nothing to find: the first checkpoint {first} and the last {last}"
    else:
        while high - low > 1:
            middle = (low + high) // 2
            yield step(middle)
            low, high = (low, middle) if steps[names[middle]] else (middle, high)
        answer = (
            f"{names[high]} is the first that fails, {names[low]} the last that passes"
        )
        after = names[min(high + 1, len(names) - 1)]
        if after not in steps:
            yield step(high + 1)
        if not steps[after]:
            answer += (
                f"; not monotone: {after} passes again, and an earlier one may fail"
            )
    document["answer"] = f"{answer}; {len(steps)} of {len(paths)} were run"
    yield document["answer"]


def _checkpoints(folder: Path) -> list[Path]:
    from pytest_kbrel.reports.reasons import natural

    paths = [
        path
        for path in folder.iterdir()
        if path.suffix == ".jsonl" or any((path / name).is_file() for name in _FILES)
    ]
    if len(paths) < 2:
        raise KbrelError(
            f"{folder}: found {len(paths)} checkpoints; allowed: two or more folders with {' or '.join(_FILES)}, or "
            "scripts (.jsonl)"
        )
    return sorted(paths, key=lambda path: natural(path.name))


def _failing(options: Options, first: Path, path: Path) -> list[str]:
    """Run the suite on a checkpoint and return the gates that fail."""
    from pytest_kbrel.catalogue.verdicts import failing
    from pytest_kbrel.cli.compare.recorded import pair_recorded, read_sides
    from pytest_kbrel.session.outcomes import recorded_run

    report = options.reports / path.name
    model = f"scripted/{path}" if path.suffix == ".jsonl" else path
    line = [sys.executable, "-m", "pytest", str(options.suite), f"--kb-model={model}"]
    done = subprocess.run(
        [*line, f"--kb-output-path={report}"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode not in (0, 1):
        raise KbrelError(f"{path}: pytest ended with {done.returncode}:\n{done.stdout}")
    run = recorded_run(report)
    if not run.baseline and path != first:
        sides = read_sides([str(options.reports / first.name), str(report)], Path.cwd())
        run = pair_recorded(sides, strict=False)[1].run or run
    judged = {
        f"{case.id}:{gate.metric}": gate.verdict
        for case in run.cases
        for gate in case.gates
        if not case.waived
    }
    for name in options.gate or [""] * (not judged):
        if name not in judged:
            raise KbrelError(
                f"--gate: found {name!r}; allowed: {', '.join(judged) or 'a suite with gates'}{nearest(name, judged)}"
            )
    fails = failing(compared=bool(run.baseline))
    return [
        name
        for name, verdict in judged.items()
        if verdict in fails and name in (options.gate or judged)
    ]
