"""What is asked beside a case itself: the model it is compared with, and the same model a second time."""

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
    """Put a case to the model that the run compares with: its outcomes, and these as a baseline.

    ``keep`` is handed its exchanges, marked as such. Raises ``ModelError`` where the model cannot be opened,
    and where its responses are no ground for a measurement.
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

    found = run_case(case, ask, keep_marked)
    if broken := check_integrity(case, found.table, found.errors).broken:
        raise ModelError(f"{case.id}: nothing can be compared with --kb-baseline-model: {broken[0]}")
    model = pool.base()
    assert model is not None
    answered = (case.suite, case.id, found.table, settings_of(case))
    return found.table, session_baseline(model, [answered], judge=case.judge, helpers=pool.helpers())


def measure_noise(case: Case, decided: CaseResult, pool: ModelPool) -> CaseResult:
    """Put a decided case to the model under test again, under another batch plan, and note what changed.

    The second answers decide nothing and are not recorded. A response that cannot be used this time is an
    error of the case.
    """
    from pytest_kbrel.gates import add_noise_floors
    from pytest_kbrel.probes import run_case

    nodeid = f"{case.suite}::{case.id}"
    second = run_case(case, functools.partial(pool.ask_again, case=nodeid), lambda exchanges: None)
    errors = tuple(f"asked again: {error}" for error in second.errors)
    return add_noise_floors(dataclasses.replace(decided, errors=(*decided.errors, *errors)), second.table)
