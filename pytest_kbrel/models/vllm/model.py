"""Model that vLLM runs, and how its engine scores pairs with the fewest computed tokens.

vLLM returns the probabilities of a given text in two ways. *Whole*: a prompt's own log-probabilities. It then
computes the whole prompt and a softmax at each token, without its prefix cache. *Stepwise*: one question a
token, which names the tokens that are to be scored there. It reads whole blocks of shared beginnings from the
cache. Long shared beginnings make the second cheaper, short prompts the first.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence

from pytest_kbrel.models.base import check_ids, check_request, failed, generated, in_order, scored
from pytest_kbrel.models.chat import MAX_THINKING_TOKENS
from pytest_kbrel.models.checkpoint.integrity import FileRecord
from pytest_kbrel.models.hf.batch_plan import Prompt
from pytest_kbrel.models.hf.sharing import check_length
from pytest_kbrel.models.hf.stopping import Continuation, Endings
from pytest_kbrel.models.thinking import Batches, Thinker, thought_endings
from pytest_kbrel.models.tokens import Ids, Pair, PromptEncoder, common_prefix
from pytest_kbrel.models.vllm.engine import MOST_NAMED, Engine, Question, Reply, probability
from pytest_kbrel.records import (
    Failed,
    Fingerprint,
    Generated,
    GenerateRequest,
    Request,
    Scored,
    ScoreRequest,
    Step,
    record,
)

_UNEXPLAINED = "vLLM ended the answer where neither EOS nor a stop string is"


@record
class VllmParts:
    """Running engine with its encoder and fingerprint.

    ``vocabulary`` is the size of the model's vocabulary, ``files`` the record of the checkpoint's files.
    """

    engine: Engine
    encoder: PromptEncoder
    endings: Endings
    fingerprint: Fingerprint
    files: FileRecord
    vocabulary: int
    max_thinking_tokens: int = MAX_THINKING_TOKENS
    notes: tuple[str, ...] = ()


class VllmModel:
    """Causal checkpoint with an engine of its own; made by :func:`pytest_kbrel.models.vllm.load`.

    Prompts have the same token ids and digests, and texts the same ends, as with the transformers backend.
    """

    def __init__(self, parts: VllmParts) -> None:
        self._parts = parts

    def rendered(self, request: Request) -> str:
        """Return a request's prompt as the model reads it, special tokens by name."""
        return self._parts.encoder.rendered(request)

    @property
    def unscorable(self) -> str:
        """Why the model can score no answer; empty if it can."""
        return self._parts.encoder.unscorable

    def describe(self) -> Fingerprint:
        """Return the fingerprint, by content."""
        return self._parts.fingerprint

    @property
    def files(self) -> FileRecord:
        """Record of the files that the checkpoint was read from."""
        return self._parts.files

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for readers of its figures, a sentence each."""
        return self._parts.notes

    def replanned(self) -> VllmModel:
        """Return the same model on the same engine, with a third as many questions at a time."""
        engine = self._parts.engine
        smaller = engine.with_at_once(max(1, engine.at_once // 3))
        return VllmModel(dataclasses.replace(self._parts, engine=smaller))

    def score(self, requests: Sequence[ScoreRequest]) -> list[Scored | Failed]:
        """Return the probabilities (float32 softmax) of the continuations' tokens, one answer per request."""
        return in_order(self.score_as_ready(requests))

    def score_as_ready(self, requests: Sequence[ScoreRequest]) -> Iterator[list[tuple[int, Scored | Failed]]]:
        """Yield batches of the responses of :meth:`score` with their requests' positions."""
        encoder = self._parts.encoder
        indices: list[int] = []
        pairs: list[Pair] = []
        for index, request in enumerate(encoder.reading(requests)):
            try:
                pair = encoder.pair(request)
                check_ids((*pair.context, *pair.targets), self._parts.vocabulary)
                self._check_length(len(pair.context), len(pair.targets))
            except Exception as error:
                yield [(index, failed(error))]
            else:
                indices.append(index)
                pairs.append(pair)
        for batch in score_pairs(self._parts.engine, pairs):
            self.files.check()
            yield [(indices[n], scored(encoder, pairs[n], values)) for n, values in batch]

    def generate(self, requests: Sequence[GenerateRequest]) -> list[Generated | Failed]:
        """Return greedy continuations, one answer per request; beam search is a :class:`Failed`."""
        return in_order(self.generate_as_ready(requests))

    def generate_as_ready(
        self, requests: Sequence[GenerateRequest]
    ) -> Iterator[list[tuple[int, Generated | Failed]]]:
        """Yield batches of the responses of :meth:`generate` with their requests' positions."""
        indices: list[int] = []
        prompts: list[Prompt] = []
        for index, request in enumerate(self._parts.encoder.reading(requests)):
            try:
                ids = self._parts.encoder.prompt(request)
                self._check_request(ids, request)
            except Exception as error:
                yield [(index, failed(error))]
            else:
                indices.append(index)
                prompts.append(Prompt(ids=ids, request=request))
        for batch in self._ready(prompts):
            self.files.check()
            yield [(indices[n], generated(self._parts.encoder, prompts[n].ids, reply)) for n, reply in batch]

    def _ready(self, prompts: Sequence[Prompt]) -> Batches:
        marks, endings = self._parts.encoder.marks, self._parts.endings
        if marks is None:
            return self._continued(prompts, endings)
        thoughts = thought_endings(endings, marks)
        thinker = Thinker(
            lambda some: self._continued(some, endings),
            lambda some: self._continued(some, thoughts),
            marks,
            answers=endings,
            thoughts=thoughts,
            most=self._parts.max_thinking_tokens,
            longest=self._parts.engine.max_length,
        )
        return thinker.ready(prompts)

    def _continued(self, prompts: Sequence[Prompt], endings: Endings) -> Batches:
        # Neighbours share most, and what is asked together finds it in the engine's cache.
        order = sorted(range(len(prompts)), key=lambda n: prompts[n].ids)
        at_once = self._parts.engine.at_once
        for start in range(0, len(order), at_once):
            indices = order[start : start + at_once]
            replies = self._written([prompts[index] for index in indices], endings)
            yield list(zip(indices, replies, strict=True))

    def close(self) -> None:
        """Stop the engine."""
        self._parts.engine.close()

    def _written(self, prompts: Sequence[Prompt], endings: Endings) -> list[Continuation | Failed]:
        results: list[Continuation | Failed | None] = self._attempt(prompts, endings, stopping=True)
        # Where vLLM saw an ending and the text has none, its stop strings are left out and it writes on.
        early = [number for number, reply in enumerate(results) if reply is None]
        again = self._attempt([prompts[n] for n in early], endings, stopping=False)
        for number, reply in zip(early, again, strict=True):
            results[number] = reply or Failed(error=_UNEXPLAINED)
        return [reply for reply in results if reply is not None]

    def _attempt(
        self, prompts: Sequence[Prompt], endings: Endings, *, stopping: bool
    ) -> list[Continuation | Failed | None]:
        """Return the continuations, ``None`` for one that stops without an ending."""
        questions = [
            Question(
                ids=prompt.ids,
                max_tokens=prompt.request.max_new_tokens,
                ends=endings.eos_ids,
                stop=prompt.request.stop if stopping else (),
                named=tuple(dict.fromkeys(prompt.request.watch)) if prompt.request.steps else (),
            )
            for prompt in prompts
        ]
        replies = self._parts.engine.ask(questions)
        return [
            reply if isinstance(reply, Failed) else _continuation(prompt.request, reply, endings)
            for prompt, reply in zip(prompts, replies, strict=True)
        ]

    def _check_request(self, prompt: Ids, request: GenerateRequest) -> None:
        check_request(request, prompt, self._parts.vocabulary)
        if request.num_beams > 1:
            raise ValueError(
                f"num_beams={request.num_beams}: the backend vllm writes greedily only, for vLLM's own beam "
                "search knows no stop strings and shows no steps; allowed is num_beams 1, or the backend hf"
            )
        if request.steps and len(set(request.watch)) > MOST_NAMED:
            raise ValueError(
                f"watch: {len(set(request.watch))} different tokens; allowed are {MOST_NAMED} with vLLM"
            )
        self._check_length(len(prompt), request.max_new_tokens)

    def _check_length(self, prompt: int, behind: int) -> None:
        check_length(prompt, behind, self._parts.engine.max_length, encoder_decoder=False)


