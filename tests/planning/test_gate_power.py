"""What a plan says of the power of gates, beside the figures of gates/power.py."""

from __future__ import annotations

import dataclasses

import pytest

from pytest_kbrel.models.registry import gives_answer_probabilities, read_spec
from pytest_kbrel.planning.gate_power import power_of_gates
from pytest_kbrel.probes.head_to_tail import COLUMNS
from pytest_kbrel.records import Gate
from tests.made_cases import made_case


@pytest.mark.parametrize(
    ("args", "note"),
    [("logprobs=True", "needs a baseline"), ("", "no metric of this name is measured")],
)
def test_a_model_that_gives_no_probabilities_of_its_answers_has_no_calibration(
    args: str, note: str
) -> None:
    spec = read_spec("openai/m", f"base_url=http://x.org{',' if args else ''}{args}")
    case = dataclasses.replace(
        made_case("head_to_tail[a]"),
        gates=(Gate(metric="brier", rule="max_drop", bound=0.1),),
    )
    (power,) = power_of_gates(
        [], [case], {f"{case.suite}::{case.id}": COLUMNS}, baseline=None, families={},
        probabilities=gives_answer_probabilities(spec),
    )  # fmt: skip
    assert power.note == note
