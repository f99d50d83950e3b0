"""The plan of a run: what a stub run asks of each model, its time by stored rates, cost, and power of gates."""

from __future__ import annotations

import dataclasses
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence

from pytest_kbrel.baselines import Baseline
from pytest_kbrel.catalogue.probes import PROBES
from pytest_kbrel.errors import ModelError
from pytest_kbrel.evaluation.model_pool import helper_spec, no_probabilities, role_of
from pytest_kbrel.gates.power import GatePower
from pytest_kbrel.models.base import Spec
from pytest_kbrel.models.measurements import last_rates
from pytest_kbrel.models.registry import BACKENDS, open_counter
from pytest_kbrel.models.token_counting import TokenCounter
from pytest_kbrel.planning.requests import Call, DryRuns, Range, Scenario, dry_runs_of
from pytest_kbrel.records import Case, ScoreRequest, record
from pytest_kbrel.reports.view import case_title
from pytest_kbrel.settings import Settings

# What the gates could find, by the columns of each case's table of outcomes.
Powers = Callable[[Mapping[str, tuple[str, ...]]], tuple[GatePower, ...]]


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
class PlannedCase:
    """A slice, and the requests it puts to the model under test.

    ``title`` is its id with the label of the relation that it is, where it is one.
    """

    suite: str
    id: str
    title: str
    facts: int
    counts: RequestCounts


@record
class Plan:
    """The plan of a run.

    ``families`` are the numbers of cases that compare with a baseline, by suite. ``sampled``: the requests
    are estimated from a few facts of each case.
    """

    cases: tuple[PlannedCase, ...]
    participants: tuple[Participant, ...]
    powers: tuple[GatePower, ...]
    families: tuple[tuple[str, int], ...]
    sampled: bool = False


def make_plan(
    cases: Sequence[Case],
    options: Settings,
    baseline: Baseline | None,
    powers_of: Powers,
    families: Mapping[str, int],
    *,
    sampled: bool,
) -> Plan:
    """Return the plan of a run of ``cases``; no model is loaded, and no server is asked.

    ``sampled``: it goes by a few facts of each case, and estimates the tokens of checkpoints; else it reads
    their tokenizers, and raises :class:`ModelError` where one does not load.
    """
    dry_runs = dry_runs_of(cases, baseline, sampled=sampled)
    models = _models_of(options, dry_runs, sampled)
    scored = next((case.probe for case in cases if PROBES[case.probe].scored), None)
    if scored and (why := models[0].counter.unscorable):
        raise no_probabilities(scored, why)
    return Plan(
        cases=tuple(
            PlannedCase(
                suite=case.suite,
                id=case.id,
                title=case_title(case),
                facts=len(case.facts),
                counts=models[0].counts(dry_runs, f"{case.suite}::{case.id}"),
            )
            for case in cases
        ),
        participants=tuple(model.participant(options, dry_runs) for model in models),
        powers=powers_of(dry_runs.high.columns),
        families=tuple(families.items()),
        sampled=sampled,
    )


def _models_of(
    options: Settings, dry_runs: DryRuns, sampled: bool
) -> list[_PlannedModel]:
    """Return all models of the run with their numbers of requests, the one under test first."""

    def planned(role: str, text: str, spec: Spec, passes: int) -> _PlannedModel:
        try:
            counter = (
                TokenCounter()
                if sampled and BACKENDS[spec.backend].computes_here
                else open_counter(spec)
            )
        except ModelError as error:
            raise ModelError(f"{role}: {error}") from None
        return _PlannedModel(role, text, spec, passes, counter)

    assert options.model_spec is not None
    own = [planned("--kb-model", options.model, options.model_spec.get(), 1)]
    if options.baseline_spec is not None:
        spec = options.baseline_spec.get()
        own.append(planned("--kb-baseline-model", options.baseline_model, spec, 1))
    helpers: dict[str, _PlannedModel] = {}
    for of in dry_runs.every():
        for call in of.calls():
            to = call.to
            if to and to not in helpers:
                # The answers of both models are put to it.
                passes = 2 if options.baseline_model else 1
                spec = helper_spec(to, options.judge_args)
                helpers[to] = planned(role_of(options, to), to, spec, passes)
            for model in [helpers[to]] if to else own:
                model.add(of.scenario, call)
    return [*own, *(helpers[to] for to in sorted(helpers))]


class _PlannedModel:
    """A model of the run with its numbers of requests in each scenario, in all and by case.

    ``role`` is where the user named it (``text``), ``passes`` how often it gets every request.
    """

    def __init__(
        self, role: str, text: str, spec: Spec, passes: int, counter: TokenCounter
    ) -> None:
        self.counter = counter
        self._role, self._text, self._spec, self._passes = role, text, spec, passes
        self._counts: defaultdict[tuple[Scenario, str], Counter[str]] = defaultdict(
            Counter
        )

    def add(self, scenario: Scenario, call: Call) -> None:
        """Count a call that is for this model."""
        counts = Counter(calls=call.received, new=len(call.requests))
        for request in call.requests:
            prompt = self.counter.prompt(request)
            counts["read"] += prompt
            counts[call.method] += prompt
            if isinstance(request, ScoreRequest):
                scored = self.counter.continuation(request)
                counts["scored"] += scored
                counts["score"] += scored
            else:
                counts["written"] += request.max_new_tokens
        for case in ("", call.case):
            totals = self._counts[scenario, case]
            for name, count in counts.items():
                totals[name] += call.stands_for * count  # type: ignore[assignment]

    def counts(self, dry_runs: DryRuns, case: str = "") -> RequestCounts:
        """Return its numbers over all scenarios, in all or of one case (node id)."""
        names = [field.name for field in dataclasses.fields(RequestCounts)]
        return RequestCounts(
            **{
                name: dry_runs.range(
                    lambda of, name=name: self._counts[of.scenario, case][name]  # type: ignore[misc]
                )
                for name in names
            }
        )

    def participant(self, options: Settings, dry_runs: DryRuns) -> Participant:
        """Return the model with what is counted, its cost where it is served, and its time where it is not."""
        counts = self.counts(dry_runs)
        served = BACKENDS[self._spec.backend].is_served
        cost = None
        if served and options.prices is not None:
            # At most, every answer is as long as it may be.
            read, written = (price * self._passes / 1e6 for price in options.prices)
            most = counts.read.high * read + counts.written.high * written
            cost = counts.read.low * read, most
        return Participant(
            role=self._role,
            text=self._text,
            passes=self._passes,
            exact=self.counter.exact,
            served=served,
            counts=counts,
            thoughts=self.counter.thoughts,
            seconds=self._seconds(options, dry_runs),
            cost=cost,
        )

    def _seconds(self, options: Settings, dry_runs: DryRuns) -> Range | None:
        """Return how long it takes for all tokens at its stored rates; ``None`` where one is missing."""
        if options.use_cache is None:
            return None
        rates = last_rates(options.use_cache, self._spec.text)
        methods = [
            method
            for method in ("score", "generate")
            if any(self._counts[of.scenario, ""][method] for of in dry_runs.every())
        ]
        if not rates.keys() >= set(methods):
            return None
        return dry_runs.range(
            lambda of: (
                self._passes
                * sum(
                    self._counts[of.scenario, ""][method] / rates[method]
                    for method in methods
                )
            )
        )
