"""What the controller refuses once it knows the cases, before a model is asked anything."""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import TYPE_CHECKING

import pytest

from pytest_kbrel.helping import RULES, check_args, check_cases
from pytest_kbrel.options import KbOptions, was_typed
from pytest_kbrel.records import Case, Suite

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
    check_cases(options, _selected(suites, expected))


def unused_flags(
    config: pytest.Config, options: KbOptions, suites: Sequence[Suite], expected: Container[str]
) -> tuple[str, ...]:
    """Return what was typed and has no effect on the cases that are to run, a sentence each.

    ``expected`` are their node ids. In ini file or environment it may be there for other suites.
    """
    from pytest_kbrel.probes.judging import is_judged

    cases = _selected(suites, expected)
    found = []
    explains = was_typed(config, "attribute") and options.attribute
    if explains and not any(case.probe == "monitor" for case in cases):
        found.append(
            f"--kb-attribute={options.attribute} is not used: it explains MONITOR cases, and none is selected"
        )
    judges = was_typed(config, "judge") and options.judge != RULES
    if judges and not any(is_judged(case) and case.judge == options.judge for case in cases):
        found.append(f"--kb-judge={options.judge} is not used: no case is selected whose answers it judges")
    return tuple(found)


def _selected(suites: Sequence[Suite], expected: Container[str]) -> list[Case]:
    return [case for suite in suites for case in suite.cases if f"{suite.path}::{case.id}" in expected]
