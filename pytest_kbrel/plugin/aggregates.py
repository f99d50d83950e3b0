"""What the controller decides when all cases have run: aggregates, and what they are compared with."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pytest_kbrel.evaluation.helper_models import writers_of
from pytest_kbrel.plugin.collection import comparisons
from pytest_kbrel.plugin.run_builder import Arrivals
from pytest_kbrel.records import AggregateCase, CaseResult, Fingerprint, Suite

if TYPE_CHECKING:
    from pytest_kbrel.baselines import Baseline


def decide_aggregates(
    suites: Sequence[Suite],
    arrivals: Arrivals,
    *,
    model: Fingerprint | None,
    baseline: Baseline | None,
    judge: str,
) -> Iterator[tuple[AggregateCase, CaseResult]]:
    """Decide the aggregates all of whose members took part; yield each with its result.

    ``judge`` is who judged the run's answers, as its settings name it.
    """
    from pytest_kbrel.baselines import another_tokenizer, incomparable
    from pytest_kbrel.gates import decide_aggregate

    family = comparisons(suites, arrivals.expected)
    helpers = arrivals.helpers
    for suite in suites:
        for aggregate in suite.aggregates:
            members = [f"{suite.path}::{member}" for member in aggregate.members]
            if not arrivals.took_part(members):
                continue
            writers = writers_of(suite, aggregate.members)
            yield (
                aggregate,
                decide_aggregate(
                    aggregate,
                    [arrivals.results[member] for member in members if member in arrivals.results],
                    baseline=baseline,
                    comparisons=family,
                    another_tokenizer=another_tokenizer(model, baseline),
                    incomparable=incomparable(
                        model,
                        baseline,
                        judged=any(not member.startswith("monitor[") for member in aggregate.members),
                        judge=helpers.get(judge),
                        writers=[helpers[text] for text in writers if text in helpers],
                    ),
                ),
            )


def baseline_of_session(base: Fingerprint, arrivals: Arrivals, judge: str) -> Baseline:
    """Return what the model ``base``, asked in this session too, answered: a baseline like a blessed run."""
    from pytest_kbrel.baselines import session_baseline

    return session_baseline(
        base,
        [
            (result.suite, result.id, result.base, result.settings)
            for result in arrivals.results.values()
            if result.base.rows
        ],
        judge=judge,
        helpers=arrivals.helpers.values(),
    )
