"""Running a case beside the normal run: with the baseline model, and a second time for the noise floor."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from pytest_kbrel.errors import ModelError
from pytest_kbrel.evaluation.model_pool import ModelPool
from pytest_kbrel.records import BASELINE, Case, CaseResult, Exchange, Request, Response, Table, settings_of

if TYPE_CHECKING:
    from pytest_kbrel.baselines import Baseline

Keep = Callable[[Sequence[Exchange]], None]


def run_baseline_model(case: Case, pool: ModelPool, keep: Keep) -> tuple[Table, Baseline]:
    """Run a case with the baseline model; return its outcomes, also as a baseline.

    ``keep`` gets the exchanges, marked as the baseline model's. Raises ``ModelError`` if the model cannot be
    opened or its responses cannot be measured.
    """
    from pytest_kbrel.baselines import session_baseline
    from pytest_kbrel.gates import check_integrity
    from pytest_kbrel.probes import run_case

    nodeid = f"{case.suite}::{case.id}"

    def ask(requests: Sequence[Request], to: str) -> Sequence[Response]:
        return pool.ask(requests, to or BASELINE, nodeid)

    def keep_marked(exchanges: Sequence[Exchange]) -> None:
        keep(
            [
                dataclasses.replace(one, ask=dataclasses.replace(one.ask, to=one.ask.to or BASELINE))
                for one in exchanges
            ]
        )

    result = run_case(case, ask, keep_marked)
    if broken := check_integrity(case, result.table, result.errors).broken:
        raise ModelError(f"{case.id}: nothing can be compared with --kb-baseline-model: {broken[0]}")
    model = pool.base()
    assert model is not None
    answered = (case.suite, case.id, result.table, settings_of(case))
    return result.table, session_baseline(model, [answered], judge=case.judge, helpers=pool.helpers())


def measure_noise(case: Case, decided: CaseResult, pool: ModelPool) -> CaseResult:
    """Run a decided case again under another batch plan, and note which outcomes changed.

    The second answers decide nothing and are not recorded. An unusable response is an error of the case.
    """
    from pytest_kbrel.gates import add_noise_floors
    from pytest_kbrel.probes import run_case

    nodeid = f"{case.suite}::{case.id}"
    second = run_case(case, functools.partial(pool.ask_again, case=nodeid), lambda exchanges: None)
    errors = tuple(f"asked again: {error}" for error in second.errors)
    return add_noise_floors(dataclasses.replace(decided, errors=(*decided.errors, *errors)), second.table)
