"""Engine of vLLM: start, checked requests and replies, and a watchdog; no other module imports vLLM.

It follows the source of vLLM 0.33.0 (``LLM.generate``, ``SamplingParams``, ``RequestOutput``) and was run
with 0.32.0.
"""

from __future__ import annotations

import gc
import math
import multiprocessing
import os
from collections.abc import Mapping, Sequence
from multiprocessing import connection
from multiprocessing.process import BaseProcess
from queue import Queue
from threading import Thread
from typing import TYPE_CHECKING, Any

from pytest_kbrel.bounds import TOP_K
from pytest_kbrel.errors import ModelError
from pytest_kbrel.models.batching import Batcher, describe_error
from pytest_kbrel.models.pretrained import quiet
from pytest_kbrel.models.tokens import Ids
from pytest_kbrel.records import Failed, record

if TYPE_CHECKING:
    from pytest_kbrel.models.vllm import VllmSpec

MOST_NAMED = 128
"""The most tokens whose log-probabilities one question may name (``MAX_LOGPROB_TOKEN_IDS``)."""

# More questions than the engine runs at once keep it busy; what is under way is lost when a run is killed.
_AT_ONCE = 512

# Seconds. Those that are killed leave shared memory behind, and on a busy machine they take longer than
# vLLM's own five.
_TO_END = 30.0

LogProbabilities = Mapping[int, float]


@record
class Question:
    """Greedy continuation of token ids, up to ``max_tokens`` tokens or to one of ``ends`` or ``stop``.

    ``named`` are tokens whose log-probabilities are returned at each step, beside that of the token written.
    ``top_k`` returns those of so many of the most probable tokens at each step.
    """

    ids: Ids
    max_tokens: int = 1
    ends: Ids = ()
    stop: tuple[str, ...] = ()
    named: Ids = ()
    top_k: int = 0


@record
class Reply:
    """Generated tokens; ``steps`` are log-probabilities (nats) by token id, one mapping a token."""

    token_ids: Ids
    steps: tuple[LogProbabilities, ...]


def probability(step: LogProbabilities, token: int) -> float:
    """Return a token's probability; raise ``ValueError`` if there is none or it is not above 0."""
    value = step.get(token)
    if value is None:
        raise ValueError(f"vLLM gave no log-probability of token {token}")
    # vLLM fills what it did not compute with minus infinity.
    if not math.isfinite(value):
        raise ValueError(f"vLLM gave the log-probability {value} to token {token}")
    return min(math.exp(value), 1.0)


class Engine:
    """Running engine of vLLM.

    ``max_length`` is in tokens, prompt and answer together. ``text`` names the model in errors.
    """

    at_once = _AT_ONCE

    def __init__(self, text: str, llm: Any, library: Any) -> None:
        self._text, self._llm, self._library = text, llm, library
        config = llm.llm_engine.vllm_config
        self.max_length = int(config.model_config.max_model_len)
        self.dtype = str(config.model_config.dtype).removeprefix("torch.")
        self.device = str(config.device_config.device_type)
        self._batcher = Batcher(self.at_once)
        self._death = ""

    def ask(self, questions: Sequence[Question]) -> list[Reply | Failed]:
        """Return one reply per question, in order; a question that the engine refuses fails alone.

        Raises :class:`ModelError` if the engine's processes have ended.
        """
        batches = self._batcher.ready(questions, len, self._asked)
        replies = [reply for batch in batches for _, reply in batch]
        if self._death:
            raise ModelError(
                f"{self._text}: vLLM's engine ended while it was asked: {self._death}; what its processes "
                "wrote to stderr says why"
            )
        return replies

    def close(self) -> None:
        """Stop the engine's processes and free its GPUs."""
        llm, self._llm = self._llm, None
        if llm is None:
            return
        with quiet():
            llm.llm_engine.engine_core.shutdown(timeout=_TO_END)
            # vLLM leaves its sockets' context open, of which Python warns when it collects it: here nobody's
            # pytest takes that for an error.
            del llm
            gc.collect()

    def _asked(self, questions: Sequence[Question]) -> list[Reply | Failed]:
        if self._llm is None:
            raise ValueError("this engine is closed")
        if self._death:
            raise ValueError(self._death)
        with quiet():
            try:
                outputs = self._llm.generate(
                    [
                        {"prompt_token_ids": list(question.ids)}
                        for question in questions
                    ],
                    [self._sampling(question) for question in questions],
                    use_tqdm=False,
                )
            except Exception as error:
                # By its name: the module it lies in is vLLM's own affair.
                if (
                    isinstance(error, EngineEndedError)
                    or type(error).__name__ == "EngineDeadError"
                ):
                    self._death = describe_error(error)
                raise
        if len(outputs) != len(questions):
            raise ValueError(
                f"vLLM gave {len(outputs)} answers to {len(questions)} questions"
            )
        return list(map(_checked, questions, outputs))

    def _sampling(self, question: Question) -> Any:
        return self._library.SamplingParams(
            temperature=0.0,
            max_tokens=question.max_tokens,
            stop=list(question.stop),
            stop_token_ids=list(question.ends),
            # The written token's own is always wanted: weights that yield no numbers show there.
            logprobs=None if question.named else question.top_k,
            logprob_token_ids=list(question.named) or None,
        )


