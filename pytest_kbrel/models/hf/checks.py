"""Checks of a checkpoint: each raises ModelError, or says what it found.

``kbrel check`` prints what loading finds.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from pytest_kbrel.errors import ModelError
from pytest_kbrel.models.checkpoint.checks import Finding
from pytest_kbrel.models.checkpoint.spec import ModelSpec

_LAYER = re.compile(r"(?<=\.)\d+(?=\.)")
# Of an adapter that was not merged, and of quantised weights.
_ADAPTER = re.compile(r"(^|[._])(lora|ia3|hada|lokr|oft|boft|vera)_")
_SCALE = re.compile(r"[.](SCB|(\w+_)?scales?(_\w+)?|absmax|zero_point)$")


def check_complete(
    spec: ModelSpec, model: Any, info: dict[str, Any], formats: Mapping[str, str]
) -> Finding:
    """Refuse weights that are missing, misshapen or left out, by transformers' own report of the load.

    ``formats`` are those of the tensors in the files. What has no place in the architecture and no part in it,
    such as a second head, is left out with a note.
    """
    mismatched = sorted(
        str(entry[0] if isinstance(entry, tuple) else entry)
        for entry in info["mismatched_keys"]
    )
    for what, names in (
        ("of another shape than the config says", mismatched),
        ("missing", sorted(info["missing_keys"])),
    ):
        if names:
            listed = ", ".join(names[:3]) + (
                f" and {len(names) - 3} more" if len(names) > 3 else ""
            )
            raise ModelError(
                f"{spec.path}: weights {what}: {listed}; random numbers would stand in their place, and a "
                "checkpoint must hold every weight of its architecture"
            )
    if info.get("error_msgs"):
        raise ModelError(
            f"{spec.path}: the weights cannot be loaded: {info['error_msgs'][0]}"
        )
    used = {name for name, _ in model.named_parameters()}
    kinds = {_LAYER.sub("*", name) for name in used}
    left_out = sorted(info["unexpected_keys"])
    integers = sorted(
        name
        for name, kind in formats.items()
        if name.endswith("weight") and kind[0] in "IU"
    )
    is_quantised = bool(getattr(model.config, "quantization_config", None))
    for names, what, allowed in (
        (
            [name for name in left_out if _LAYER.sub("*", name) in kinds],
            "config.json has fewer layers than the weights",
            "a config.json of these weights",
        ),
        (
            [name for name in left_out if _ADAPTER.search(name)],
            "the weights hold an adapter that is not merged",
            "the adapter in a folder of its own (peft=FOLDER), or merged (merge_and_unload)",
        ),
        (
            [] if is_quantised else [*_scales(left_out, used), *integers],
            "the weights are quantised, and config.json has no quantization_config",
            "a config.json that says how, or weights that are not quantised",
        ),
    ):
        if names:
            raise ModelError(
                f"{spec.path}: {what}: {len(names)} tensors would be left out or misread, the first is "
                f"{names[0]}; allowed: {allowed}"
            )
    note = (
        f"warning: {len(left_out)} tensors of the weights have no place in {type(model).__name__} and were left "
        f"out, the first is {left_out[0]}"
        if left_out
        else ""
    )
    state = f"{type(model).__name__}, {model.num_parameters():,} parameters, all of them in the weights"
    return Finding(part="architecture", state=state, note=note)


def _scales(left_out: Iterable[str], used: Iterable[str]) -> list[str]:
    """Return those of ``left_out`` that scale one of the weights in use; other parts may be scaled too."""
    scaled = {".".join(name.split(".")[-3:-1]) for name in used}
    return [
        name
        for name in left_out
        if _SCALE.search(name) and ".".join(name.split(".")[-3:-1]) in scaled
    ]


def check_head(model: Any, formats: Mapping[str, str]) -> Finding:
    """Return whether the head is the embedding, with a note where config.json says so and the weights do not.

    ``formats`` are those of the tensors in the files.
    """
    head, embedding = model.get_output_embeddings(), model.get_input_embeddings()
    is_tied = head is not None and head.weight is embedding.weight
    config = model.config.get_text_config(decoder=True)
    names = {f"{name}.weight" for name, part in model.named_modules() if part is head}
    is_another = not is_tied and bool(names & formats.keys())
    note = (
        "warning: config.json ties the head to the embedding, and the weights hold another one, which was "
        "loaded; other programs and versions take the embedding"
        if is_another and getattr(config, "tie_word_embeddings", False)
        else ""
    )
    state = "the embedding" if is_tied else "its own"
    return Finding(part="head", state=state, note=note)
