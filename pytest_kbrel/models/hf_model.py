"""A transformers checkpoint that answers: the protocol's four methods."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

from pytest_kbrel.models.asking import in_order
from pytest_kbrel.models.batching import describe_error
from pytest_kbrel.models.hf_generation import Continuation, Endings
from pytest_kbrel.models.hf_generator import Generator, Prompt
from pytest_kbrel.models.hf_loading import Parts
from pytest_kbrel.models.hf_quiet import quiet
from pytest_kbrel.models.hf_scorer import Scorer
from pytest_kbrel.models.hf_tokens import Ids, Pair
from pytest_kbrel.records import Failed, Fingerprint, Generated, GenerateRequest, Scored, ScoreRequest

# In tokens. On a CPU a larger batch is no faster, it only takes memory; a GPU idles with a smaller one.
_CPU_BUDGET = 4096
_GPU_BUDGET = 32768


class HfModel:
    """A causal or encoder-decoder checkpoint; made by :func:`pytest_kbrel.models.hf.load`.

    Answers do not depend on what else is asked in the same call: probabilities agree within 1e-4 in float32,
    texts are equal.
    """

    def __init__(self, parts: Parts, *, shares: bool = True) -> None:
        self._parts = parts
        self._fingerprint = parts.fingerprint
        on_cpu = parts.model.device.type == "cpu"
        budget = parts.spec.batch_size or (_CPU_BUDGET if on_cpu else _GPU_BUDGET)
        self._budget = budget
        self._scorer = Scorer(parts.model, budget=budget, longest=parts.max_length, shares=shares)
        endings = Endings(
            parts.tokenizer,
            vocabulary=int(parts.model.get_input_embeddings().weight.shape[0]),
            eos_ids=parts.model.generation_config.eos_token_id or (),
        )
        self._generator = Generator(parts.model, endings, budget=budget, longest=parts.max_length)

    @property
    def parts(self) -> Parts:
        """The checkpoint itself, for those that look inside it."""
        return self._parts

    def describe(self) -> Fingerprint:
        """Say what this model is, by content."""
        return self._fingerprint

    def replanned(self) -> HfModel:
        """Return the same checkpoint, its weights shared, in batches of a third of the size.

        What is scored is fed whole: packed rows would be the same ones, whatever the batch.
        """
        spec = dataclasses.replace(self._parts.spec, batch_size=max(1, self._budget // 3))
        return HfModel(dataclasses.replace(self._parts, spec=spec), shares=False)

    def score(self, requests: Sequence[ScoreRequest]) -> list[Scored | Failed]:
        """Return the probabilities (float32 softmax) of the continuations' tokens, one answer per request."""
        return in_order(self.score_as_ready(requests))

    def score_as_ready(self, requests: Sequence[ScoreRequest]) -> Iterator[list[tuple[int, Scored | Failed]]]:
        """Yield the answers of :meth:`score`, each with its request's place, batch by batch."""
        places: list[int] = []
        pairs: list[Pair] = []
        with quiet():
            for index, request in enumerate(requests):
                try:
                    pair = self._parts.encoder.pair(request.prompt, request.continuation)
                    self._check_length(len(pair.context), len(pair.lead) + len(pair.targets))
                except Exception as error:
                    yield [(index, _failed(error))]
                else:
                    places.append(index)
                    pairs.append(pair)
            for batch in self._scorer.ready(pairs):
                yield [(places[n], self._scored(pairs[n], found)) for n, found in batch]

    def generate(self, requests: Sequence[GenerateRequest]) -> list[Generated | Failed]:
        """Return greedy or beam continuations, one answer per request."""
        return in_order(self.generate_as_ready(requests))

    def generate_as_ready(
        self, requests: Sequence[GenerateRequest]
    ) -> Iterator[list[tuple[int, Generated | Failed]]]:
        """Yield the answers of :meth:`generate`, each with its request's place, some at a time."""
        places: list[int] = []
        prompts: list[Prompt] = []
        with quiet():
            for index, request in enumerate(requests):
                try:
                    ids = self._parts.encoder.prompt(request.prompt)
                    self._check_request(ids, request)
                except Exception as error:
                    yield [(index, _failed(error))]
                else:
                    places.append(index)
                    prompts.append(Prompt(ids=ids, request=request))
            for batch in self._generator.ready(prompts):
                yield [
                    (
                        places[n],
                        found if isinstance(found, Failed) else self._generated(prompts[n].ids, found),
                    )
                    for n, found in batch
                ]

    def close(self) -> None:
        """Free the weights; the model answers no more."""
        del self._parts, self._scorer, self._generator

    def _scored(self, pair: Pair, values: tuple[float, ...] | Failed) -> Scored | Failed:
        if isinstance(values, Failed):
            return values
        if any(value != value for value in values):
            return Failed(error="not a number among the probabilities")
        return Scored(
            probabilities=tuple(min(value, 1.0) for value in values),
            token_ids=pair.targets,
            prompt_tokens=len(pair.prompt),
            prompt_digest=self._parts.encoder.digest(pair.prompt),
        )

    def _generated(self, prompt: Ids, reply: Continuation | Failed) -> Generated | Failed:
        if isinstance(reply, Failed):
            return reply
        return Generated(
            text=reply.text,
            token_ids=reply.token_ids,
            finish=reply.finish,
            prompt_tokens=len(prompt),
            prompt_digest=self._parts.encoder.digest(prompt),
            steps=reply.steps,
        )

    def _check_request(self, prompt: Ids, request: GenerateRequest) -> None:
        if request.max_new_tokens < 1 or request.num_beams < 1:
            raise ValueError("max_new_tokens and num_beams must be at least 1")
        if not prompt:
            raise ValueError("an empty prompt needs a BOS token, and this tokenizer has none")
        self._check_length(len(prompt), request.max_new_tokens)

    def _check_length(self, prompt: int, behind: int) -> None:
        limit = self._parts.max_length
        encoder_decoder = self._parts.model.config.is_encoder_decoder
        longest = max(prompt, behind) if encoder_decoder else prompt + behind
        if limit is not None and longest > limit:
            raise ValueError(
                f"too long: {prompt} tokens of prompt and {behind} behind it; the model takes {limit}"
            )


def _failed(error: Exception) -> Failed:
    return Failed(error=str(error) if isinstance(error, ValueError) else describe_error(error))
