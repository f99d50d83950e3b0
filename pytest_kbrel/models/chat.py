"""Chat settings of a model, requests as messages, thought marks, and the chat template of a tokenizer.

A thought is what a model writes before its answer; it is recorded and never judged.
"""

from __future__ import annotations

import contextlib
import datetime
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pytest_kbrel.errors import ModelError
from pytest_kbrel.records import Request, record

MAX_THINKING_TOKENS = 2048
ENABLE = "enable_thinking"


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
        if self.enable_thinking is not None:
            variables[ENABLE] = self.enable_thinking
        return variables

    @property
    def thinks(self) -> bool:
        """True if the user says that the model thinks before it answers."""
        return bool(self.enable_thinking or self.think_end_token)

    def prompting(self, **more: Any) -> str:
        """Return the settings that are not the default and change answers, as JSON; empty without any.

        ``more`` are those of a model besides these.
        """
        limit = self.max_thinking_tokens
        given = {
            "system_instruction": self.system_instruction,
            "chat_template_args": self.variables,
            "think_end_token": self.think_end_token,
            "max_thinking_tokens": 0 if limit == MAX_THINKING_TOKENS else limit,
            **more,
        }
        values = {key: value for key, value in given.items() if value}
        return json.dumps(values, sort_keys=True, ensure_ascii=False) if values else ""


Message = Mapping[str, str]


def message(role: str, content: str) -> dict[str, str]:
    """Return one message, as chat templates and servers take it."""
    return {"role": role, "content": content}


def messages_of(request: Request, instruction: str) -> list[dict[str, str]]:
    """Return a request as messages: system, the examples as turns, and the prompt of the user.

    A lead, which the answer goes on from, is in none of them. ``instruction`` is the model's own system message; it stands before that of the request.
    """
    system = _joined(instruction, request.system)
    messages = [message("system", system)] if system else []
    for question, answer in request.turns:
        messages += [message("user", question), message("assistant", answer)]
    return [*messages, message("user", request.prompt)]


def text_of(request: Request, instruction: str = "") -> str:
    """Return a request as one text, as a model without a chat template reads it."""
    turns = [f"{question} {answer}" for question, answer in request.turns]
    prompt = f"{request.prompt} {request.lead}" if request.lead else request.prompt
    return _joined(instruction, request.system, *turns, prompt)


def _joined(*parts: str) -> str:
    return "\n\n".join(part for part in parts if part)


@record
class ThoughtMarks:
    """The texts that open and close a thought; ``opening`` is empty where only the end is known."""

    opening: str
    closing: str

    def opened_by(self, prompt: str) -> bool:
        """Return True if a prompt ends inside a thought."""
        return bool(self.opening) and prompt.rfind(self.opening) > prompt.rfind(
            self.closing
        )

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
KNOWN = tuple(
    ThoughtMarks(opening=opening, closing=closing)
    for opening, closing in map(
        str.split,
        (
            "<think> </think>",
            "<thinking> </thinking>",
            "<thought> </thought>",
            "<reasoning> </reasoning>",
            "[THINK] [/THINK]",
            "<seed:think> </seed:think>",
            "<|START_THINKING|> <|END_THINKING|>",
            "<|begin_of_thought|> <|end_of_thought|>",
            "◁think▷ ◁/think▷",
            "<|channel>thought <channel|>",
            "<|channel|>analysis<|message|> <|channel|>final<|message|>",
        ),
    )
)


def marks_in(*declaring: Iterable[str] | str, closing: str) -> ThoughtMarks | None:
    """Return the marks in a template's text or among a tokenizer's own tokens, ``None`` without any.

    The first declaration holds: a tokenizer may have the tokens of several. ``closing`` is the closing mark
    that the user names, which overrides all declarations.
    """
    if closing:
        openings = (marks.opening for marks in KNOWN if marks.closing == closing)
        return ThoughtMarks(opening=next(openings, ""), closing=closing)
    return next(
        (marks for texts in declaring for marks in KNOWN if marks.closing in texts),
        None,
    )


def marks_of(written: str) -> ThoughtMarks | None:
    """Return the known marks that a text begins with or that close a thought in it, ``None`` without any."""
    given = (m for m in KNOWN if m.begun_by(written) or m.closing in written)
    return next(given, None)


