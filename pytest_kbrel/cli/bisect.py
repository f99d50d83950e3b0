"""``kbrel bisect``: the first of a folder of checkpoints that fails a suite."""

from __future__ import annotations

import subprocess
import sys
from bisect import bisect_left
from pathlib import Path

from pytest_kbrel.cli.arguments import Options, argument, command, print_result
from pytest_kbrel.errors import KbrelError
from pytest_kbrel.printing import printable

_FILES = ("config.json", "adapter_config.json")
_REPORTS = Path("kbrel-bisect")


@command(
    "bisect",
    "find the first of a folder of checkpoints that fails a suite, in few runs",
    argument(
        "folder",
        "a folder of checkpoints, or of scripts of models, in the order of their names",
        Path,
        metavar="DIR",
    ),
    argument("--suite", "the suite", metavar="FILE", required=True),
    argument(
        "--gate",
        "let this gate decide alone, such as 'monitor[P36]:accuracy'; may be repeated (default: all)",
        metavar="CASE:METRIC",
        action="append",
    ),
    epilog=f"each run is one of pytest, with its reports in {_REPORTS}/ and its settings from configuration file and "
    "environment, such as KB_LIMIT=50; without a baseline the first checkpoint is it",
)
def _run(options: Options) -> int:
    paths = _checkpoints(options.folder)
    last = len(paths) - 1
    steps: dict[str, list[str]] = {}

    def fails(at: int) -> bool:
        name = paths[at].name
        if name not in steps:
            steps[name] = _failing(options, paths[0], paths[at])
            line = f"{name}: {', '.join(steps[name]) or 'passes'}"
            print(printable(line), file=sys.stderr, flush=True)
        return bool(steps[name])

    # The last is run where the first fails, too: what fails may not go on failing.
    words = ["fails" if fails(at) else "passes" for at in (0, last)]
    answer = f"nothing to find: the first {words[0]}, and the last {words[1]}"
    if words == ["passes", "fails"]:
        at = bisect_left(range(last), True, 1, key=fails)
        answer = f"{paths[at].name} is the first that fails, {paths[at - 1].name} the last that passes"
        if not fails(min(at + 1, last)):
            answer += f"; not monotone: {paths[at + 1].name} passes again, and one before may fail"
    answer += f"; {len(steps)} of {len(paths)} were run"
    print_result(options, {"steps": steps, "answer": answer}, [answer])
    return 0


def _checkpoints(folder: Path) -> list[Path]:
    from pytest_kbrel.reports.reasons import natural

    paths = [
        path
        for path in (folder.iterdir() if folder.is_dir() else ())
        if path.suffix == ".jsonl" or any((path / name).is_file() for name in _FILES)
    ]
    if len(paths) < 2:
        raise KbrelError(
            f"{folder}: found {len(paths)} checkpoints; allowed: two or more folders with {' or '.join(_FILES)}, or "
            "scripts (.jsonl)"
        )
    return sorted(paths, key=lambda path: natural(path.name))


def _failing(options: Options, first: Path, path: Path) -> list[str]:
    """Run the suite on a checkpoint and return the gates that fail, with their verdicts."""
    from pytest_kbrel.catalogue.verdicts import failing
    from pytest_kbrel.cli.compare.recorded import pair_recorded, read_sides
    from pytest_kbrel.session.outcomes import recorded_run

    report = _REPORTS / path.name
    model = f"scripted/{path}" if path.suffix == ".jsonl" else path
    flags = f"--kb-model={model}", f"--kb-output-path={report}"
    line = sys.executable, "-m", "pytest", options.suite, *flags
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        raise KbrelError(
            f"{path}: pytest ended with {done.returncode}: {done.stdout}{done.stderr}"
        )
    run = recorded_run(report)
    if not run.baseline and path != first:
        sides = read_sides([str(_REPORTS / first.name), str(report)], Path.cwd())
        run = pair_recorded(sides, strict=False)[1].run or run
    cases = [case for case in run.cases if not case.waived]
    judged = [
        (f"{case.id}:{gate.metric}", gate.verdict)
        for case in cases
        for gate in case.gates
    ]
    names = dict(judged)
    wanted = options.gate or names
    if not wanted or not names.keys() >= set(wanted):
        allowed = ", ".join(names) or "a suite with gates"
        raise KbrelError(f"--gate: found {', '.join(wanted)}; allowed: {allowed}")
    fails = failing(compared=bool(run.baseline))
    failed = [f"{name} {of}" for name, of in judged if name in wanted and of in fails]
    if not options.gate:
        # Without any gate too, these fail a run.
        lost = (of for of in cases if of.verdict in ("invalid", "not run"))
        failed += [
            f"{of.id} {of.verdict}" for of in lost if not (of.gates or of.aggregate)
        ]
    return [*dict.fromkeys(failed)]
