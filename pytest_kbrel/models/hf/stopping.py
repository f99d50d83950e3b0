"""Texts under way: their steps, their endings, and greedy and beam search by transformers' ``generate``."""

from __future__ import annotations

import copy
import dataclasses
import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Literal

import torch
from transformers import (
    GenerationConfig,
    LogitsProcessor,
    LogitsProcessorList,
    StoppingCriteria,
    StoppingCriteriaList,
)

from pytest_kbrel.models.hf.lm_head import vocabulary_of
from pytest_kbrel.models.tokens import Ids
from pytest_kbrel.records import Failed, Generated, GenerateRequest, Step, TopTokens

# Model types whose recurrent states transformers mixes up among the rows of a batch and cannot hand from beam
# to beam: with more than one row, everything is computed anew for each token instead.
_STATE_OF_ONE_ROW = ("rwkv",)
# Less probable tokens are not among the top ones: they tell models little apart and would fill the files.
LEAST = 0.01
# Positions of an answer whose top tokens are kept.
MOST_POSITIONS = 64
# Of a token: its id, its probability, and that of the watched token.
Steps = Sequence[tuple[int, float, float | None]]


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

    White space at the beginning of a text is no stop. With ``special`` texts include special tokens. What the
    methods return lacks the length and digest of the prompt.
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
        self._last_tokens: dict[str, frozenset[int] | None] = {}

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

    def may_end(self, stop: str, token: int) -> bool:
        """Return False for a token that cannot be the last one of ``stop``.

        Tokens show a last character in ASCII that tokenizers do not strip: the bytes of another may be spread
        over tokens.
        """
        if stop not in self._last_tokens:
            last = stop[-1:]
            self._last_tokens[stop] = (
                frozenset(n for n, piece in enumerate(self._pieces) if last in piece)
                if last.isascii() and last not in ("", " ")
                else None
            )
        able = self._last_tokens[stop]
        return able is None or token in able

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

        Of beams ``steps`` are the most probable tokens, not those of the answer, which then has no
        probability.
        """
        mean = first = None
        if request.num_beams == 1:
            steps = steps[: len(text.token_ids)]
        values = [value for _, value, _ in steps]
        if not all(map(math.isfinite, values)):
            return Failed(error="not a number among the model's logits")
        if request.num_beams == 1:
            mean, first = answer_probability(values, ended=text.finish == "stop")
        records = [
            Step(
                token_id=token,
                token=self.piece(token),
                probability=min(value, 1.0),
                watched=watched,
            )
            for token, value, watched in (steps if request.steps else ())
        ]
        return dataclasses.replace(
            text,
            probability=mean,
            first_probability=first,
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

    @cached_property
    def _pieces(self) -> list[str]:
        # The embedding may have more rows than the tokenizer has tokens.
        ids = set(self.tokenizer.get_vocab().values())
        return [self.decode([n]) if n in ids else "" for n in range(self._vocabulary)]


def _text(ids: Ids, text: str, finish: Literal["stop", "length"]) -> Generated:
    return Generated(
        text=text.strip(),
        token_ids=ids,
        finish=finish,
        prompt_tokens=0,
        prompt_digest="",
    )


class RunningSequence:
    """One sequence under way, in ``row`` of its cache.

    ``slots`` are those of the row that it sees behind the shared prefix.
    """

    def __init__(
        self,
        number: int,
        request: GenerateRequest,
        endings: Endings,
        *,
        row: int = 0,
        slots: Sequence[int] = (),
    ) -> None:
        self.number, self.request = number, request
        self.row, self.slots = row, list(slots)
        self.token_ids: list[int] = []
        self.steps: list[tuple[int, float, float | None]] = []
        self.is_finished = False
        self._top: list[TopTokens] = []
        self._endings = endings

    @property
    def remaining(self) -> int:
        """The most tokens that it may still get."""
        return self.request.max_new_tokens - len(self.token_ids)

    @property
    def watched(self) -> int | None:
        """The token whose probability is wanted at the next step."""
        watch, step = self.request.watch, len(self.token_ids)
        return watch[step] if self.request.steps and step < len(watch) else None

    @property
    def top_k(self) -> int:
        """How many of the most probable tokens are wanted at the next step."""
        is_over = self.is_finished or len(self.token_ids) >= MOST_POSITIONS
        return 0 if is_over else self.request.top_k

    def append(
        self, token: int, value: float, watched: float | None, top: TopTokens
    ) -> None:
        """Append a token, of which ``value`` is the probability, with the most probable ones, if wanted."""
        if self.top_k:
            self._top.append(top)
        self.token_ids.append(token)
        self.steps.append((token, value, watched))
        self.is_finished = (
            self.remaining <= 0
            or token in self._endings.eos_ids
            or not math.isfinite(value)
            or self._endings.stops(self.token_ids, self.request.stop)
        )

    def result(self) -> Generated | Failed:
        """Return the text up to where it ends."""
        text = self._endings.cut(tuple(self.token_ids), self.request.stop)
        return self._endings.with_steps(text, self.steps, self.request, self._top)


def append_next_tokens(
    sequences: Sequence[RunningSequence], rows: Sequence[int], logits: torch.Tensor
) -> None:
    """Append to each unfinished sequence ``i`` the most probable token by row ``rows[i]`` of ``logits``."""
    logits = logits.float()
    # A softmax would write as many numbers again as there are logits.
    norms = logits.logsumexp(-1)
    # PyTorch's own search for the greatest takes ten times as long.
    best = (
        torch.from_numpy(logits.numpy().argmax(-1))
        if logits.is_cpu
        else logits.argmax(-1)
    )
    # The greatest is not a number as soon as one of the row's values is not.
    greatest = logits.gather(-1, best[:, None])[:, 0]
    tokens, values = best.tolist(), (greatest - norms).exp().tolist()
    count = max(sequence.top_k for sequence in sequences)
    likely = _most_probable(logits, norms, best, count) if count else [{}] * len(tokens)
    for sequence, row in zip(sequences, rows, strict=True):
        if not sequence.is_finished:
            watched = None
            if sequence.watched is not None:
                watched = float((logits[row, sequence.watched] - norms[row]).exp())
            top = top_tokens(likely[row], tokens[row], sequence.top_k)
            sequence.append(tokens[row], values[row], watched, top)


def _most_probable(
    logits: torch.Tensor, norms: torch.Tensor, best: torch.Tensor, count: int
) -> list[dict[int, float]]:
    """Return the log-probabilities of the ``count`` most probable tokens of each row, and of ``best``."""
    tokens = logits.topk(min(count, logits.shape[1])).indices
    # Of equally probable tokens the first is written, and may not be among those found.
    tokens = torch.cat([best[:, None], tokens], dim=1)
    nats = logits.gather(1, tokens) - norms[:, None]
    table = zip(tokens.tolist(), nats.tolist(), strict=True)
    return [dict(zip(*row, strict=True)) for row in table]


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
    eos = sorted(
        _ids(own.eos_token_id)
        | _ids(config.eos_token_id)
        | _ids(tokenizer.eos_token_id)
    )
    # A tokenizer may have a padding token that the embedding has no row for.
    rows = vocabulary_of(model)
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


class _StepRecorder(LogitsProcessor):  # type: ignore[misc,unused-ignore]
    """Records each step's most probable token of every first beam; the scores stay as they are."""

    def __init__(self, sequences: Sequence[RunningSequence], beams: int) -> None:
        self._sequences, self._beams = sequences, beams

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        rows = range(len(self._sequences))
        append_next_tokens(self._sequences, rows, scores[:: self._beams])
        return scores


