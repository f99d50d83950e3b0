from __future__ import annotations

import pytest

from pytest_kbrel.errors import ModelError
from pytest_kbrel.models.arguments import join_args, parse_args
from pytest_kbrel.models.chat import CHAT_ARGS, ChatArgs, parse_chat_args

KEYS = ("dtype", "revision", *CHAT_ARGS)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("dtype=float32,revision=main", {"dtype": "float32", "revision": "main"}),
        ("dtype=float32, revision=main", {"dtype": "float32", "revision": "main"}),
        ("dtype=float32 revision=main", {"dtype": "float32", "revision": "main"}),
        ("", {}),
        (
            'chat_template_args={"a": [1, 2], "b": "},"},dtype=auto',
            {"chat_template_args": '{"a": [1, 2], "b": "},"}', "dtype": "auto"},
        ),
        (
            'system_instruction="You are terse, and never guess.",dtype=auto',
            {"system_instruction": "You are terse, and never guess.", "dtype": "auto"},
        ),
        ("system_instruction='Say \"unsure\".'", {"system_instruction": 'Say "unsure".'}),
        ('system_instruction="[INST] Be brief, please."', {"system_instruction": "[INST] Be brief, please."}),
        ("system_instruction=Be brief.", {"system_instruction": "Be brief."}),
        ("think_end_token=</think>", {"think_end_token": "</think>"}),
    ],
)
def test_arguments_are_read_and_can_be_written_again(text: str, found: dict[str, str]) -> None:
    assert parse_args(text, KEYS) == found
    assert parse_args(join_args(found), KEYS) == found


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("colour=red", "unknown key 'colour'"),
        ("dtype", "dtype has no value"),
        ("dtype=", "dtype has no value"),
        ("dtype=a,dtype=b", "dtype is given twice"),
        ('system_instruction="Be brief', 'the quotation mark " is not closed'),
        ('chat_template_args={"a": 1', "{ is not closed by }"),
    ],
)
def test_arguments_of_another_form_are_refused(text: str, says: str) -> None:
    with pytest.raises(ModelError, match=says.replace("{", r"\{").replace("}", r"\}")):
        parse_args(text, KEYS)


def test_what_is_said_about_the_chat_template_is_one_thing_however_it_is_given() -> None:
    inside = parse_chat_args({"chat_template_args": '{"enable_thinking": false, "date": "x"}'})
    beside = parse_chat_args({"enable_thinking": "False", "chat_template_args": '{"date": "x"}'})
    assert inside == beside
    assert inside.variables == {"enable_thinking": False, "date": "x"}
    assert not inside.thinks
    assert parse_chat_args({"think_end_token": "</t>"}).thinks


def test_only_what_is_not_the_default_is_told() -> None:
    assert ChatArgs().told() == parse_chat_args({}).told() == ""
    assert parse_chat_args({"max_thinking_tokens": "64"}).told() == '{"max_thinking_tokens": 64}'
    assert parse_chat_args({"enable_thinking": "0"}).told() == (
        '{"chat_template_args": {"enable_thinking": false}}'
    )


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ({"chat_template_args": "thinking"}, "no JSON"),
        ({"chat_template_args": "[1]"}, "allowed is a JSON object"),
        ({"chat_template_args": '{"enable_thinking": "no"}'}, "allowed is true or false"),
        ({"chat_template_args": '{"enable_thinking": true}', "enable_thinking": "False"}, "give one of them"),
        ({"enable_thinking": "maybe"}, "allowed is True or False"),
        ({"max_thinking_tokens": "0"}, "from 1 to 100,000,000, of tokens; enable_thinking=False"),
        ({"system_instruction": " "}, "model-args: system_instruction is blank; allowed is a text"),
        ({"think_end_token": "\n"}, "model-args: think_end_token is blank"),
    ],
)
def test_bad_arguments_of_a_chat_template_are_refused(args: dict[str, str], says: str) -> None:
    with pytest.raises(ModelError, match=says):
        parse_chat_args(args)
