"""Loader of suite files: YAML to :class:`Suite`, with file and line in every error."""

from __future__ import annotations

import datetime
from pathlib import Path

from pytest_kbrel.records import AggregateCase, Case, Suite


def load_suite(
    path: Path,
    *,
    nodeid_path: str | None = None,
    limit: int | float | None = None,
    seed: int | None = None,
    judge: str = "rules",
    today: datetime.date | None = None,
) -> Suite:
    """Read and check a suite file, and draw its cases.

    ``nodeid_path`` is what the suite is called in node ids, by default its path. ``limit`` samples the facts
    of each case further, after the suite's own limit; ``seed`` replaces the suite's; ``judge`` decides
    whether answers are right. ``today`` (default: now) decides which waivers have expired, which unseen
    questions may have an answer, and about warnings. Raises ``SuiteError`` on the first mistake in any of
    its files.
    """
    # Collecting other tests must not pay for yaml.
    from pytest_kbrel.suites import cases, dataset, expiry, parse

    name = str(path) if nodeid_path is None else nodeid_path
    written = parse.read_suite_file(path)
    world = dataset.read_world(written, written.seed if seed is None else seed)
    patterns = written.uninformative
    shared = cases.SharedSettings(
        suite=name,
        limit=limit,
        judge=judge,
        language=written.language,
        uninformative=parse.read_uninformative(patterns) if patterns else (),
    )
    today = today or datetime.date.today()
    warnings = expiry.expiry_warnings(written, today)
    made: list[Case] = []
    aggregates: list[AggregateCase] = []
    for probe in written.probes:
        all_cases = cases.probe_cases(probe, world, shared)
        own, expired = expiry.without_expired(all_cases, path, today)
        warnings += expired
        cases.check_gates(probe, own)
        made += own
        aggregates += cases.aggregate_cases(probe, own)
    aggregates += cases.pooled_case(written, made)
    waived, aggregated = expiry.with_waivers(
        written.waivers,
        made,
        aggregates,
        path=path,
        today=today,
        facts={*world.locations, *(fact.id for case in made for fact in case.facts)},
    )
    return Suite(
        name=written.name,
        path=name,
        cases=dataset.with_buckets(waived, world),
        aggregates=aggregated,
        warnings=warnings,
    )
