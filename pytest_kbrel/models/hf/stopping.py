"""Endings of continuations, their steps, and greedy and beam search by transformers' ``generate``."""

from __future__ import annotations

import copy
import dataclasses
import math
from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import torch
from transformers import (
    GenerationConfig,
    LogitsProcessor,
    LogitsProcessorList,
    StoppingCriteria,
    StoppingCriteriaList,
)

from pytest_kbrel.models.hf.kv_cache import Layers, cache_of
from pytest_kbrel.models.tokens import Ids
from pytest_kbrel.records import Failed, GenerateRequest, Step, TopTokens, record

# Model types whose recurrent states transformers mixes up among the rows of a batch and cannot hand from beam
# to beam: with more than one row, everything is computed anew for each token instead.
_STATE_OF_ONE_ROW = ("rwkv",)
# Less probable tokens are not among the top ones: they tell models little apart and would fill the files.
LEAST = 0.01
# Positions of an answer whose top tokens are kept.
MOST_POSITIONS = 64


@record
class Continuation:
    """A continuation: ``token_ids`` include the token that ended it.

    ``thought`` is what the model thought before, in ``thought_tokens`` tokens; neither is part of the rest.
    ``probability``, ``first_probability`` and ``top`` are those of :class:`pytest_kbrel.records.Generated`.
    """

    text: str
    token_ids: Ids
    finish: Literal["stop", "length"]
    steps: tuple[Step, ...] = ()
    thought: str = ""
    thought_tokens: int = 0
    probability: float | None = None
    first_probability: float | None = None
    top: tuple[TopTokens, ...] = ()

    def with_probabilities(self, values: Sequence[float]) -> Continuation:
        """Return the continuation with the probability of its text; ``values`` are those of its tokens."""
        mean, first = answer_probability(values, ended=self.finish == "stop")
        return dataclasses.replace(self, probability=mean, first_probability=first)


def answer_probability(
    values: Sequence[float], *, ended: bool
) -> tuple[float | None, float | None]:
    """Return the mean probability of an answer's tokens, and that of the first; ``None`` without tokens.

    With ``ended`` the last one ended the answer, and counts only where there is no other. Both are rounded to
    six digits: the seventh depends on what else is in a batch.
    """
    if not values:
        return None, None
    text = [
        min(value, 1.0)
        for value in (values[:-1] if ended and len(values) > 1 else values)
    ]
    return round(math.fsum(text) / len(text), 6), round(text[0], 6)


