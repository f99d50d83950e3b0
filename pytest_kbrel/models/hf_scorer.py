"""Scores pairs of any number: shares what they share where the checkpoint allows it, and stays in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

from pytest_kbrel.models.batching import Batcher
from pytest_kbrel.models.hf_ladder import Rung, Way, highest_rung
from pytest_kbrel.models.hf_packed import asked_of, feed_prefix, score_rows
from pytest_kbrel.models.hf_scoring import Probabilities, score_batch
from pytest_kbrel.models.hf_tokens import Pair
from pytest_kbrel.models.hf_window import window_of
from pytest_kbrel.models.sharing import Group, Row, plan
from pytest_kbrel.records import Failed

# Logits held at once, in numbers: 2**26 float32 are 256 MiB, whatever the vocabulary's size.
_LOGITS_AT_ONCE = 2**26
# In tokens. A longer row repeats fewer shared beginnings, and attends to more that it does not need.
_ROW = 256


class Scorer:
    """One checkpoint's scoring. ``budget`` is in tokens a batch, ``longest`` what the model takes.

    Without ``shares`` every sequence is fed whole.
    """

    def __init__(self, model: Any, *, budget: int, longest: int | None, shares: bool = True) -> None:
        self._model = model
        self._longest, self._shares = longest, shares
        self._batcher = Batcher(budget)
        self._vocabulary = int(model.get_input_embeddings().weight.shape[0])
        # A mask of one's own replaces a sliding window; within the window there is nothing to replace.
        self._window = window_of(model.config)

    @cached_property
    def rung(self) -> Rung:
        """Which way of sharing holds for this checkpoint."""
        if not self._shares:
            return "plain"
        ways: dict[Rung, Way] = {"plain": lambda pairs: score_batch(self._model, pairs, self._pad)}
        if self._model.config.is_encoder_decoder:
            ways["prefix"] = lambda pairs: score_batch(self._model, pairs, self._pad, encode_once=True)
        else:
            ways["prefix"] = lambda pairs: self._tried(pairs, "prefix")
            ways["packed"] = lambda pairs: self._tried(pairs, "packed")
        return highest_rung(self._model, ways, self._longest)

    def ready(self, pairs: Sequence[Pair]) -> Iterator[list[tuple[int, Probabilities | Failed]]]:
        """Yield, batch by batch, each pair's number and answer; what fails is a :class:`Failed`."""
        left = set(range(len(pairs)))
        if self.rung != "plain" and not self._model.config.is_encoder_decoder:
            fitting = [n for n, pair in enumerate(pairs) if self._fits(pair)]
            some = [pairs[number] for number in fitting]
            for batch in self._shared(some, self.rung):
                left -= {fitting[number] for number, _ in batch}
                yield [(fitting[number], answer) for number, answer in batch]
        # Longest first, and what an encoder can read once side by side.
        order = sorted(left, key=lambda n: (-len(pairs[n].context), pairs[n].context, -_length(pairs[n])))
        for answers in self._batcher.ready([pairs[n] for n in order], self._cost, self._plain):
            yield list(zip(order, answers, strict=False))
            del order[: len(answers)]

    def _shared(self, pairs: Sequence[Pair], rung: Rung) -> Iterator[list[tuple[int, Probabilities]]]:
        """Yield the answers that could be had; whatever fails here is left for plain batches to explain."""
        row_length = min(_ROW, self._batcher.budget) if rung == "packed" else 0
        for group in plan(asked_of(pairs), row_length):
            try:
                prefix = feed_prefix(self._model, group.prefix)
            except Exception:
                continue
            yield from self._rows(group, prefix, pairs, rung)

    def _rows(
        self, group: Group, prefix: Any, pairs: Sequence[Pair], rung: Rung
    ) -> Iterator[list[tuple[int, Probabilities]]]:
        def cost(rows: Sequence[Row]) -> int:
            # Each row has its own copy of the prefix's keys and values.
            tokens = len(rows) * (len(group.prefix) + max(len(row.tokens) for row in rows))
            logits = self._vocabulary * sum(len(places) for row in rows for _, places in row.places)
            return self._within(tokens, logits, len(rows))

        def answer(rows: Sequence[Row]) -> list[dict[int, Probabilities] | Failed]:
            before = len(group.prefix)
            return [*score_rows(self._model, before, prefix, rows, pairs, packed=rung == "packed")]

        longest_first = sorted(group.rows, key=lambda row: -len(row.tokens))
        for batch in self._batcher.ready(longest_first, cost, answer):
            yield [item for found in batch if not isinstance(found, Failed) for item in found.items()]

    def _tried(self, pairs: Sequence[Pair], rung: Rung) -> list[Probabilities]:
        found = {number: answer for batch in self._shared(pairs, rung) for number, answer in batch}
        return [found[number] for number in range(len(pairs))]

    def _plain(self, pairs: Sequence[Pair]) -> list[Probabilities | Failed]:
        once = self._model.config.is_encoder_decoder and self.rung == "prefix"
        return [*score_batch(self._model, pairs, self._pad, encode_once=once)]

    def _cost(self, pairs: Sequence[Pair]) -> int:
        tokens = len(pairs) * max(map(_length, pairs))
        return self._within(tokens, self._vocabulary * sum(len(pair.targets) for pair in pairs), len(pairs))

    def _within(self, tokens: int, logits: int, count: int) -> int:
        if count == 1 or logits <= _LOGITS_AT_ONCE:
            return tokens
        return max(tokens, self._batcher.budget + 1)

    def _fits(self, pair: Pair) -> bool:
        return self._window is None or _length(pair) <= self._window

    @property
    def _pad(self) -> int:
        return int(self._model.generation_config.pad_token_id)


def _length(pair: Pair) -> int:
    return len(pair.context) + len(pair.lead) + len(pair.targets)
