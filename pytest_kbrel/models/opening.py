"""From what the user typed to a model: the one place that knows all backends."""

from __future__ import annotations

from pytest_kbrel.errors import ModelError
from pytest_kbrel.models.base import Model
from pytest_kbrel.models.openai_spec import OPENAI_ARGS, OpenAISpec, is_openai, parse_openai
from pytest_kbrel.models.spec import MODEL_ARGS, ModelSpec, parse_args, parse_spec

AnySpec = ModelSpec | OpenAISpec


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

    ``openai/NAME`` is a model behind a server, all else a checkpoint. Raises :class:`ModelError` as
    :func:`parse_spec` and :func:`parse_openai` do, and where a served model is told where to run.
    """
    if not is_openai(text):
        return parse_spec(
            text,
            model_args,
            device=device,
            dtype=dtype,
            batch_size=batch_size,
            chat_template=chat_template,
        )
    spec = parse_openai(text, model_args)
    given = {"device": device, "dtype": dtype, "batch size": batch_size}
    for what, value in given.items():
        if value != "auto":
            raise ModelError(f"{text}: {what} {value!r} is for its server to choose; allowed is auto")
    if chat_template and spec.endpoint == "completions":
        raise ModelError(f"{text}: the endpoint completions has no chat template; allowed is endpoint=chat")
    return spec


def args_for(text: str, args: str) -> str:
    """Return those of the arguments of several models that are for the kind of model ``text`` names.

    Raises :class:`ModelError` for an argument that no kind of model has.
    """
    allowed = OPENAI_ARGS if is_openai(text) else MODEL_ARGS
    found = parse_args(args, (*OPENAI_ARGS, *MODEL_ARGS))
    return ",".join(f"{key}={value}" for key, value in found.items() if key in allowed)


def check_spec(spec: AnySpec) -> None:
    """Find what can be found without loading or asking: a missing checkpoint, package or key.

    Raises :class:`ModelError` or :class:`~pytest_kbrel.errors.MissingExtraError`.
    """
    if isinstance(spec, OpenAISpec):
        from pytest_kbrel.models import openai_client

        openai_client.check(spec)
    else:
        from pytest_kbrel.models import hf

        hf.check(spec)


def gives_probabilities(spec: AnySpec) -> bool:
    """Tell whether a model can say how probable a given text is, as MONITOR needs it."""
    return not isinstance(spec, OpenAISpec)


def open_model(spec: AnySpec, *, threads: int | None = None) -> Model:
    """Load a checkpoint, or connect to a server; ``threads`` is how many CPU threads a checkpoint may use.

    Raises as :func:`check_spec`, and :class:`ModelError` for a checkpoint that cannot be trusted.
    """
    if isinstance(spec, OpenAISpec):
        from pytest_kbrel.models.openai import OpenAIModel

        return OpenAIModel(spec)
    from pytest_kbrel.models import hf

    return hf.load(spec, threads=threads)
