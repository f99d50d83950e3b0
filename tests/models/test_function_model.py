"""The model made of functions that tests ask instead of a checkpoint."""

from __future__ import annotations

from pytest_kbrel.records import Failed, GenerateRequest, ScoreRequest
from tests.function_model import FunctionModel

GENERATE = [GenerateRequest(prompt=f"p{k}", max_new_tokens=4) for k in range(3)]


def test_scripted_model_cuts_like_a_real_one():
    model = FunctionModel(answers=lambda prompt: "the Nile river\nQuestion: next")
    cut, short, mute = (
        model.generate([GenerateRequest(prompt="p", max_new_tokens=count)])[0]
        for count in (9, 2, 1)
    )
    assert (cut.text, cut.finish) == ("the Nile river", "stop")
    assert (short.text, short.finish) == ("the Nile", "length")
    assert (mute.text, mute.finish) == ("the", "length")
    (empty,) = FunctionModel(answers=lambda prompt: "").generate(GENERATE[:1])
    assert (empty.text, empty.finish) == ("", "stop")
    assert isinstance(
        model.score([ScoreRequest(prompt="p", continuation="")])[0], Failed
    )
