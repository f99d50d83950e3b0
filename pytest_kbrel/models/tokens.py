"""Encoder of requests into token ids: special tokens once, continuations cut at the right boundary."""

from __future__ import annotations

import contextlib
import hashlib
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from pytest_kbrel.errors import ModelError
from pytest_kbrel.models.batching import describe_error
from pytest_kbrel.models.chat import (
    ChatArgs,
    ChatTemplate,
    ThoughtMarks,
    marks_of_tokenizer,
    messages_of,
    text_of,
)
from pytest_kbrel.records import (
    Failed,
    GenerateRequest,
    Request,
    Scored,
    ScoreRequest,
    record,
)

Ids = tuple[int, ...]
A = TypeVar("A")
R = TypeVar("R", bound=Request)
# Requests whose texts are tokenised in one call.
_AT_ONCE = 256
NO_START = (
    "needs a BOS token, and this tokenizer has none; model-args prefix_token_id=ID names the token to start "
    "from"
)
_NO_CHAT_ARGS = ChatArgs()


@record
class Pair:
    """A prompt with a continuation. Causal: ``context`` leads ``targets`` in one sequence.

    Encoder-decoder: ``context`` goes to the encoder, ``lead + targets`` are the decoder's labels;
    ``lead`` are special tokens that are not scored. ``rounding`` is that of its request.
    """

    prompt: Ids
    context: Ids
    targets: Ids
    lead: Ids = ()
    rounding: str = ""

    def steps(self) -> Iterator[tuple[Ids, int]]:
        """Yield each target with the tokens before it, without a lead."""
        for index, token in enumerate(self.targets):
            yield (*self.context, *self.targets[:index]), token


@record
class Prompt:
    """A prompt's token ids and its request."""

    ids: Ids
    request: GenerateRequest

    @property
    def length(self) -> int:
        """The most tokens that prompt and continuation can have."""
        return len(self.ids) + self.request.max_new_tokens

    @property
    def kind(self) -> tuple[object, ...]:
        """Return what prompts must have in common to be answered in one plain batch."""
        r = self.request
        return (len(self.ids), r.max_new_tokens, r.num_beams, r.steps, r.stop, r.top_k)


def prompt_digest(ids: Ids, bos: int | None = None) -> str:
    """Return a digest of token ids: equal exactly where the model sees the same prompt.

    It is 16 hex digits of sha256 over the ids. A leading ``bos`` is not among them and adds a ``b`` at the
    end, so that prompts which differ in nothing else can be recognised.
    """
    leads = bos is not None and ids[:1] == (bos,)
    digits = hashlib.sha256(",".join(map(str, ids[leads:])).encode()).hexdigest()[:16]
    return digits + "b" * leads