# Some templates tell the model today's date, by a function of this name. The prompts of one day must be those
# of the next, so that it tells the first day of 2025. transformers takes no functions as variables.
_TODAY = "strftime_now"
_DAY = datetime.date(2025, 1, 1)
# The last ones are not known to Python on every system.
_CODES = {code: _DAY.strftime(f"%{code}") for code in "AaBbdmYyjHMSIp"} | {
    "-d": "1",
    "-m": "1",
    "e": " 1",
}
_REPLACED = "".join(f" | replace('%{code}', '{text}')" for code, text in _CODES.items())
_FIXED_DAY = (
    f"{{%- macro {_TODAY}(form) -%}}{{{{ form{_REPLACED} }}}}{{%- endmacro -%}}"
)
_SYSTEM, _QUESTION, _ANSWER = "kbrel-system", "kbrel-question", "kbrel-answer"
_SAMPLE = (message("user", _QUESTION),)


@record
class AnswerSlot:
    """Position of an answer's text: ``suffix`` follows the prompt, ``lead`` precedes the answer.

    ``variables`` are the template's variables for it.
    """

    variables: dict[str, Any]
    suffix: str = ""
    lead: str = ""


_NO_SLOT = (
    "the model thinks before it answers, and its chat template has no form with a closed, empty thought behind "
    "which an answer could be scored"
)


