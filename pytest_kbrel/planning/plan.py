"""The plan of a run: requests and tokens of each model, time, cost, and what the gates could find."""

from __future__ import annotations

import dataclasses
import struct
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_kbrel.baselines import Baseline
from pytest_kbrel.catalogue.probes import PROBES
from pytest_kbrel.errors import ModelError
from pytest_kbrel.evaluation.model_pool import helper_spec, no_probabilities, role_of
from pytest_kbrel.gates.power import GatePower
from pytest_kbrel.models.base import Spec
from pytest_kbrel.models.hf.prefix_tree import distinct_in_order
from pytest_kbrel.models.registry import BACKENDS, open_counter, open_model
from pytest_kbrel.models.token_counting import TokenCounter
from pytest_kbrel.models.tokens import Ids
from pytest_kbrel.planning.cost_model import CostModel, measure_costs, method_of
from pytest_kbrel.planning.requests import (
    Call,
    DryRun,
    DryRuns,
    Kind,
    Range,
    Scenario,
    TempStore,
    dry_runs_of,
)
from pytest_kbrel.records import Case, ScoreRequest, record
from pytest_kbrel.reports.view import case_title
from pytest_kbrel.settings import Settings

CounterOf = Callable[[Any], TokenCounter]
# What the gates could find, by the columns of each case's table of outcomes.
Powers = Callable[[Mapping[str, tuple[str, ...]]], tuple[GatePower, ...]]


@record
class Fed:
    """Tokens that go through a model, padding apart, and how many of these are ``different``.

    The latter is the least that could go through. ``sharing_modes`` are those of scoring and of writing.
    """

    tokens: Range
    different: Range
    sharing_modes: tuple[str, str]


@record
class Participant:
    """A model of the run. ``role`` is where the user named it, ``passes`` how often it gets every request.

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
    counts: RequestCounts
    thoughts: int = 0
    costs: CostModel | None = None
    seconds: Range | None = None
    wrote: Range | None = None
    fed: Fed | None = None
    cached: Range | None = None
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

    ``families`` are the numbers of cases that compare with a baseline, by suite; ``probe_seconds`` is how
    long the probes themselves take.
    """

    cases: tuple[PlannedCase, ...]
    participants: tuple[Participant, ...]
    powers: tuple[GatePower, ...]
    families: tuple[tuple[str, int], ...]
    probe_seconds: float


def make_plan(
    cases: Sequence[Case],
    options: Settings,
    baseline: Baseline | None,
    powers_of: Powers,
    families: Mapping[str, int],
) -> Plan:
    """Return the plan of a run of ``cases``; models that are not on a server are loaded and timed.

    Raises :class:`~pytest_kbrel.errors.KbrelError` as loading these models does.
    """
    dry_runs = dry_runs_of(cases, baseline)
    models = models_of(options, dry_runs)
    scored = next((case.probe for case in cases if PROBES[case.probe].scored), None)
    if (why := models[0].unscorable) and scored:
        raise no_probabilities(scored, why)
    participants = tuple(_participant(options, dry_runs, model) for model in models)
    return Plan(
        cases=planned_cases(cases, models[0], dry_runs),
        participants=participants,
        powers=powers_of(dry_runs.high.columns),
        families=tuple(families.items()),
        probe_seconds=dry_runs.high.seconds,
    )


def planned_cases(
    cases: Sequence[Case], model: PlannedModel, dry_runs: DryRuns
) -> tuple[PlannedCase, ...]:
    """Return each case with what it asks the model under test."""
    return tuple(
        PlannedCase(
            suite=case.suite,
            id=case.id,
            title=case_title(case),
            facts=len(case.facts),
            counts=model.counts(dry_runs, f"{case.suite}::{case.id}"),
        )
        for case in cases
    )


