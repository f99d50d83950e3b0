"""Model that vLLM runs: loading, generation, and scoring.

A given text is scored step by step: one question a token, which names the tokens that are to be scored there.
vLLM reads what questions share from its prefix cache. It also gives a prompt's own log-probabilities, but
without that cache, and by a softmax at each token.

No other module imports vLLM. This one follows the source of vLLM 0.33.0 (``LLM.generate``,
``SamplingParams``, ``RequestOutput``) and was run with 0.32.0.
"""

from __future__ import annotations

import dataclasses
import gc
import math
import multiprocessing
import os
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, repeat
from multiprocessing import connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

import torch
import transformers

from pytest_kbrel.bounds import TOP_K
from pytest_kbrel.errors import ModelError
from pytest_kbrel.models.batching import Batcher, Batches, describe_error
from pytest_kbrel.models.checkpoint.checks import (
    check_endings,
    check_fit,
    check_prompts,
    check_weights,
    notes_of,
)
from pytest_kbrel.models.checkpoint.endings import (
    MOST_POSITIONS,
    Endings,
    greedy_settings,
    top_tokens,
)
from pytest_kbrel.models.checkpoint.files import check_folder, record_files
from pytest_kbrel.models.checkpoint.fingerprint import fingerprint, load_outline
from pytest_kbrel.models.checkpoint.model import CheckpointModel, LoadedCheckpoint
from pytest_kbrel.models.checkpoint.spec import ModelSpec
from pytest_kbrel.models.pretrained import quiet
from pytest_kbrel.models.tokens import Ids, Pair, Prompt
from pytest_kbrel.records import Failed, Generated, GenerateRequest, record

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
                    [
                        self._library.SamplingParams(
                            temperature=0.0,
                            max_tokens=question.max_tokens,
                            stop=list(question.stop),
                            stop_token_ids=list(question.ends),
                            # The written token's own is always wanted: weights that yield no numbers show
                            # there.
                            logprobs=None if question.named else question.top_k,
                            logprob_token_ids=list(question.named) or None,
                        )
                        for question in questions
                    ],
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
    options = {
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
    outputs: Any = getattr(llm.llm_engine.engine_core, "outputs_queue", None)

    def tell() -> None:
        connection.wait([process.sentinel for process in processes])
        outputs.put(
            EngineEndedError(
                "a process of vLLM's engine was ended from outside, or by itself"
            )
        )

    if outputs is not None and processes:
        Thread(target=tell, daemon=True, name="kbrel-vllm").start()


_UNEXPLAINED = "vLLM ended the answer where neither EOS nor a stop string is"


class VllmModel(CheckpointModel):
    """Causal checkpoint with an engine of its own; made by :func:`pytest_kbrel.models.vllm.load`.

    Prompts have the same token ids and digests, and texts the same ends, as with the transformers backend.
    ``parts.model`` has no weights.
    """

    def __init__(self, parts: LoadedCheckpoint, llm: Engine) -> None:
        super().__init__(parts)
        self.llm = llm

    def close(self) -> None:
        """Stop the engine."""
        self.llm.close()

    def _prompt(self, request: GenerateRequest) -> Prompt:
        if request.num_beams > 1:
            raise ValueError(
                f"num_beams={request.num_beams}: the backend vllm writes greedily only, for vLLM's own beam "
                "search knows no stop strings and shows no steps; allowed is num_beams 1, or the backend hf"
            )
        if request.steps and len(set(request.watch)) > MOST_NAMED:
            raise ValueError(
                f"watch: {len(set(request.watch))} different tokens; allowed are {MOST_NAMED} with vLLM"
            )
        return super()._prompt(request)

    def _scores(self, pairs: Sequence[Pair]) -> Batches[tuple[float, ...]]:
        for numbers in self._pieces([(pair.context, pair.targets) for pair in pairs]):
            some = [pairs[number] for number in numbers]
            # By what is read, the distinct tokens that are scored behind it.
            steps: dict[Ids, dict[int, None]] = {}
            for ids, token in chain.from_iterable(pair.steps() for pair in some):
                steps.setdefault(ids, {})[token] = None
            questions = [
                Question(ids=ids, named=tuple(named)[start : start + MOST_NAMED])
                for ids, named in steps.items()
                for start in range(0, len(named), MOST_NAMED)
            ]
            replies = {
                (question.ids, token): reply
                for question, reply in zip(
                    questions, self.llm.ask(questions), strict=True
                )
                for token in question.named
            }
            yield [
                (number, _along(pair, replies))
                for number, pair in zip(numbers, some, strict=True)
            ]

    def _texts(self, prompts: Sequence[Prompt], endings: Endings) -> Batches[Generated]:
        for numbers in self._pieces([prompt.ids for prompt in prompts]):
            some = [prompts[number] for number in numbers]
            texts = self._attempt(some, endings, stopping=True)
            # Where vLLM saw an ending and the text has none, its stop strings are left out and it writes on.
            early = [at for at, text in enumerate(texts) if text is None]
            again = self._attempt([some[at] for at in early], endings, stopping=False)
            for at, text in zip(early, again, strict=True):
                texts[at] = text
            yield [
                (number, text or Failed(error=_UNEXPLAINED))
                for number, text in zip(numbers, texts, strict=True)
            ]

    def _pieces(self, keys: Sequence[tuple[Any, ...]]) -> Iterator[list[int]]:
        """Yield the positions of what is asked at once.

        Neighbours share most, and what is asked together finds it in the engine's cache.
        """
        order = sorted(range(len(keys)), key=keys.__getitem__)
        at_once = self.llm.at_once
        return (order[at : at + at_once] for at in range(0, len(order), at_once))

    def _attempt(
        self, prompts: Sequence[Prompt], endings: Endings, *, stopping: bool
    ) -> list[Generated | Failed | None]:
        """Return the continuations, ``None`` for one that stops without an ending."""
        asked = [prompt.request for prompt in prompts]
        questions = [
            Question(
                ids=prompt.ids,
                max_tokens=request.max_new_tokens,
                ends=endings.eos_ids,
                stop=request.stop if stopping else (),
                named=tuple(dict.fromkeys(request.watch if request.steps else ())),
                top_k=request.top_k,
            )
            for prompt, request in zip(prompts, asked, strict=True)
        ]
        return [
            reply if isinstance(reply, Failed) else _text(request, reply, endings)
            for request, reply in zip(asked, self.llm.ask(questions), strict=True)
        ]


# What a load needs of a repository on the hub: no pickles, and nothing of its subfolders.
_FILES = ["*.json", "*.safetensors", "*.model", "*.txt", "*.tiktoken", "*.jinja"]
_FOLDERS = ["*/*"]


def load_model(spec: VllmSpec) -> VllmModel:
    """Load as :func:`pytest_kbrel.models.vllm.load`, whose checks have passed."""
    # vLLM is given the folder whose files are digested here, and finds nothing else under a name.
    with quiet():
        folder = _folder(spec.checkpoint)
    check_folder(folder)
    files = record_files(spec.checkpoint)
    checkpoint = dataclasses.replace(spec.checkpoint, path=str(folder), revision="")
    config, encoder = load_outline(checkpoint)
    if config.is_encoder_decoder:
        raise ModelError(
            f"{spec.text}: an encoder-decoder model; allowed with vllm are causal models, "
            f"or hf/{spec.checkpoint.path}"
        )
    tokenizer = encoder.tokenizer
    with quiet():
        findings = [
            check_weights(checkpoint, folder)[0],
            *check_prompts(checkpoint, folder, encoder),
        ]
        empty = _without_weights(spec, folder, config)
        check_fit(checkpoint, empty, tokenizer)
        own = empty.generation_config
        empty.generation_config = greedy_settings(empty, tokenizer)
        findings.append(check_endings(empty.generation_config, own, encoder))
        described = fingerprint(
            checkpoint, folder, empty, tokenizer, adds_bos=encoder.adds_bos, device=""
        )
    engine, version = start_engine(spec, str(folder))
    try:
        files.check()
    except ModelError:
        engine.close()
        raise
    gpus, device = spec.tensor_parallel_size, engine.device
    added = f"vllm {spec.quantization}" if spec.quantization else ""
    parts = LoadedCheckpoint(
        spec=checkpoint,
        model=empty,
        tokenizer=tokenizer,
        encoder=encoder,
        # The same contents, other arithmetic.
        fingerprint=dataclasses.replace(
            described,
            spec=spec.text,
            backend=spec.backend,
            backend_version=f"{version}, torch {torch.__version__}",
            dtype=engine.dtype,
            device=f"{device} x {gpus}" if gpus > 1 else device,
            derived=f"quantization={spec.quantization}" if spec.quantization else "",
            quantisation=" + ".join(filter(None, (described.quantisation, added))),
        ),
        files=files,
        max_length=engine.max_length,
        notes=(*spec.notes, *notes_of(findings)),
    )
    return VllmModel(parts, engine)


def _folder(spec: ModelSpec) -> Path:
    """Return the folder of a checkpoint's files, downloaded from the hub if needed."""
    if spec.is_local:
        return Path(spec.location)
    from huggingface_hub import snapshot_download

    try:
        return Path(
            snapshot_download(
                spec.path,
                revision=spec.revision or None,
                allow_patterns=_FILES,
                ignore_patterns=_FOLDERS,
            )
        )
    except Exception as error:
        raise ModelError(
            f"{spec.path}: no such folder here, and not to be had from the hub: {describe_error(error)}"
        ) from None


def _without_weights(spec: VllmSpec, folder: Path, config: Any) -> Any:
    """Return the model of a config as shapes only, with the checkpoint's own generation settings."""
    try:
        with torch.device("meta"):
            model = transformers.AutoModelForCausalLM.from_config(config)
    except Exception as error:
        raise ModelError(
            f"{spec.text}: no causal model for transformers: {describe_error(error)}"
        ) from None
    if (folder / "generation_config.json").is_file():
        model.generation_config = transformers.GenerationConfig.from_pretrained(
            str(folder)
        )
    return model


def _text(
    request: GenerateRequest, reply: Reply, endings: Endings
) -> Generated | Failed | None:
    text = endings.cut(reply.token_ids, request.stop)
    if text.finish == "length" and len(text.token_ids) < request.max_new_tokens:
        return None
    watch = request.watch if request.steps else ()
    try:
        steps = [
            (
                token,
                probability(step, token),
                None if one is None else probability(step, one),
            )
            for token, step, one in zip(
                text.token_ids, reply.steps, chain(watch, repeat(None)), strict=False
            )
        ]
    except ValueError as error:
        return Failed(error=str(error))
    positions = zip(text.token_ids[:MOST_POSITIONS], reply.steps, strict=False)
    top = [top_tokens(step, token, request.top_k) for token, step in positions]
    return endings.with_steps(text, steps, request, top if request.top_k else ())


def _along(
    pair: Pair, replies: Mapping[tuple[Ids, int], Reply | Failed]
) -> tuple[float, ...] | Failed:
    """Return the probabilities of a pair's targets, each from the reply to its own step."""
    values = []
    for step in pair.steps():
        reply = replies[step]
        if isinstance(reply, Failed):
            return reply
        try:
            values.append(probability(reply.steps[0], step[1]))
        except ValueError as error:
            return Failed(error=str(error))
    return tuple(values)
