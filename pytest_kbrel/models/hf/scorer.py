"""Scores pairs of any number: shares what they share where the checkpoint allows it, and stays in memory."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

from pytest_kbrel.models.batching import Batcher, Budget, describe_error
from pytest_kbrel.models.hf.batches import Batches
from pytest_kbrel.models.hf.kv_cache import KeptPrefix
from pytest_kbrel.models.hf.logprobs import Probabilities, score_batch
from pytest_kbrel.models.hf.packing import feed_prefix, score_rows
from pytest_kbrel.models.hf.sharing_support import TRIAL, Rung, Way, highest_rung
from pytest_kbrel.models.hf.sliding_window import forget_lengths, packs, window_of
from pytest_kbrel.models.prefix_tree import Group, Row
from pytest_kbrel.models.tokens import Pair
from pytest_kbrel.records import Failed


class Scorer:
    """One checkpoint's scoring. ``budget`` is in tokens a batch, ``longest`` what the model takes.

    Without ``shares`` every sequence is fed whole. ``trouble`` is the first error of a shared batch; plain
    ones answered then.
    """

    def __init__(self, model: Any, *, budget: int | Budget, longest: int | None, shares: bool = True) -> None:
        self._model = model
        self._longest, self._shares = longest, shares
        self.trouble = ""
        self._kept = KeptPrefix()
        self._batches = Batches(
            Batcher(budget),
            vocabulary=int(model.get_input_embeddings().weight.shape[0]),
            # A mask of one's own replaces a sliding window; within the window there is nothing to replace.
            window=window_of(model.config),
        )

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
            if packs(self._model.config):
                ways["packed"] = lambda pairs: self._tried(pairs, "packed")
        found = highest_rung(self._model, ways, self._longest)
        # That a way is closed is no trouble.
        self.trouble = ""
        return found

    def ready(self, pairs: Sequence[Pair]) -> Iterator[list[tuple[int, Probabilities | Failed]]]:
        """Yield, batch by batch, each pair's number and answer; what fails is a :class:`Failed`."""
        left = set(range(len(pairs)))
        if self.rung != "plain" and not self._model.config.is_encoder_decoder:
            fitting = self._batches.shareable(pairs)
            some = [pairs[number] for number in fitting]
            for batch in self._shared(some, self.rung, self._batches):
                left -= {fitting[number] for number, _ in batch}
                yield [(fitting[number], answer) for number, answer in batch]
        yield from self._batches.of_pairs(pairs, left, self._plain)

    def _shared(
        self, pairs: Sequence[Pair], rung: Rung, batches: Batches
    ) -> Iterator[list[tuple[int, Probabilities]]]:
        """Yield the answers that could be had; whatever fails here is left for plain batches to explain.

        So are numbers that are none: in a packed row they spread to answers beside them.
        """
        for group in batches.groups(pairs, rung):
            try:
                prefix = self._kept.layers(group.prefix, lambda ids: feed_prefix(self._model, ids))
            except Exception as error:
                self.trouble = self.trouble or describe_error(error)
                continue
            yield from self._rows(group, prefix, pairs, rung, batches)

    def _rows(
        self, group: Group, prefix: Any, pairs: Sequence[Pair], rung: Rung, batches: Batches
    ) -> Iterator[list[tuple[int, Probabilities]]]:
        def answer(rows: Sequence[Row]) -> list[dict[int, Probabilities] | Failed]:
            before = len(group.prefix)
            return [*score_rows(self._model, before, prefix, rows, pairs, packed=rung == "packed")]

        for batch in batches.of_rows(group, answer):
            for failed in (found for found in batch if isinstance(found, Failed)):
                self.trouble = self.trouble or failed.error
            items = [item for found in batch if not isinstance(found, Failed) for item in found.items()]
            yield [(number, answer) for number, answer in items if all(map(math.isfinite, answer))]

    def _tried(self, pairs: Sequence[Pair], rung: Rung) -> list[Probabilities]:
        # Whatever the budget: what is right for a checkpoint does not depend on it.
        batches = Batches(Batcher(TRIAL), vocabulary=1, window=None)
        found = {number: answer for batch in self._shared(pairs, rung, batches) for number, answer in batch}
        return [found[number] for number in range(len(pairs))]

    def _plain(self, pairs: Sequence[Pair]) -> list[Probabilities | Failed]:
        forget_lengths(self._model)
        once = self._model.config.is_encoder_decoder and self.rung == "prefix"
        return [*score_batch(self._model, pairs, self._pad, encode_once=once)]

    @property
    def _pad(self) -> int:
        return int(self._model.generation_config.pad_token_id)