def models_of(
    options: Settings, dry_runs: DryRuns, counter_of: CounterOf = open_counter
) -> list[PlannedModel]:
    """Return all models of the run with their numbers of requests, the one under test first."""
    assert options.model_spec is not None
    own = [
        PlannedModel(
            "--kb-model",
            options.model,
            options.model_spec.get(),
            1,
            "",
            counter_of,
        )
    ]
    if options.baseline_spec is not None:
        spec = options.baseline_spec.get()
        own.append(
            PlannedModel(
                "--kb-baseline-model", options.baseline_model, spec, 1, "", counter_of
            )
        )
    helpers: dict[str, PlannedModel] = {}
    for of in dry_runs.every():
        for call in of.calls():
            to = call.to
            if to and to not in helpers:
                # The answers of both models are put to it.
                passes = 2 if options.baseline_model else 1
                spec = helper_spec(to, options.judge_args)
                helpers[to] = PlannedModel(
                    role_of(options, to), to, spec, passes, to, counter_of
                )
            for model in [helpers[to]] if to else own:
                model.add(of.scenario, call)
    return [*own, *(helpers[to] for to in sorted(helpers))]


def counted(options: Settings, dry_runs: DryRuns, model: PlannedModel) -> Participant:
    """Return a model of the run with what is counted, and its cost where it is served."""
    plain = Participant(
        role=model.role,
        text=model.text,
        passes=model.passes,
        exact=model.counter.exact,
        served=BACKENDS[model.spec.backend].is_served,
        counts=model.counts(dry_runs),
        thoughts=model.counter.thoughts,
    )
    return (
        dataclasses.replace(plain, cost=_cost(options, plain))
        if plain.served
        else plain
    )


def _participant(
    options: Settings, dry_runs: DryRuns, model: PlannedModel
) -> Participant:
    plain = counted(options, dry_runs, model)
    if plain.served:
        return plain

    def calls(of: DryRun) -> Iterator[Call]:
        return (call for call in of.calls() if call.to == model.to)

    spec = model.spec
    try:
        costs = measure_costs(
            lambda: open_model(spec), calls(dry_runs.high), options.use_cache
        )
    except ModelError as error:
        raise ModelError(f"{model.role}: {error}") from None
    workloads: dict[Scenario, Workload] = {
        of.scenario: workload_of(calls(of), costs, model.counter, passes=model.passes)
        for of in dry_runs.every()
    }
    # Without an answer seen nobody knows how long answers are.
    all_timed = model.kinds[dry_runs.high.scenario] <= costs.written.keys()
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
        wrote=dry_runs.range(lambda of: workloads[of.scenario].wrote)
        if all_timed
        else None,
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
    counts = who.counts
    return (
        counts.read.low * read,
        counts.read.high * read + counts.written.high * written,
    )


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


