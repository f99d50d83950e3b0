"""A transformers checkpoint that answers: the protocol's four methods."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_kbrel.models.batching import Batcher, describe_error
from pytest_kbrel.models.hf_generation import Continuation, Endings, generate_batch
from pytest_kbrel.models.hf_loading import Parts
from pytest_kbrel.models.hf_quiet import quiet
from pytest_kbrel.models.hf_scoring import score_batch
from pytest_kbrel.models.hf_tokens import Ids, Pair, prompt_digest
from pytest_kbrel.records import Failed, Fingerprint, Generated, GenerateRequest, Scored, ScoreRequest, record

# In tokens. On a CPU a larger batch is no faster, it only takes memory; a GPU idles with a smaller one.
_CPU_BUDGET = 4096
_GPU_BUDGET = 32768
# Logits held at once, in numbers: 2**26 float32 are 256 MiB, whatever the vocabulary's size.
_LOGITS_AT_ONCE = 2**26


@record
class _ToScore:
    index: int
    pair: Pair

    @property
    def length(self) -> int:
        return len(self.pair.context) + len(self.pair.lead) + len(self.pair.targets)


@record
class _ToGenerate:
    index: int
    prompt: Ids
    request: GenerateRequest

    @property
    def group(self) -> tuple[object, ...]:
        """What requests must share to be answered in one batch."""
        r = self.request
        return (len(self.prompt), r.max_new_tokens, r.num_beams, r.steps, r.stop)


class HfModel:
    """A causal or encoder-decoder checkpoint; made by :func:`pytest_kbrel.models.hf.load`.

    Answers do not depend on what else is asked in the same call: probabilities agree within 1e-4 in float32,
    texts are equal.
    """

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._fingerprint = parts.fingerprint
        on_cpu = parts.model.device.type == "cpu"
        budget = parts.spec.batch_size or (_CPU_BUDGET if on_cpu else _GPU_BUDGET)
        self._scoring, self._generating = Batcher(budget), Batcher(budget)
        self._vocabulary = int(parts.model.get_input_embeddings().weight.shape[0])
        self._endings = Endings(
            parts.tokenizer,
            vocabulary=self._vocabulary,
            eos_ids=parts.model.generation_config.eos_token_id or (),
        )

    @property
    def parts(self) -> Parts:
        """The checkpoint itself, for those that look inside it."""
        return self._parts

    def describe(self) -> Fingerprint:
        """Say what this model is, by content."""
        return self._fingerprint

    def score(self, requests: Sequence[ScoreRequest]) -> list[Scored | Failed]:
        """Return the probabilities (float32 softmax) of the continuations' tokens, one answer per request."""
        answers: list[Scored | Failed] = [Failed(error="not asked")] * len(requests)
        jobs: list[_ToScore] = []
        with quiet():
            for index, request in enumerate(requests):
                try:
                    pair = self._parts.encoder.pair(request.prompt, request.continuation)
                    self._check_length(len(pair.context), len(pair.lead) + len(pair.targets))
                except Exception as error:
                    answers[index] = _failed(error)
                else:
                    jobs.append(_ToScore(index=index, pair=pair))
            jobs.sort(key=lambda job: -job.length)
            for job, answer in zip(
                jobs, self._scoring.run(jobs, self._scoring_cost, self._score), strict=True
            ):
                answers[job.index] = answer
        return answers

    def generate(self, requests: Sequence[GenerateRequest]) -> list[Generated | Failed]:
        """Return greedy or beam continuations, one answer per request."""
        answers: list[Generated | Failed] = [Failed(error="not asked")] * len(requests)
        groups: dict[tuple[object, ...], list[_ToGenerate]] = {}
        with quiet():
            for index, request in enumerate(requests):
                try:
                    prompt = self._parts.encoder.prompt(request.prompt)
                    self._check_request(prompt, request)
                except Exception as error:
                    answers[index] = _failed(error)
                else:
                    job = _ToGenerate(index=index, prompt=prompt, request=request)
                    groups.setdefault(job.group, []).append(job)
            for jobs in sorted(groups.values(), key=lambda group: -len(group[0].prompt)):
                replies = self._generating.run(jobs, self._generating_cost, self._generate)
                for job, answer in zip(jobs, replies, strict=True):
                    answers[job.index] = answer
        return answers

    def close(self) -> None:
        """Free the weights; the model answers no more."""
        del self._parts

    def _scoring_cost(self, jobs: Sequence[_ToScore]) -> int:
        tokens = len(jobs) * max(job.length for job in jobs)
        logits = self._vocabulary * sum(len(job.pair.targets) for job in jobs)
        return (
            tokens if len(jobs) == 1 or logits <= _LOGITS_AT_ONCE else max(tokens, self._scoring.budget + 1)
        )

    def _generating_cost(self, jobs: Sequence[_ToGenerate]) -> int:
        request = jobs[0].request
        # Which beam leads depends on when the whole batch ends, so its steps are taken one prompt at a time.
        if request.steps and request.num_beams > 1 and len(jobs) > 1:
            return self._generating.budget + 1
        return len(jobs) * request.num_beams * (len(jobs[0].prompt) + request.max_new_tokens)

    def _score(self, jobs: Sequence[_ToScore]) -> list[Scored | Failed]:
        pad_id = self._parts.model.generation_config.pad_token_id
        answers: list[Scored | Failed] = []
        for job, row in zip(
            jobs, score_batch(self._parts.model, [j.pair for j in jobs], pad_id), strict=True
        ):
            if any(value != value for value in row):
                answers.append(Failed(error="not a number among the probabilities"))
                continue
            answers.append(
                Scored(
                    probabilities=tuple(min(value, 1.0) for value in row),
                    token_ids=job.pair.targets,
                    prompt_tokens=len(job.pair.prompt),
                    prompt_digest=prompt_digest(job.pair.prompt),
                )
            )
        return answers

    def _generate(self, jobs: Sequence[_ToGenerate]) -> list[Generated | Failed]:
        prompts, requests = [job.prompt for job in jobs], [job.request for job in jobs]
        replies = generate_batch(self._parts.model, prompts, requests, self._endings)
        return [
            _generated(job.prompt, reply) if isinstance(reply, Continuation) else reply
            for job, reply in zip(jobs, replies, strict=True)
        ]

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


def _generated(prompt: Ids, reply: Continuation) -> Generated:
    return Generated(
        text=reply.text,
        token_ids=reply.token_ids,
        finish=reply.finish,
        prompt_tokens=len(prompt),
        prompt_digest=prompt_digest(prompt),
        steps=reply.steps,
    )


def _failed(error: Exception) -> Failed:
    return Failed(error=str(error) if isinstance(error, ValueError) else describe_error(error))