class PromptEncoder:
    """Tokenises prompts the way one checkpoint wants them.

    ``adds_bos`` is true if prompts start with BOS. ``add_bos`` overrides what the tokenizer does by itself;
    with ``chat_template`` a request becomes messages with the generation prompt behind them, else a text.
    ``prefix_token_id`` stands for an empty prompt, in place of BOS. ``marks`` are those of a thought that
    template or tokenizer declare, ``None`` without any. ``unscorable`` is why no answer can be scored, empty
    if one can.

    Raises :class:`ModelError` when BOS or a chat template is asked for and the tokenizer has none.
    """

    def __init__(
        self,
        tokenizer: Any,
        *,
        encoder_decoder: bool,
        chat_template: bool = False,
        add_bos: bool | None = None,
        chat: ChatArgs = _NO_CHAT_ARGS,
        prefix_token_id: int | None = None,
    ) -> None:
        self.tokenizer = tokenizer
        self._encoder_decoder = encoder_decoder
        self._chat = chat
        self.template = (
            ChatTemplate(tokenizer, chat, encoder_decoder=encoder_decoder)
            if chat_template
            else None
        )
        self.unscorable = self.template.unscorable if self.template is not None else ""
        self._bos: int | None = tokenizer.bos_token_id
        first = self._bos if prefix_token_id is None else prefix_token_id
        # What stands for an empty prompt.
        self._start = () if first is None else (first,)
        alone = tuple(tokenizer("a", add_special_tokens=False)["input_ids"])
        around = _around(alone, tuple(tokenizer("a")["input_ids"]))
        before, self._behind = around or ((), ())
        if add_bos and self._bos is None:
            raise ModelError(
                "model-args: add_bos_token=True, but the tokenizer has no BOS token"
            )
        self._ahead: Mapping[str, Sequence[int]] = {}
        # Whether BOS must lead; ``None`` leaves a text, or a chat template, as it is.
        self._wants_bos = add_bos
        leads = self._bos is not None and before[:1] == (self._bos,)
        if add_bos is None and leads and not chat_template:
            self._wants_bos = True
        self.marks: ThoughtMarks | None = None
        # What an encoder reads cannot be gone on with.
        if not encoder_decoder:
            self.marks = (
                self.template.marks
                if self.template
                else marks_of_tokenizer(tokenizer, chat)
            )
        self.adds_bos = self._bos is not None and self.prompt("a")[:1] == (self._bos,)

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on the chat template for a reader of the model's figures, a sentence each."""
        notes = []
        if self.template is not None:
            if idle := ", ".join(self.template.idle):
                notes.append(
                    f"the chat template does not know {idle}: it has no effect"
                )
            return tuple(notes)
        if getattr(self.tokenizer, "chat_template", None):
            notes.append(
                "the tokenizer has a chat template, and prompts are raw; "
                "--kb-apply-chat-template uses it (a judge's: apply_chat_template=True in --kb-judge-args)"
            )
        if given := ", ".join(self._chat.variables):
            notes.append(f"{given} of a chat template has no effect: prompts are raw")
        return tuple(notes)

    def read(
        self, requests: Sequence[R], read: Callable[[R], A]
    ) -> tuple[list[tuple[int, A]], list[tuple[int, Failed]]]:
        """Return what ``read`` makes of each request, with its position, and the failures of those it refuses.

        A tokenizer takes much less for some hundred texts in one call than for each alone.
        """
        readable, refused = [], []
        for number, request in enumerate(requests):
            if number % _AT_ONCE == 0:
                self._read_ahead(requests[number : number + _AT_ONCE])
            try:
                readable.append((number, read(request)))
            except Exception as error:
                known = isinstance(error, ValueError)
                why = str(error) if known else describe_error(error)
                refused.append((number, Failed(error=why)))
        self._ahead = {}
        return readable, refused

    def _read_ahead(self, requests: Sequence[Request]) -> None:
        # Of a template each prompt's text is yet to be made. One text that a tokenizer refuses, and all are;
        # read alone, only that one is.
        with contextlib.suppress(Exception):
            texts: list[str] = []
            for request in () if self.template else requests:
                texts.append(text := self.text(request))
                if isinstance(request, ScoreRequest) and not self._encoder_decoder:
                    texts.append(_with_answer(text, request.continuation))
            encoded = self.tokenizer(texts)["input_ids"] if texts else []
            self._ahead = dict(zip(texts, encoded, strict=True))

    def text(self, request: Request) -> str:
        """Return a request's prompt as the model reads it, without a BOS that the tokenizer adds.

        What is scored, and what is generated with its steps, with beams or behind a lead, stands where an
        answer stands when nothing is thought. Raises ``ValueError`` where a thinking model's template has no such place, and
        where a template leaves out the request's turns.
        """
        if self.template is None:
            return text_of(request, self._chat.system_instruction)
        messages = messages_of(request, self._chat.system_instruction)
        behind_thought = (
            isinstance(request, ScoreRequest) or request.steps or request.num_beams > 1
        )
        if behind_thought or request.lead:
            text = self.template.answer_prompt(messages, request.lead)
        else:
            text = self.template.prompt(messages)
        if any(part.strip() not in text for turn in request.turns for part in turn):
            raise ValueError(
                "the chat template leaves earlier turns out, and examples are such"
            )
        return text

    def rendered(self, request: Request) -> str:
        """Return a request's prompt for people: its :meth:`text` with the special tokens around it."""
        text = self.text(request)
        ids = self.encoded(text)
        bare = tuple(self.tokenizer(text, add_special_tokens=False)["input_ids"])
        if (around := _around(bare, ids)) is None:
            # A BOS that stood in the text was taken out.
            return str(self.tokenizer.decode(ids, skip_special_tokens=False))
        before, behind = (self.tokenizer.convert_ids_to_tokens([*of]) for of in around)
        return "".join([*before, text, *behind])

    def prompt(self, request: Request | str) -> Ids:
        """Return a prompt's token ids: BOS once or not at all, no EOS behind it for causal models.

        A text stands for a question with nothing else to it. An empty prompt stands for BOS alone, or for the
        prefix token; without either it has no ids. Raises as :meth:`text`.
        """
        if isinstance(request, str):
            request = GenerateRequest(prompt=request, max_new_tokens=1)
        text = self.text(request)
        ids = self.encoded(text)
        self._check_read(text, ids)
        return ids

    def _check_read(self, text: str, ids: Ids, targets: Ids = ()) -> None:
        """Raise ``ValueError`` where ids lack letters or digits of their text, or targets are unknown ones.

        A tokenizer may lower letters, and drop accents, blanks and marks.
        """
        tokenizer = self.tokenizer
        # A server's tokenizer has none.
        if not hasattr(tokenizer, "decode"):
            return
        unknown = tokenizer.unk_token_id
        read = tokenizer.decode([token for token in ids if token != unknown])
        bare = text.removeprefix(tokenizer.bos_token or "")
        if unknown not in targets and (
            bare in read or _letters(bare) in _letters(read)
        ):
            return
        shown = tokenizer.decode(list(targets or ids)[-20:])
        raise ValueError(
            f"the tokenizer has no tokens for some of the letters: it reads {text[-40:]!r} as {shown!r}"
        )

    def encoded(self, text: str) -> Ids:
        """Return the token ids of a prompt that :meth:`text` made."""
        ids = self._encode(text)
        return self._start if self._is_empty(ids) else ids

    def pair(self, request: ScoreRequest | str, continuation: str = "") -> Pair:
        """Return prompt and continuation, tokenised jointly for causal models.

        A text stands for a prompt with nothing else to it. A token that spans the boundary belongs to the
        continuation. An empty prompt stands for BOS alone, or for the prefix token; so does one that is part
        of the continuation's first token. Behind a chat template the continuation stands as an answer stands
        there. For encoder-decoder models the continuation is a text of its own, without leading spaces or
        EOS.

        Raises ``ValueError`` when nothing is left to score or nothing to condition on, and as :meth:`text`.
        """
        if isinstance(request, str):
            request = ScoreRequest(prompt=request, continuation=continuation)
        continuation = request.continuation
        text = self.text(request)
        prompt_ids = self._encode(text)
        if self._encoder_decoder:
            lead, targets = self._labels(continuation.lstrip(" "))
            pair = Pair(
                prompt=prompt_ids, context=prompt_ids, targets=targets, lead=lead
            )
            self._check_read(text, prompt_ids)
            self._check_read(continuation, targets, targets)
        else:
            if self.template is not None and not request.lead:
                continuation = self.template.slot.lead + continuation.lstrip(" ")
            both = _with_answer(text, continuation)
            whole = self._encode(both)
            shared = common_prefix(prompt_ids, whole)
            empty = self._is_empty(prompt_ids)
            pair = Pair(
                prompt=self._start if empty else prompt_ids,
                context=whole[:shared] if shared and not empty else self._start,
                targets=whole[shared:],
            )
            self._check_read(both, whole, pair.targets)
        if not pair.targets:
            raise ValueError(
                f"the continuation {continuation!r} has no tokens of its own after this prompt"
            )
        if not pair.context:
            what = (
                "a prompt that is part of the answer's first token"
                if text
                else "an empty prompt"
            )
            raise ValueError(f"{what} {NO_START}")
        return pair

    def digest(self, prompt: Ids) -> str:
        """Return the digest of a prompt's token ids, as :func:`prompt_digest` makes it."""
        return prompt_digest(prompt, self._bos)

    def scored(self, pair: Pair, values: tuple[float, ...] | Failed) -> Scored | Failed:
        """Return the response with the probabilities of ``pair.targets``."""
        if isinstance(values, Failed):
            return values
        if any(value != value for value in values):
            return Failed(error="not a number among the probabilities")
        return Scored(
            probabilities=tuple(min(value, 1.0) for value in values),
            token_ids=pair.targets,
            prompt_tokens=len(pair.prompt),
            prompt_digest=self.digest(pair.prompt),
        )

    def _is_empty(self, prompt: Ids) -> bool:
        return prompt in ((), (self._bos,))

    def _encode(self, text: str) -> Ids:
        is_raw = self.template is None
        ids = tuple(
            self._ahead.get(text)
            or self.tokenizer(text, add_special_tokens=is_raw)["input_ids"]
        )
        has_end = self._behind and ids[-len(self._behind) :] == self._behind
        if is_raw and has_end and not self._encoder_decoder:
            ids = ids[: -len(self._behind)]
        if self._bos is None or self._wants_bos is None:
            return ids
        start = next((k for k, token in enumerate(ids) if token != self._bos), len(ids))
        return (self._bos, *ids[start:]) if self._wants_bos else ids[start:]

    def _labels(self, text: str) -> tuple[Ids, Ids]:
        bare = tuple(
            self.tokenizer(text_target=text, add_special_tokens=False)["input_ids"]
        )
        full = tuple(self.tokenizer(text_target=text)["input_ids"])
        return (_around(bare, full) or ((), ()))[0], bare


def _with_answer(prompt: str, continuation: str) -> str:
    """Return prompt and continuation as one text: a blank between them is not doubled."""
    return prompt + (
        continuation.lstrip(" ") if prompt[-1:].isspace() else continuation
    )


def _letters(text: str) -> str:
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    return "".join(filter(str.isalnum, decomposed))


def _around(part: Ids, whole: Ids) -> tuple[Ids, Ids] | None:
    """Return what stands before and behind a part of token ids; ``None`` where it is no part of them."""
    for start in range(len(whole) - len(part) + 1):
        if whole[start : start + len(part)] == part:
            return whole[:start], whole[start + len(part) :]
    return None


def common_prefix(one: Sequence[int], other: Sequence[int]) -> int:
    """Return the number of tokens that two sequences begin with alike."""
    shorter = min(len(one), len(other))
    return next((n for n in range(shorter) if one[n] != other[n]), shorter)
