from __future__ import annotations

import pytest

from pytest_kbrel.records import Failed, GenerateRequest
from tests.openai_server import FILTERED, Fault

CHAT = "chat/completions"
THOUGHT = "Okay, they ask for a city.\nIt must be the one on the Seine, so that I am sure of it now."
MARKED = f"<think>\n{THOUGHT}\n</think>\n\nParis\nTokyo"
# As of a model whose template opens the thought, behind a server that parts nothing.
UNMARKED = f"{THOUGHT}\n</think>\n\nParis\nTokyo"


def ask(prompt="Where?", **more):
    return GenerateRequest(prompt=prompt, **{"max_new_tokens": 8, **more})


@pytest.mark.parametrize(
    ("said", "parses"),
    [
        (MARKED, ""),
        (UNMARKED, ""),
        (UNMARKED, "reasoning_content"),
        (UNMARKED, "reasoning"),
        (MARKED, "reasoning"),
    ],
)
@pytest.mark.parametrize("args", ["", "enable_thinking=True"])
def test_the_answer_is_what_stands_behind_the_thought(
    openai_server, model_at, said, parses, args
):
    openai_server.say = lambda text: said
    openai_server.parses = parses
    result = model_at(args).generate([ask("1"), ask("2"), ask("3")])
    assert [(one.text, one.finish, one.thought) for one in result] == [
        ("Paris", "stop", THOUGHT)
    ] * 3
    asked = [
        ("stop" in call.body, call.body["max_tokens"])
        for call in openai_server.calls_to(CHAT)
    ]
    known = [(False, 8 + 2048)] * 3
    # What a model does is found out with the first question.
    assert asked == (known if args else [(True, 8), *known])


LONG = "The city that you are asking me about is, of course, Paris, in France."


@pytest.mark.parametrize(
    ("said", "args", "limits"),
    [
        # Of a long first answer one look tells whether it was a thought.
        (LONG, "", [8, 8, 8, 8 + 2048]),
        (LONG, "enable_thinking=False", [8, 8, 8]),
        ("Paris\nTokyo", "", [8, 8, 8]),
    ],
)
def test_a_model_that_does_not_think_is_asked_as_ever(
    openai_server, model_at, said, args, limits
):
    openai_server.say = lambda text: said
    result = model_at(args).generate([ask("1"), ask("2"), ask("3")])
    assert {(one.thought, one.thought_tokens) for one in result} == {("", 0)}
    calls = openai_server.calls_to(CHAT)
    assert sorted(call.body["max_tokens"] for call in calls) == limits
    told = {"enable_thinking": False} if args else None
    assert all(call.body.get("chat_template_kwargs") == told for call in calls)


def test_an_answer_may_begin_with_a_line_break(openai_server, model_at):
    openai_server.say = lambda text: "\n\nParis\nTokyo"
    result = model_at("endpoint=completions").generate([ask("1"), ask("2")])
    assert [one.text for one in result] == ["Paris"] * 2


@pytest.mark.parametrize(
    ("args", "say"), [("", UNMARKED), ("think_end_token=[done]", "Hm.\n[done] Paris")]
)
def test_what_is_cut_short_before_the_end_of_a_thought_is_no_answer(
    openai_server, model_at, args, say
):
    """Where the template opens the thought, and the server parts nothing."""
    openai_server.say = lambda text: THOUGHT * 20 if text == "2" else say
    model = model_at(",".join(filter(None, ["max_thinking_tokens=40", args])))
    first, second, third = model.generate([ask("1"), ask("2"), ask("3")])
    assert (first.text, third.text) == ("Paris", "Paris")
    assert (second.text, second.finish) == ("", "length")
    assert second.thought.startswith("Okay, they ask")


def test_whether_a_model_thinks_is_found_out_with_the_first_question_that_has_an_answer(
    openai_server, model_at
):
    openai_server.say = lambda text: UNMARKED
    openai_server.inject(FILTERED)
    model = model_at("max_retries=0")
    assert isinstance(model.generate([ask("1")])[0], Failed)
    assert model.generate([ask("2")])[0].text == "Paris"


TOO_MANY_TOKENS = Fault(
    status=400,
    message="'max_tokens' is too large: 2056. This model's maximum context length is 1024 tokens",
)


def test_a_thought_that_a_server_has_no_room_for_says_what_sets_its_length(
    openai_server, model_at
):
    openai_server.always = TOO_MANY_TOKENS
    (thinking,) = model_at("enable_thinking=True").generate([ask()])
    assert "maximum context length" in thinking.error
    assert "max_thinking_tokens of the model-args, here 2048" in thinking.error
    (plain,) = model_at().generate([ask()])
    assert "max_thinking_tokens" not in plain.error
