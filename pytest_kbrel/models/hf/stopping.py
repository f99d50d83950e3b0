"""Texts under way: their steps, their endings, and greedy and beam search by transformers' ``generate``."""

from __future__ import annotations

import copy
import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import torch
from transformers import LogitsProcessorList, StoppingCriteriaList

from pytest_kbrel.models.checkpoint.endings import MOST_POSITIONS, Endings, top_tokens
from pytest_kbrel.models.tokens import Prompt
from pytest_kbrel.records import Failed, Generated, GenerateRequest, TopTokens

# Model types whose recurrent states transformers mixes up among the rows of a batch and cannot hand from beam
# to beam: with more than one row, everything is computed anew for each token instead.
_STATE_OF_ONE_ROW = ("rwkv",)


class RunningSequence:
    """One sequence under way, behind a prompt of ``length`` tokens."""

    def __init__(
        self, number: int, request: GenerateRequest, endings: Endings, length: int = 0
    ) -> None:
        self.number, self.request = number, request
        # The most tokens that are fed: the last one of a text never is.
        self.most = length + request.max_new_tokens - 1
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
        if top:
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


class NextTokens:
    """The most probable token behind each row of ``logits``: ``ids``, on their device."""

    def __init__(self, logits: torch.Tensor) -> None:
        self._logits = logits = logits.float()
        # A softmax would write as many numbers again as there are logits.
        self._norms = logits.logsumexp(-1)
        # PyTorch's own search for the greatest takes ten times as long.
        self.ids = (
            torch.from_numpy(logits.numpy().argmax(-1))
            if logits.is_cpu
            else logits.argmax(-1)
        )
        # The greatest is not a number as soon as one of the row's values is not.
        greatest = logits.gather(-1, self.ids[:, None])[:, 0]
        self._probabilities = (greatest - self._norms).exp()

    def append_to(self, sequences: Sequence[RunningSequence]) -> None:
        """Append to each unfinished sequence the token of its row; this waits for the device.

        There may be further rows.
        """
        logits, norms = self._logits, self._norms
        tokens, values = self.ids.tolist(), self._probabilities.tolist()
        count = max(sequence.top_k for sequence in sequences)
        likely = _most_probable(logits, norms, self.ids, count) if count else []
        for row, sequence in enumerate(sequences):
            if not sequence.is_finished:
                watched = None
                top: TopTokens = ()
                if count:
                    top = top_tokens(likely[row], tokens[row], sequence.top_k)
                if sequence.watched is not None:
                    watched = float((logits[row, sequence.watched] - norms[row]).exp())
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


def generate_batch(
    model: Any, prompts: Sequence[Prompt], endings: Endings
) -> list[Generated | Failed]:
    """Continue prompts of equal length whose requests agree in all but ``prompt`` and ``watch``.

    Without padding, batched and single runs agree for every architecture.
    """
    common = prompts[0].request
    beams = common.num_beams
    ids = torch.tensor([prompt.ids for prompt in prompts], device=model.device)
    start = 1 if model.config.is_encoder_decoder else ids.shape[1]
    requests, ends = [prompt.request for prompt in prompts], endings
    # What is most probable at each step of a beam search is no text, and has no ending.
    if beams > 1:
        requests = [dataclasses.replace(one, stop=(), top_k=0) for one in requests]
        ends = Endings(endings.tokenizer, ())
    recorded = [
        RunningSequence(number, request, ends)
        for number, request in enumerate(requests)
    ]
    settings = copy.deepcopy(model.generation_config)
    settings.max_new_tokens, settings.num_beams = common.max_new_tokens, beams
    settings.eos_token_id = list(endings.eos_ids) or None
    is_one_row = len(prompts) * beams == 1
    settings.use_cache = is_one_row or model.config.model_type not in _STATE_OF_ONE_ROW

    def record(_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        NextTokens(scores[::beams]).append_to(recorded)
        return scores

    def is_over(ids: torch.Tensor, _scores: Any, **_: Any) -> torch.Tensor:
        done = [endings.stops(row, common.stop) for row in ids[:, start:].tolist()]
        return torch.tensor(done, device=ids.device)

    with torch.inference_mode():
        texts = model.generate(
            input_ids=ids,
            attention_mask=torch.ones_like(ids),
            generation_config=settings,
            logits_processor=LogitsProcessorList([record]),
            stopping_criteria=StoppingCriteriaList([is_over]),
        )
    if beams == 1:
        return [sequence.result() for sequence in recorded]
    return [
        endings.with_steps(endings.cut(tuple(row), common.stop), one.steps, common)
        for row, one in zip(texts[:, start:].tolist(), recorded, strict=True)
    ]
