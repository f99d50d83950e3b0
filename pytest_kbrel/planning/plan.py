"""Plan of a run: what a stub run asks of each model, its time by stored rates, its cost, the power of gates."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from pytest_kbrel.baselines import Baseline
from pytest_kbrel.catalogue.probes import PROBES
from pytest_kbrel.catalogue.rules import family_size
from pytest_kbrel.errors import ModelError
from pytest_kbrel.evaluation.model_pool import helper_spec, no_probabilities, role_of
from pytest_kbrel.evaluation.stub_run import Scenario, asks_of, sampled, whole
from pytest_kbrel.models.base import Spec
from pytest_kbrel.models.cache.measurements import last_rates
from pytest_kbrel.models.registry import BACKENDS
from pytest_kbrel.models.token_counting import TokenCounter
from pytest_kbrel.planning.gate_power import GatePower, power_of_gates
from pytest_kbrel.records import BASELINE, Case, Request, ScoreRequest, Suite, record
from pytest_kbrel.settings import Settings

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

    ``families`` are the numbers of cases that compare with a baseline, by suite. ``sampled``: the requests
    are estimated from a few facts of each case.
    """

    cases: tuple[Case, ...]
    models: tuple[PlannedModel, ...]
    powers: tuple[GatePower, ...]
    families: tuple[tuple[str, int], ...]
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
        self.is_served = backend.is_served
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
    scored = next((case.probe for case in cases if PROBES[case.probe].scored), None)
    if scored and (why := own[0].counter.unscorable):
        raise no_probabilities(scored, why)
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
        families=tuple((suite.path, family_size(suite)) for suite in suites),
        has_baseline=has_baseline,
        sampled=estimated,
    )


def _key(case: Case) -> str:
    return f"{case.suite}::{case.id}"
