"""Ends of a model's texts, and what is kept of the tokens in front of them."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any, Literal

from transformers import GenerationConfig

from pytest_kbrel.models.tokens import Ids
from pytest_kbrel.records import Failed, Generated, GenerateRequest, Step, TopTokens

# Less probable tokens are not among the top ones: they tell models little apart and would fill the files.
LEAST = 0.01


# Positions of an answer whose top tokens are kept.
MOST_POSITIONS = 64


# Of a token: its id, its probability, and that of the watched token.
Steps = Sequence[tuple[int, float, float | None]]


class Endings:
    """Ends of a model's texts: one of ``eos_ids``, or one of the request's stop strings.

    White space at the beginning of a text is no stop. With ``special`` texts include special tokens. What the
    methods return lacks the length and digest of the prompt.
    """

    def __init__(
        self,
        tokenizer: Any,
        eos_ids: Sequence[int],
        *,
        special: bool = False,
    ) -> None:
        self.tokenizer = tokenizer
        self.eos_ids = tuple(eos_ids)
        self._special = special
        # A model writes few different tokens of its vocabulary: each is decoded when it is met.
        self._decoded: dict[int, str] = {}

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of token ids, spaces untouched."""
        text = self.tokenizer.decode(
            list(ids),
            skip_special_tokens=not self._special,
            clean_up_tokenization_spaces=False,
        )
        return str(text)

    def may_end(self, stop: str, token: int) -> bool:
        """Return False for a token that cannot be the last one of ``stop``.

        Tokens show a last character in ASCII that tokenizers do not strip: the bytes of another may be spread
        over tokens.
        """
        last = stop[-1:]
        if not last.isascii() or last in ("", " "):
            return True
        if token not in self._decoded:
            self._decoded[token] = self.decode([token])
        return last in self._decoded[token]

    def stops(self, ids: Sequence[int], stops: Sequence[str]) -> bool:
        """Return True if one of the stop strings is in the text of ``ids``, the last of which is new."""
        if not any(self.may_end(stop, ids[-1]) for stop in stops):
            return False
        text = self.decode(ids).lstrip()
        return any(stop in text for stop in stops)

    def cut(self, ids: Ids, stops: Sequence[str]) -> Generated:
        """Return the text up to the first ending, stripped and without the ending."""
        for count, token in enumerate(ids, start=1):
            if token in self.eos_ids:
                return _text(ids[:count], self.decode(ids[: count - 1]), "stop")
            if self.stops(ids[:count], stops):
                text = self.decode(ids[:count]).lstrip()
                first = min(text.find(stop) for stop in stops if stop in text)
                return _text(ids[:count], text[:first], "stop")
        return _text(ids, self.decode(ids), "length")

    def with_steps(
        self,
        text: Generated,
        steps: Steps,
        request: GenerateRequest,
        top: Sequence[TopTokens] = (),
    ) -> Generated | Failed:
        """Return what :meth:`cut` made with its probability and, where asked for, its steps and top tokens.

        The probability is the mean over the tokens; that which ended the answer counts only where there is no
        other. It and that of the first are rounded to six digits: the seventh depends on what else is in a
        batch. Of beams ``steps`` are the most probable tokens, not those of the answer, which then has no
        probability.
        """
        greedy = request.num_beams == 1
        if greedy:
            steps = steps[: len(text.token_ids)]
        if not all(math.isfinite(value) for _, value, _ in steps):
            return Failed(error="not a number among the model's logits")
        values = [min(value, 1.0) for _, value, _ in steps]
        records = [
            Step(
                token_id=token,
                token=self.piece(token),
                probability=value,
                watched=watched,
            )
            for (token, _, watched), value in zip(steps, values, strict=True)
            if request.steps
        ]
        if text.finish == "stop" and len(values) > 1:
            values.pop()
        return dataclasses.replace(
            text,
            probability=round(fmean(values), 6) if greedy and values else None,
            first_probability=round(values[0], 6) if greedy and values else None,
            top=tuple(top[: len(text.token_ids)]),
            steps=tuple(records),
        )

    def piece(self, token: int) -> str:
        """Return a token as a step shows it: its text or, without one, its name; empty for an end."""
        if token in self.eos_ids:
            return ""
        # A word start that stands alone ("▁") is no text by itself, and no end either; an embedding may have
        # rows without any token.
        return self.decode([token]) or str(
            self.tokenizer.convert_ids_to_tokens(token) or f"<{token}>"
        )


def _text(ids: Ids, text: str, finish: Literal["stop", "length"]) -> Generated:
    return Generated(
        text=text.strip(),
        token_ids=ids,
        finish=finish,
        prompt_tokens=0,
        prompt_digest="",
    )


def top_tokens(likely: Mapping[int, float], written: int, count: int) -> TopTokens:
    """Return up to ``count`` tokens of ``likely``, which has log-probabilities, the written one first.

    Less probable ones than :data:`LEAST` are left out but for that. Log-probabilities are rounded to three
    digits.
    """
    ordered = sorted(
        likely.items(), key=lambda entry: (entry[0] != written, -entry[1], entry[0])
    )
    return tuple(
        (token, round(min(nats, 0.0), 3) + 0.0)
        for token, nats in ordered[:count]
        if token == written or nats >= math.log(LEAST)
    )


def greedy_settings(model: Any, tokenizer: Any) -> GenerationConfig:
    """Return settings for greedy search that keep of the checkpoint's own only the special tokens.

    Its sampling, penalties and forced tokens would make two checkpoints incomparable.
    """
    own, config = model.generation_config, model.config.get_text_config(decoder=True)
    ends = (own.eos_token_id, config.eos_token_id, tokenizer.eos_token_id)
    eos = sorted(
        {n for end in ends for n in ([end] if isinstance(end, int) else end or ())}
    )
    # A tokenizer may have a padding token that the embedding has no row for.
    rows = vocabulary_of(model)
    pads = (tokenizer.pad_token_id, own.pad_token_id, *eos, 0)
    start = own.decoder_start_token_id
    if start is None:
        start = getattr(config, "decoder_start_token_id", None)
    return GenerationConfig(
        do_sample=False,
        num_beams=1,
        length_penalty=1.0,
        early_stopping=False,
        repetition_penalty=1.0,
        eos_token_id=eos or None,
        pad_token_id=next(pad for pad in pads if pad is not None and pad < rows),
        bos_token_id=own.bos_token_id,
        decoder_start_token_id=start,
    )


def vocabulary_of(model: Any) -> int:
    """Return the number of tokens that a model's embedding has rows for."""
    return int(model.get_input_embeddings().weight.shape[0])
