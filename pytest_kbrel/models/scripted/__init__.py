"""Scripted model: answers from a script file, without weights and without torch."""

from __future__ import annotations

import hashlib
import itertools
import math
import os
import signal
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from pytest_kbrel import SCORING_VERSION
from pytest_kbrel.errors import ModelError
from pytest_kbrel.models.arguments import require_auto
from pytest_kbrel.models.base import Backend, Model, Spec
from pytest_kbrel.models.chat import text_of
from pytest_kbrel.models.scripted.script import (
    ENDINGS,
    Probabilities,
    Script,
    ScriptedError,
    ScriptedStep,
    read_script,
)
from pytest_kbrel.models.token_counting import WordCounter
from pytest_kbrel.models.tokens import prompt_digest
from pytest_kbrel.records import (
    Failed,
    Fingerprint,
    Generated,
    GenerateRequest,
    Scored,
    ScoreRequest,
    Step,
    record,
)

_PREFIX = "scripted/"


A = TypeVar("A", Scored, Generated)
Q = TypeVar("Q", ScoreRequest, GenerateRequest)


class ScriptedModel(Model):
    """Model with scripted answers; its tokens are words separated by spaces.

    Stop strings and ``max_new_tokens`` cut a scripted text as they cut a real model's. ``spec`` is how the
    user named the model. ``digest`` identifies the answers: models of one digest are one model.
    """

    def __init__(self, answers: Script, *, spec: str, digest: str) -> None:
        self._answers, self._spec, self._digest = answers, spec, digest

    def describe(self) -> Fingerprint:
        """Return a fingerprint with the backend ``scripted``; the weights' digest is that of the answers."""
        return Fingerprint(
            spec=self._spec,
            backend="scripted",
            backend_version="1",
            architecture="ScriptedModel",
            parameters=0,
            weights_digest=self._digest,
            tokenizer_digest=hashlib.sha256(b"words").hexdigest(),
            dtype="float32",
            device="cpu",
            scoring_version=SCORING_VERSION,
        )

    def score(self, requests: Sequence[ScoreRequest]) -> list[Scored | Failed]:
        """Return the scripted probability of each word of each continuation."""
        return [self._answered(request, self._score) for request in requests]

    def generate(self, requests: Sequence[GenerateRequest]) -> list[Generated | Failed]:
        """Return the scripted texts, cut at stop strings and at ``max_new_tokens`` words."""
        return [self._answered(request, self._generate) for request in requests]

    def _answered(self, request: Q, answer: Callable[[Q, str], A]) -> A | Failed:
        prompt = text_of(request)
        try:
            for fault in self._answers.faults(prompt):
                time.sleep(fault.delay)
                if fault.crash is not None:
                    _crash(fault.crash)
                if fault.error:
                    raise ScriptedError(fault.error)
            ids = _ids(prompt.split())
            return replace(
                answer(request, prompt),
                prompt_tokens=len(ids),
                prompt_digest=prompt_digest(ids),
            )
        except ScriptedError as error:
            return Failed(error=str(error))

    def _score(self, request: ScoreRequest, prompt: str) -> Scored:
        tokens = _ids(request.continuation.split())
        if not tokens:
            raise ScriptedError(
                f"the continuation {request.continuation!r} has no tokens"
            )
        given = self._answers.probability(prompt, request.continuation)
        if not isinstance(given, tuple):
            given = (given,) * len(tokens)
        if len(given) != len(tokens):
            raise ScriptedError(
                f"{len(given)} probabilities are scripted for the {len(tokens)} tokens (words) of "
                f"{request.continuation!r}"
            )
        return Scored(
            probabilities=given, token_ids=tokens, prompt_tokens=0, prompt_digest=""
        )

    def _generate(self, request: GenerateRequest, prompt: str) -> Generated:
        text, steps = self._answers.text(prompt)
        for stop in request.stop:
            text = text.partition(stop)[0]
        words = text.split()
        # A model ends its text by one more token, and has room for it or not.
        stopped = len(words) < request.max_new_tokens
        words = words[: request.max_new_tokens]
        # Of a text that was cut short only the words that are left count.
        values: Probabilities = tuple(
            step.probability for step in steps[: len(words) or 1]
        )
        if not steps:
            with suppress(ScriptedError):
                values = self._answers.probability(prompt, " ".join(words))
        if not isinstance(values, tuple):
            values = (values,)
        elif not steps and len(values) != len(words):
            values = ()
        if request.steps and not steps:
            first = (self._answers.probability(prompt, word) for word in words)
            steps = tuple(
                ScriptedStep(word, p[0] if isinstance(p, tuple) else p)
                for word, p in zip(words, first, strict=True)
            )
        return Generated(
            text=text.strip() if stopped else " ".join(words),
            token_ids=_ids(words),
            finish="stop" if stopped else "length",
            prompt_tokens=0,
            prompt_digest="",
            steps=_recorded(steps, request) if request.steps else (),
            probability=math.fsum(values) / len(values) if values else None,
            first_probability=values[0] if values else None,
        )


