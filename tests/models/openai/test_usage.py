"""The tokens that a server states, and the budget for them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_kbrel.errors import BudgetError, ModelError
from pytest_kbrel.models.openai.replies import Usage
from pytest_kbrel.models.openai.spec import OpenAISpec
from pytest_kbrel.records import Generated, GenerateRequest, Scored, ScoreRequest
from tests.models.openai.scoring_server import tokenize, vllm
from tests.openai_server import Fault

SPEC = OpenAISpec(text="openai/m", name="m", base_url="http://h/v1")


def stated(**usage):
    return {"choices": [], "usage": usage}


@pytest.mark.parametrize(
    ("reply", "counts"),
    [
        (stated(prompt_tokens=12, completion_tokens=3, total_tokens=99), (12, 3)),
        # Of embeddings there are no tokens that were written.
        (stated(prompt_tokens=12, total_tokens=20), (12, 8)),
        (stated(prompt_tokens=12, total_tokens=5), (12, 0)),
        ({"meta_info": {"prompt_tokens": 12, "completion_tokens": 3}}, (12, 3)),
        ({"tokens_evaluated": 12, "tokens_predicted": 0}, (12, 0)),
    ],
)
def test_what_a_reply_states_is_counted(reply, counts):
    result = Usage(replace(SPEC, max_tokens_total=10**6))
    result.add(reply)
    result.add(reply)
    assert (result.read, result.written) == (2 * counts[0], 2 * counts[1])


@pytest.mark.parametrize(
    "reply",
    [
        *([], {}, {"usage": [1]}, stated(prompt_tokens=5)),
        stated(completion_tokens=5, total_tokens=5),
        # No prompt has none.
        stated(prompt_tokens=0, completion_tokens=5),
        {"tokens_evaluated": 0, "tokens_predicted": 5},
        *(
            stated(prompt_tokens=n, completion_tokens=1)
            for n in (-1, 1.5, "7", True, 10**13)
        ),
    ],
)
def test_without_a_statement_a_budget_is_an_error_and_no_budget_is_none(reply):
    free = Usage(SPEC)
    free.add(reply)
    assert free.unstated == 1
    with pytest.raises(ModelError, match=r"^openai/m: .* states no usage") as raised:
        Usage(replace(SPEC, max_tokens_total=10**6)).add(reply)
    assert not isinstance(raised.value, BudgetError)


def test_nothing_is_sent_once_the_budget_is_spent_and_what_was_sent_comes_back(
    openai_server, model_at
):
    usage = {"prompt_tokens": 40, "completion_tokens": 10}
    openai_server.always = Fault(change=lambda reply: reply.update(usage=usage))
    model = model_at("max_concurrent=3,max_tokens_total=200")
    answers = []

    requests = [GenerateRequest(prompt=str(n), max_new_tokens=8) for n in range(40)]

    def ask():
        for batch in model.generate_as_ready(requests):
            answers.extend(response for _, response in batch)

    with pytest.raises(BudgetError):
        ask()
    assert all(isinstance(answer, Generated) for answer in answers)
    assert 4 <= len(answers) == len(openai_server.calls) < 4 + 3
    assert model.usage.read + model.usage.written == 50 * len(answers)


def test_scoring_has_the_budget_too_and_splitting_texts_into_tokens_costs_nothing(
    openai_server, model_at
):
    def paid(call):
        reply = vllm(call)
        reply["usage"]["completion_tokens"] = 1
        return reply

    openai_server.routes = {"/tokenize": tokenize, "completions": paid}
    requests = [
        ScoreRequest(prompt="Berlin is in", continuation=f" {word}")
        for word in "abcdefghij"
    ]
    model = model_at("endpoint=completions,max_tokens_total=100000")
    assert not model.unscorable
    assert all(isinstance(response, Scored) for response in model.score(requests))
    spent = model.usage.read + model.usage.written
    poor = model_at(
        f"endpoint=completions,max_concurrent=1,max_tokens_total={spent - 40}"
    )
    with pytest.raises(BudgetError):
        poor.score(requests)
    # Already while it finds out how to score.
    with pytest.raises(BudgetError):
        model_at("endpoint=completions,max_tokens_total=150").score(requests)
