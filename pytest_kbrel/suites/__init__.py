"""Loader of suite files: YAML to :class:`Suite`, with file and line in every error."""

from __future__ import annotations

import datetime
from pathlib import Path

from pytest_kbrel.records import AggregateCase, Case, Suite

__all__ = ["load_suite"]


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
    from pytest_kbrel.suites.cases import (
        SharedSettings,
        aggregate_cases,
        check_gate_metrics,
        check_gate_settings,
        fact_ids,
        pooled_case,
        probe_cases,
    )
    from pytest_kbrel.suites.dataset import read_world, with_buckets
    from pytest_kbrel.suites.expiry import (
        expiry_warnings,
        with_waivers,
        without_expired,
    )
    from pytest_kbrel.suites.parse import read_suite_file, read_uninformative

    name = str(path) if nodeid_path is None else nodeid_path
    written = read_suite_file(path)
    world = read_world(
        written.facts,
        written.relations,
        written.format,
        written.seed if seed is None else seed,
    )
    shared = SharedSettings(
        suite=name,
        limit=limit,
        judge=judge,
        language=written.language,
        uninformative=read_uninformative(written.uninformative)
        if written.uninformative
        else (),
    )
    today = today or datetime.date.today()
    expired: tuple[str, ...] = ()
    cases: list[Case] = []
    aggregates: list[AggregateCase] = []
    for probe in written.probes:
        own = probe_cases(probe, world, shared)
        own, gone = without_expired(own, path, today)
        expired += gone
        check_gate_metrics(probe, own)
        check_gate_settings(probe, own)
        cases += own
        aggregates += aggregate_cases(probe, own)
    aggregates += pooled_case(written, cases)
    waived, aggregated = with_waivers(
        written.waivers,
        cases,
        aggregates,
        path=path,
        today=today,
        facts=lambda: fact_ids(written, world),
    )
    return Suite(
        name=written.name,
        path=name,
        cases=with_buckets(waived, world),
        aggregates=aggregated,
        warnings=(*expiry_warnings(written, today), *expired),
    )