def _recorded(
    steps: Sequence[ScriptedStep], request: GenerateRequest
) -> tuple[Step, ...]:
    recorded = []
    watches = itertools.chain(request.watch, itertools.repeat(None))
    for step, watch in zip(steps[: request.max_new_tokens], watches, strict=False):
        (token,) = _ids([step.token])
        watched = step.watched
        if watch is None:
            watched = None
        elif watched is None:
            watched = step.probability if watch == token else 0.0
        recorded.append(
            Step(
                token_id=token,
                token=step.token,
                probability=step.probability,
                watched=watched,
            )
        )
    return tuple(recorded)


def load(spec: ScriptedSpec) -> ScriptedModel:
    """Return the model of a script file; raises as :func:`read_script`."""
    script = read_script(spec.path)
    return ScriptedModel(script, spec=spec.text, digest=script.digest)


def _crash(status: int) -> None:
    """End this process at once, as a fault of a driver or the kernel would."""
    if status < 0 and hasattr(signal, "SIGKILL"):
        os.kill(os.getpid(), signal.SIGKILL)
    os._exit(abs(status))


def _ids(words: Iterable[str]) -> tuple[int, ...]:
    digests = (hashlib.sha256(word.encode()).digest() for word in words)
    return tuple(int.from_bytes(digest[:4], "big") for digest in digests)


@record
class ScriptedSpec(Spec):
    """Spec of the scripted model ``scripted/FILE``."""

    path: Path
    backend: str = "scripted"


def parse_scripted(
    text: str, model_args: str = "", *, chat_template: bool = False, **run: str
) -> ScriptedSpec:
    """Read ``scripted/FILE``; the file is not looked at.

    Raises :class:`ModelError` for a missing file name, and for any argument: a script has none, no chat
    template, and ``run`` (device, dtype, batch_size) means nothing to it.
    """
    text = text.strip()
    require_auto(text, "means nothing to a script", run)
    if chat_template:
        raise ModelError(
            f"{text}: a script has no chat template; allowed is no --kb-apply-chat-template"
        )
    name = text.removeprefix(_PREFIX) if text.startswith(_PREFIX) else ""
    if not name:
        raise ModelError(
            f"{text}: no script named; the form is scripted/FILE, a file of {ENDINGS}"
        )
    if model_args.strip():
        raise ModelError(
            f"{text}: found the arguments {model_args!r}; allowed are none: a script has no options"
        )
    return ScriptedSpec(text=text, path=Path(name).expanduser())


SCRIPTED = Backend(
    name="scripted",
    forms=("scripted/FILE",),
    args=(),
    parse=parse_scripted,
    check=lambda spec: read_script(spec.path),
    open=lambda spec, **_: load(spec),
    counter=lambda spec: WordCounter(),
)
