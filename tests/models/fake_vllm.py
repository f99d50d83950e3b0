"""A stand-in for the package ``vllm``: what of it we touch, in the shapes of version 0.33.0's source.

It answers with a real checkpoint's logits, computed by transformers one prompt at a time, so that numbers can
be checked through it. Where vLLM is installed, ``test_vllm_itself.py`` holds it against the real engine.
"""

from __future__ import annotations

import importlib.machinery
from dataclasses import dataclass, field
from types import SimpleNamespace

import torch
import transformers

__version__ = "0.33.0"
__spec__ = importlib.machinery.ModuleSpec("vllm", None)

MAX_LOGPROB_TOKEN_IDS = 128


class VLLMValidationError(Exception):
    """What the engine raises for a request that it refuses; it ends the whole call."""


class EngineDeadError(Exception):
    """What every call raises once the engine's processes have ended."""


@dataclass
class Logprob:
    logprob: float
    rank: int | None = None
    decoded_token: str | None = None


@dataclass
class SamplingParams:
    temperature: float = 1.0
    max_tokens: int | None = 16
    stop: list[str] | None = None
    stop_token_ids: list[int] | None = None
    logprobs: int | None = None
    logprob_token_ids: list[int] | None = None

    def __post_init__(self) -> None:
        self.stop = self.stop or []
        self.stop_token_ids = self.stop_token_ids or []
        if self.max_tokens is not None and self.max_tokens < 1:
            raise VLLMValidationError(
                f"max_tokens must be at least 1, got {self.max_tokens}."
            )
        if any(not stop for stop in self.stop):
            raise VLLMValidationError("stop cannot contain an empty string.")


@dataclass
class CompletionOutput:
    index: int
    text: str
    token_ids: list[int]
    cumulative_logprob: float | None
    logprobs: list[dict[int, Logprob]] | None
    finish_reason: str | None = None
    stop_reason: int | str | None = None


@dataclass
class RequestOutput:
    request_id: str
    prompt: str | None
    prompt_token_ids: list[int] | None
    outputs: list[CompletionOutput]
    finished: bool = True
    num_cached_tokens: int | None = None


@dataclass
class Calls:
    """What engines were asked, and what a test makes of their answers."""

    engines: list[LLM] = field(default_factory=list)
    prompts: list[tuple[tuple[int, ...], SamplingParams]] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    spoil: object = None
    refuse_start: str = ""
    stop_early: bool = False


calls = Calls()


