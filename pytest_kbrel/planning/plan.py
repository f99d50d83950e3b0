"""The plan of a run: who would be asked how much, how long it would take, and what the gates could find."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence

from pytest_kbrel.answering import base_spec, model_spec
from pytest_kbrel.baselines import Baseline, BaselineCase
from pytest_kbrel.errors import ModelError
from pytest_kbrel.gates.foresight import Foreseen
from pytest_kbrel.helping import helper_spec, role_of
from pytest_kbrel.models.counting import Counter, open_counter
from pytest_kbrel.models.openai_spec import OpenAISpec
from pytest_kbrel.models.opening import AnySpec, open_model
from pytest_kbrel.options import KbOptions
from pytest_kbrel.planning.asking import Call, Scenario, is_fixed, scenario
from pytest_kbrel.planning.kept import kept_in
from pytest_kbrel.planning.timing import Calibration, calibrate
from pytest_kbrel.planning.working import Works
from pytest_kbrel.records import Case, GenerateRequest, Outcome, ScoreRequest, record


@record
class Span:
    """From the least to the most; ``about`` is what the baseline's answers lead to, where there are any."""

    low: float
    high: float
    about: float | None = None

    def plus(self, other: Span) -> Span:
        """Return the sum; it is known about where one of the two is."""
        about = None
        if self.about is not None or other.about is not None:
            about = self.nearest + other.nearest
        return Span(low=self.low + other.low, high=self.high + other.high, about=about)

    def times(self, factor: float) -> Span:
        """Return so many times as much."""
        about = None if self.about is None else self.about * factor
        return Span(low=self.low * factor, high=self.high * factor, about=about)

    @property
    def nearest(self) -> float:
        """The best guess there is."""
        return self.high if self.about is None else self.about


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

    ``exact``: tokens are counted by its own tokenizer. ``calibration`` is ``None`` for a model on a server,
    and ``seconds`` and ``fed`` with it. ``kept`` is how many questions have an answer from earlier runs,
    ``None`` where none is looked for. ``cost`` has the least and the most, where prices are known and it is
    served.
    """

    role: str
    text: str
    passes: int
    exact: bool
    served: bool
    asked: Asked
    calibration: Calibration | None = None
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


@record
class _Scenarios:
    low: Scenario
    high: Scenario
    known: Scenario | None

    def span(self, of: Callable[[Scenario], float]) -> Span:
        if self.low is self.high:
            only = of(self.high)
            return Span(low=only, high=only)
        about = None if self.known is None else of(self.known)
        # Real answers may be longer than those of the stand-ins, and questions that have them in front.
        ends = [of(self.low), of(self.high), *([] if about is None else [about])]
        return Span(low=min(ends), high=max(ends), about=about)

    def asked(self, counter: Counter, to: str, case: str = "") -> Asked:
        counts = {
            "new": lambda requests: len(requests),
            "read": lambda requests: sum(map(counter.prompt, requests)),
            "scored": lambda requests: sum(
                counter.continuation(request) for request in requests if isinstance(request, ScoreRequest)
            ),
            "written": lambda requests: sum(
                request.max_new_tokens for request in requests if isinstance(request, GenerateRequest)
            ),
        }
        spans = {
            name: self.span(lambda of, count=count: count(of.new(case, to)))  # type: ignore[misc]
            for name, count in counts.items()
        }
        return Asked(asked=self.span(lambda of: of.asked(case, to)), **spans)

    def fed(self, counter: Counter, to: str, works: Works) -> Fed | None:
        """Return the tokens that go through a model, by the way it has; ``None`` where nobody knows."""
        feeder, rungs = counter.feeder, works.rungs
        if feeder is None or rungs is None:
            return None
        from pytest_kbrel.models.hf_caches import KeptPrefix

        def tokens(of: Scenario) -> float:
            calls = [call for call in of.calls if call.to == to]
            # What one call leaves to the next is not fed again.
            kept = KeptPrefix()
            ways = [rungs[call.kind[3] != "score"] for call in calls]
            return sum(
                feeder.fed(call.requests, way, kept).tokens for call, way in zip(calls, ways, strict=True)
            )

        def different(of: Scenario) -> float:
            # Of all calls together: what one leaves to the next may be the beginning of what that one asks.
            return feeder.different(of.new(to=to))

        return Fed(tokens=self.span(tokens), different=self.span(different), rungs=rungs)


def make_plan(
    cases: Sequence[Case],
    options: KbOptions,
    baseline: Baseline | None,
    foreseen: Callable[[Scenario], tuple[Foreseen, ...]],
    comparisons: int,
) -> Plan:
    """Find out what a run of ``cases`` would ask; models that are no servers are loaded and timed.

    Raises :class:`~pytest_kbrel.errors.KbrelError` as loading these models does.
    """
    found = _scenarios(cases, baseline)
    participants = _participants(options, found)
    counter = participants[0][1]
    return Plan(
        cases=tuple(
            PlannedCase(
                suite=case.suite,
                id=case.id,
                facts=len(case.facts),
                asked=found.asked(counter, "", f"{case.suite}::{case.id}"),
            )
            for case in cases
        ),
        participants=tuple(participant for participant, _ in participants),
        foreseen=foreseen(found.high),
        comparisons=comparisons,
        around=found.high.seconds,
    )


def _scenarios(cases: Sequence[Case], baseline: Baseline | None) -> _Scenarios:
    high = scenario(cases, "most")
    if all(map(is_fixed, cases)):
        return _Scenarios(low=high, high=high, known=None)

    def rows(case: Case) -> Iterable[Outcome]:
        blessed = None if baseline is None else baseline.case(case)
        return blessed.table.rows if isinstance(blessed, BaselineCase) else ()

    known = scenario(cases, "known", rows) if any(any(True for _ in rows(case)) for case in cases) else None
    return _Scenarios(low=scenario(cases, "fewest"), high=high, known=known)


def _participants(options: KbOptions, found: _Scenarios) -> list[tuple[Participant, Counter]]:
    models = [("--kb-model", options.model, "", model_spec(options), 2 if options.noise_floor else 1)]
    if options.baseline_model:
        models.append(("--kb-baseline-model", options.baseline_model, "", base_spec(options), 1))
    for to in sorted({call.to for call in found.high.calls} - {""}):
        # The answers of both models are put to it.
        passes = 2 if options.baseline_model else 1
        models.append((role_of(options, to), to, to, helper_spec(options, to), passes))
    return [_participant(options, found, *model) for model in models]


def _participant(
    options: KbOptions, found: _Scenarios, role: str, text: str, to: str, spec: AnySpec, passes: int
) -> tuple[Participant, Counter]:
    try:
        counter = open_counter(spec)
        plain = Participant(
            role=role,
            text=text,
            passes=passes,
            exact=counter.exact,
            served=isinstance(spec, OpenAISpec),
            asked=found.asked(counter, to),
        )
        if isinstance(spec, OpenAISpec):
            return dataclasses.replace(plain, cost=_cost(options, plain)), counter

        def calls(of: Scenario) -> list[Call]:
            return [call for call in of.calls if call.to == to]

        known = None if options.use_cache is None else kept_in(options.use_cache)
        # A second pass for the noise floor takes nothing from the store.
        anew = passes > 1 and not to
        calibration = calibrate(lambda: open_model(spec), calls(found.high), counter, known, anew=anew)
    except ModelError as error:
        raise ModelError(f"{role}: {error}") from None

    def seconds(of: Scenario) -> float:
        again = calibration.seconds_for(calls(of), anew=anew) * (passes - 1)
        return calibration.seconds_for(calls(of)) + again

    def kept(of: Scenario) -> float:
        return sum(request in calibration.kept for call in calls(of) for request in call.requests)

    # Without an answer seen nobody knows how long answers are.
    all_timed = all(call.kind in calibration.paces for call in calls(found.high) if call.requests)
    return dataclasses.replace(
        plain,
        calibration=calibration,
        seconds=found.span(seconds),
        wrote=found.span(lambda of: calibration.written(calls(of))) if all_timed else None,
        fed=found.fed(counter, to, calibration.works),
        kept=None if known is None else found.span(kept),
    ), counter


def _cost(options: KbOptions, who: Participant) -> tuple[float, float] | None:
    """Return what is paid at least, for reading, and at most, if every answer is as long as it may be."""
    if options.prices is None:
        return None
    read, written = (price * who.passes / 1e6 for price in options.prices)
    asked = who.asked
    return asked.read.low * read, asked.read.high * read + asked.written.high * written
