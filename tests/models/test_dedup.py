from __future__ import annotations

import pytest

from pytest_kbrel.errors import ResponseError
from pytest_kbrel.models.batching import Batcher
from pytest_kbrel.models.session_cache import Asker
from pytest_kbrel.records import Failed, GenerateRequest, Scored, ScoreRequest
from tests.function_model import FunctionModel

SCORE = [ScoreRequest(prompt=f"p{k}", continuation=" x y") for k in range(3)]
GENERATE = [GenerateRequest(prompt=f"p{k}", max_new_tokens=4) for k in range(3)]


def test_order_is_kept_and_each_thing_asked_once():
    model = FunctionModel(answers=lambda prompt: f"said {prompt}", probability=lambda p, c: float(p[1]) / 10)
    asker = Asker(model)
    mixed = [GENERATE[1], SCORE[2], SCORE[0], GENERATE[1], GENERATE[0], SCORE[2]]
    answers = asker.ask(mixed)
    assert [getattr(answer, "text", None) for answer in answers] == [
        "said p1",
        None,
        None,
        "said p1",
        "said p0",
        None,
    ]
    assert [answers[k].probabilities for k in (1, 2, 5)] == [(0.2, 0.2), (0.0, 0.0), (0.2, 0.2)]
    assert (asker.asked, asker.answered, len(model.requests)) == (6, 4, 4)
    assert asker.ask([SCORE[2], SCORE[1]])[0] == answers[1]
    assert (asker.asked, asker.answered, model.score_calls, model.generate_calls) == (8, 5, 2, 1)
    assert asker.ask([]) == []
    assert asker.ask([SCORE[0]]) == [answers[2]]
    assert model.score_calls == 2


def test_failures_are_asked_again():
    down = [True]
    model = FunctionModel(fails=lambda prompt: "down" if down[0] and prompt == "p1" else None)
    asker = Asker(model)
    assert [isinstance(answer, Failed) for answer in asker.ask(SCORE)] == [False, True, False]
    down[0] = False
    assert isinstance(asker.ask([SCORE[1]])[0], Scored)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 1.5, -0.1])
def test_what_is_no_probability_is_a_failure(value):
    asker = Asker(FunctionModel(probability=lambda prompt, continuation: value))
    steps = GenerateRequest(prompt="p", max_new_tokens=3, steps=True)
    assert all(isinstance(answer, Failed) for answer in asker.ask([*SCORE, steps]))


def test_a_model_that_miscounts():
    model = FunctionModel()
    model.score = lambda requests: []
    with pytest.raises(ResponseError, match="0 answers to 3 requests"):
        Asker(model).ask(SCORE)


def test_scripted_model_cuts_like_a_real_one():
    model = FunctionModel(answers=lambda prompt: "the Nile river\nQuestion: next")
    cut, short, mute = (
        model.generate([GenerateRequest(prompt="p", max_new_tokens=count)])[0] for count in (9, 2, 1)
    )
    assert (cut.text, cut.finish) == ("the Nile river", "stop")
    assert (short.text, short.finish) == ("the Nile", "length")
    assert (mute.text, mute.finish) == ("the", "length")
    (empty,) = FunctionModel(answers=lambda prompt: "").generate(GENERATE[:1])
    assert (empty.text, empty.finish) == ("", "stop")
    assert isinstance(model.score([ScoreRequest(prompt="p", continuation="")])[0], Failed)


def test_scripted_model_steps_and_fingerprint():
    model = FunctionModel(answers=lambda prompt: "a b", probability=lambda p, c: 0.7, name="one")
    (scored,) = model.score([ScoreRequest(prompt="p", continuation=" a c")])
    (answer,) = model.generate(
        [GenerateRequest(prompt="p", max_new_tokens=5, steps=True, watch=scored.token_ids)]
    )
    assert [(step.token, step.probability, step.watched) for step in answer.steps] == [
        ("a", 0.7, 0.7),
        ("b", 0.7, 0.0),
    ]
    assert model.describe().backend == "scripted"
    assert model.describe() == FunctionModel(name="one").describe() != FunctionModel(name="two").describe()
    model.close()
    assert model.closed


class Rows:
    """Rows of one token each; more than ``room`` at once do not fit, and ``bad`` ones raise."""

    def __init__(self, room=10, bad=()):
        self.room, self.bad, self.sizes = room, bad, []

    def __call__(self, rows):
        self.sizes.append(len(rows))
        if len(rows) > self.room:
            raise RuntimeError("CUDA out of memory. Tried to allocate 2 GiB")
        if set(rows) & set(self.bad):
            raise KeyError("a bad row")
        return [row * 2 for row in rows]


def test_batches_keep_the_budget():
    rows = Rows()
    assert Batcher(4).run(range(10), len, rows) == [row * 2 for row in range(10)]
    assert rows.sizes == [4, 4, 2]


def test_out_of_memory_halves_the_budget_and_remembers():
    rows, batcher = Rows(room=3), Batcher(10)
    assert batcher.run(range(10), len, rows) == [row * 2 for row in range(10)]
    assert batcher.budget == 2
    assert max(rows.sizes[2:]) == 2


def test_a_row_that_never_fits_fails_alone():
    answers = Batcher(10).run(range(3), len, Rows(room=0))
    assert all(isinstance(answer, Failed) and "out of memory" in answer.error for answer in answers)


def test_a_bad_row_spoils_no_other():
    answers = Batcher(10).run(range(5), len, Rows(bad=(3,)))
    assert answers == [0, 2, 4, Failed(error="KeyError: 'a bad row'"), 8]


def test_a_row_beyond_the_budget_runs_alone():
    rows = Rows()
    Batcher(1).run([5, 6], sum, rows)
    assert rows.sizes == [1, 1]