class PlannedModel:
    """A model of the run with its numbers of requests in each scenario, in all and by case.

    ``role`` is where the user named it (``text``), ``passes`` how often it gets every request, ``to`` its
    name in :class:`pytest_kbrel.records.Ask`; ``kinds`` are those of the new requests in each scenario.
    ``counter_of`` opens the counter of its tokens.
    Raises :class:`ModelError` where its tokenizer does not load.
    """

    def __init__(
        self,
        role: str,
        text: str,
        spec: Spec,
        passes: int,
        to: str = "",
        counter_of: CounterOf = open_counter,
    ) -> None:
        self.role, self.text, self.spec, self.passes, self.to = (
            role,
            text,
            spec,
            passes,
            to,
        )
        self.kinds: defaultdict[Scenario, set[Kind]] = defaultdict(set)
        self._counts: defaultdict[tuple[Scenario, str], dict[str, float]] = defaultdict(
            dict
        )
        try:
            self.counter = counter_of(spec)
        except ModelError as error:
            raise ModelError(f"{role}: {error}") from None

    @property
    def unscorable(self) -> str:
        """Why it can score no answer; empty where it can, or nobody knows."""
        accountant = self.counter.accountant
        return "" if accountant is None else accountant.encoder.unscorable

    def add(self, scenario: Scenario, call: Call) -> None:
        """Count a call that is for this model."""
        counts = Counter(calls=call.received, new=len(call.requests))
        for request in call.requests:
            prompt = self.counter.prompt(request)
            counts["read"] += prompt
            counts[method_of(request)] += prompt
            if isinstance(request, ScoreRequest):
                scored = self.counter.continuation(request)
                counts["scored"] += scored
                counts["score"] += scored
            else:
                counts["written"] += request.max_new_tokens
        for case in ("", call.case):
            totals = self._counts[scenario, case]
            for name, count in counts.items():
                totals[name] = totals.get(name, 0.0) + call.stands_for * count
        if call.requests:
            self.kinds[scenario].add(call.kind)

    def counts(self, dry_runs: DryRuns, case: str = "") -> RequestCounts:
        """Return its numbers over all scenarios, in all or of one case (node id)."""

        def over(name: str) -> Range:
            return dry_runs.range(
                lambda of: self._counts[of.scenario, case].get(name, 0.0)
            )

        return RequestCounts(
            calls=over("calls"),
            new=over("new"),
            read=over("read"),
            scored=over("scored"),
            written=over("written"),
        )

    def seconds(self, dry_runs: DryRuns, rates: Mapping[str, float]) -> Range | None:
        """Return how long it takes for all tokens at these rates, by method; ``None`` where one has none."""
        methods = {kind[3] for kinds in self.kinds.values() for kind in kinds}
        if not methods <= rates.keys():
            return None

        def seconds(of: DryRun) -> float:
            counts = self._counts[of.scenario, ""]
            return self.passes * sum(
                counts.get(method, 0.0) / rates[method] for method in methods
            )

        return dry_runs.range(seconds)


class PrefixTree:
    """Prefix tree of sequences of token ids, in a temporary file."""

    def __init__(self) -> None:
        self._sequences = TempStore()

    def add(self, sequences: Sequence[Ids]) -> None:
        """Put sequences into the tree."""
        # As bytes they sort as they do as numbers.
        self._sequences.add(struct.pack(f">{len(ids)}I", *ids) for ids in sequences)

    def tokens(self) -> int:
        """Return how many nodes the tree has: the least that can be fed."""
        rows = self._sequences.in_order()
        return distinct_in_order(
            struct.unpack(f">{len(row) // 4}I", row) for row in rows
        )


@dataclass(slots=True)
class Workload:
    """Work of a loaded model: ``seconds``, and tokens that it writes (``wrote``).

    ``cached`` is how many requests have an answer from earlier runs. ``fed`` and ``different`` are the tokens
    that go through it, and how many of these differ, where anybody knows.
    """

    seconds: float = 0.0
    wrote: float = 0.0
    cached: int = 0
    fed: int = 0
    different: int = 0


def workload_of(
    calls: Iterable[Call],
    costs: CostModel,
    counter: TokenCounter,
    *,
    passes: int,
) -> Workload:
    """Return what ``calls`` are for a model that is asked all of them so many times."""
    from pytest_kbrel.models.hf.kv_cache import PrefixCache

    workload = Workload()
    accountant, sharing_modes = counter.accountant, costs.sharing_modes
    # What one call leaves to the next is not fed again.
    prefix = PrefixCache()
    # Of all calls together: what one leaves to the next may be the beginning of what that one asks.
    trees = PrefixTree(), PrefixTree()
    for call in calls:
        uncached = costs.uncached(call.requests)
        workload.cached += len(call.requests) - len(uncached)
        workload.seconds += passes * costs.seconds_for(uncached, counter)
        workload.wrote += costs.written_for(call)
        if accountant is not None and sharing_modes is not None:
            mode = sharing_modes[call.kind[3] != "score"]
            workload.fed += accountant.count(call.requests, mode, prefix)
            for tree, sequences in zip(
                trees, accountant.tries(call.requests), strict=True
            ):
                tree.add(sequences)
    workload.different = sum(tree.tokens() for tree in trees)
    return workload
