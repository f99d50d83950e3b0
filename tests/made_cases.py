"""Settings, cases and results for tests of one part of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from pytest_kbrel.evaluation.model_pool import with_specs
from pytest_kbrel.records import (
    Case,
    CaseResult,
    Fingerprint,
    Gate,
    HeadToTailSettings,
    MonitorSettings,
    Reason,
    ReliabilitySettings,
    Suite,
    reason,
)
from pytest_kbrel.settings import Settings

# The model of a run that was recorded elsewhere.
RECORDED_MODEL = Fingerprint(
    spec="theirs",
    backend="hf",
    backend_version="1",
    architecture="A",
    parameters=1,
    weights_digest="w",
    tokenizer_digest="t",
    dtype="float32",
    device="cpu",
)


def told(text: str, **more: int) -> tuple[Reason, ...]:
    """Return the reasons of a gate in words of the test's own; ``needed`` facts would decide."""
    return (reason("told", text=text, **more),)


_SETTINGS = {
    "monitor": MonitorSettings,
    "head_to_tail": HeadToTailSettings,
    "reliability": ReliabilitySettings,
}


def made_options(**more: Any) -> Settings:
    """Return the settings of a run that was given only those in ``more``."""
    result = {"model": "reference", "output_path": Path("out"), "run": "0123"}
    return with_specs(Settings(**(result | more)))


def made_case(
    name: str = "head_to_tail[a]",
    *rules: str,
    suite: str = "mini.kb.yaml",
    **settings: Any,
) -> Case:
    """Return a case without facts, with one gate of each of ``rules``."""
    probe, _, part = name.partition("[")
    return Case(
        id=name,
        suite=suite,
        probe=probe,  # type: ignore[arg-type]
        slice=part.removesuffix("]"),
        facts=(),
        relations=(),
        settings=_SETTINGS[probe](**settings),
        gates=tuple(Gate(metric="accuracy", rule=rule, bound=0.1) for rule in rules),  # type: ignore[arg-type]
    )


def made_suite(*cases: Case, **more: Any) -> Suite:
    """Return a suite of these cases."""
    return Suite(
        name="mini",
        path="mini.kb.yaml",
        cases=cases,
        aggregates=more.pop("aggregates", ()),
        **more,
    )


def made_result(
    nodeid: str = "mini.kb.yaml::head_to_tail[a]", verdict: str = "pass", **more: Any
) -> CaseResult:
    """Return the result of a case without figures."""
    suite, _, name = nodeid.partition("::")
    result: dict[str, Any] = {
        **{
            "id": name,
            "suite": suite,
            "probe": "head_to_tail",
            "slice": "a",
            "verdict": verdict,
        },
        **{"n": 1, "duration": 0.0, "metrics": (), "gates": ()},
    }
    return CaseResult(**(result | more))


def made_report(
    nodeid: str = "mini.kb.yaml::head_to_tail[a]",
    outcome: str = "passed",
    when: str = "call",
    failure: str = "",
    **attributes: Any,
) -> Any:
    """Return pytest's report of one phase of an item."""
    report = pytest.TestReport(
        nodeid=nodeid,
        location=(nodeid.partition("::")[0], 0, "x"),
        keywords={},
        outcome=cast(Any, outcome),
        longrepr=failure or None,
        when=cast(Any, when),
    )
    for name, value in attributes.items():
        setattr(report, name, value)
    return report
