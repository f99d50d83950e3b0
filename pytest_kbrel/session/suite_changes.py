"""Suites of a run held against those that its shards and its baseline asked."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path, PurePath

from pytest_kbrel.baselines import Baseline, case_key, commit_of
from pytest_kbrel.evaluation.recorded_run import read_runs
from pytest_kbrel.records import AggregateCase, Case, ShardedRun, Suite
from pytest_kbrel.serialization import encoder
from pytest_kbrel.settings import Settings
from pytest_kbrel.words import in_suite


def sharded_run(
    settings: Settings, suites: Sequence[Suite], root: Path
) -> ShardedRun | None:
    """Return what a report says of its shard; ``None`` where everything is asked."""
    if settings.shard is None:
        return None
    digests = tuple(sorted((suite.path, suite_digest(suite)) for suite in suites))
    return ShardedRun(shard=settings.shard, suites=digests, commit=commit_of(root))


def suite_digest(suite: Suite) -> str:
    """Return a sha256 of all that a suite asks, and how it decides."""
    # Not dumps_compact, which writes a value that equals its default and is another object.
    digest, encode = hashlib.sha256(), encoder()
    cases: list[Case | AggregateCase] = [*suite.cases, *suite.aggregates]
    for case in cases:
        # Whether a waiver has expired may change at midnight.
        digest.update(encode(replace(case, waivers=())).encode() + b"\n")
    return digest.hexdigest()


def changed_suites(settings: Settings, suites: Sequence[Suite]) -> Iterator[str]:
    """Yield which suites are not those of the shards that this run is joined from; none for another run."""
    shards = [] if settings.from_run is None else read_runs(settings.recorded).parts
    asked = (
        dict(shards[0].shard.suites) if shards and shards[0].shard is not None else {}
    )
    for suite in suites:
        if asked and suite_digest(suite) != asked.get(suite.path):
            yield (
                f"{suite.path} is not the one that the shards asked: its file or its facts have changed "
                "since, and cases are decided by what it asks now"
            )


def lost_cases(
    settings: Settings, suites: Sequence[Suite], baseline: Baseline | None, root: Path
) -> Iterator[tuple[str, str]]:
    """Yield the names of suite files that have lost cases of a blessed run, with which; ``root`` is the project's.

    A file that is there and was not selected has lost none. None are yielded where the run blesses anew.
    """
    if baseline is None or baseline.model is None or settings.baseline_update:
        return
    kept = {case_key(suite.path, case.id) for suite in suites for case in suite.cases}
    lost: dict[str, list[str]] = {}
    for key in sorted(baseline.cases.keys() - kept):
        lost.setdefault(key.partition("::")[0], []).append(key)
    limits = {
        PurePath(suite.path).name: min(case.integrity.unasked for case in suite.cases)
        for suite in suites
    }
    for name, keys in lost.items():
        if name not in limits and (not in_suite(name) or any(root.rglob(name))):
            continue
        if limits.get(name, 0) < 1:
            yield (
                name,
                f"{name} has lost {len(keys)} of the baseline's cases (first: {keys[0]}); allowed: the suite "
                "that was blessed, 'unasked: 1' in its integrity, or bless a run without them",
            )
