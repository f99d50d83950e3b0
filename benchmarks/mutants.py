"""Test the tests: change the package's functions one place at a time and see whether a test fails.

    python benchmarks/mutants.py stats                   # a folder
    python benchmarks/mutants.py stats.intervals         # a module, or a function: stats.intervals.wilson
    python benchmarks/mutants.py stats --again           # also what was killed before
    python benchmarks/mutants.py stats.intervals --tests tests/stats/test_intervals.py

mutants_made.py makes the mutants, mutants_tested.py tests them, each with the tests of its own folder. What
became of them is kept in .mutants; a later run tests those that no test has killed yet, and those of
functions that are no longer the same. mutants_table.py prints the figures and the survivors.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "pytest_kbrel"
KEPT = ROOT / ".mutants"
# Tests beside those of the folder: gates compute the power of a comparison by stats/differences.py.
ALSO = {"stats": ("gates/test_bounds.py",)}
NOTICED = ("killed", "timeout")
FOLDERS = ("stats", "metrics", "gates", "baselines", "probes", "judges")


def main(arguments: Sequence[str] | None = None) -> int:
    """Test the mutants that were asked for; return the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument(
        "names",
        nargs="*",
        help=f"folders, modules or functions; default: {' '.join(FOLDERS)}",
    )
    parser.add_argument(
        "--again", action="store_true", help="also test what was killed before"
    )
    parser.add_argument(
        "--jobs", type=int, default=os.cpu_count() or 1, help="processes at a time"
    )
    parser.add_argument(
        "--examples", type=int, default=25, help="most examples of a property"
    )
    parser.add_argument(
        "--slowest",
        type=float,
        default=2.0,
        help="seconds of the slowest test that is used",
    )
    parser.add_argument(
        "--tests", nargs="+", help="tests to use; only kills are noted then"
    )
    given = parser.parse_args(arguments)
    names = [name.removeprefix(f"{PACKAGE}.") for name in given.names or FOLDERS]
    for folder in dict.fromkeys(name.split(".")[0] for name in names):
        if folder not in FOLDERS:
            parser.error(
                f"{folder}: has no mutants; folders with mutants: {', '.join(FOLDERS)}"
            )
        ours = [name for name in names if name.split(".")[0] == folder]
        # A process a folder, for each has other tests.
        if not (child := os.fork()):
            os._exit(test(folder, ours, given))
        if status := os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]):
            return status
    return 0


def test(folder: str, names: Sequence[str], given: argparse.Namespace) -> int:
    """Test the mutants of one folder; return the exit status."""
    os.chdir(ROOT)
    sys.path.insert(0, str(ROOT))
    os.environ |= {
        "OMP_NUM_THREADS": "1",
        "HF_HUB_OFFLINE": "1",
        "TOKENIZERS_PARALLELISM": "false",
    }
    import mutants_made
    import mutants_tested
    import pytest

    # Found, not imported: that is for pytest to do.
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or spec.origin != str(ROOT / PACKAGE / "__init__.py"):
        print(
            f"mutants: {spec and spec.origin} is not the package of {ROOT}",
            file=sys.stderr,
        )
        return 2
    paths = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts): path
        for path in sorted((ROOT / PACKAGE / folder).rglob("*.py"))
    }
    before = recorded(folder)
    results: dict[str, dict[str, Any]] = {}
    selected = []
    for module, path in paths.items():
        for mutant in mutants_made.mutants_of(path, module):
            old = before.get(f"{module} {mutant.digest}")
            results[mutant.name] = describe(mutant, old or {"status": "not tested"})
            wanted = any(
                f"{mutant.name}.".startswith((f"{PACKAGE}.{n}.", f"{PACKAGE}.{n}:"))
                for n in names
            )
            wanted |= mutant.name.removeprefix(f"{PACKAGE}.") in names
            if wanted and (given.again or old is None or old["status"] not in NOTICED):
                selected.append(mutant)
    print(
        f"{folder}: {len(results)} mutants, {len(selected)} of them to be tested",
        flush=True,
    )
    since = last = time.monotonic()
    counts: Counter[str] = Counter()

    def note(mutant: mutants_made.Mutant, result: mutants_tested.Result) -> None:
        nonlocal last
        # That a few of the tests do not kill it says nothing of the others.
        if not given.tests or result.status in NOTICED:
            results[mutant.name] = describe(mutant, asdict(result))
        counts[result.status] += 1
        if time.monotonic() - last > 20:
            last = time.monotonic()
            keep(folder, results)
            totals = ", ".join(
                f"{number} {status}" for status, number in counts.items()
            )
            print(
                f"{counts.total()}/{len(selected)} in {last - since:.0f} s: {totals}; {mutant.name}",
                flush=True,
            )

    with tempfile.TemporaryDirectory(prefix="kbrel-mutants-") as scratch:
        mutants_tested.FOLDER = Path(scratch)
        loop = mutants_tested.MutantLoop(
            selected,
            paths,
            note,
            jobs=given.jobs,
            examples=given.examples,
            slowest=given.slowest,
        )
        tests = given.tests or [
            f"tests/{name}" for name in (folder, *ALSO.get(folder, ()))
        ]
        try:
            off = ("-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:faulthandler")
            status = (
                pytest.main(["-q", "-s", "--no-header", *off, *tests], plugins=[loop])
                if selected
                else 0
            )
        finally:
            keep(folder, results)
    if loop.error:
        print(f"mutants: {loop.error}", file=sys.stderr)
        return 1
    print(
        f"{folder}: {counts.total()} tested in {time.monotonic() - since:.0f} s: {dict(counts)}",
        flush=True,
    )
    return 0 if status in (0, pytest.ExitCode.NO_TESTS_COLLECTED) else int(status)


def describe(mutant: Any, result: dict[str, Any]) -> dict[str, Any]:
    """Return what is kept of a mutant."""
    return {
        "module": mutant.module,
        "digest": mutant.digest,
        "line": mutant.line,
        "before": mutant.before,
        "after": mutant.after,
        "status": result["status"],
        "test": result.get("test", ""),
        "seconds": result.get("seconds", 0.0),
    }


def recorded(folder: str) -> dict[str, dict[str, Any]]:
    """Return what earlier runs found of a folder, by module and digest."""
    results = read(folder).values()
    return {
        f"{one['module']} {one['digest']}": one
        for one in results
        if one["status"] != "not tested"
    }


def read(folder: str) -> dict[str, dict[str, Any]]:
    """Return what was found of a folder, by the mutant's name."""
    path = KEPT / f"{folder}.json"
    results: dict[str, dict[str, Any]] = (
        json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    )
    return results


def keep(folder: str, results: dict[str, dict[str, Any]]) -> None:
    """Write what was found of a folder."""
    KEPT.mkdir(exist_ok=True)
    path = KEPT / f"{folder}.json"
    new = path.with_suffix(".new")
    new.write_text(json.dumps(results, indent=1), encoding="utf-8")
    new.replace(path)


if __name__ == "__main__":
    raise SystemExit(main())
