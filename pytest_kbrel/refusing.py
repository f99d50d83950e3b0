"""What the controller refuses once it knows the cases, before a model is asked anything."""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import TYPE_CHECKING

import pytest

from pytest_kbrel.helping import check_args, check_cases
from pytest_kbrel.options import KbOptions, was_typed
from pytest_kbrel.records import Suite

if TYPE_CHECKING:
    from pytest_kbrel.baselines import Baseline


def check_suites(
    config: pytest.Config,
    options: KbOptions,
    baseline: Baseline | None,
    suites: Sequence[Suite],
    expected: Container[str],
) -> None:
    """Raise :class:`KbrelError` for what the models cannot do of the ``suites``.

    ``expected`` are the node ids of the cases that are to run.
    """
    # In ini file or environment they may be there for other suites of the project.
    if was_typed(config, "judge_args"):
        check_args(options, suites)
    if baseline is not None and baseline.paper:
        from pytest_kbrel.baselines.published import check_cases as check_published

        asked = [case.id for suite in suites for case in suite.cases]
        check_published(baseline, options.baseline, asked)
    check_cases(
        options,
        [case for suite in suites for case in suite.cases if f"{suite.path}::{case.id}" in expected],
    )
