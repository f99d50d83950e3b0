"""Backend for answers made elsewhere: a file that OpenAI's batch service or ``vllm run-batch`` wrote."""

from __future__ import annotations

import dataclasses

from pytest_kbrel.models.answers.spec import (
    UNSCORABLE,
    AnswersSpec,
    check,
    parse_answers,
)
from pytest_kbrel.models.base import Model
from pytest_kbrel.models.openai import OPENAI


def _open(spec: AnswersSpec, **_: object) -> Model:
    check(spec)
    from pytest_kbrel.models.answers.model import AnswersModel

    return AnswersModel(spec)


ANSWERS = dataclasses.replace(
    OPENAI,
    name="answers",
    forms=("answers/FILE",),
    parse=parse_answers,
    check=check,
    open=_open,
    counter=lambda spec: OPENAI.counter(spec.requests),
    embedder=None,
    is_served=False,
    announcement=lambda spec: "",
    unscorable=lambda spec: UNSCORABLE,
)
