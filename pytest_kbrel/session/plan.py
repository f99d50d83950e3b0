"""Plan of a run: what a stub run asks of each model, its time by stored rates, its cost, the power of gates."""

from __future__ import annotations

import dataclasses
from collections import Counter, defaultdict
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from pytest_kbrel.baselines import Baseline
from pytest_kbrel.catalogue.probes import is_scored
from pytest_kbrel.catalogue.rules import GATE_RULES, family_size
from pytest_kbrel.errors import ModelError
from pytest_kbrel.evaluation.model_pool import helper_spec, no_probabilities, role_of
from pytest_kbrel.evaluation.stub_run import (
    Scenario,
    asks_of,
    columns_of,
    sampled,
    whole,
)
from pytest_kbrel.gates import part_result
from pytest_kbrel.gates.figures import Figure, figures_of, figures_over, pooled_figures
from pytest_kbrel.gates.rules import FEW_CLUSTERS
from pytest_kbrel.metrics import metrics_for
from pytest_kbrel.models.base import Spec, TokenCounter
from pytest_kbrel.models.cache.session import last_rates
from pytest_kbrel.models.registry import BACKENDS
from pytest_kbrel.probes import count_of
from pytest_kbrel.records import (
    BASELINE,
    AggregateCase,
    Case,
    Gate,
    Request,
    Rule,
    ScoreRequest,
    Suite,
    Table,
    record,
)
from pytest_kbrel.settings import Settings
from pytest_kbrel.stats import (
    ClusteredMean,
    Difference,
    Estimate,
    Flips,
    cluster_df,
    detectable,
    sidak,
)

# Nobody knows beforehand how much two models differ. A tenth of the facts, one way or the other, is what a
# fine-tune or a quantisation often moves.
DISCORDANT = 0.1
# Of the answers to several wordings about one fact. In the recorded candidates of the demo, means over 3
# wordings had 0.42 to 0.58 of the variance of one, means over 7 had 0.24 to 0.34 (benchmarks/wordings.py).
WORDING_CORRELATION = 0.2
# Answers a second of a session of the world suite, by the shape of Llama 3.1 8B in bfloat16 on one NVIDIA H200
# (benchmarks/gpu/h200-2026-11-27).
H200_RATE = 396


@record
class GatePower:
    """The power of one gate over ``n`` facts.

    ``is_planned`` says that the gate compares a rate fact by fact. ``drop`` is then the smallest one that is
    found with 80 % power, if :data:`DISCORDANT` of the facts change; ``None`` where not even the loss of all
    facts is found. The changes of the wordings of a fact have the correlation
    :data:`WORDING_CORRELATION`.
    """

    case: str
    metric: str
    rule: Rule
    bound: float
    n: int
    is_planned: bool = False
    drop: float | None = None


def power_of_gates(
    suites: Sequence[Suite], cases: Sequence[Case], *, paired: bool
) -> tuple[GatePower, ...]:
    """Return what each gate of ``cases``, and of the aggregates over them, could detect.

    ``paired``: the comparison with the baseline is one fact by fact.
    """
    selected = {(case.suite, case.id): case for case in cases}
    powers = []
    for suite in suites:
        alpha = sidak(family_size(suite))
        judged: tuple[Case | AggregateCase, ...] = (*suite.cases, *suite.aggregates)
        for case in judged:
            names = [case.id] if isinstance(case, Case) else case.members
            members = [
                selected[suite.path, name]
                for name in names
                if (suite.path, name) in selected
            ]
            if not members or len(members) < len(names):
                continue
            figures = {figure.name: figure for figure in _figures(case, members)}
            for gate in case.gates:
                figure = figures.get(gate.metric) if paired else None
                powers.append(_power(case, gate, figure, members, alpha))
    return tuple(powers)


def _figures(case: Case | AggregateCase, members: Sequence[Case]) -> Sequence[Figure]:
    if case.probe == "pooled":
        return pooled_figures(len(members))
    results = [
        dataclasses.replace(
            part_result(member, len(member.facts), ()),
            table=Table(columns=columns_of(member), rows=()),
        )
        for member in members
    ]
    if isinstance(case, AggregateCase):
        return figures_over(results)
    return figures_of(metrics_for(case.probe, case.slice, results[0].table.columns))


def _power(
    case: Case | AggregateCase,
    gate: Gate,
    figure: Figure | None,
    members: Sequence[Case],
    alpha: float,
) -> GatePower:
    if figure is not None:
        members = [members[at] for at in sorted({at for at, _ in figure.columns})]
    rule = GATE_RULES[gate.rule]
    power = GatePower(
        case=f"{case.suite}::{case.id}",
        metric=gate.metric,
        rule=gate.rule,
        bound=gate.bound,
        n=len({fact.id for member in members for fact in member.facts}),
    )
    # What a share of the baseline's value is, only the baseline knows.
    if (
        figure is None
        or not (rule.relative and figure.rate)
        or figure.over
        or rule.allows_more < 0
    ):
        return power
    clusters = {
        fact.id: fact.cluster(member.cluster) or fact.id
        for member in members
        for fact in member.facts
    }.values()
    n, df = len(clusters), cluster_df([*clusters])
    effective = n**2 / sum(size**2 for size in Counter(clusters).values())
    drop = None
    if df is not None and (effective == n or effective >= FEW_CLUSTERS):
        wordings = min(map(count_of, members))
        # Of the variance of a fact's change so much is left when its wordings are averaged.
        left = WORDING_CORRELATION + (1 - WORDING_CORRELATION) / wordings
        changed = Difference(
            estimate=Estimate(),
            flips=Flips(n=n, down=round(DISCORDANT * left * n), up=0, both=0),
            clustered=None
            if effective == n
            else ClusteredMean(value=0.0, se=0.0, df=df, effective=effective),
        )
        drop = detectable(changed, rule.beyond(gate), alpha)
    known = drop if drop is not None and drop <= figure.span else None
    return dataclasses.replace(power, is_planned=True, drop=known)


