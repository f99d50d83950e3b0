"""The plan of a run: what a stub run asks of each model, its time by stored rates, cost, and power of gates."""

from __future__ import annotations

import dataclasses
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from pytest_kbrel.baselines import Baseline
from pytest_kbrel.catalogue.probes import PROBES
from pytest_kbrel.catalogue.rules import family_size
from pytest_kbrel.errors import ModelError
from pytest_kbrel.evaluation.model_pool import helper_spec, no_probabilities, role_of
from pytest_kbrel.gates.power import GatePower
from pytest_kbrel.models.base import Spec
from pytest_kbrel.models.cache.measurements import last_rates
from pytest_kbrel.models.registry import (
    BACKENDS,
)
from pytest_kbrel.models.token_counting import TokenCounter
from pytest_kbrel.planning.gate_power import power_of_gates
from pytest_kbrel.planning.requests import (
    Call,
    DryRun,
    Scenario,
    dry_runs_of,
    sampled,
    whole,
)
from pytest_kbrel.records import BASELINE, Case, ScoreRequest, Suite, record
from pytest_kbrel.settings import Settings


@record
class Range:
    """A figure from the least to the most."""

    low: float
    high: float

    def plus(self, other: Range) -> Range:
        """Return the sum."""
        return Range(low=self.low + other.low, high=self.high + other.high)

    def times(self, factor: float) -> Range:
        """Return so many times as much."""
        return Range(low=self.low * factor, high=self.high * factor)


def range_of(values: Iterable[float]) -> Range:
    """Return the range from the least to the most of some values."""
    values = tuple(values)
    return Range(low=min(values), high=max(values))


@record
class RequestCounts:
    """Numbers of requests to one model and of their tokens.

    ``calls`` are all requests, ``new`` those after deduplication. ``read`` are the tokens of the
    prompts, ``scored`` those of continuations whose probability is requested; ``written`` is the most the
    model may write.
    """

    calls: Range
    new: Range
    read: Range
    scored: Range
    written: Range


@record
class Participant:
    """A model of the run. ``role`` is where the user named it, ``passes`` how often it gets every request.

    ``exact``: tokens are counted by its own tokenizer. ``thoughts`` is how many tokens it may think before
    each answer, which nothing here counts; 0 where it does not think. ``seconds`` is ``None`` where no rate of
    it is stored. ``cost`` has the least and the most, where prices are known and it is served.
    """

    role: str
    text: str
    passes: int
    exact: bool
    served: bool
    counts: RequestCounts
    thoughts: int = 0
    seconds: Range | None = None
    cost: tuple[float, float] | None = None


@record
class Plan:
    """The plan of a run.

    ``cases`` have the requests that they put to the model under test. ``families`` are the numbers of cases that compare with a baseline, by suite. ``sampled``: the requests
    are estimated from a few facts of each case.
    """

    cases: tuple[tuple[Case, RequestCounts], ...]
    participants: tuple[Participant, ...]
    powers: tuple[GatePower, ...]
    families: tuple[tuple[str, int], ...]
    sampled: bool = False


def make_plan(
    suites: Sequence[Suite],
    cases: Sequence[Case],
    settings: Settings,
    baseline: Baseline | None,
    *,
    estimated: bool,
) -> Plan:
    """Return the plan of a run of ``cases`` of the ``suites``; no model is loaded, and no server is asked.

    ``estimated``: it goes by a few facts of each case, and estimates the tokens of checkpoints; else it reads
    their tokenizers, and raises :class:`ModelError` where one does not load.
    """
    spec = settings.own_specs[0]
    cases = [dataclasses.replace(case, chat=spec.chats) for case in cases]
    runs = dry_runs_of(cases, sampled if estimated else whole)
    models = _models_of(settings, runs, estimated)
    own = models[0]
    scored = next((case.probe for case in cases if PROBES[case.probe].scored), None)
    if scored and (why := own.counter.unscorable):
        raise no_probabilities(scored, why)
    return Plan(
        cases=tuple(
            (case, own.counts(runs, f"{case.suite}::{case.id}")) for case in cases
        ),
        participants=tuple(model.participant(settings, runs) for model in models),
        powers=power_of_gates(
            suites,
            cases,
            runs[0].columns,
            baseline=baseline,
            coming=bool(settings.baseline_model),
            probabilities=BACKENDS[spec.backend].answer_probabilities(spec),
        ),
        families=tuple((suite.path, family_size(suite)) for suite in suites),
        sampled=estimated,
    )