class ChatTemplate:
    """Chat template of a tokenizer with the user's settings.

    ``marks`` are the marks of thoughts that template or tokenizer declares. What a template without a place
    for it would leave out or refuse, the system message, leads what the user says first. Raises
    :class:`ModelError` if the tokenizer has no template, or it does not work with these settings, or an answer
    does not begin where its prompt ends; what an encoder reads may end.
    """

    def __init__(
        self, tokenizer: Any, args: ChatArgs, *, encoder_decoder: bool = False
    ) -> None:
        if not tokenizer.chat_template:
            raise ModelError("a chat template is asked for, but the tokenizer has none")
        self._tokenizer, self._args, self._takes_system = tokenizer, args, True
        self._source = _source(tokenizer.chat_template)
        if _TODAY in self._source:
            self._source = _FIXED_DAY + self._source
        try:
            self._opening = self.prompt(_SAMPLE)
        except Exception as error:
            raise ModelError(
                f"the tokenizer's chat template does not work: {error}"
            ) from None
        if _QUESTION not in self._opening:
            raise ModelError(
                "the tokenizer's chat template leaves out what a user says as a plain text"
            )
        opened = (marks for marks in KNOWN if marks.opened_by(self._opening))
        declared = marks_of_tokenizer(tokenizer, args, self._source)
        self.marks = declared or next(opened, None)
        self._takes_system = self._shows_system()
        if not encoder_decoder:
            self._check_opening()
        self._slot = self._find_slot()
        # Why no answer can be scored behind this template; empty if one can.
        self.unscorable = "" if self._slot else _NO_SLOT

    @property
    def opens_thoughts(self) -> bool:
        """True if the template itself begins a thought, which the model continues."""
        return self.marks is not None and self.marks.opened_by(self._opening)

    @property
    def slot(self) -> AnswerSlot:
        """Position of an answer without a thought; ``ValueError`` with the reason if there is none."""
        if self._slot is None:
            raise ValueError(self.unscorable)
        return self._slot

    def prompt(self, messages: Sequence[Message]) -> str:
        """Return messages as the prompt that the model continues."""
        return self._filled(messages, self._args.variables, add_generation_prompt=True)

    def answer_prompt(self, messages: Sequence[Message], lead: str = "") -> str:
        """Return messages as the prompt of a given answer, or of the rest of one behind its ``lead``.

        Raises as :attr:`slot`.
        """
        slot = self.slot
        filled = self._filled(messages, slot.variables, add_generation_prompt=True)
        return filled + slot.suffix + (slot.lead + lead if lead else "")

    @property
    def idle(self) -> tuple[str, ...]:
        """Names of the user's variables that this template does not use."""
        says = self._source
        if self._args.enable_thinking and self.marks is not None:
            says += ENABLE
        return tuple(name for name in self._args.variables if name not in says)

    @property
    def end(self) -> int | None:
        """The special token that stands right behind an answer; ``None`` without one, or with thoughts.

        Of a model that thinks, such a token may also stand between thought and answer.
        """
        return None if self.marks else self._end_of_answer()

    def _end_of_answer(self) -> int | None:
        tail = self._whole(self._args.variables).rpartition(_ANSWER)[2].lstrip()
        added = self._tokenizer.added_tokens_decoder
        for token in self._ids(tail)[:1]:
            if token in added and added[token].special:
                return token
        return None

    def _ids(self, text: str) -> list[int]:
        return list(self._tokenizer(text, add_special_tokens=False)["input_ids"])

    def _filled(
        self, messages: Sequence[Message], variables: dict[str, Any], **options: Any
    ) -> str:
        if not self._takes_system and messages[0]["role"] == "system":
            system, first, *others = messages
            led = _joined(system["content"], first["content"])
            messages = [message("user", led), *others]
        given = {"chat_template": self._source} | variables | options
        return str(
            self._tokenizer.apply_chat_template(list(messages), tokenize=False, **given)
        )

    def _shows_system(self) -> bool:
        try:
            return _SYSTEM in self.prompt((message("system", _SYSTEM), *_SAMPLE))
        except Exception:
            # Some templates refuse system messages.
            return False

    def _find_slot(self) -> AnswerSlot | None:
        variables, marks = self._args.variables, self.marks
        behind = self._behind(variables) or ""
        # All that a template puts in front of an answer and is no blank, the model sees before it.
        part = "suffix" if behind.strip() else "lead"
        plain = AnswerSlot(variables=variables, **{part: behind})
        # Models that do not think may have the marks in their vocabulary alone.
        if marks is None or not (
            marks.closing in self._source or self.opens_thoughts or self._args.thinks
        ):
            return plain
        if (self._opening + behind).rstrip().endswith(marks.closing):
            return plain
        without = variables | {ENABLE: False}
        # Some templates refuse a model that does not think.
        with contextlib.suppress(Exception):
            closed = self._filled(_SAMPLE, without, add_generation_prompt=True)
            if closed.rstrip().endswith(marks.closing):
                return AnswerSlot(variables=without)
        if self._args.enable_thinking is False and not self.opens_thoughts:
            return plain
        return None

    def _behind(self, variables: dict[str, Any]) -> str | None:
        """Return the text between prompt and answer; ``None`` if an answer does not follow a prompt."""
        before, answer, _ = self._whole(variables).rpartition(_ANSWER)
        follows = answer and before.startswith(self._opening)
        return before.removeprefix(self._opening) if follows else None

    def _whole(self, variables: dict[str, Any]) -> str:
        """Return a question with its answer; empty of a template that takes no assistant at the end."""
        try:
            return self._filled((*_SAMPLE, message("assistant", _ANSWER)), variables)
        except Exception:
            return ""

    def _check_opening(self) -> None:
        """Refuse a template whose prompt lacks what precedes an answer, or ends with what ends one.

        In Mistral's the answer follows the question at once, and in DialoGPT's the end token between them.
        """
        variables = self._args.variables
        behind = self._behind(variables)
        header = (behind or "").strip()
        if self.marks and self.marks.begun_by(header):
            header = ""
        if header and self._filled(_SAMPLE, variables) == self._opening:
            raise ModelError(
                "the tokenizer's chat template has no generation prompt: with add_generation_prompt too it "
                f"leaves out {header!r}, which precedes each answer; allowed: a template that puts it there"
            )
        last = self._ids(self._opening.rstrip())[-1]
        ends = (self._tokenizer.eos_token_id, self._end_of_answer())
        if last in ends and (header or behind is None):
            raise ModelError(
                "the tokenizer's chat template ends a prompt with the end token "
                f"{self._tokenizer.convert_ids_to_tokens(last)}; allowed: a template whose prompt ends where an "
                "answer begins"
            )


def marks_of_tokenizer(
    tokenizer: Any, args: ChatArgs, template: str = ""
) -> ThoughtMarks | None:
    """Return the marks of thoughts that a template or a tokenizer declares, or the user names.

    Raises :class:`ModelError` if the user names a token that the tokenizer does not have.
    """
    closing = args.think_end_token
    # As lm-eval reads it.
    if closing.isdecimal():
        ids = [int(closing)] if int(closing) < len(tokenizer) else []
        if not (closing := tokenizer.decode(ids, skip_special_tokens=False)):
            raise ModelError(
                f"model-args: think_end_token={args.think_end_token}: the tokenizer has no such token"
            )
    return marks_in(template, tokenizer.get_added_vocab(), closing=closing)


def _source(template: Any) -> str:
    # A tokenizer may have several, by name; transformers too uses none but this one unasked.
    named = template if isinstance(template, dict) else {"default": template}
    if "default" not in named:
        raise ModelError(
            f"the tokenizer has chat templates named {', '.join(sorted(named))}, and none named default"
        )
    return str(named["default"])