def _continuation(request: GenerateRequest, reply: Reply, endings: Endings) -> Continuation | Failed | None:
    end = endings.cut(reply.token_ids, request.stop)
    if end.finish == "length" and len(end.token_ids) < request.max_new_tokens:
        return None
    if not request.steps:
        return end
    steps: list[Step] = []
    try:
        for index, (token, step) in enumerate(zip(end.token_ids, reply.steps, strict=False)):
            watched = request.watch[index] if index < len(request.watch) else None
            steps.append(
                Step(
                    token_id=token,
                    token=endings.piece(token),
                    probability=probability(step, token),
                    watched=None if watched is None else probability(step, watched),
                )
            )
    except ValueError as error:
        return Failed(error=str(error))
    return dataclasses.replace(end, steps=tuple(steps))


Probabilities = tuple[float, ...]


def is_cheaper_stepwise(pairs: Sequence[Pair], block: int) -> bool:
    """Return True if stepwise scoring computes no more tokens; ``block`` is the size of a cache block.

    At the same number it is cheaper: a step needs one softmax, a whole prompt one at each token.
    """
    whole = sum(len(pair.context) + len(pair.targets) for pair in pairs)
    return computed_tokens(steps_of(pairs), block) <= whole


def computed_tokens(prompts: Iterable[Ids], block: int) -> int:
    """Return the number of tokens of these prompts that are computed with a prefix cache of whole blocks.

    A prompt's last token always is. A ``block`` of 0 stands for no cache.
    """
    computed, before = 0, Ids()
    # In this order nobody shares more with a prompt than the one before it.
    for ids in sorted(prompts):
        cached = min(common_prefix(before, ids), len(ids) - 1) // block * block if block else 0
        computed += len(ids) - cached
        before = ids
    return computed


