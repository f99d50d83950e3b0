"""Backend for OpenAI-compatible servers; the package ``openai`` is imported when one is opened."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from pytest_kbrel.models.arguments import LM_EVAL
from pytest_kbrel.models.base import Backend, Embedder, Model, TokenCounter
from pytest_kbrel.models.openai.spec import OPENAI_ARGS, OpenAISpec, check, parse_openai


def _open(spec: OpenAISpec, **_: object) -> Model:
    check(spec)
    from pytest_kbrel.models.openai.model import OpenAIModel

    return OpenAIModel(spec)


def _unscorable(spec: OpenAISpec) -> str:
    from pytest_kbrel.models.openai.scoring import without_tokenizer

    # Most servers need not be asked.
    if why := without_tokenizer(spec):
        return why
    with closing(_open(spec)) as model:
        return model.unscorable


def _embedder(text: str, args: str, folder: Path) -> Embedder:
    spec = parse_openai(text, args)
    check(spec)
    from pytest_kbrel.models.openai.client import OpenAIEmbedder

    return OpenAIEmbedder(spec)


def _counter(spec: OpenAISpec) -> TokenCounter:
    chat = spec.chat
    may_think = chat.enable_thinking is not False and (spec.chats or chat.thinks)
    return TokenCounter(chat.system_instruction, chat.max_thinking_tokens * may_think)


OPENAI = Backend(
    name="openai",
    forms=("openai/NAME",),
    args=(*OPENAI_ARGS, *LM_EVAL["openai"]),
    parse=parse_openai,
    check=check,
    open=_open,
    counter=_counter,
    embedder=_embedder,
    is_served=True,
    announcement=lambda spec: f"asking {spec.text} at {spec.base_url}",
    unscorable=_unscorable,
)
