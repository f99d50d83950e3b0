"""From text to token ids: special tokens exactly once, continuations cut at the right boundary."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from pytest_kbrel.errors import ModelError
from pytest_kbrel.records import Request, ScoreRequest, record

Ids = tuple[int, ...]
R = TypeVar("R", bound=Request)
# Requests whose texts are tokenised in one call.
_AT_ONCE = 256


@record
class Pair:
    """A prompt with a continuation. Causal: ``context`` leads ``targets`` in one sequence.

    Encoder-decoder: ``context`` goes to the encoder, ``lead + targets`` are the decoder's labels;
    ``lead`` are special tokens that are not scored.
    """

    prompt: Ids
    context: Ids
    targets: Ids
    lead: Ids = ()


def prompt_digest(ids: Ids, bos: int | None = None) -> str:
    """Return a digest of token ids: equal exactly where the model sees the same prompt.

    It is 16 hex digits of sha256 over the ids; a leading ``bos`` is left out of them and told by a ``b``
    behind, so that prompts which differ in nothing else can be told from others.
    """
    leads = bos is not None and ids[:1] == (bos,)
    digits = hashlib.sha256(",".join(map(str, ids[leads:])).encode()).hexdigest()[:16]
    return digits + "b" * leads


class PromptEncoder:
    """Tokenises prompts the way one checkpoint wants them.

    ``adds_bos`` tells whether prompts start with BOS. ``add_bos`` overrides what the tokenizer does by
    itself; with ``chat_template`` a prompt becomes one user message with the generation prompt behind it.

    Raises :class:`ModelError` when BOS or a chat template is asked for and the tokenizer has none.
    """

    def __init__(
        self,
        tokenizer: Any,
        *,
        encoder_decoder: bool,
        chat_template: bool = False,
        add_bos: bool | None = None,
    ) -> None:
        self.tokenizer = tokenizer
        self._encoder_decoder = encoder_decoder
        self._chat_template = chat_template
        self._bos: int | None = tokenizer.bos_token_id
        before, self._behind = _special_tokens_around(tokenizer)
        if add_bos and self._bos is None:
            raise ModelError("model-args: add_bos_token=True, but the tokenizer has no BOS token")
        # Whether BOS must lead; ``None`` leaves a text, or a chat template, as it is.
        self._wants_bos = add_bos
        self._ahead: Mapping[str, Sequence[int]] = {}
        if add_bos is None and not chat_template and self._bos is not None and before[:1] == (self._bos,):
            self._wants_bos = True
        if chat_template:
            self._check_template()
        self.adds_bos = self._bos is not None and self.prompt("a")[:1] == (self._bos,)

    def reading(self, requests: Iterable[R]) -> Iterator[R]:
        """Yield ``requests`` as they are; while one is looked at, its texts are at hand.

        A tokenizer takes much less for some hundred texts in one call than for each alone.
        """
        waiting = iter(requests)
        try:
            while some := list(itertools.islice(waiting, _AT_ONCE)):
                self._ahead = self._read(some)
                yield from some
        finally:
            self._ahead = {}

    def _read(self, requests: Sequence[Request]) -> Mapping[str, Sequence[int]]:
        # Of a template each prompt's text is yet to be made.
        if self._chat_template:
            return {}
        try:
            texts = {one.prompt for one in requests}
            if not self._encoder_decoder:
                texts |= {one.prompt + one.continuation for one in requests if isinstance(one, ScoreRequest)}
            found = self.tokenizer(list(texts))["input_ids"]
            return dict(zip(texts, found, strict=True))
        except Exception:
            # One text that it refuses, and all are; read alone, only that one is.
            return {}

    def prompt(self, text: str) -> Ids:
        """Return a prompt's token ids: BOS once or not at all, no EOS behind it for causal models.

        An empty prompt stands for BOS alone; without a BOS token it has no ids.
        """
        if self._chat_template:
            text = self._wrap(text)
        ids = self._encode(text)
        return ids if ids or self._bos is None else (self._bos,)

    def pair(self, prompt: str, continuation: str) -> Pair:
        """Return prompt and continuation, tokenised jointly for causal models.

        A token that spans the boundary belongs to the continuation. An empty prompt stands for BOS alone. For
        encoder-decoder models the continuation is a text of its own, without leading spaces or EOS.

        Raises ``ValueError`` when nothing is left to score or nothing to condition on.
        """
        if self._chat_template:
            prompt = self._wrap(prompt)
        prompt_ids = self._encode(prompt)
        if self._encoder_decoder:
            lead, targets = self._labels(continuation.lstrip(" "))
            pair = Pair(prompt=prompt_ids, context=prompt_ids, targets=targets, lead=lead)
        else:
            whole = self._encode(prompt + continuation)
            if not prompt_ids and self._bos is not None:
                prompt_ids, whole = (self._bos,), (self._bos, *whole)
            shared = common_prefix(prompt_ids, whole)
            pair = Pair(prompt=prompt_ids, context=whole[:shared], targets=whole[shared:])
        if not pair.targets:
            raise ValueError(f"the continuation {continuation!r} has no tokens of its own after this prompt")
        if not pair.context:
            raise ValueError("an empty prompt needs a BOS token, and this tokenizer has none")
        return pair

    def digest(self, prompt: Ids) -> str:
        """Return the digest of a prompt's token ids, as :func:`prompt_digest` makes it."""
        return prompt_digest(prompt, self._bos)

    def _encode(self, text: str) -> Ids:
        own_special = not self._chat_template
        read = self._ahead.get(text)
        if read is None:
            read = self.tokenizer(text, add_special_tokens=own_special)["input_ids"]
        ids = tuple(read)
        if (
            own_special
            and self._behind
            and not self._encoder_decoder
            and ids[-len(self._behind) :] == self._behind
        ):
            ids = ids[: -len(self._behind)]
        if self._bos is None or self._wants_bos is None:
            return ids
        start = next((k for k, token in enumerate(ids) if token != self._bos), len(ids))
        return (self._bos, *ids[start:]) if self._wants_bos else ids[start:]

    def _labels(self, text: str) -> tuple[Ids, Ids]:
        bare = tuple(self.tokenizer(text_target=text, add_special_tokens=False)["input_ids"])
        full = tuple(self.tokenizer(text_target=text)["input_ids"])
        start = _position(bare, full)
        return (full[:start] if start > 0 else ()), bare

    def _wrap(self, text: str) -> str:
        message = [{"role": "user", "content": text}]
        return str(self.tokenizer.apply_chat_template(message, tokenize=False, add_generation_prompt=True))

    def _check_template(self) -> None:
        if not self.tokenizer.chat_template:
            raise ModelError("a chat template is asked for, but the tokenizer has none")
        try:
            self._wrap("a")
        except Exception as error:
            raise ModelError(f"the tokenizer's chat template does not work: {error}") from None


def _special_tokens_around(tokenizer: Any) -> tuple[Ids, Ids]:
    bare = tuple(tokenizer("a", add_special_tokens=False)["input_ids"])
    full = tuple(tokenizer("a")["input_ids"])
    start = _position(bare, full)
    return ((), ()) if start < 0 else (full[:start], full[start + len(bare) :])


def _position(part: Ids, whole: Ids) -> int:
    starts = range(len(whole) - len(part) + 1)
    return next((start for start in starts if whole[start : start + len(part)] == part), -1)


def common_prefix(one: Sequence[int], other: Sequence[int]) -> int:
    """Return the number of tokens that two sequences begin with alike."""
    length = 0
    for a, b in zip(one, other, strict=False):
        if a != b:
            break
        length += 1
    return length