def steps_of(pairs: Sequence[Pair]) -> Mapping[Ids, Ids]:
    """Return the steps of all pairs: token ids, with the distinct tokens that are scored behind them."""
    steps: dict[Ids, dict[int, None]] = {}
    for pair in pairs:
        for index, token in enumerate(pair.targets):
            steps.setdefault((*pair.context, *pair.targets[:index]), {})[token] = None
    return {ids: tuple(named) for ids, named in steps.items()}


def score_pairs(engine: Engine, pairs: Sequence[Pair]) -> Iterator[list[tuple[int, Probabilities | Failed]]]:
    """Yield batches of each pair's index and probabilities; none may be longer than ``engine.max_length``."""
    stepwise = is_cheaper_stepwise(pairs, engine.block)
    # Neighbours share most, and what is asked together finds it in the cache.
    order = sorted(range(len(pairs)), key=lambda n: (pairs[n].context, pairs[n].targets))
    for start in range(0, len(order), engine.at_once):
        numbers = order[start : start + engine.at_once]
        # The engine writes a token behind each prompt, for which a whole one of full length has no room.
        whole = [] if stepwise else [n for n in numbers if _length(pairs[n]) < engine.max_length]
        steps = sorted(set(numbers) - set(whole))
        yield [
            *zip(whole, _whole(engine, [pairs[n] for n in whole]), strict=True),
            *zip(steps, _stepwise(engine, [pairs[n] for n in steps]), strict=True),
        ]


def _whole(engine: Engine, pairs: Sequence[Pair]) -> list[Probabilities | Failed]:
    questions = [Question(ids=(*pair.context, *pair.targets), of_prompt=True) for pair in pairs]
    answers: list[Probabilities | Failed] = []
    for pair, reply in zip(pairs, engine.ask(questions), strict=True):
        if isinstance(reply, Failed):
            answers.append(reply)
            continue
        steps = reply.prompt[len(pair.context) :]
        try:
            answers.append(
                tuple(probability(step, token) for step, token in zip(steps, pair.targets, strict=True))
            )
        except ValueError as error:
            answers.append(Failed(error=str(error)))
    return answers


def _stepwise(engine: Engine, pairs: Sequence[Pair]) -> list[Probabilities | Failed]:
    questions = [
        Question(ids=ids, named=named[start : start + MOST_NAMED])
        for ids, named in steps_of(pairs).items()
        for start in range(0, len(named), MOST_NAMED)
    ]
    replies: dict[tuple[Ids, int], Reply | Failed] = {
        (question.ids, token): reply
        for question, reply in zip(questions, engine.ask(questions), strict=True)
        for token in question.named
    }
    return [_along(pair, replies) for pair in pairs]


def _along(pair: Pair, replies: Mapping[tuple[Ids, int], Reply | Failed]) -> Probabilities | Failed:
    """Return the probabilities of a pair's targets, each from the reply to its own step."""
    values: list[float] = []
    for index, token in enumerate(pair.targets):
        reply = replies[(*pair.context, *pair.targets[:index]), token]
        if isinstance(reply, Failed):
            return reply
        try:
            values.append(probability(reply.steps[0], token))
        except ValueError as error:
            return Failed(error=str(error))
    return tuple(values)


def _length(pair: Pair) -> int:
    return len(pair.context) + len(pair.targets)
