"""Which sequences go through a model together when they are scored: engine and plan take it from here."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from pytest_kbrel.models.batching import Batcher
from pytest_kbrel.models.hf.kv_cache import KeptPrefix, Layers
from pytest_kbrel.models.hf.lm_head import LOGITS_AT_ONCE
from pytest_kbrel.models.hf.prefix_tree import Asked, Group, Row, plan
from pytest_kbrel.models.hf.sharing import Rung, check_length, window_of
from pytest_kbrel.models.tokens import Ids, Pair, PromptEncoder, common_prefix
from pytest_kbrel.records import Failed, GenerateRequest, Request, ScoreRequest, record

R = TypeVar("R")

# Reading a slot once more costs so many times what seeing one in vain does; measured on a CPU.
_READING = 9
_MOST_BESIDE = 32

# In tokens. A longer row repeats fewer shared beginnings, and attends to more that it does not need.
ROW = 128


class Batches:
    """Lays pairs into batches. ``vocabulary`` is how many logits a token has.

    ``window`` is up to how many tokens a sequence may share anything, ``None`` for any number.
    """

    def __init__(self, batcher: Batcher, *, vocabulary: int, window: int | None) -> None:
        self._batcher = batcher
        self._vocabulary, self._window = vocabulary, window

    def shareable(self, pairs: Sequence[Pair]) -> list[int]:
        """Return the places of those pairs that may share what they have in common."""
        return [n for n, pair in enumerate(pairs) if self._window is None or length_of(pair) <= self._window]

    def groups(self, pairs: Sequence[Pair], rung: Rung) -> tuple[Group, ...]:
        """Return what is shared with what."""
        row_length = min(ROW, self._batcher.budget) if rung == "packed" else 0
        return plan(asked_of(pairs), row_length)

    def of_rows(
        self, group: Group, answer: Callable[[Sequence[Row]], list[R | Failed]]
    ) -> Iterator[list[R | Failed]]:
        """Yield what ``answer`` makes of the rows of a group, batch by batch."""

        def cost(rows: Sequence[Row]) -> int:
            # Each row has its own copy of the prefix's keys and values.
            tokens = len(rows) * (len(group.prefix) + max(len(row.tokens) for row in rows))
            logits = self._vocabulary * sum(len(places) for row in rows for _, places in row.places)
            return self._within(tokens, logits, len(rows))

        longest_first = sorted(group.rows, key=lambda row: -len(row.tokens))
        yield from self._batcher.ready(longest_first, cost, answer)

    def of_pairs(
        self,
        pairs: Sequence[Pair],
        places: Iterable[int],
        answer: Callable[[Sequence[Pair]], list[R | Failed]],
    ) -> Iterator[list[tuple[int, R | Failed]]]:
        """Yield what ``answer`` makes of the pairs at ``places``, fed whole: each place with its answer."""

        def cost(some: Sequence[Pair]) -> int:
            lengths = {length_of(one) for one in some}
            # Beyond a window padding is not seen in vain: with some models it moves the numbers.
            if self._window is not None and len(lengths) > 1 and max(lengths) > self._window:
                return self._batcher.budget + 1
            tokens = len(some) * max(lengths)
            return self._within(tokens, self._vocabulary * sum(len(one.targets) for one in some), len(some))

        # Longest first, and what an encoder can read once side by side.
        order = sorted(places, key=lambda n: (-len(pairs[n].context), pairs[n].context, -length_of(pairs[n])))
        for answers in self._batcher.ready([pairs[n] for n in order], cost, answer):
            yield list(zip(order, answers, strict=False))
            del order[: len(answers)]

    def _within(self, tokens: int, logits: int, count: int) -> int:
        if count == 1 or logits <= LOGITS_AT_ONCE:
            return tokens
        return max(tokens, self._batcher.budget + 1)


def length_of(pair: Pair) -> int:
    """Return how many tokens a pair has in all."""
    return len(pair.context) + len(pair.lead) + len(pair.targets)


@record
class Prompt:
    """A prompt's token ids and what is asked about it."""

    ids: Ids
    request: GenerateRequest

    @property
    def length(self) -> int:
        """The most tokens that prompt and continuation can have."""
        return len(self.ids) + self.request.max_new_tokens

    @property
    def kind(self) -> tuple[object, ...]:
        """What prompts must share to be answered in one plain batch."""
        r = self.request
        return (len(self.ids), r.max_new_tokens, r.num_beams, r.steps, r.stop)


def groups_of(
    prompts: Sequence[Prompt], budget: int, rung: Rung = "prefix", longest: int | None = None
) -> tuple[Group, ...]:
    """Return which prompts share a beginning, one loop a group; ``budget`` is in tokens a batch.

    ``longest`` is how many tokens the model takes, ``None`` where it sets no limit.
    """
    asked = [Asked(ids=prompt.ids, start=len(prompt.ids) - 1) for prompt in prompts]
    farthest = max(prompt.length for prompt in prompts)
    if rung == "packed":
        ids = [prompt.ids for prompt in prompts]
        shared = shared_of(ids)
        size = size_of(shared, farthest - shared, budget, longest=longest, vocabulary=1, packed=True)
        room = budget if longest is None else min(budget, longest)
        # As many tokens as a batch may have texts: a row must not hold more of these.
        return plan(asked, max(1, min(ROW, room - farthest, size.most)))
    # A loop of its own for fewer than a batch would leave the model with little to do at a time.
    return plan(asked, 0, least_rows=budget // farthest)


def alike_of(prompts: Sequence[Prompt]) -> dict[Prompt, list[int]]:
    """Return the different prompts by their token ids, and the places of each."""
    alike: dict[Prompt, list[int]] = {}
    for number, prompt in enumerate(prompts):
        bare = dataclasses.replace(prompt, request=dataclasses.replace(prompt.request, prompt=""))
        alike.setdefault(bare, []).append(number)
    return alike


def shared_of(ids: Sequence[Ids]) -> int:
    """Return how many tokens all prompts begin with, and none ends with."""
    return min(common_prefix(min(ids), max(ids)), min(map(len, ids)) - 1)


def may_loop(prompt: Prompt, window: int | None) -> bool:
    """Tell whether a prompt may be continued in the loop; ``window`` as :func:`window_of` tells it."""
    return prompt.request.num_beams == 1 and (window is None or prompt.length < window)


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


@record
class Size:
    """How large a batch may be: ``most`` texts, of which ``beside`` in one row; ``budget`` slots in all.

    ``longest`` is the number of slots that a row may have, ``None`` for any.
    """

    beside: int
    most: int
    budget: int
    longest: int | None = None


def size_of(
    before: int, own: int, budget: int, *, longest: int | None, vocabulary: int, packed: bool
) -> Size:
    """Return the size of batches behind a prefix of ``before`` tokens, of texts of at most ``own`` more.

    The more texts share a row, the fewer copies of the prefix there are, and the more slots each passes over.
    """
    beside = 1
    if packed:
        room = min(budget, budget if longest is None else longest) - before
        best = round(math.sqrt(_READING * before / own))
        beside = max(1, min(best, _MOST_BESIDE, room // own))
    rows = max(1, budget // (before + beside * own))
    most = max(1, min(beside * rows, LOGITS_AT_ONCE // vocabulary))
    return Size(beside=beside, most=most, budget=budget, longest=longest if packed else None)


def asked_of(pairs: Sequence[Pair]) -> list[Asked]:
    """Return what must be fed to score ``pairs``: the last token of an answer is never fed."""
    return [Asked(ids=(*pair.context, *pair.targets[:-1]), start=len(pair.context) - 1) for pair in pairs]
