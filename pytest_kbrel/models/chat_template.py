"""Chat template of a tokenizer: messages as a prompt, and the position of the answer in it."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import Any

from pytest_kbrel.errors import ModelError
from pytest_kbrel.models.chat import ChatArgs, Message, ThoughtMarks, marks_in, marks_opened_by, message
from pytest_kbrel.records import record

# Some templates tell the model today's date, by a function of this name. The prompts of one day must be those
# of the next, so that it tells the first day of 2025. transformers takes no functions as variables.
_TODAY = "strftime_now"
_DAY = datetime.date(2025, 1, 1)
# The last ones are not known to Python on every system.
_CODES = {code: _DAY.strftime(f"%{code}") for code in "AaBbdmYyjHMSIp"} | {"-d": "1", "-m": "1", "e": " 1"}
_REPLACED = "".join(f" | replace('%{code}', '{text}')" for code, text in _CODES.items())
_FIXED_DAY = f"{{%- macro {_TODAY}(form) -%}}{{{{ form{_REPLACED} }}}}{{%- endmacro -%}}"
_QUESTION, _ANSWER = "kbrel-question", "kbrel-answer"
_SAMPLE = (message("user", _QUESTION),)


@record
class AnswerSlot:
    """Position of an answer's text: ``suffix`` follows the prompt, ``lead`` precedes the answer.

    ``variables`` are the template's variables for it.
    """

    variables: dict[str, Any]
    suffix: str = ""
    lead: str = ""


class ChatTemplate:
    """Chat template of a tokenizer with the user's settings.

    ``marks`` are the marks of thoughts that template or tokenizer declares. Raises :class:`ModelError` if the
    tokenizer has no template, or it does not work with these settings.
    """

    def __init__(self, tokenizer: Any, args: ChatArgs) -> None:
        if not tokenizer.chat_template:
            raise ModelError("a chat template is asked for, but the tokenizer has none")
        self._tokenizer, self._args = tokenizer, args
        self._source = _source(tokenizer.chat_template)
        if _TODAY in self._source:
            self._source = _FIXED_DAY + self._source
        try:
            self._opening = self.prompt(_SAMPLE)
        except Exception as error:
            raise ModelError(f"the tokenizer's chat template does not work: {error}") from None
        if _QUESTION not in self._opening:
            raise ModelError("the tokenizer's chat template leaves out what a user says as a plain text")
        self.marks = marks_of_tokenizer(tokenizer, args, self._source) or marks_opened_by(self._opening)
        self._check_system()
        self._slot: AnswerSlot | str = self._find_slot()

    @property
    def opens_thoughts(self) -> bool:
        """True if the template itself begins a thought, which the model continues."""
        return self.marks is not None and self.marks.opened_by(self._opening)

    @property
    def unscorable(self) -> str:
        """Why no answer can be scored behind this template; empty if one can."""
        return self._slot if isinstance(self._slot, str) else ""

    @property
    def slot(self) -> AnswerSlot:
        """Position of an answer without a thought; ``ValueError`` with the reason if there is none."""
        if isinstance(self._slot, str):
            raise ValueError(self._slot)
        return self._slot

    def prompt(self, messages: Sequence[Message]) -> str:
        """Return messages as the prompt that the model continues."""
        return self._filled(messages, self._args.variables, add_generation_prompt=True)

    def answer_prompt(self, messages: Sequence[Message]) -> str:
        """Return messages as the prompt of a given answer; raises as :attr:`slot`."""
        slot = self.slot
        return self._filled(messages, slot.variables, add_generation_prompt=True) + slot.suffix

    @property
    def idle(self) -> tuple[str, ...]:
        """Names of the user's variables that this template does not use."""
        says = {"enable_thinking"} if self._args.enable_thinking and self.marks is not None else set()
        return tuple(name for name in self._args.variables if name not in self._source and name not in says)

    @property
    def end(self) -> int | None:
        """The special token that stands right behind an answer; ``None`` without one, or with thoughts.

        Of a model that thinks, such a token may also stand between thought and answer.
        """
        try:
            whole = self._filled((*_SAMPLE, message("assistant", _ANSWER)), self._args.variables)
        except Exception:
            return None
        tail = whole.rpartition(_ANSWER)[2].lstrip()
        ids = self._tokenizer(tail, add_special_tokens=False)["input_ids"]
        added = self._tokenizer.added_tokens_decoder
        ends = self.marks is None and ids and ids[0] in added and added[ids[0]].special
        return int(ids[0]) if ends else None

    def _filled(self, messages: Sequence[Message], variables: dict[str, Any], **options: Any) -> str:
        given = {"chat_template": self._source} | variables | options
        return str(self._tokenizer.apply_chat_template(list(messages), tokenize=False, **given))

    def _check_system(self) -> None:
        instruction = self._args.system_instruction
        if not instruction:
            return
        try:
            prompt = self.prompt((message("system", instruction), *_SAMPLE))
        except Exception as error:
            raise ModelError(
                f"system_instruction: the chat template refuses system messages: {error}"
            ) from None
        if instruction.strip() not in prompt:
            raise ModelError("system_instruction: the chat template leaves system messages out")

    def _find_slot(self) -> AnswerSlot | str:
        variables = self._args.variables
        behind = self._behind(variables)
        if self.marks is None or not self._is_thinking:
            # All that a template puts in front of an answer and is no blank, the model sees before it.
            return AnswerSlot(variables=variables, **_parts(behind or ""))
        if self._opening.rstrip().endswith(self.marks.closing):
            return AnswerSlot(variables=variables, **_parts(behind or ""))
        if behind is not None and (self._opening + behind).rstrip().endswith(self.marks.closing):
            return AnswerSlot(variables=variables, suffix=behind)
        without = variables | {"enable_thinking": False}
        try:
            closed = self._filled(_SAMPLE, without, add_generation_prompt=True)
        except Exception:
            # Some templates refuse a model that does not think.
            closed = ""
        if closed.rstrip().endswith(self.marks.closing):
            return AnswerSlot(variables=without)
        if self._args.enable_thinking is False and not self.opens_thoughts:
            return AnswerSlot(variables=variables, **_parts(behind or ""))
        return (
            "the model thinks before it answers, and its chat template has no form with a closed, empty "
            f"thought ({self.marks.opening}{self.marks.closing}) behind which an answer could be scored"
        )

    @property
    def _is_thinking(self) -> bool:
        """True for the template of a model that thinks; others only have the marks in a vocabulary."""
        assert self.marks is not None
        return self.marks.closing in self._source or self.opens_thoughts or self._args.thinks

    def _behind(self, variables: dict[str, Any]) -> str | None:
        """Return the text between prompt and answer; ``None`` if an answer does not follow a prompt."""
        try:
            whole = self._filled((*_SAMPLE, message("assistant", _ANSWER)), variables)
        except Exception:
            # Some templates take no messages of an assistant at the end.
            return None
        before, answer, _ = whole.rpartition(_ANSWER)
        return before[len(self._opening) :] if answer and before.startswith(self._opening) else None


def marks_of_tokenizer(tokenizer: Any, args: ChatArgs, template: str = "") -> ThoughtMarks | None:
    """Return the marks of thoughts that a template or a tokenizer declares, or the user names.

    Raises :class:`ModelError` if the user names a token that the tokenizer does not have.
    """
    closing = args.think_end_token
    # As lm-eval reads it.
    if closing.isdecimal():
        number = int(closing)
        closing = tokenizer.decode([number], skip_special_tokens=False) if number < len(tokenizer) else ""
        if not closing:
            raise ModelError(f"model-args: think_end_token={number}: the tokenizer has no such token")
    return marks_in(template, tokenizer.get_added_vocab(), closing=closing)


def _parts(behind: str) -> dict[str, str]:
    return {"suffix": behind} if behind.strip() else {"lead": behind}


def _source(template: Any) -> str:
    if not isinstance(template, dict):
        return str(template)
    # A tokenizer may have several, by name; transformers too uses none but this one unasked.
    if "default" not in template:
        names = ", ".join(sorted(template))
        raise ModelError(f"the tokenizer has chat templates named {names}, and none named default")
    return str(template["default"])
