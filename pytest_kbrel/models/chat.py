"""Chat settings of a model, requests as messages of a conversation, and the marks of thoughts.

A thought is what a model writes before its answer; it is recorded and never judged.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from pytest_kbrel.bounds import TOKENS
from pytest_kbrel.errors import ModelError
from pytest_kbrel.models.arguments import flag, whole_or_auto
from pytest_kbrel.records import Request, record
from pytest_kbrel.untrusted import parse

CHAT_ARGS = (
    "system_instruction",
    "enable_thinking",
    "chat_template_args",
    "think_end_token",
    "max_thinking_tokens",
)
"""The keys of ``--kb-model-args`` that say how prompts become messages; the first four are lm-eval's."""

MAX_THINKING_TOKENS = 2048
_ENABLE = "enable_thinking"
# What a template is filled in with by us, or by transformers, and is no variable of it.
_OURS = frozenset(
    (
        "add_generation_prompt",
        "chat_template",
        "continue_final_message",
        "conversation",
        "messages",
        "tokenize",
    )
)


@record
class ChatArgs:
    """Chat settings: how a prompt becomes messages, and how long a model may think before it answers.

    ``system_instruction`` is the system message; without a chat template it leads the prompt.
    ``template_args`` are further variables of the chat template, a JSON object with sorted keys.
    ``enable_thinking`` is the template's variable of that name, ``None`` if not given. ``think_end_token``
    is the text that ends a thought, or its token's id; if empty, template and tokenizer declare it.
    """

    system_instruction: str = ""
    enable_thinking: bool | None = None
    template_args: str = ""
    think_end_token: str = ""
    max_thinking_tokens: int = MAX_THINKING_TOKENS

    @property
    def variables(self) -> dict[str, Any]:
        """The template's variables by name, ``enable_thinking`` among them where it is given."""
        variables: dict[str, Any] = json.loads(self.template_args or "{}")
        return variables if self.enable_thinking is None else variables | {_ENABLE: self.enable_thinking}

    @property
    def thinks(self) -> bool:
        """True if the user says that the model thinks before it answers."""
        return bool(self.enable_thinking or self.think_end_token)

    def told(self) -> str:
        """Return the settings that are not the default and change answers, as JSON; empty without any."""
        given = {
            "system_instruction": self.system_instruction,
            "chat_template_args": self.variables,
            "think_end_token": self.think_end_token,
            "max_thinking_tokens": self.max_thinking_tokens,
        }
        if self.max_thinking_tokens == MAX_THINKING_TOKENS:
            del given["max_thinking_tokens"]
        values = {key: value for key, value in given.items() if value}
        return json.dumps(values, sort_keys=True, ensure_ascii=False) if values else ""


def parse_chat_args(args: Mapping[str, str]) -> ChatArgs:
    """Read the keys of :data:`CHAT_ARGS`; others are left alone.

    Raises :class:`ModelError` for template arguments that are no JSON object, for two values of
    ``enable_thinking``, and for a text that is blank.
    """
    variables = _variables(args.get("chat_template_args", ""))
    thinking = flag(args, _ENABLE)
    inside = variables.pop(_ENABLE, None)
    if inside is not None and not isinstance(inside, bool):
        raise ModelError(f"model-args: chat_template_args: {_ENABLE} is {inside!r}; allowed is true or false")
    if None not in (thinking, inside) and thinking != inside:
        raise ModelError(
            f"model-args: {_ENABLE}={thinking}, and chat_template_args says {inside}; give one of them"
        )
    for key in ("system_instruction", "think_end_token"):
        if key in args and not args[key].strip():
            raise ModelError(f"model-args: {key} is blank; allowed is a text, or no {key}")
    limit = args.get("max_thinking_tokens", str(MAX_THINKING_TOKENS))
    return ChatArgs(
        system_instruction=args.get("system_instruction", ""),
        enable_thinking=inside if thinking is None else thinking,
        template_args=json.dumps(variables, sort_keys=True) if variables else "",
        think_end_token=args.get("think_end_token", ""),
        max_thinking_tokens=whole_or_auto(
            "max_thinking_tokens",
            limit,
            TOKENS,
            "of tokens; enable_thinking=False asks for answers without a thought",
        )
        or MAX_THINKING_TOKENS,
    )