class LLM:
    """Keywords are those of the real class that we pass; another one is an error, as there."""

    def __init__(
        self,
        model: str,
        *,
        tokenizer: str | None = None,
        tensor_parallel_size: int = 1,
        dtype: str = "auto",
        quantization: str | None = None,
        trust_remote_code: bool = False,
        seed: int = 0,
        gpu_memory_utilization: float = 0.92,
        enforce_eager: bool = False,
        max_model_len: int | None = None,
        max_num_seqs: int | None = None,
        max_num_batched_tokens: int | None = None,
        load_format: str = "auto",
        generation_config: str = "auto",
        logprobs_mode: str = "raw_logprobs",
        max_logprobs: int = 20,
        use_tqdm_on_load: bool = True,
    ) -> None:
        if calls.refuse_start:
            raise RuntimeError(calls.refuse_start)
        assert (load_format, generation_config, trust_remote_code) == (
            "safetensors",
            "vllm",
            False,
        )
        self.options = {
            name: value for name, value in locals().items() if name != "self"
        }
        self.closed = False
        config = transformers.AutoConfig.from_pretrained(model)
        self._model = transformers.AutoModelForCausalLM.from_pretrained(
            model, dtype="float32"
        ).eval()
        self._tokenizer = transformers.AutoTokenizer.from_pretrained(tokenizer or model)
        self._caches = config.model_type == "llama"
        self._vocabulary = config.vocab_size
        self._longest = max_model_len or getattr(config, "max_position_embeddings", 256)
        self.llm_engine = SimpleNamespace(
            vllm_config=SimpleNamespace(
                model_config=SimpleNamespace(
                    max_model_len=self._longest, dtype=torch.float32
                ),
                device_config=SimpleNamespace(device_type="cuda"),
            ),
            engine_core=SimpleNamespace(shutdown=self._shutdown),
        )
        calls.engines.append(self)

    def _shutdown(self, timeout: float | None = None) -> None:
        self.closed = True

    def generate(self, prompts, sampling_params, *, use_tqdm=True):
        assert not self.closed
        assert use_tqdm is False
        assert len(prompts) == len(sampling_params)
        calls.sizes.append(len(prompts))
        asked = [
            (tuple(prompt["prompt_token_ids"]), params)
            for prompt, params in zip(prompts, sampling_params, strict=True)
        ]
        for ids, params in asked:
            self._verify(ids, params)
        calls.prompts += asked
        outputs = [
            self._answer(str(number), ids, params)
            for number, (ids, params) in enumerate(asked)
        ]
        return calls.spoil(outputs) if calls.spoil else outputs

    def _verify(self, ids, params) -> None:
        if not ids:
            raise VLLMValidationError("The decoder prompt cannot be empty")
        if len(ids) >= self._longest:
            raise VLLMValidationError(
                f"The decoder prompt (length {len(ids)}) is longer than {self._longest}"
            )
        for token in (min(ids), max(ids)):
            if not 0 <= token < self._vocabulary:
                raise VLLMValidationError(f"Token id {token} is out of vocabulary")
        named = params.logprob_token_ids
        beyond = [token for token in named or () if not 0 <= token < self._vocabulary]
        if beyond:
            raise VLLMValidationError(f"token_id(s) {beyond} in logprob_token_ids")
        if named is not None and len(named) > MAX_LOGPROB_TOKEN_IDS:
            raise VLLMValidationError(
                f"Requested logprob_token_ids of length {len(named)}"
            )
        if named is not None and params.logprobs not in (None, len(named)):
            raise VLLMValidationError("logprobs must equal len(logprob_token_ids)")
        if (
            params.logprobs is not None
            and params.logprobs > self.options["max_logprobs"]
        ):
            raise VLLMValidationError(f"Requested sample logprobs of {params.logprobs}")

    def _logprobs(self, ids, cache=None) -> torch.Tensor:
        options = {} if cache is None else {"past_key_values": cache}
        with torch.inference_mode():
            logits = self._model(
                torch.tensor([ids]), use_cache=cache is not None, **options
            ).logits
        return logits[0].float().log_softmax(-1)

    def _answer(self, number, ids, params) -> RequestOutput:
        written, result, text, finish, reason = [], [], "", "length", None
        cache = (
            transformers.DynamicCache()
            if self._caches and params.max_tokens > 1
            else None
        )
        while (
            len(written) < params.max_tokens and len(ids) + len(written) < self._longest
        ):
            fed = written[-1:] if cache is not None and written else [*ids, *written]
            row = self._logprobs(fed, cache)[-1]
            token = int(row.argmax())
            written.append(token)
            named = (
                params.logprob_token_ids
                or row.topk(params.logprobs or 0).indices.tolist()
            )
            wanted = dict.fromkeys([token, *named])
            result.append({one: Logprob(float(row[one])) for one in wanted})
            if token == self._tokenizer.eos_token_id or token in params.stop_token_ids:
                # The token is told, and its text is not.
                finish, reason = (
                    "stop",
                    None if token == self._tokenizer.eos_token_id else token,
                )
                break
            text = self._tokenizer.decode(written, skip_special_tokens=True)
            # Of several that stand in a text the one that was complete first.
            ends = {
                stop: text.index(stop) + len(stop)
                for stop in params.stop
                if stop in text
            }
            reason = min(ends, key=ends.__getitem__, default=None)
            if reason is not None or (calls.stop_early and params.stop):
                finish, text = "stop", text[: text.find(reason)] if reason else text
                break
        with_logprobs = params.logprobs is not None or params.logprob_token_ids
        return RequestOutput(
            request_id=number,
            prompt=None,
            prompt_token_ids=list(ids),
            outputs=[
                CompletionOutput(
                    index=0,
                    text=text,
                    token_ids=written,
                    cumulative_logprob=None,
                    logprobs=result if with_logprobs else None,
                    finish_reason=finish,
                    stop_reason=reason,
                )
            ],
        )
