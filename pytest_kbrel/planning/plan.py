"""The plan of a run: who would be asked how much, how long it would take, and what the gates could find."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence

from pytest_kbrel.baselines import Baseline
from pytest_kbrel.catalogue.probes import PROBES
from pytest_kbrel.errors import ModelError
from pytest_kbrel.evaluation.specs import helper_spec, no_probabilities, role_of
from pytest_kbrel.gates.power import GatePower
from pytest_kbrel.models.registry import BACKENDS, open_model
from pytest_kbrel.planning.cost_model import CostModel, measure_costs
from pytest_kbrel.planning.requests import Call, DryRun, DryRuns, Range, Scenario, dry_runs_of
from pytest_kbrel.planning.workload import Asked, PlannedModel, Workload, workload_of
from pytest_kbrel.records import Case, record
from pytest_kbrel.settings import Settings


@record
class Fed:
    """Tokens that go through a model, padding apart, and how many of these are ``different``.

    The latter is the least that could go through. ``sharing_modes`` are those of scoring and of
    writing.
    """

    tokens: Range
    different: Range
    sharing_modes: tuple[str, str]


@record
class Participant:
    """A model of the run. ``role`` is where the user named it, ``passes`` how often it is asked everything.

    ``exact``: tokens are counted by its own tokenizer. ``costs`` is ``None`` for a model on a server,
    and ``seconds`` and ``fed`` with it. ``thoughts`` is how many tokens it may think before each answer,
    which nothing here counts; 0 where it does not think. ``cached`` is how many questions have an answer from
    earlier runs, ``None`` where none is looked for. ``cost`` has the least and the most, where prices are
    known and it is served.
    """

    role: str
    text: str
    passes: int
    exact: bool
    served: bool
    asked: Asked
    thoughts: int = 0
    costs: CostModel | None = None
    seconds: Range | None = None
    wrote: Range | None = None
    fed: Fed | None = None
    cached: Range | None = None
    cost: tuple[float, float] | None = None


@record
class PlannedCase:
    """A slice, and what it asks of the model under test."""

    suite: str
    id: str
    facts: int
    asked: Asked


@record
class Plan:
    """What a run would do. ``around`` is how long the probes themselves take, in seconds."""

    cases: tuple[PlannedCase, ...]
    participants: tuple[Participant, ...]
    foreseen: tuple[GatePower, ...]
    comparisons: int
    around: float


def make_plan(
    cases: Sequence[Case],
    options: Settings,
    baseline: Baseline | None,
    foreseen: Callable[[DryRun], tuple[GatePower, ...]],
    comparisons: int,
) -> Plan:
    """Find out what a run of ``cases`` would ask; models that are no servers are loaded and timed.

    Raises :class:`~pytest_kbrel.errors.KbrelError` as loading these models does.
    """
    dry_runs = dry_runs_of(cases, baseline)
    models = _models(options, dry_runs)
    scored = next((case.probe for case in cases if PROBES[case.probe].scored), None)
    if (why := models[0].unscorable) and scored:
        raise no_probabilities(scored, why)
    participants = tuple(_participant(options, dry_runs, model) for model in models)
    return Plan(
        cases=tuple(
            PlannedCase(
                suite=case.suite,
                id=case.id,
                facts=len(case.facts),
                asked=models[0].asked(dry_runs, f"{case.suite}::{case.id}"),
            )
            for case in cases
        ),
        participants=participants,
        foreseen=foreseen(dry_runs.high),
        comparisons=comparisons,
        around=dry_runs.high.seconds,
    )


def _models(options: Settings, dry_runs: DryRuns) -> list[PlannedModel]:
    """Return all models that are asked anything, with what they are asked."""
    assert options.model_spec is not None
    passes = 2 if options.noise_floor else 1
    own = [PlannedModel("--kb-model", options.model, options.model_spec.get(), passes)]
    if options.baseline_spec is not None:
        spec = options.baseline_spec.get()
        own.append(PlannedModel("--kb-baseline-model", options.baseline_model, spec, 1))
    helpers: dict[str, PlannedModel] = {}
    for of in dry_runs.every():
        for call in of.calls():
            to = call.to
            if to and to not in helpers:
                # The answers of both models are put to it.
                passes = 2 if options.baseline_model else 1
                helpers[to] = PlannedModel(
                    role_of(options, to), to, helper_spec(to, options.judge_args), passes, to
                )
            for model in [helpers[to]] if to else own:
                model.add(of.scenario, call)
    return [*own, *(helpers[to] for to in sorted(helpers))]


def _participant(options: Settings, dry_runs: DryRuns, model: PlannedModel) -> Participant:
    plain = Participant(
        role=model.role,
        text=model.text,
        passes=model.passes,
        exact=model.counter.exact,
        served=BACKENDS[model.spec.backend].is_served,
        asked=model.asked(dry_runs),
        thoughts=model.counter.thoughts,
    )
    if plain.served:
        return dataclasses.replace(plain, cost=_cost(options, plain))
    # A second pass for the noise floor takes nothing from the store.
    anew = model.passes > 1 and not model.to

    def calls(of: DryRun) -> Iterator[Call]:
        return (call for call in of.calls() if call.to == model.to)

    spec = model.spec
    try:
        costs = measure_costs(lambda: open_model(spec), calls(dry_runs.high), options.use_cache, anew=anew)
    except ModelError as error:
        raise ModelError(f"{model.role}: {error}") from None
    workloads: dict[Scenario, Workload] = {
        of.scenario: workload_of(calls(of), costs, model.counter, passes=model.passes, anew=anew)
        for of in dry_runs.every()
    }
    # Without an answer seen nobody knows how long answers are.
    all_timed = model.tally(dry_runs.high.scenario).kinds <= costs.written.keys()
    sharing_modes = costs.sharing_modes
    fed = None
    if sharing_modes is not None:
        fed = Fed(
            tokens=dry_runs.range(lambda of: workloads[of.scenario].fed),
            different=dry_runs.range(lambda of: workloads[of.scenario].different),
            sharing_modes=sharing_modes,
        )
    return dataclasses.replace(
        plain,
        costs=costs,
        seconds=dry_runs.range(lambda of: workloads[of.scenario].seconds),
        wrote=dry_runs.range(lambda of: workloads[of.scenario].wrote) if all_timed else None,
        fed=fed,
        cached=None
        if options.use_cache is None
        else dry_runs.range(lambda of: workloads[of.scenario].cached),
    )


def _cost(options: Settings, who: Participant) -> tuple[float, float] | None:
    """Return what is paid at least, for reading, and at most, if every answer is as long as it may be."""
    if options.prices is None:
        return None
    read, written = (price * who.passes / 1e6 for price in options.prices)
    asked = who.asked
    return asked.read.low * read, asked.read.high * read + asked.written.high * written
