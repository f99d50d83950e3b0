"""Model that vLLM runs: loading, generation, and scoring.

A given text is scored step by step: one question a token, which names the tokens that are to be scored there.
vLLM reads what questions share from its prefix cache. It also gives a prompt's own log-probabilities, but
without that cache, and by a softmax at each token.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
import transformers

from pytest_kbrel.errors import ModelError
from pytest_kbrel.models.batching import Batches, describe_error
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
from pytest_kbrel.models.checkpoint.files import check_folder
from pytest_kbrel.models.checkpoint.fingerprint import fingerprint
from pytest_kbrel.models.checkpoint.integrity import record_files
from pytest_kbrel.models.checkpoint.model import CheckpointModel, LoadedCheckpoint
from pytest_kbrel.models.checkpoint.outline import load_outline
from pytest_kbrel.models.checkpoint.spec import ModelSpec
from pytest_kbrel.models.pretrained import quiet
from pytest_kbrel.models.tokens import Ids, Pair, Prompt
from pytest_kbrel.models.vllm.engine import (
    MOST_NAMED,
    Engine,
    Question,
    Reply,
    probability,
    start_engine,
)
from pytest_kbrel.records import (
    Failed,
    Fingerprint,
    Generated,
    GenerateRequest,
)

if TYPE_CHECKING:
    from pytest_kbrel.models.vllm import VllmSpec

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
    parts = LoadedCheckpoint(
        spec=checkpoint,
        model=empty,
        tokenizer=tokenizer,
        encoder=encoder,
        fingerprint=_run_by_vllm(spec, described, engine.dtype, engine.device, version),
        files=files,
        max_length=engine.max_length,
        notes=(*spec.notes, *notes_of(findings)),
    )
    return VllmModel(parts, engine)


def _run_by_vllm(
    spec: VllmSpec, described: Fingerprint, dtype: str, device: str, version: str
) -> Fingerprint:
    """Return the fingerprint of the checkpoint as the engine runs it: same contents, other arithmetic."""
    gpus = spec.tensor_parallel_size
    added = f"vllm {spec.quantization}" if spec.quantization else ""
    return dataclasses.replace(
        described,
        spec=spec.text,
        backend=spec.backend,
        backend_version=f"{version}, torch {torch.__version__}",
        dtype=dtype,
        device=f"{device} x {gpus}" if gpus > 1 else device,
        derived=f"quantization={spec.quantization}" if spec.quantization else "",
        quantisation=" + ".join(
            part for part in (described.quantisation, added) if part
        ),
    )


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
    watch: Iterable[int | None] = request.watch if request.steps else ()
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
    values: list[float] = []
    for step in pair.steps():
        reply = replies[step]
        if isinstance(reply, Failed):
            return reply
        try:
            values.append(probability(reply.steps[0], step[1]))
        except ValueError as error:
            return Failed(error=str(error))
    return tuple(values)