def _models_of(
    settings: Settings, runs: Sequence[DryRun], estimated: bool
) -> list[_PlannedModel]:
    """Return all models of the run with their numbers of requests, the one under test first."""
    own = [
        _PlannedModel(settings, to, settings.specs[to].get(), estimated)
        for to in ("", BASELINE)
        if to in settings.specs
    ]
    helpers: dict[str, _PlannedModel] = {}
    for run in runs:
        for call in run.calls():
            to = call.to
            if to and to not in helpers:
                spec = helper_spec(to, settings.judge_args)
                helpers[to] = _PlannedModel(settings, to, spec, estimated)
            for model in [helpers[to]] if to else own:
                model.add(run.scenario, call)
    return [*own, *(helpers[to] for to in sorted(helpers))]


class _PlannedModel:
    """A model of the run, ``to`` in ``Ask``, with its numbers of requests in each scenario, in all and by case."""

    def __init__(
        self, settings: Settings, to: str, spec: Spec, estimated: bool
    ) -> None:
        self._role = role_of(settings, to)
        names = {"": settings.model, BASELINE: settings.baseline_model}
        self._text = names.get(to, to)
        # The answers of both models are put to a helper model.
        self._passes = 2 if to not in names and settings.baseline_model else 1
        self._spec, self._backend = spec, BACKENDS[spec.backend]
        self.counter: TokenCounter = TokenCounter()
        if not (estimated and self._backend.computes_here):
            try:
                self.counter = BACKENDS[spec.backend].counter(spec)
            except ModelError as error:
                raise ModelError(f"{self._role}: {error}") from None
        self._counts: defaultdict[tuple[Scenario, str], Counter[str]] = defaultdict(
            Counter
        )

    def add(self, scenario: Scenario, call: Call) -> None:
        """Count a call that is for this model."""
        counts = Counter(calls=call.received, new=len(call.requests))
        for request in call.requests:
            prompt = self.counter.prompt(request)
            counts["read"] += prompt
            if isinstance(request, ScoreRequest):
                scored = self.counter.continuation(request)
                counts["scored"] += scored
                counts["score"] += prompt + scored
            else:
                counts["generate"] += prompt
                counts["written"] += request.max_new_tokens
        for case in ("", call.case):
            totals = self._counts[scenario, case]
            for name, count in counts.items():
                totals[name] += call.stands_for * count  # type: ignore[assignment]

    def counts(self, runs: Sequence[DryRun], case: str = "") -> RequestCounts:
        """Return its numbers over all scenarios, in all or of one case (node id)."""
        totals = [self._counts[run.scenario, case] for run in runs]
        names = [field.name for field in dataclasses.fields(RequestCounts)]
        return RequestCounts(
            **{name: range_of(counts[name] for counts in totals) for name in names}
        )

    def participant(self, settings: Settings, runs: Sequence[DryRun]) -> Participant:
        """Return the model with what is counted, its cost where it is served, and its time where it is not."""
        counts = self.counts(runs)
        cost = None
        if self._backend.is_served and settings.prices is not None:
            # At most, every answer is as long as it may be.
            read, written = (price * self._passes / 1e6 for price in settings.prices)
            most = counts.read.high * read + counts.written.high * written
            cost = counts.read.low * read, most
        return Participant(
            role=self._role,
            text=self._text,
            passes=self._passes,
            exact=self.counter.exact,
            served=self._backend.is_served,
            counts=counts,
            thoughts=self.counter.thoughts,
            seconds=self._seconds(settings, runs),
            cost=cost,
        )

    def _seconds(self, settings: Settings, runs: Sequence[DryRun]) -> Range | None:
        """Return how long it takes for all tokens at its stored rates; ``None`` where one is missing."""
        if settings.use_cache is None:
            return None
        rates = last_rates(settings.use_cache, self._spec.text)
        totals = [self._counts[run.scenario, ""] for run in runs]
        asked = [
            {method: counts[method] for method in ("score", "generate")}
            for counts in totals
        ]
        methods = {name for of in asked for name, count in of.items() if count}
        if not rates.keys() >= methods:
            return None
        times = [sum(of[name] / rates[name] for name in methods) for of in asked]
        return range_of(times).times(self._passes)
