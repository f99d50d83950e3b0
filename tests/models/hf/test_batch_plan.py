"""What prompts begin with goes into the model once."""

from __future__ import annotations

import pytest

from pytest_kbrel.models.checkpoint.spec import parse_spec
from pytest_kbrel.models.hf.backend import load
from pytest_kbrel.records import ScoreRequest
from tests.models.fedometer import Fedometer
from tests.models.tiny_checkpoints import make_checkpoint

SHOTS = "Question: Which river flows through Cairo?\nAnswer: the Nile\n" * 2
PLACES = (
    "France",
    "Japan",
    "Egypt",
    "the city of Rome",
    "Peru",
    "Kenya",
    "Norway and Sweden",
)
NAMES = ("Paris", "Tokyo", "a very large city", "Lima")
SCORED = [
    ScoreRequest(prompt=f"{start}The capital of {place} is", continuation=f" {name}")
    for start in (SHOTS, "")
    for place in PLACES
    for name in NAMES
]


@pytest.fixture
def fed(tmp_path):
    """Return how many tokens go into a checkpoint that shares in one way."""

    def fed(kind: str, way: str, budget: str) -> int:
        model = load(
            parse_spec(str(make_checkpoint(tmp_path / kind, kind)), batch_size=budget)
        )
        # The self-checks ask the model too, once.
        assert model._scorer.sharing_mode != "plain"
        model._scorer.__dict__["sharing_mode"] = way
        meter = Fedometer(model.parts.model)
        try:
            assert len(model.score(SCORED)) == len(SCORED)
        finally:
            meter.stop()
            model.close()
        return meter.tokens

    return fed


@pytest.mark.parametrize("budget", ["auto", "150"])
@pytest.mark.parametrize("kind", ["llama", "t5"])
def test_a_common_beginning_is_fed_once(fed, kind, budget):
    plain = fed(kind, "plain", budget)
    assert fed(kind, "prefix", budget) < 0.6 * plain
    if kind == "llama":
        assert fed(kind, "packed", budget) <= fed(kind, "prefix", budget)
