"""Parsing of the model specs in the settings: model under test, baseline model, judge and helper models."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable

from pytest_kbrel.catalogue.probes import PROBES
from pytest_kbrel.errors import ModelError
from pytest_kbrel.models.base import Spec
from pytest_kbrel.models.registry import args_for, read_spec
from pytest_kbrel.records import BASELINE, ProbeName
from pytest_kbrel.settings import RULES, ParsedSpec, Settings

WHOSE = {"": "", BASELINE: "baseline model: "}


def with_specs(settings: Settings) -> Settings:
    """Return the settings with the specs of model, baseline model and judge parsed; nothing is opened.

    The baseline model is ``SPEC`` or ``SPEC,KEY=VALUE,...`` with model args of its own; device, dtype, batch
    size and chat template are those of the model under test. With a recorded run there is no model.
    """
    model = baseline = judge = None
    if settings.from_run is None:
        model = _parsed(lambda: _own_spec(settings, settings.model, settings.model_args))
    if settings.baseline_model:
        text, _, args = settings.baseline_model.partition(",")
        baseline = _parsed(lambda: _own_spec(settings, text, args))
    if settings.judge != RULES:
        judge = _parsed(lambda: helper_spec(settings.judge, settings.judge_args))
    return dataclasses.replace(settings, model_spec=model, baseline_spec=baseline, judge_spec=judge)


@functools.lru_cache(maxsize=64)
def helper_spec(text: str, judge_args: str) -> Spec:
    """Parse the spec of a helper model with those of ``--kb-judge-args`` that its backend takes.

    Raises ``ModelError`` if it is wrong.
    """
    return read_spec(text, args_for(text, judge_args))


def role_of(settings: Settings, text: str) -> str:
    """Return where the user named a helper model: the flag of the judge, or a suite's key for writers."""
    return "--kb-judge" if text == settings.judge else "distractors_from"


def notes_of(model: object) -> tuple[str, ...]:
    """Return remarks about a model or a spec for readers of the report, one sentence each."""
    notes: tuple[str, ...] = getattr(model, "notes", ())
    return notes


def spec_notes(settings: Settings) -> tuple[str, ...]:
    """Return remarks about model arguments without effect, one sentence each; nothing is opened."""
    parsed = (
        (WHOSE[""], settings.model_spec),
        (WHOSE[BASELINE], settings.baseline_spec),
        ("judge: ", settings.judge_spec),
    )
    return tuple(f"{whose}{note}" for whose, one in parsed if one is not None for note in notes_of(one.spec))


def no_probabilities(probe: ProbeName, why: str) -> ModelError:
    """Return the error of a probe that needs probabilities, for a model that cannot score answers."""
    title = PROBES[probe].title
    return ModelError(f"{title} cannot be run: {why}; allowed: -k 'not {probe}', or another template")


def _own_spec(settings: Settings, text: str, args: str) -> Spec:
    return read_spec(
        text,
        args,
        device=settings.device,
        dtype=settings.dtype,
        batch_size=settings.batch_size,
        chat_template=settings.apply_chat_template,
    )


def _parsed(parse: Callable[[], Spec]) -> ParsedSpec:
    try:
        return ParsedSpec(spec=parse())
    except ModelError as error:
        return ParsedSpec(error=error)
