"""Counts the tokens that go through a model for given requests, on each way of sharing.

What is shared and which batches are made is asked of the engine's own functions; no weights are needed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from pytest_kbrel.models.batching import Batcher
from pytest_kbrel.models.hf.batches import Batches
from pytest_kbrel.models.hf.decode_loop import size_of
from pytest_kbrel.models.hf.kv_cache import KeptPrefix, Layers
from pytest_kbrel.models.hf.packing import asked_of
from pytest_kbrel.models.hf.prompts import Prompt, alike_of, groups_of, may_loop
from pytest_kbrel.models.hf.sharing_support import Rung
from pytest_kbrel.models.hf.sliding_window import check_length, window_of
from pytest_kbrel.models.prefix_tree import Group, Row
from pytest_kbrel.models.tokens import Ids, Pair, PromptEncoder
from pytest_kbrel.records import Request, ScoreRequest, record


@record
class Fed:
    """What goes through a model: tokens, padding beside them, and how many batches these are.

    Of texts the prompts alone: how many tokens a model writes, and how these are batched, hangs on what it
    writes. A shared prefix is a batch of its own.
    """

    tokens: int = 0
    padding: int = 0
    batches: int = 0

    def plus(self, other: Fed) -> Fed:
        """Return the sum."""
        return Fed(
            tokens=self.tokens + other.tokens,
            padding=self.padding + other.padding,
            batches=self.batches + other.batches,
        )


class Feeder:
    """Counts for one checkpoint, by its ``config`` and what tokenises for it.

    ``budget`` is in tokens a batch, ``longest`` what the model takes.
    """

    def __init__(self, config: Any, encoder: PromptEncoder, *, longest: int | None, budget: int) -> None:
        self.encoder, self.budget = encoder, budget
        self._encoder_decoder = bool(config.is_encoder_decoder)
        self._window, self._longest = window_of(config), longest
        self._vocabulary = int(config.get_text_config(decoder=True).vocab_size)
        self._batches = Batches(Batcher(budget), vocabulary=self._vocabulary, window=self._window)

    def trees(self, requests: Sequence[Request]) -> tuple[list[Ids], list[Ids]]:
        """Return the sequences of the two prefix trees of ``requests``: of what is scored, and of prompts.

        As many tokens as these have nodes are the least that can be fed.
        """
        pairs, prompts = self.read(requests)
        return [one.ids for one in asked_of(pairs)], [prompt.ids for prompt in prompts]

    def fed(self, requests: Sequence[Request], way: Rung, kept: KeptPrefix | None = None) -> Fed:
        """Return what is fed if ``requests`` are put to the model at once, and it shares in this way.

        ``kept`` is what the model still has of the calls before.
        """
        pairs, prompts = self.read(requests)
        found = Fed()
        for rows in self._scored(pairs, way):
            tokens = sum(map(len, rows))
            padding = len(rows) * max(map(len, rows)) - tokens
            found = found.plus(Fed(tokens=tokens, padding=padding, batches=1))
        return found.plus(self._continued(prompts, way, kept or KeptPrefix()))

    def groups(self, pairs: Sequence[Pair], prompts: Sequence[Prompt], way: Rung) -> tuple[Group, ...]:
        """Return what is shared with what; the rows' numbers count what may share anything, and only that.

        What is longer than a checkpoint sees at once may share nothing, and is in no group.
        """
        scored = [pairs[n] for n in self._batches.shareable(pairs)]
        looped = [prompt for prompt in prompts if may_loop(prompt, self._window)]
        return (
            *(self._batches.groups(scored, way) if scored else ()),
            *(groups_of(looped, self.budget, way, self._longest) if looped else ()),
        )

    def read(self, requests: Sequence[Request]) -> tuple[list[Pair], list[Prompt]]:
        """Return what is scored and what is continued, without what the model refuses and never computes."""
        pairs: list[Pair] = []
        prompts: list[Prompt] = []
        for request in self.encoder.reading(requests):
            try:
                if isinstance(request, ScoreRequest):
                    pair = self.encoder.pair(request)
                    self._check(len(pair.context), len(pair.lead) + len(pair.targets))
                    pairs.append(pair)
                else:
                    prompt = Prompt(ids=self.encoder.prompt(request), request=request)
                    self._check(len(prompt.ids), request.max_new_tokens)
                    if prompt.ids:
                        prompts.append(prompt)
            except ValueError:
                continue
        return pairs, prompts

    def loops(self, requests: Sequence[Request], way: Rung) -> Iterator[tuple[int, int]]:
        """Yield how many texts are written together, and how many of them at once at most."""
        _, prompts = self.read(requests)
        different = list(alike_of(prompts))
        looped = [prompt for prompt in different if self._loops(prompt, way)]
        for group in self.groups([], looped, way):
            members = [looped[number] for row in group.rows for number, _ in row.places]
            before = len(group.prefix)
            size = size_of(
                before,
                max(prompt.length for prompt in members) - before,
                self.budget,
                longest=self._longest,
                vocabulary=self._vocabulary,
                packed=way == "packed",
            )
            yield len(members), size.most
        alike = Counter(prompt.kind for prompt in different if not self._loops(prompt, way))
        lengths = {prompt.kind: prompt.length * prompt.request.num_beams for prompt in different}
        for kind, texts in alike.items():
            most = max(1, self.budget // lengths[kind])
            for start in range(0, texts, most):
                yield min(most, texts - start), most

    def _scored(self, pairs: Sequence[Pair], way: Rung) -> Iterator[list[Ids]]:
        """Yield the rows of each batch."""
        left = set(range(len(pairs)))
        if way != "plain" and not self._encoder_decoder:
            fitting = self._batches.shareable(pairs)
            left -= set(fitting)
            for group in self._batches.groups([pairs[n] for n in fitting], way):
                if group.prefix:
                    yield [group.prefix]
                for rows in self._batches.of_rows(group, list):
                    yield [row.tokens for row in rows if isinstance(row, Row)]
        for batch in self._batches.of_pairs(pairs, left, list):
            some = [pair for _, pair in batch if isinstance(pair, Pair)]
            if not self._encoder_decoder:
                yield [row for pair in some for row in self._rows(pair)]
                continue
            contexts = [pair.context for pair in some]
            yield list(dict.fromkeys(contexts)) if way == "prefix" else contexts
            yield [(*pair.lead, *pair.targets) for pair in some]

    def _continued(self, prompts: Sequence[Prompt], way: Rung, kept: KeptPrefix) -> Fed:
        different = list(alike_of(prompts))
        looped = [prompt for prompt in different if self._loops(prompt, way)]
        tokens = _tokens(prompt for prompt in different if not self._loops(prompt, way))
        prefixes: list[Ids] = []

        def feed(ids: Ids) -> Layers:
            prefixes.append(ids)
            return []

        for group in self.groups([], looped, way):
            kept.layers(group.prefix, feed)
            tokens += sum(len(row.tokens) for row in group.rows)
        return Fed(tokens=tokens + sum(map(len, prefixes)), batches=len(prefixes))

    def _loops(self, prompt: Prompt, way: Rung) -> bool:
        return way != "plain" and not self._encoder_decoder and may_loop(prompt, self._window)

    def _rows(self, pair: Pair) -> list[Ids]:
        """Return what is fed of a pair that is fed whole: one row, or one each to encoder and decoder."""
        if self._encoder_decoder:
            return [pair.context, (*pair.lead, *pair.targets)]
        return [one.ids for one in asked_of([pair])]

    def _check(self, prompt: int, behind: int) -> None:
        check_length(prompt, behind, self._longest, encoder_decoder=self._encoder_decoder)


def _tokens(prompts: Iterable[Prompt]) -> int:
    return sum(len(prompt.ids) for prompt in prompts)
