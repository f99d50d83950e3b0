from __future__ import annotations

import html
import json
from types import SimpleNamespace
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_kbrel import printing
from pytest_kbrel.errors import ModelError
from pytest_kbrel.models.batching import describe_error
from pytest_kbrel.printing import hide, redacted, redacted_reply

KEY = 'sk-Very/Secret+12"3&=%4é'


@pytest.fixture(autouse=True)
def _no_key_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(printing, "_known", {})
    hide(KEY)


def entirely(text: str) -> str:
    return "".join(f"%{byte:02X}" for byte in text.encode())


@pytest.mark.parametrize(
    "spelled",
    [
        KEY,
        KEY.upper(),
        KEY.lower(),
        quote(KEY),
        quote(KEY, safe=""),
        quote(KEY, safe="").lower(),
        quote(quote(KEY, safe="")),
        entirely(KEY),
        entirely(KEY).lower(),
        json.dumps(KEY)[1:-1],
        json.dumps(KEY, ensure_ascii=False)[1:-1],
        json.dumps(KEY).replace("/", r"\/")[1:-1],
        "".join(f"\\u{ord(char):04X}" for char in KEY),
        ascii(KEY)[1:-1],
        html.escape(KEY),
        "".join(f"&#{ord(char)};" for char in KEY),
        "".join(f"&#x{ord(char):X};" for char in KEY),
    ],
)
def test_a_key_is_hidden_however_it_is_spelled(spelled: str) -> None:
    assert redacted(f"Bearer {spelled}, and {spelled}.") == "Bearer ***, and ***."


@given(st.data())
def test_a_key_is_hidden_where_each_character_is_spelled_in_its_own_way(data: st.DataObject) -> None:
    ways = (str, str.upper, str.lower, entirely, lambda char: entirely(char).lower(), html.escape)
    spelled = "".join(data.draw(st.sampled_from(ways))(char) for char in KEY)
    assert redacted(f"<{spelled}>") == "<***>"


@pytest.mark.parametrize("key", ["none", "EMPTY", "test", "x", "", "1234567"])
def test_a_short_key_hides_no_ordinary_words(monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    monkeypatch.setattr(printing, "_known", {})
    hide(key)
    text = "none of the x, 1234567 times, in EMPTY test runs"
    assert redacted(text) == text


def test_eight_characters_are_a_key_and_blanks_around_it_are_not_its_own() -> None:
    hide(" 12345678\n")
    assert redacted("a 12345678 b") == "a *** b"


def test_what_is_not_the_key_stays() -> None:
    assert redacted(KEY[:-1]) == KEY[:-1]
    assert redacted("sk-very-other") == "sk-very-other"


def test_a_reply_is_searched_in_all_its_parts() -> None:
    extra = SimpleNamespace(content=f"my {KEY}", number=float("nan"))
    reply = SimpleNamespace(choices=[extra, {"a": [KEY], f"of {KEY}": 1}], model="m", none=None, n=3)
    result, had = redacted_reply(reply)
    assert result is reply
    assert had
    assert reply.choices == [extra, {"a": ["***"], "of ***": 1}]
    assert extra.content == "my ***"
    assert redacted_reply(SimpleNamespace(a=[1.0, "b", {"c": float("nan")}]))[1] is False
    assert redacted_reply(f"no JSON: {KEY}") == ("no JSON: ***", True)


def test_a_reply_of_any_depth_is_searched() -> None:
    reply: list[object] = [KEY]
    for _ in range(100_000):
        reply = [reply]
    result, had = redacted_reply(reply)
    assert had
    while isinstance(result[0], list):
        result = result[0]
    assert result == ["***"]


def test_no_half_of_a_key_is_left_where_an_error_is_cut() -> None:
    text = describe_error(ValueError("x" * 290 + KEY + "y"))
    assert text == f"ValueError: {'x' * 290}***y"
    assert "***" in str(ModelError(f"refused: {KEY}"))