class _StopAtStrings(StoppingCriteria):  # type: ignore[misc,unused-ignore]
    def __init__(self, endings: Endings, stops: Sequence[str], start: int) -> None:
        self._endings, self._stops, self._start = endings, stops, start

    def __call__(self, input_ids: torch.Tensor, scores: Any, **_: Any) -> torch.Tensor:
        rows = input_ids[:, self._start :].tolist()
        done = [self._endings.stops(row, self._stops) for row in rows]
        return torch.tensor(done, device=input_ids.device)


def generate_batch(
    model: Any,
    prompts: Sequence[Ids],
    requests: Sequence[GenerateRequest],
    endings: Endings,
) -> list[Generated | Failed]:
    """Continue prompts of equal length; the requests agree in all but ``prompt`` and ``watch``.

    Without padding, batched and single runs agree for every architecture.
    """
    common = requests[0]
    beams = common.num_beams
    ids = torch.tensor(prompts, device=model.device)
    start = 1 if model.config.is_encoder_decoder else ids.shape[1]
    # What is most probable at each step of a beam search is no text, and has no ending.
    recorded = [
        RunningSequence(number, request, endings)
        if beams == 1
        else RunningSequence(
            number,
            dataclasses.replace(request, stop=(), top_k=0),
            endings.with_ends((), special=False),
        )
        for number, request in enumerate(requests)
    ]
    settings = copy.deepcopy(model.generation_config)
    settings.max_new_tokens, settings.num_beams = common.max_new_tokens, beams
    settings.eos_token_id = list(endings.eos_ids) or None
    is_one_row = len(prompts) * beams == 1
    settings.use_cache = is_one_row or model.config.model_type not in _STATE_OF_ONE_ROW
    with torch.inference_mode():
        texts = model.generate(
            input_ids=ids,
            attention_mask=torch.ones_like(ids),
            generation_config=settings,
            logits_processor=LogitsProcessorList([_StepRecorder(recorded, beams)]),
            stopping_criteria=StoppingCriteriaList(
                [_StopAtStrings(endings, common.stop, start)]
            ),
        )
    if beams == 1:
        return [sequence.result() for sequence in recorded]
    return [
        endings.with_steps(endings.cut(tuple(row), common.stop), one.steps, common)
        for row, one in zip(texts[:, start:].tolist(), recorded, strict=True)
    ]


def _ids(value: int | Sequence[int] | None) -> set[int]:
    return set() if value is None else {value} if isinstance(value, int) else set(value)
