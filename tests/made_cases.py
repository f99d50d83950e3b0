"""Settings and cases of tests that look at one part of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pytest_kbrel.evaluation.specs import with_specs
from pytest_kbrel.records import (
    Case,
    Fingerprint,
    Gate,
    HeadToTailSettings,
    MonitorSettings,
    ReliabilitySettings,
    Suite,
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

_SETTINGS = {
    "monitor": MonitorSettings,
    "head_to_tail": HeadToTailSettings,
    "reliability": ReliabilitySettings,
}


def made_options(**more: Any) -> Settings:
    """Return the settings of a run that was given only those in ``more``."""
    result: dict[str, Any] = {
        **{"model": "reference", "model_args": "", "device": "auto", "dtype": "auto", "batch_size": "auto"},
        **{"apply_chat_template": False, "judge": "rules", "judge_args": "", "attribute": 0, "baseline": ""},
        **{"baseline_update": None, "inconclusive": "warn", "limit": None, "seed": None},
        **{"output_path": Path("out"), "use_cache": None, "run": "0123"},
    }
    return with_specs(Settings(**(result | more)))


def made_case(
    name: str = "head_to_tail[a]", *rules: str, suite: str = "mini.kb.yaml", **settings: Any
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
    return Suite(name="mini", path="mini.kb.yaml", cases=cases, aggregates=more.pop("aggregates", ()), **more)
