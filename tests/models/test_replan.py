from __future__ import annotations

from pytest_kbrel.models.base import Replanned
from pytest_kbrel.models.hf.backend import load
from pytest_kbrel.models.hf.spec import parse_spec
from pytest_kbrel.records import GenerateRequest, ScoreRequest
from tests.function_model import FunctionModel

CITIES = ("France", "Italy", "Spain", "Norway", "Poland")
ASKS = [
    GenerateRequest(prompt=f"What is the capital of {city}?", max_new_tokens=5)
    for city in CITIES
]
SCORES = [
    ScoreRequest(prompt=f"What is the capital of {city}?", continuation=" Paris")
    for city in CITIES
]


def test_a_model_is_asked_in_reverse_and_answers_in_order():
    model = FunctionModel(answers=lambda prompt: prompt.split()[-1])
    replanned = Replanned(model)
    assert [one.text for one in replanned.generate(ASKS)] == [
        f"{city}?" for city in CITIES
    ]
    assert model.requests == ASKS[::-1]
    replanned.close()
    assert not model.closed


def test_a_checkpoint_answers_in_other_batches_without_being_loaded_again():
    model = load(parse_spec("reference", batch_size="90"))
    other = Replanned(model)
    shapes: list[tuple[int, ...]] = []
    model.parts.model.register_forward_pre_hook(
        lambda module, args, given: shapes.append(tuple(given["input_ids"].shape)),
        with_kwargs=True,
    )
    for each in (model, other):
        each.generate(ASKS[:1])
    shapes.clear()
    first = [one.text for one in model.generate(ASKS)]
    middle = len(shapes)
    assert [one.text for one in other.generate(ASKS)] == first
    assert sorted(shapes[middle:]) != sorted(shapes[:middle])
    for one, again in zip(model.score(SCORES), other.score(SCORES), strict=True):
        assert abs(one.probabilities[0] - again.probabilities[0]) < 1e-4
    assert other.describe() == model.describe()
