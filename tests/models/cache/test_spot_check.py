"""Some stored questions asked again: which ones, and when an answer counts as the same."""

from __future__ import annotations

import contextlib

import pytest

from pytest_kbrel.errors import StoreError
from pytest_kbrel.models.cache.journal import (
    Question,
    choose_questions,
    find_difference,
)
from pytest_kbrel.models.cache.store import Store
from pytest_kbrel.records import Generated, Scored, ScoreRequest
from tests.models.cache.served_model import Served, ask, run_requests


@pytest.fixture
def store(tmp_path):
    with contextlib.closing(Store(tmp_path)) as made:
        yield made


SCORE = ScoreRequest(prompt="Where?", continuation=" here")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("request = NULL", "is broken"),
        (
            "response = replace(response, 'QUESTION', 'question')",
            "its checksum is wrong",
        ),
    ],
)
def test_a_stored_question_that_is_broken_is_named(store, change, words):
    kept = run_requests(store, "one", ask(1))
    store.rows(f"UPDATE answers SET {change}")
    with pytest.raises(StoreError, match=words):
        choose_questions(store, kept.digest)


def text(content, **more):
    result = {
        "text": content,
        "token_ids": (),
        "finish": "stop",
        "prompt_tokens": 1,
        "prompt_digest": "d",
    }
    return Generated(**(result | more))


def scored(*probabilities, ids=(1, 2)):
    return Scored(
        probabilities=probabilities, token_ids=ids, prompt_tokens=1, prompt_digest="d"
    )


class Saying(Served):
    """Answers whatever is asked with the same response."""

    def __init__(self, response):
        super().__init__()
        self._response = response

    def score(self, requests):
        return [self._response] * len(requests)

    generate = score


@pytest.mark.parametrize(
    ("request_", "then", "now", "same"),
    [
        (ask(1), text("a"), text("a"), True),
        (ask(1), text("a"), text("A"), False),
        (SCORE, scored(0.5, 0.25), scored(0.5, 0.25), True),
        (SCORE, scored(0.5, 0.25), text("a"), False),
    ],
)
def test_when_two_answers_are_the_same(request_, then, now, same):
    result = find_difference(Saying(now), [Question(request=request_, answer=then)])
    assert (result == "") is same
