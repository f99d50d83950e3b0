"""``kbrel pack``: a recorded run as a baseline in one file that others can use."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from pytest_kbrel.cli.arguments import (
    RUN,
    Options,
    command,
    output,
    print_result,
    switch,
)
from pytest_kbrel.errors import KbrelError


@command(
    "pack",
    "make a baseline of a recorded run, in one file that others can use",
    RUN,
    *output("FILE", "the file, NAME.kbrel"),
    switch(
        "--texts",
        "keep the texts of all answers; else digests stand for those of suites over others' data",
    ),
    epilog="call it where pytest was called, for the suites are read again",
)
def _run(options: Options) -> int:
    from pytest_kbrel.baselines import write_pack
    from pytest_kbrel.baselines.format import PACK
    from pytest_kbrel.gates.measurement import withhold
    from pytest_kbrel.session.outcomes import recorded_run

    path: Path = options.output
    if path.suffix != PACK:
        raise KbrelError(f"--output: found {path}; allowed: a name that ends in {PACK}")
    run = recorded_run(options.report)
    suites = dict.fromkeys(case.suite for case in run.cases)
    withheld = [of for of in suites if not (options.texts or _is_own(Path(of)))]
    cases = tuple(
        replace(case, table=replace(case.table, rows=tuple(map(withhold, rows))))
        if case.suite in withheld and (rows := case.table.rows)
        else case
        for case in run.cases
    )
    sha256 = write_pack(path, replace(run, cases=cases), force=options.force)
    lines = [f"{path}: {path.stat().st_size:,} bytes", f"sha256 {sha256}"]
    lines += [f"without the texts of answers: {suite}" for suite in withheld]
    document = {"output": path, "sha256": sha256, "withheld": withheld}
    print_result(options, document, lines)
    return 0


def _is_own(suite: Path) -> bool:
    """Return True if the facts of a suite file are in the own format and name no dataset they come from."""
    from pytest_kbrel.facts.readers import Relations, facts_of
    from pytest_kbrel.suites.parse import read_suite_file

    try:
        written = read_suite_file(suite)
        rows = facts_of(written.format, written.facts, Relations())
        return written.format.own and not any(fact.dataset for _, _, fact in rows)
    except (KbrelError, OSError):
        return False