Range = npt.NDArray[np.float64]
"""A figure where probes ask least, and where they ask most."""
_SCENARIOS: tuple[Scenario, ...] = ("fewest", "most")


class Counts:
    """Number of requests to a model, and tokens: read before scored ones, scored, read to continue, written.

    ``written`` is the most that the model may write.
    """

    def __init__(self, values: npt.NDArray[np.float64]) -> None:
        self.values = values
        self.calls, self.before, self.scored, self.continued, self.written = values
        self.read: Range = self.before + self.continued


@record
class Plan:
    """The plan of a run of ``cases``; the first of ``models`` is the one under test.

    ``families`` are the suites, of each the number of cases that compare with a baseline, and the level of their
    tests. ``sampled``: the requests
    are estimated from a few facts of each case.
    """

    cases: tuple[Case, ...]
    models: tuple[PlannedModel, ...]
    powers: tuple[GatePower, ...]
    families: tuple[tuple[str, int, float], ...]
    has_baseline: bool
    sampled: bool


class PlannedModel:
    """A model of the run, with the counts of its requests.

    ``role`` is where the user named it, ``passes`` how often it gets every request. ``counter`` counts its
    tokens. ``seconds`` is ``None`` where no rate of it is stored, ``cost`` (least and most) where no prices are known or it is no server's.
    """

    def __init__(
        self, settings: Settings, to: str, spec: Spec, estimated: bool
    ) -> None:
        self.role = role_of(settings, to)
        names = {"": settings.model, BASELINE: settings.baseline_model}
        self.text = names.get(to, to)
        # The answers of both models are put to a helper model.
        self.passes = 2 if to not in names and settings.baseline_model else 1
        self._spec, self._settings = spec, settings
        backend = BACKENDS[spec.backend]
        self.is_served, self.computes_here = backend.is_served, backend.computes_here
        self.counter: TokenCounter = TokenCounter()
        if not (estimated and backend.computes_here):
            try:
                self.counter = backend.counter(spec)
            except ModelError as error:
                raise ModelError(f"{self.role}: {error}") from None
        self._by_case: defaultdict[str, npt.NDArray[np.float64]] = defaultdict(
            lambda: np.zeros((5, len(_SCENARIOS)))
        )

    def add(self, case: Case, scenario: int, request: Request, times: float) -> None:
        """Count a request that stands for so many."""
        prompt = self.counter.prompt(request)
        if isinstance(request, ScoreRequest):
            tokens = (prompt, self.counter.continuation(request), 0, 0)
        else:
            tokens = (0, 0, prompt, request.max_new_tokens)
        self._by_case[_key(case)][:, scenario] += np.multiply((1, *tokens), times)

    def counts(self, cases: Sequence[Case]) -> Counts:
        """Return what it is asked in all of some cases."""
        return Counts(np.sum([self._by_case[_key(case)] for case in cases], axis=0))

    def cost(self, counts: Counts) -> tuple[float, float] | None:
        """Return the least and the most that it costs, ``None`` without prices or a server."""
        if not self.is_served or self._settings.prices is None:
            return None
        read, written = (price * self.passes / 1e6 for price in self._settings.prices)
        most = max(counts.read) * read + max(counts.written) * written
        return min(counts.read) * read, most

    def seconds(self, counts: Counts) -> Range | None:
        """Return the time of all tokens at the stored rates; ``None`` where one is missing."""
        if self._settings.use_cache is None:
            return None
        rates = last_rates(self._settings.use_cache, self._spec.text)
        tokens = {
            "score": counts.before + counts.scored,
            "generate": counts.continued,
        }
        needed = {method: of for method, of in tokens.items() if of.any()}
        if not rates.keys() >= needed.keys():
            return None
        return sum(
            (self.passes * of / rates[method] for method, of in needed.items()),
            np.zeros(len(_SCENARIOS)),
        )


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
    chats = settings.own_specs[0].chats
    cases = [dataclasses.replace(case, chat=chats) for case in cases]
    own = [
        PlannedModel(settings, to, settings.specs[to].get(), estimated)
        for to in ("", BASELINE)
        if to in settings.specs
    ]
    scored = next(filter(is_scored, cases), None)
    if scored and (why := own[0].counter.unscorable):
        raise no_probabilities(scored.probe, why)
    helpers: dict[str, PlannedModel] = {}
    for case in cases:
        parts = [sampled(case)] if estimated else whole(case)
        for part in parts:
            times = len(case.facts) / len(part.facts) if estimated else 1.0
            for number, scenario in enumerate(_SCENARIOS):
                for ask in asks_of(part, scenario):
                    if ask.to and ask.to not in helpers:
                        spec = helper_spec(ask.to, settings.judge_args)
                        helpers[ask.to] = PlannedModel(
                            settings, ask.to, spec, estimated
                        )
                    for model in [helpers[ask.to]] if ask.to else own:
                        model.add(case, number, ask.request, times)
    has_baseline = baseline is not None or bool(settings.baseline_model)
    return Plan(
        cases=tuple(cases),
        models=(*own, *(helpers[to] for to in sorted(helpers))),
        powers=power_of_gates(
            suites, cases, paired=baseline is None or not baseline.paper
        ),
        families=tuple(
            (suite.path, size := family_size(suite), sidak(size)) for suite in suites
        ),
        has_baseline=has_baseline,
        sampled=estimated,
    )


def _key(case: Case) -> str:
    return f"{case.suite}::{case.id}"