class Endings:
    """Ends of a model's texts: one of ``eos_ids``, or one of the request's stop strings.

    White space at the beginning of a text is no stop. With ``special`` texts include special tokens.
    """

    def __init__(
        self,
        tokenizer: Any,
        vocabulary: int,
        eos_ids: Sequence[int],
        *,
        special: bool = False,
    ) -> None:
        self.tokenizer = tokenizer
        self.eos_ids = tuple(eos_ids)
        self._special = special
        self._vocabulary = vocabulary
        self._masks: dict[str, torch.Tensor | None] = {}

    def with_ends(self, eos_ids: Sequence[int], *, special: bool) -> Endings:
        """Return the endings of other texts by the same tokenizer."""
        return Endings(self.tokenizer, self._vocabulary, eos_ids, special=special)

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of token ids, spaces untouched."""
        text = self.tokenizer.decode(
            list(ids),
            skip_special_tokens=not self._special,
            clean_up_tokenization_spaces=False,
        )
        return str(text)

    def piece(self, token: int) -> str:
        """Return a token as a step shows it: its text or, without one, its name; empty for an end."""
        if token in self.eos_ids:
            return ""
        # A word start that stands alone ("▁") is no text by itself, and no end either; an embedding may have
        # rows without any token.
        return self.decode([token]) or str(
            self.tokenizer.convert_ids_to_tokens(token) or f"<{token}>"
        )

    def mask(self, stop: str) -> torch.Tensor | None:
        """Return by token id whether a token may be the last of ``stop``; ``None`` if tokens do not show it.

        They show a last character in ASCII that tokenizers do not strip: the bytes of another may be spread
        over tokens.
        """
        if stop not in self._masks:
            last = stop[-1:]
            usable = last.isascii() and last not in ("", " ")
            self._masks[stop] = (
                torch.tensor([last in piece for piece in self._pieces])
                if usable
                else None
            )
        return self._masks[stop]

    def stops(self, ids: Sequence[int], stops: Sequence[str]) -> bool:
        """Return True if one of the stop strings is in the text of ``ids``."""
        text = self.decode(ids).lstrip()
        return any(stop in text for stop in stops)

    def cut(self, ids: Ids, stops: Sequence[str]) -> Continuation:
        """Return the continuation up to the first ending, its text stripped and without the ending."""
        for count, token in enumerate(ids, start=1):
            if token in self.eos_ids:
                return self._ended(ids[:count], self.decode(ids[: count - 1]))
            for stop in stops:
                mask = self.mask(stop)
                if mask is not None and not bool(mask[token]):
                    continue
                text = self.decode(ids[:count]).lstrip()
                if stop in text:
                    first = min(text.find(s) for s in stops if s in text)
                    return self._ended(ids[:count], text[:first])
        return Continuation(
            text=self.decode(ids).strip(), token_ids=ids, finish="length"
        )

    def continuation(
        self,
        ids: Ids,
        steps: Sequence[tuple[int, float, float | None]],
        request: GenerateRequest,
        top: Sequence[TopTokens] = (),
    ) -> Continuation | Failed:
        """Return :meth:`cut` with its probability and, where asked for, its steps and ``top`` tokens.

        Each of ``steps`` is a token's id and probability, and that of the watched token. Of beams they are
        the most probable tokens, not those of the answer, which then has no probability.
        """
        end = self.cut(ids, request.stop)
        if request.num_beams == 1:
            steps = steps[: len(end.token_ids)]
        if any(not math.isfinite(value) for _, value, _ in steps):
            return Failed(error="not a number among the model's logits")
        if request.num_beams == 1:
            end = end.with_probabilities([value for _, value, _ in steps])
            end = dataclasses.replace(
                end, top=tuple(top[: min(len(end.token_ids), MOST_POSITIONS)])
            )
        if not request.steps:
            return end
        records = tuple(
            Step(
                token_id=token,
                token=self.piece(token),
                probability=min(value, 1.0),
                watched=watched,
            )
            for token, value, watched in steps
        )
        return dataclasses.replace(end, steps=records)

    def _ended(self, ids: Ids, text: str) -> Continuation:
        return Continuation(text=text.strip(), token_ids=ids, finish="stop")

    @cached_property
    def _pieces(self) -> list[str]:
        # The embedding may have more rows than the tokenizer has tokens.
        ids = set(self.tokenizer.get_vocab().values())
        return [self.decode([n]) if n in ids else "" for n in range(self._vocabulary)]


class _StopAtStrings(StoppingCriteria):  # type: ignore[misc,unused-ignore]
    def __init__(
        self, endings: Endings, stops: Sequence[str], prompt_length: int
    ) -> None:
        self._endings, self._stops = endings, stops
        self._start = prompt_length
        masks = [endings.mask(stop) for stop in stops]
        usable = [mask for mask in masks if mask is not None]
        self._mask = (
            torch.stack(usable).any(0) if usable and len(usable) == len(masks) else None
        )

    def __call__(self, input_ids: torch.Tensor, scores: Any, **_: Any) -> torch.Tensor:
        done = torch.zeros(len(input_ids), dtype=torch.bool, device=input_ids.device)
        if not self._stops:
            return done
        last = input_ids[:, -1].cpu()
        able = (
            torch.arange(len(last))
            if self._mask is None
            else self._mask[last].nonzero()[:, 0]
        )
        for row in able.tolist():
            done[row] = self._endings.stops(
                input_ids[row, self._start :].tolist(), self._stops
            )
        return done


def top_tokens(
    logits: torch.Tensor, norms: torch.Tensor, greatest: torch.Tensor, count: int
) -> list[TopTokens]:
    """Return up to ``count`` tokens of each row of ``logits`` (float32) with their log-probabilities.

    The most probable are first; less probable ones than :data:`LEAST` are left out but for the first.
    ``norms`` are the rows' ``logsumexp``, ``greatest`` their greatest logits. Log-probabilities are rounded
    to three digits. A row with NaN has none.
    """
    floors = torch.minimum(norms + math.log(LEAST), greatest)
    if logits.is_cpu:
        # PyTorch's own search, by rows and columns or for the k greatest, takes several times as long.
        cells = np.flatnonzero(logits.numpy() >= floors.numpy()[:, None])
    else:
        cells = (logits >= floors[:, None]).flatten().nonzero()[:, 0].cpu().numpy()
    chosen = logits.flatten()[torch.from_numpy(cells).to(logits.device)].cpu().numpy()
    width = logits.shape[1]
    rows, starts = (
        cells // width,
        np.searchsorted(cells, np.arange(len(logits)) * width),
    )
    nats = norms.cpu().numpy()[rows] - chosen
    # Stable: of equally probable tokens the first is the one that is written.
    order = np.lexsort((nats, rows))
    order = order[np.arange(len(order)) - starts[rows] < count]
    rounded = np.rint(nats[order].astype(float) * 1000) / -1000 + 0.0
    pairs = list(zip((cells[order] % width).tolist(), rounded.tolist(), strict=True))
    bounds = np.searchsorted(rows[order], np.arange(len(logits) + 1)).tolist()
    return [tuple(pairs[start:end]) for start, end in pairwise(bounds)]


class _StepRecorder(LogitsProcessor):  # type: ignore[misc,unused-ignore]
    """Records each step's most probable token of every first beam; the scores stay as they are."""

    def __init__(
        self, beams: int, watch: Sequence[Ids], with_probabilities: bool, top_k: int = 0
    ) -> None:
        self._beams = beams
        self._watch = watch
        self._with_probabilities = with_probabilities
        self._top_k = top_k
        self.steps: list[list[tuple[int, float, float | None]]] = [[] for _ in watch]
        self.top: list[list[TopTokens]] = [[] for _ in watch]

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        first = scores[:: self._beams].float()
        if self._top_k:
            top = top_tokens(first, first.logsumexp(-1), first.amax(-1), self._top_k)
            for of_row, tokens_of_row in zip(self.top, top, strict=True):
                of_row.append(tokens_of_row)
        if self._with_probabilities:
            first = first.softmax(-1)
        # The maximum is not a number as soon as one of the row's values is not.
        values, tokens = first.max(-1)
        if not self._with_probabilities:
            # A softmax would write as many numbers again as there are logits.
            values = (values - first.logsumexp(-1)).exp()
        step = len(self.steps[0])
        for row, (value, token) in enumerate(
            zip(values.tolist(), tokens.tolist(), strict=True)
        ):
            watched = None
            if self._with_probabilities and step < len(self._watch[row]):
                watched = float(first[row, self._watch[row][step]])
            self.steps[row].append((token, value, watched))
        return scores


