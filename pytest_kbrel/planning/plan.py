"""The plan of a run: who would be asked how much, how long it would take, and what the gates could find."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence

from pytest_kbrel.baselines import Baseline
from pytest_kbrel.catalogue.probes import PROBES
from pytest_kbrel.errors import ModelError
from pytest_kbrel.evaluation.specs import helper_spec, role_of, unscored
from pytest_kbrel.gates.foresight import Foreseen
from pytest_kbrel.models.base import Spec
from pytest_kbrel.models.registry import BACKENDS, open_counter, open_model
from pytest_kbrel.planning.adding import Tally, Workload, tally_of, workload_of
from pytest_kbrel.planning.asking import Call, Scenario
from pytest_kbrel.planning.cost_model import CostModel, measure_costs
from pytest_kbrel.planning.spans import Scenarios, Span, scenarios_of
from pytest_kbrel.planning.standin import Mood
from pytest_kbrel.records import Case, record
from pytest_kbrel.settings import Settings


@record
class Asked:
    """How much one model is asked: requests that come in, those left after deduplication, and tokens.

    ``read`` are the tokens of the prompts, ``scored`` those of continuations whose probability is asked for;
    ``written`` is the most the model may write.
    """

    asked: Span
    new: Span
    read: Span
    scored: Span
    written: Span


@record
class Fed:
    """Tokens that go through a model, padding apart, and how many of these are ``different``.

    The latter is the least that could go through. ``rungs`` are the ways in which the model shares when it
    scores and when it writes.
    """

    tokens: Span
    different: Span
    rungs: tuple[str, str]


@record
class Participant:
    """A model of the run. ``role`` is where the user named it, ``passes`` how often it is asked everything.

    ``exact``: tokens are counted by its own tokenizer. ``costs`` is ``None`` for a model on a server,
    and ``seconds`` and ``fed`` with it. ``thoughts`` is how many tokens it may think before each answer,
    which nothing here counts; 0 where it does not think. ``kept`` is how many questions have an answer from
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
    seconds: Span | None = None
    wrote: Span | None = None
    fed: Fed | None = None
    kept: Span | None = None
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
    foreseen: tuple[Foreseen, ...]
    comparisons: int
    around: float


class _Who:
    """A model of the run, and what it is asked: in all, and in each case, by its node id."""

    def __init__(self, role: str, text: str, spec: Spec, passes: int, to: str = "") -> None:
        self.role, self.text, self.spec, self.passes, self.to = role, text, spec, passes, to
        self._tallies: dict[tuple[Mood, str], Tally] = {}
        try:
            self.counter = open_counter(spec)
        except ModelError as error:
            raise ModelError(f"{role}: {error}") from None

    @property
    def unscorable(self) -> str:
        """Why it can score no answer; empty where it can, or nobody knows."""
        feeder = self.counter.feeder
        return "" if feeder is None else feeder.encoder.unscorable

    def add(self, mood: Mood, call: Call) -> None:
        """Count a call that is for this model."""
        found = tally_of(call, self.counter)
        for case in ("", call.case):
            self._tallies.setdefault((mood, case), Tally()).add(found)

    def tally(self, mood: Mood, case: str = "") -> Tally:
        """Return what it is asked in a mood."""
        return self._tallies.get((mood, case), Tally())


def make_plan(
    cases: Sequence[Case],
    options: Settings,
    baseline: Baseline | None,
    foreseen: Callable[[Scenario], tuple[Foreseen, ...]],
    comparisons: int,
) -> Plan:
    """Find out what a run of ``cases`` would ask; models that are no servers are loaded and timed.

    Raises :class:`~pytest_kbrel.errors.KbrelError` as loading these models does.
    """
    found = scenarios_of(cases, baseline)
    everybody = _everybody(options, found)
    scored = next((case.probe for case in cases if PROBES[case.probe].scored), None)
    if (why := everybody[0].unscorable) and scored:
        raise unscored(scored, why)
    participants = tuple(_participant(options, found, who) for who in everybody)
    return Plan(
        cases=tuple(
            PlannedCase(
                suite=case.suite,
                id=case.id,
                facts=len(case.facts),
                asked=_asked(found, everybody[0], f"{case.suite}::{case.id}"),
            )
            for case in cases
        ),
        participants=participants,
        foreseen=foreseen(found.high),
        comparisons=comparisons,
        around=found.high.seconds,
    )


