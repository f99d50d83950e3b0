"""From what the user typed to a model: the one place that knows all backends."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from pytest_kbrel.errors import ModelError
from pytest_kbrel.models import lm_eval_args as lm_eval
from pytest_kbrel.models.at_hand import check_at_hand
from pytest_kbrel.models.base import Model
from pytest_kbrel.models.model_args import join_args, parse_args
from pytest_kbrel.models.openai_spec import OPENAI_ARGS, OpenAISpec, is_openai, parse_openai
from pytest_kbrel.models.script import ScriptedSpec, is_scripted, parse_scripted
from pytest_kbrel.models.spec import MODEL_ARGS, ModelSpec, parse_spec
from pytest_kbrel.models.vllm_spec import VLLM_ARGS, VllmSpec, is_vllm, parse_vllm

AnySpec = ModelSpec | OpenAISpec | VllmSpec | ScriptedSpec


def read_spec(
    text: str,
    model_args: str = "",
    *,
    device: str = "auto",
    dtype: str = "auto",
    batch_size: str = "auto",
    chat_template: bool = False,
) -> AnySpec:
    """Read the name of a model and its companions; nothing is loaded, and no server is asked.

    ``openai/NAME`` is a model behind a server, ``vllm/PATH`` a checkpoint that vLLM runs, ``scripted/FILE`` a
    script, all else a checkpoint that transformers runs. Raises :class:`ModelError` as :func:`parse_spec`,
    :func:`parse_vllm`, :func:`parse_openai` and :func:`parse_scripted` do, and where a served or a scripted
    model is told where to run.
    """
    if not (is_openai(text) or is_scripted(text)):
        parse = parse_vllm if is_vllm(text) else parse_spec
        return parse(
            text,
            model_args,
            device=device,
            dtype=dtype,
            batch_size=batch_size,
            chat_template=chat_template,
        )
    given = {"device": device, "dtype": dtype, "batch size": batch_size}
    why = "means nothing to a script" if is_scripted(text) else "is for its server to choose"
    for what, value in given.items():
        if value != "auto":
            raise ModelError(f"{text}: {what} {value!r} {why}; allowed is auto")
    if is_scripted(text):
        if chat_template:
            raise ModelError(f"{text}: a script has no chat template; allowed is no --kb-apply-chat-template")
        return parse_scripted(text, model_args)
    spec = parse_openai(text, model_args)
    if chat_template and spec.endpoint == "completions":
        raise ModelError(f"{text}: the endpoint completions has no chat template; allowed is endpoint=chat")
    if chat_template:
        note = "--kb-apply-chat-template is not used: the server wraps messages in its own chat template"
        spec = replace(spec, notes=(*spec.notes, note))
    return spec


def args_for(text: str, args: str) -> str:
    """Return those of the arguments of several models that are for the kind of model ``text`` names.

    Raises :class:`ModelError` for an argument that no kind of model has.
    """
    known: dict[str, tuple[str, ...]] = {
        "hf": (*MODEL_ARGS, *lm_eval.HF),
        "openai": (*OPENAI_ARGS, *lm_eval.OPENAI),
        "vllm": (*VLLM_ARGS, *lm_eval.VLLM),
        "scripted": (),
    }
    allowed = known[backend_of(text)]
    found = parse_args(args, tuple(dict.fromkeys(key for keys in known.values() for key in keys)))
    return join_args({key: value for key, value in found.items() if key in allowed})


def check_spec(spec: AnySpec) -> None:
    """Find what can be found without loading or asking: a missing checkpoint, package or key.

    Weights that are cut short, a device that is not there and an option that it cannot do are found here too.

    Raises :class:`ModelError` or :class:`~pytest_kbrel.errors.MissingExtraError`.
    """
    if isinstance(spec, OpenAISpec):
        from pytest_kbrel.models import openai_client

        openai_client.check(spec)
    elif isinstance(spec, VllmSpec):
        from pytest_kbrel.models import vllm

        vllm.check(spec)
        check_at_hand(spec.checkpoint)
    elif isinstance(spec, ScriptedSpec):
        from pytest_kbrel.models import scripted

        scripted.check(spec)
    else:
        from pytest_kbrel.models import hf

        hf.check(spec)
        check_at_hand(spec)
        hf.check_runs(spec)


def backend_of(text: str) -> str:
    """Return which backend a spec names."""
    kinds = {"openai": is_openai, "vllm": is_vllm, "scripted": is_scripted}
    return next((backend for backend, names in kinds.items() if names(text)), "hf")


def gpus_of(spec: AnySpec) -> int | None:
    """Return how many GPUs a process needs for itself to run a model, 0 where it can share one.

    ``None`` stands for a checkpoint that is spread over all GPUs its process sees.
    """
    if isinstance(spec, ModelSpec) and spec.placement is not None:
        return None
    return spec.tensor_parallel_size if isinstance(spec, VllmSpec) else 0


def gives_probabilities(spec: AnySpec) -> bool:
    """Tell whether a model can say how probable a given text is, as MONITOR needs it."""
    return not isinstance(spec, OpenAISpec)


def open_model(spec: AnySpec, *, threads: int | None = None, folder: Path | None = None) -> Model:
    """Load a checkpoint, start an engine for it, connect to a server, or read a script.

    ``threads`` is how many CPU threads a checkpoint may use that transformers runs, ``folder`` where
    it is remembered how much memory a token of it takes.

    Raises as :func:`check_spec`, and :class:`ModelError` for a checkpoint that cannot be trusted.
    """
    if isinstance(spec, OpenAISpec):
        from pytest_kbrel.models.openai import OpenAIModel

        return OpenAIModel(spec)
    if isinstance(spec, VllmSpec):
        from pytest_kbrel.models import vllm

        return vllm.load(spec)
    if isinstance(spec, ScriptedSpec):
        from pytest_kbrel.models import scripted

        return scripted.load(spec)
    from pytest_kbrel.models import hf

    return hf.load(spec, threads=threads, folder=folder)
