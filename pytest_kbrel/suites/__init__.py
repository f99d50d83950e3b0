"""Loader of suite files: YAML to :class:`Suite`, with file and line in every error, and what has expired."""

from __future__ import annotations

import dataclasses
import datetime
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from pytest_kbrel.bounds import shown
from pytest_kbrel.errors import SuiteError, count, nearest
from pytest_kbrel.facts.located import unknown
from pytest_kbrel.records import AggregateCase, Case, Shot, Suite, Waiver
from pytest_kbrel.suites import cases, dataset, parse


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
    warnings = expiry_warnings(written, today)
    if without := world.without_object:
        warnings += (
            f"{path}:1: left out {count(len(without), 'fact')} of which nothing is right "
            f"{f'on {written.as_of}' if written.as_of < datetime.date.max else 'now'} (first: {without[0]})",
        )
    made: list[Case] = []
    aggregates: list[AggregateCase] = []
    for probe in written.probes:
        all_cases = cases.probe_cases(probe, world, shared)
        own, expired = without_expired(all_cases, path, today)
        warnings += expired
        cases.check_gates(probe, own)
        made += own
        aggregates += cases.aggregate_cases(probe, own)
    aggregates += cases.pooled_case(written, made, world)
    waived, aggregated = with_waivers(
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


_UNSURE = ' answered "unsure"'


def without_expired(
    made: Sequence[Case], path: Path, today: datetime.date
) -> tuple[tuple[Case, ...], tuple[str, ...]]:
    """Return the cases without unseen questions that may have an answer by now, and warnings about these.

    No other question replaces them, so that a run stays comparable with earlier ones. Examples answered
    "unsure" are left out in the same way; a question that was shown one is then shown another. Raises
    ``SuiteError`` where a case has no question left, or fewer such examples than it shows.
    """
    now = today.isoformat()
    valid = []
    # By the fact's id, or the example's question: noun, sort and day.
    dropped: dict[str, tuple[str, str, str]] = {}
    lines = []
    for case in made:
        gone = {
            fact.id: ("question", f" of the kind {fact.relation}", fact.valid_until)
            for fact in case.facts
            if fact.object is None and "" < fact.valid_until <= now
        }
        facts, expired = tuple(f for f in case.facts if f.id not in gone), tuple(gone)
        if not facts:
            first = min(day for *_, day in gone.values())
            raise SuiteError(
                f"all {len(gone)} questions of {case.id} may have an answer by now (the first since {first});"
                " allowed: some that have none: move 'as_of' and 'expires' on and bless a new baseline",
                path,
                case.line,
            )
        shots = _valid_shots(case, path, now)
        gone |= {
            shot.question: ("example", _UNSURE, shot.valid_until)
            for shot in case.repository
            if shot not in shots
        }
        if gone:
            lines.append(case.line)
        dropped |= gone
        valid.append(
            dataclasses.replace(case, facts=facts, repository=shots, expired=expired)
        )
    prefix = f"{path}:{min(lines, default=1)}"
    warnings = []
    for (noun, sort, day), times in sorted(Counter(dropped.values()).items()):
        word, they = (noun, "it") if times == 1 else (f"{noun}s", "they")
        warnings.append(
            f"{prefix}: left out {times} {word}{sort}: since {day} {they} may have an answer"
        )
    return tuple(valid), tuple(warnings)


def expiry_warnings(
    written: parse.WrittenSuite, today: datetime.date
) -> tuple[str, ...]:
    """Return a warning for each probe whose unseen questions have expired, or are made for a later day."""
    warnings = []
    for probe in written.probes:
        unseen = probe.unseen
        if unseen is None:
            continue
        place = f"{probe.entry.path}:{unseen.line}"
        if today > unseen.expires:
            warnings.append(
                f"{place}: the unseen questions expired on {unseen.expires}: a newer "
                "model may know their answers; move 'as_of' and 'expires' on and bless a new baseline"
            )
        if today < unseen.as_of:
            warnings.append(
                f"{place}: as_of {unseen.as_of} is after today ({today}): the unseen "
                "questions are made for a later day"
            )
    return tuple(warnings)


def with_waivers(
    waivers: Sequence[Waiver],
    cases: Sequence[Case],
    aggregates: Sequence[AggregateCase],
    *,
    path: Path,
    today: datetime.date,
    facts: set[str],
) -> tuple[tuple[Case, ...], tuple[AggregateCase, ...]]:
    """Return the cases with their waivers: their own, and those of the facts they ask.

    ``facts`` are the ids of the suite's facts, also of those that a limit leaves out today; of made questions
    any id will do. Raises ``SuiteError`` on a waiver of what the suite does not have.
    """
    ids = [*(case.id for case in cases), *(case.id for case in aggregates)]
    dated = []
    for waiver in waivers:
        fault = ""
        if waiver.case and waiver.case not in ids:
            fault = unknown("slice", waiver.case, ids, where="waivers")
        elif waiver.fact and not (
            waiver.fact in facts or waiver.fact.startswith("unseen-")
        ):
            fault = (
                f"unknown fact {shown(waiver.fact)} in waivers; allowed: the id of one of the suite's "
                f"{len(facts)} facts{nearest(waiver.fact, sorted(facts))}"
            )
        if fault:
            raise SuiteError(fault, path, waiver.line)
        expired = today.isoformat() > waiver.expires
        dated.append(dataclasses.replace(waiver, expired=expired))

    def own(case: Case | AggregateCase) -> tuple[Waiver, ...]:
        asked = {fact.id for fact in case.facts} if isinstance(case, Case) else ()
        return tuple(
            waiver for waiver in dated if waiver.case == case.id or waiver.fact in asked
        )

    return (
        tuple(dataclasses.replace(case, waivers=own(case)) for case in cases),
        tuple(dataclasses.replace(case, waivers=own(case)) for case in aggregates),
    )


def _valid_shots(case: Case, path: Path, now: str) -> tuple[Shot, ...]:
    wanted = case.settings.shown[1]
    if not wanted:
        return case.repository
    valid = tuple(shot for shot in case.repository if not "" < shot.valid_until <= now)
    unsure = sum(shot.answer is None for shot in valid)
    if len(valid) < len(case.repository) and unsure < wanted:
        raise SuiteError(
            f"{case.id} shows {wanted} examples{_UNSURE}, and {unsure} of those under "
            "'shots' have no answer by now; allowed: some that have none, or a later 'expires'",
            path,
            case.line,
        )
    return valid
