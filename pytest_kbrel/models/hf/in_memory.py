"""A model that somebody trains, asked as it is in memory and left as it was."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from pytest_kbrel.models.checkpoint.endings import greedy_settings
from pytest_kbrel.models.checkpoint.files import FileRecord
from pytest_kbrel.models.checkpoint.model import LoadedCheckpoint
from pytest_kbrel.models.checkpoint.spec import ModelSpec
from pytest_kbrel.models.hf.devices import measure_budget
from pytest_kbrel.models.hf.loading import max_length_of
from pytest_kbrel.models.hf.model import HfModel
from pytest_kbrel.models.tokens import PromptEncoder
from pytest_kbrel.records import Fingerprint


@contextmanager
def undisturbed(model: Any, tokenizer: Any) -> Iterator[None]:
    """Let a model be asked: without dropout, with settings for greedy search.

    Behind it all parts are in the mode they were in, and torch's random numbers go on as if nothing had been
    asked; others are not drawn.
    """
    modes = [(part, part.training) for part in model.modules()]
    # PEFT hands its own settings to the model below it.
    bare = model.get_base_model() if hasattr(model, "get_base_model") else model
    settings = bare.generation_config
    # Accelerate puts mixed precision around it, and a saved checkpoint is asked without.
    forward = vars(model).get("forward")
    devices = [model.device] if model.device.type == "cuda" else []
    with torch.random.fork_rng(devices):
        try:
            greedy = greedy_settings(model, tokenizer)
            bare.generation_config = model.generation_config = greedy
            if forward is not None:
                model.forward = getattr(model, "_original_forward", forward)
            model.eval()
            yield
        finally:
            bare.generation_config = model.generation_config = settings
            if forward is not None:
                model.forward = forward
            for part, mode in modes:
                part.training = mode


def model_in_memory(model: Any, tokenizer: Any, *, chat_template: bool) -> HfModel:
    """Return a model in memory as one that can be asked, while it is :func:`undisturbed`.

    Its weights change, so the fingerprint has no digest of them. Raises ``ModelError`` for a tokenizer without
    the chat template that is asked for.
    """
    name = f"{type(model).__name__} in training"
    spec = ModelSpec(text=name, path=name, chat_template=chat_template)
    encoder = PromptEncoder(
        tokenizer,
        encoder_decoder=bool(model.config.is_encoder_decoder),
        chat_template=chat_template,
    )
    parts = LoadedCheckpoint(
        spec=spec,
        model=model,
        tokenizer=tokenizer,
        encoder=encoder,
        fingerprint=Fingerprint(
            spec=name,
            backend="hf",
            backend_version="",
            architecture=type(model).__name__,
            parameters=int(model.num_parameters()),
            weights_digest="",
            tokenizer_digest="",
            dtype=str(model.dtype).removeprefix("torch."),
            device=str(model.device),
            chat_template=chat_template,
        ),
        files=FileRecord(()),
        max_length=max_length_of(model.config),
    )
    return HfModel(parts, budget=measure_budget(model, spec))