def _everybody(options: Settings, found: Scenarios) -> list[_Who]:
    """Return all models that are asked anything, with what they are asked."""
    assert options.model_spec is not None
    own = [_Who("--kb-model", options.model, options.model_spec.get(), 2 if options.noise_floor else 1)]
    if options.baseline_spec is not None:
        own.append(_Who("--kb-baseline-model", options.baseline_model, options.baseline_spec.get(), 1))
    helpers: dict[str, _Who] = {}
    for of in found.every():
        for call in of.calls():
            to = call.to
            if to and to not in helpers:
                # The answers of both models are put to it.
                passes = 2 if options.baseline_model else 1
                helpers[to] = _Who(role_of(options, to), to, helper_spec(to, options.judge_args), passes, to)
            for who in [helpers[to]] if to else own:
                who.add(of.mood, call)
    return [*own, *(helpers[to] for to in sorted(helpers))]


def _asked(found: Scenarios, who: _Who, case: str = "") -> Asked:
    return Asked(
        asked=found.span(lambda of: who.tally(of.mood, case).asked),
        new=found.span(lambda of: who.tally(of.mood, case).new),
        read=found.span(lambda of: who.tally(of.mood, case).read),
        scored=found.span(lambda of: who.tally(of.mood, case).scored),
        written=found.span(lambda of: who.tally(of.mood, case).written),
    )


def _participant(options: Settings, found: Scenarios, who: _Who) -> Participant:
    plain = Participant(
        role=who.role,
        text=who.text,
        passes=who.passes,
        exact=who.counter.exact,
        served=BACKENDS[who.spec.backend].is_served,
        asked=_asked(found, who),
        thoughts=who.counter.thoughts,
    )
    if plain.served:
        return dataclasses.replace(plain, cost=_cost(options, plain))
    # A second pass for the noise floor takes nothing from the store.
    anew = who.passes > 1 and not who.to

    def calls(of: Scenario) -> Iterator[Call]:
        return (call for call in of.calls() if call.to == who.to)

    spec = who.spec
    try:
        costs = measure_costs(lambda: open_model(spec), calls(found.high), options.use_cache, anew=anew)
    except ModelError as error:
        raise ModelError(f"{who.role}: {error}") from None
    works: dict[Mood, Workload] = {
        of.mood: workload_of(calls(of), costs, who.counter, passes=who.passes, anew=anew)
        for of in found.every()
    }
    # Without an answer seen nobody knows how long answers are.
    all_timed = who.tally(found.high.mood).kinds <= costs.written.keys()
    rungs = costs.rungs
    fed = None
    if rungs is not None:
        fed = Fed(
            tokens=found.span(lambda of: works[of.mood].fed),
            different=found.span(lambda of: works[of.mood].different),
            rungs=rungs,
        )
    return dataclasses.replace(
        plain,
        costs=costs,
        seconds=found.span(lambda of: works[of.mood].seconds),
        wrote=found.span(lambda of: works[of.mood].wrote) if all_timed else None,
        fed=fed,
        kept=None if options.use_cache is None else found.span(lambda of: works[of.mood].kept),
    )


def _cost(options: Settings, who: Participant) -> tuple[float, float] | None:
    """Return what is paid at least, for reading, and at most, if every answer is as long as it may be."""
    if options.prices is None:
        return None
    read, written = (price * who.passes / 1e6 for price in options.prices)
    asked = who.asked
    return asked.read.low * read, asked.read.high * read + asked.written.high * written