def start_engine(spec: VllmSpec, folder: str) -> tuple[Engine, str]:
    """Start an engine for the checkpoint in ``folder``; return it and vLLM's name with its version.

    Raises :class:`ModelError` with the options and vLLM's own error.
    """
    # A gate's report is no place for an engine's log, and nobody asked to tell others what runs here.
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "WARNING")
    os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
    with quiet():
        try:
            import vllm
        except Exception as error:
            raise ModelError(
                f"loading {spec.text}: vllm does not import: {describe_error(error)}"
            ) from None
        options = _options(spec, folder)
        try:
            others = set(multiprocessing.active_children())
            llm = vllm.LLM(**options)
            watch(llm, [*set(multiprocessing.active_children()) - others])
            engine = Engine(spec.text, llm, vllm)
        except Exception as error:
            settings = ", ".join(f"{key}={value}" for key, value in options.items())
            # vLLM names a wrong option behind the first line of its message.
            message = " ".join(str(error).split())[:600]
            raise ModelError(
                f"{spec.text}: vLLM {vllm.__version__} did not start: {type(error).__name__}: {message}; "
                f"asked with {settings}; allowed: a checkpoint whose architecture vLLM knows, as many free "
                "GPUs as tensor_parallel_size, and enough memory (gpu_memory_utilization, max_model_len); "
                "what vLLM wrote above says more"
            ) from None
    return engine, f"vllm {vllm.__version__}"


def _options(spec: VllmSpec, folder: str) -> dict[str, Any]:
    checkpoint = spec.checkpoint
    options: dict[str, Any] = {
        "model": folder,
        "tokenizer": checkpoint.tokenizer,
        "dtype": checkpoint.dtype,
        "tensor_parallel_size": spec.tensor_parallel_size,
        "gpu_memory_utilization": spec.gpu_memory_utilization,
        "max_model_len": checkpoint.max_length,
        "max_num_seqs": spec.max_num_seqs,
        "max_num_batched_tokens": checkpoint.batch_size,
        "quantization": spec.quantization,
        "enforce_eager": spec.enforce_eager,
        "trust_remote_code": False,
        # Never a pickle, and never a checkpoint's own limit of new tokens.
        "load_format": "safetensors",
        "generation_config": "vllm",
        "logprobs_mode": "raw_logprobs",
        "max_logprobs": int(TOP_K.most),
        "seed": 0,
        "use_tqdm_on_load": False,
    }
    return {key: value for key, value in options.items() if value not in (None, "")}


def _checked(question: Question, output: Any) -> Reply | Failed:
    """Return an output as a reply, or a failure if it is none to the question."""
    try:
        if tuple(output.prompt_token_ids or ()) != question.ids:
            raise ValueError("vLLM answered another prompt than the one that was asked")
        (written,) = output.outputs
        if written.finish_reason not in ("stop", "length"):
            raise ValueError(f"vLLM ended the answer with {written.finish_reason!r}")
        ids = tuple(int(token) for token in written.token_ids)
        steps = tuple(
            {int(token): entry.logprob for token, entry in (step or {}).items()}
            for step in written.logprobs or ()
        )
        if not ids or len(steps) != len(ids):
            raise ValueError(
                f"vLLM wrote {len(ids)} tokens, with log-probabilities of {len(steps)}"
            )
        for token, step in zip(ids, steps, strict=True):
            probability(step, token)
    except ValueError as error:
        return Failed(error=str(error))
    return Reply(token_ids=ids, steps=steps)


class EngineEndedError(Exception):
    """Raised when a process of an engine has ended."""


def watch(llm: Any, processes: Sequence[BaseProcess]) -> None:
    """Start a thread that wakes the reader of the engine's outputs when one of its processes has ended.

    vLLM 0.32.0 would wait for ever. An engine that runs in this process has neither processes nor a queue.
    """
    outputs = getattr(llm.llm_engine.engine_core, "outputs_queue", None)
    if outputs is not None and processes:
        Thread(
            target=_tell, args=(outputs, processes), daemon=True, name="kbrel-vllm"
        ).start()


def _tell(outputs: Queue[Any], processes: Sequence[BaseProcess]) -> None:
    connection.wait([process.sentinel for process in processes])
    outputs.put(
        EngineEndedError(
            "a process of vLLM's engine was ended from outside, or by itself"
        )
    )