def _variables(text: str) -> dict[str, Any]:
    try:
        variables = parse(text or "{}")
    except ValueError as error:
        raise ModelError(
            f"model-args: chat_template_args={text:.60}: no JSON: {error}; the form is "
            '{"enable_thinking": false}'
        ) from None
    if not isinstance(variables, dict):
        raise ModelError(f"model-args: chat_template_args={text:.60}; allowed is a JSON object")
    if ours := ", ".join(sorted(_OURS & variables.keys())):
        raise ModelError(f"model-args: chat_template_args: {ours} is no variable of a chat template")
    return variables


Message = Mapping[str, str]


def message(role: str, content: str) -> dict[str, str]:
    """Return one message, as chat templates and servers take it."""
    return {"role": role, "content": content}


def messages_of(request: Request, instruction: str = "") -> list[dict[str, str]]:
    """Return a request as messages: system, the examples as turns, and the prompt of the user.

    ``instruction`` is the model's own system message; it stands before that of the request.
    """
    system = _joined(instruction, request.system)
    turns = [
        message(role, content)
        for turn in request.turns
        for role, content in zip(("user", "assistant"), turn, strict=True)
    ]
    return [*([message("system", system)] if system else []), *turns, message("user", request.prompt)]


def text_of(request: Request, instruction: str = "") -> str:
    """Return a request as one text, as a model without a chat template reads it."""
    turns = [f"{question} {answer}" for question, answer in request.turns]
    return _joined(instruction, request.system, *turns, request.prompt)


def _joined(*parts: str) -> str:
    return "\n\n".join(part for part in parts if part)


@record
class ThoughtMarks:
    """The texts that open and close a thought; ``opening`` is empty where only the end is known."""

    opening: str
    closing: str

    def opened_by(self, prompt: str) -> bool:
        """Return True if a prompt ends inside a thought."""
        return bool(self.opening) and prompt.rfind(self.opening) > prompt.rfind(self.closing)

    def begun_by(self, written: str) -> bool:
        """Return True if generated text begins with a thought."""
        return bool(self.opening) and written.lstrip().startswith(self.opening)

    def split(self, written: str) -> tuple[str, str]:
        """Return the thought in generated text, without its marks, and the text behind it.

        Without a closing mark all of it is thought if it begins with an opening mark, else none.
        """
        thought, closing, answer = written.partition(self.closing)
        if not closing and not self.begun_by(written):
            return "", written
        return thought.strip().removeprefix(self.opening).strip(), answer


# Marks that templates or tokenizers of models in use declare.
KNOWN = (
    ThoughtMarks(opening="<think>", closing="</think>"),
    ThoughtMarks(opening="<thinking>", closing="</thinking>"),
    ThoughtMarks(opening="<thought>", closing="</thought>"),
    ThoughtMarks(opening="<reasoning>", closing="</reasoning>"),
    ThoughtMarks(opening="[THINK]", closing="[/THINK]"),
    ThoughtMarks(opening="<seed:think>", closing="</seed:think>"),
    ThoughtMarks(opening="<|START_THINKING|>", closing="<|END_THINKING|>"),
    ThoughtMarks(opening="<|begin_of_thought|>", closing="<|end_of_thought|>"),
    ThoughtMarks(opening="◁think▷", closing="◁/think▷"),
    ThoughtMarks(opening="<|channel>thought", closing="<channel|>"),
    ThoughtMarks(opening="<|channel|>analysis<|message|>", closing="<|channel|>final<|message|>"),
)


def marks_in(*declaring: Iterable[str] | str, closing: str = "") -> ThoughtMarks | None:
    """Return the marks in a template's text or among a tokenizer's own tokens, ``None`` without any.

    The first declaration holds: a tokenizer may have the tokens of several. ``closing`` is the closing mark
    that the user names, which overrides all declarations.
    """
    if closing:
        openings = (marks.opening for marks in KNOWN if marks.closing == closing)
        return ThoughtMarks(opening=next(openings, ""), closing=closing)
    return next((marks for texts in declaring for marks in KNOWN if marks.closing in texts), None)


def marks_opened_by(prompt: str) -> ThoughtMarks | None:
    """Return the known marks of the thought that a prompt ends inside, ``None`` if it ends in none."""
    return next((marks for marks in KNOWN if marks.opened_by(prompt)), None)


def marks_of(written: str) -> ThoughtMarks | None:
    """Return the known marks that a text begins with or that close a thought in it, ``None`` without any."""
    return next((marks for marks in KNOWN if marks.begun_by(written) or marks.closing in written), None)
