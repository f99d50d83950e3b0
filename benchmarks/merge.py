"""What joining the shards of a large run takes: by default 64 shards of 210,000 responses.

    OMP_NUM_THREADS=1 python benchmarks/merge.py
    OMP_NUM_THREADS=1 python benchmarks/merge.py --share 0.05 --shards 8

Facts and model are those of ``memory.py --scripted``: 20 relations, MONITOR's 13 prompts about each fact, to
each of which an answer is scored and one is written, and answers made of a digest of the prompt. Half
of FKTC's facts have 210,000 responses then. The whole run is recorded by pytest and blessed as a baseline.
The shards are recorded in this process, by what a session with --kb-shard calls, since 64 sessions would
take most of the time. Then each command joins them as a process of its own. "Peak" is the largest resident
memory that the kernel counted for it (VmHWM). "Same" says whether ``responses.jsonl`` and
``outcomes.jsonl.xz`` are those of the whole run to the byte, and ``report.json`` but for the keys that
docs/report-keys.md names.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from memory import PROMPTS_A_FACT, SCRIPTED, Ground, Measured

from pytest_kbrel.evaluation.model_pool import with_specs
from pytest_kbrel.records import Shard, Suite
from pytest_kbrel.session.case_asker import CaseAsker
from pytest_kbrel.session.run_builder import (
    SessionResults,
    build_run,
    dump_responses,
    write_reports,
)
from pytest_kbrel.session.suite_changes import sharded_run
from pytest_kbrel.settings import RULES, Settings
from pytest_kbrel.store.run_store import RunStore
from pytest_kbrel.suites import load_suite
from tests.reported import comparable

SUITE = "suite/fktc.kb.yaml"
FILES = ("responses.jsonl", "outcomes.jsonl.xz")


def record_shards(folder: Path, count: int) -> list[str]:
    """Record the shards of a run of the suite in ``folder``; return the names of their folders."""
    exec(SCRIPTED, {})
    os.chdir(folder)
    suite = load_suite(folder / SUITE, nodeid_path=SUITE, today=datetime.date.today())
    return [
        record_shard(folder, suite, Shard(index=index, count=count))
        for index in range(1, count + 1)
    ]


def record_shard(folder: Path, suite: Suite, shard: Shard) -> str:
    """Record one shard as a session does that has no other worker; return the name of its folder."""
    name = f"shards/{shard.index}"
    settings = with_specs(settings_of(folder / name, shard))
    shared = sharded_run(settings, [suite], folder)
    results = SessionResults(suites=[suite], shard=shared)
    asker = CaseAsker(settings, root=folder, store=RunStore(), suites=lambda: [suite])
    for case in suite.cases:
        nodeid = f"{suite.path}::{case.id}"
        results.expected[nodeid] = None
        results.add(nodeid, asker.ask_case(case))
    results.add_news(asker.pool.news())
    run = build_run(settings, results)
    problems = tuple(dump_responses(run.cases, asker.store, settings.output_path))
    asker.close()
    write_reports(replace(run, problems=problems), settings.output_path)
    return name


def settings_of(output: Path, shard: Shard) -> Settings:
    """Return the settings of a session with --kb-model=./model and --kb-shard."""
    return Settings(
        model="./model",
        model_args="",
        device="auto",
        dtype="auto",
        batch_size="auto",
        apply_chat_template=False,
        judge=RULES,
        judge_args="",
        baseline="",
        baseline_update=None,
        inconclusive="warn",
        limit=None,
        seed=None,
        output_path=output,
        use_cache=None,
        shard=shard,
        today=datetime.date.today(),
        run=os.urandom(8).hex(),
        here=Path.cwd(),
    )


def is_same(one: Path, other: Path) -> bool:
    """Return True if two reports differ in nothing but times and places."""
    first, second = (
        comparable(json.loads((folder / "report.json").read_text(encoding="utf-8")))
        for folder in (one, other)
    )
    return first == second and all(
        (one / name).read_bytes() == (other / name).read_bytes() for name in FILES
    )


def say(what: str, run: Measured, same: bool) -> None:
    """Print a line of the table."""
    (peak,) = run.peaks.values()
    figures = f"{run.seconds:.0f} | {run.cpu:.0f} | {peak:.0f}"
    print(f"| {what} | {figures} | {'yes' if same else 'no'} |", flush=True)


def measure(ground: Ground, count: int, whole_runs: Sequence[str]) -> None:
    """Record everything, run the commands and print the table."""
    model = ("--kb-model=./model", "--kb-use-cache=off")
    ground.pytest(*model, "--kb-output-path=whole", "--kb-baseline-update=whole")
    if "compared" in whole_runs:
        ground.pytest(*model, "--kb-output-path=compared", "--kb-baseline=whole")
    started = time.perf_counter()
    shards = record_shards(ground.folder, count)
    print(
        f"{ground.facts:,} facts, {2 * ground.facts * PROMPTS_A_FACT:,} responses, {len(shards)} shards made "
        f"in {time.perf_counter() - started:.0f} s, load {os.getloadavg()[0]:.1f}\n"
    )
    print("| command | seconds | CPU seconds | peak, MB | same |")
    print("|---|--:|--:|--:|---|")
    for whole in whole_runs:
        with_baseline = whole == "compared"
        flags = ("--baseline=whole",) if with_baseline else ()
        output = f"merged-{whole}"
        run = ground.kbrel("merge", "shards", f"--output={output}", *flags)
        same = is_same(ground.folder / whole, ground.folder / output)
        say(" ".join(["`kbrel merge shards", *flags]) + "`", run, same)
        flags = ("--kb-baseline=whole",) if with_baseline else ()
        output = f"again-{whole}"
        run = ground.pytest(
            "--kb-from-run=shards", f"--kb-output-path={output}", *flags
        )
        same = is_same(ground.folder / whole, ground.folder / output)
        say(" ".join(["`pytest suite --kb-from-run=shards", *flags]) + "`", run, same)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--share", type=float, default=0.5, help="of FKTC's size")
    parser.add_argument("--shards", type=int, default=64, help="how many")
    parser.add_argument(
        "--without-baseline", action="store_true", help="leave out the comparisons"
    )
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as name:
        ground = Ground(Path(name), given.share, one=False, scripted=True)
        measure(
            ground,
            given.shards,
            ["whole"] if given.without_baseline else ["whole", "compared"],
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