def greedy_settings(model: Any, tokenizer: Any) -> GenerationConfig:
    """Return settings for greedy search that keep of the checkpoint's own only the special tokens.

    Its sampling, penalties and forced tokens would make two checkpoints incomparable.
    """
    own, config = model.generation_config, model.config.get_text_config(decoder=True)
    eos = sorted(
        _ids(own.eos_token_id)
        | _ids(config.eos_token_id)
        | _ids(tokenizer.eos_token_id)
    )
    # A tokenizer may have a padding token that the embedding has no row for.
    rows = int(model.get_input_embeddings().weight.shape[0])
    pads = (tokenizer.pad_token_id, own.pad_token_id, *eos, 0)
    start = own.decoder_start_token_id
    return GenerationConfig(
        do_sample=False,
        num_beams=1,
        length_penalty=1.0,
        early_stopping=False,
        repetition_penalty=1.0,
        eos_token_id=eos or None,
        pad_token_id=next(pad for pad in pads if pad is not None and pad < rows),
        bos_token_id=own.bos_token_id,
        decoder_start_token_id=getattr(config, "decoder_start_token_id", None)
        if start is None
        else start,
    )


def generate_batch(
    model: Any,
    prompts: Sequence[Ids],
    requests: Sequence[GenerateRequest],
    endings: Endings,
    prefix: Layers = (),
) -> list[Continuation | Failed]:
    """Continue prompts of equal length; the requests agree in all but ``prompt`` and ``watch``.

    Without padding, batched and single runs agree for every architecture. ``prefix`` has the keys and values
    of a beginning that all prompts share.
    """
    common = requests[0]
    ids = torch.tensor(prompts, device=model.device)
    start = 1 if model.config.is_encoder_decoder else ids.shape[1]
    watch = [request.watch for request in requests]
    recorder = _StepRecorder(common.num_beams, watch, common.steps, common.top_k)
    settings = copy.deepcopy(model.generation_config)
    settings.max_new_tokens, settings.num_beams = (
        common.max_new_tokens,
        common.num_beams,
    )
    settings.eos_token_id = list(endings.eos_ids) or None
    rows = len(prompts) * common.num_beams
    settings.use_cache = rows == 1 or model.config.model_type not in _STATE_OF_ONE_ROW
    with torch.inference_mode():
        sequences = model.generate(
            input_ids=ids,
            attention_mask=torch.ones_like(ids),
            **({"past_key_values": cache_of(model, prefix, rows)} if prefix else {}),
            generation_config=settings,
            logits_processor=LogitsProcessorList([recorder]),
            stopping_criteria=StoppingCriteriaList(
                [_StopAtStrings(endings, common.stop, start)]
            ),
        )
    return [
        endings.continuation(tuple(row), steps, common, top)
        for row, steps, top in zip(
            sequences[:, start:].tolist(), recorder.steps, recorder.top, strict=True
        )
    ]


def _ids(value: int | Sequence[int] | None) -> set[int]:
    return set() if value is None else {value} if isinstance(value, int) else set(value)
