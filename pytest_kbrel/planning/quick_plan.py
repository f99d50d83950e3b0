"""The quick plan of a run, from a few facts of each case: no model is loaded, and no tokenizer."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from pytest_kbrel.baselines import Baseline
from pytest_kbrel.models.base import Spec
from pytest_kbrel.models.measurements import last_rates
from pytest_kbrel.models.registry import BACKENDS, open_counter
from pytest_kbrel.models.token_counting import TokenCounter, TokenEstimator
from pytest_kbrel.planning.plan import (
    Participant,
    Plan,
    PlannedModel,
    Powers,
    counted,
    models_of,
    planned_cases,
)
from pytest_kbrel.planning.requests import DryRuns, dry_runs_of
from pytest_kbrel.records import Case
from pytest_kbrel.settings import Settings


def make_quick_plan(
    cases: Sequence[Case],
    options: Settings,
    baseline: Baseline | None,
    powers_of: Powers,
    families: Mapping[str, int],
) -> Plan:
    """Return the plan of a run of ``cases`` by a few facts of each, for :func:`quick_plan_lines`.

    Tokens of a checkpoint are estimated, and it has a time where one of its name was run before.
    """
    dry_runs = dry_runs_of(cases, baseline, sampled=True)
    models = models_of(options, dry_runs, _estimator_of)
    return Plan(
        cases=planned_cases(cases, models[0], dry_runs),
        participants=tuple(_timed(options, dry_runs, model) for model in models),
        powers=powers_of(dry_runs.high.columns),
        families=tuple(families.items()),
        probe_seconds=0.0,
    )


def _estimator_of(spec: Spec) -> TokenCounter:
    return (
        TokenEstimator() if BACKENDS[spec.backend].computes_here else open_counter(spec)
    )


def _timed(options: Settings, dry_runs: DryRuns, model: PlannedModel) -> Participant:
    who = counted(options, dry_runs, model)
    if who.served or options.use_cache is None:
        return who
    rates = last_rates(options.use_cache, model.spec.text)
    return dataclasses.replace(who, seconds=model.seconds(dry_runs, rates))
