"""Scripted model: answers from a script file, without weights and without torch."""

from __future__ import annotations

import hashlib
import math
import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path

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


class ScriptedModel(Model):
    """Model with scripted answers; its tokens are words separated by spaces.

    Stop strings and ``max_new_tokens`` cut a scripted text as they cut a real model's. ``spec`` is how the
    user named the model. ``digest`` identifies the answers: models of one digest are one model.
    """

    def __init__(self, answers: Script, *, spec: str, digest: str) -> None:
        self._answers = answers
        self._spec = spec
        self._digest = digest

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
        return [self._score(request) for request in requests]

    def generate(self, requests: Sequence[GenerateRequest]) -> list[Generated | Failed]:
        """Return the scripted texts, cut at stop strings and at ``max_new_tokens`` words."""
        return [self._generate(request) for request in requests]

    def _score(self, request: ScoreRequest) -> Scored | Failed:
        tokens = tuple(map(_token_id, request.continuation.split()))
        if not tokens:
            return Failed(
                error=f"the continuation {request.continuation!r} has no tokens"
            )
        text = text_of(request)
        prompt = tuple(map(_token_id, text.split()))
        try:
            self._suffer(text)
            given = self._answers.probability(text, request.continuation)
        except ScriptedError as error:
            return Failed(error=str(error))
        if isinstance(given, tuple) and len(given) != len(tokens):
            return Failed(
                error=f"{len(given)} probabilities are scripted for the {len(tokens)} tokens (words) of "
                f"{request.continuation!r}"
            )
        return Scored(
            probabilities=given
            if isinstance(given, tuple)
            else (float(given),) * len(tokens),
            token_ids=tokens,
            prompt_tokens=len(prompt),
            prompt_digest=prompt_digest(prompt),
        )

    def _generate(self, request: GenerateRequest) -> Generated | Failed:
        prompt_text = text_of(request)
        try:
            self._suffer(prompt_text)
            text, scripted = self._answers.text(prompt_text)
            cut = min(
                (text.find(stop) for stop in request.stop if stop in text),
                default=len(text),
            )
            words = text[:cut].split()
            # A model ends its text by one more token, and has room for it or not.
            stopped = len(words) < request.max_new_tokens
            words = words[: request.max_new_tokens]
            steps = self._steps(request, scripted, words) if request.steps else ()
            mean, first = self._probability(prompt_text, scripted, words)
        except ScriptedError as error:
            return Failed(error=str(error))
        prompt = tuple(map(_token_id, prompt_text.split()))
        return Generated(
            text=text[:cut].strip() if stopped else " ".join(words),
            token_ids=tuple(map(_token_id, words)),
            finish="stop" if stopped else "length",
            prompt_tokens=len(prompt),
            prompt_digest=prompt_digest(prompt),
            steps=steps,
            probability=mean,
            first_probability=first,
        )

    def _probability(
        self, prompt: str, scripted: Sequence[ScriptedStep], words: Sequence[str]
    ) -> tuple[float | None, float | None]:
        """Return the mean probability of the words and that of the first, ``None`` if none is scripted."""
        # Of a text that was cut short only the words that are left count.
        values: Probabilities = tuple(step.probability for step in scripted)[
            : len(words) or 1
        ]
        if not scripted:
            try:
                values = self._answers.probability(prompt, " ".join(words))
            except ScriptedError:
                return None, None
        if not isinstance(values, tuple):
            return float(values), float(values)
        if not scripted and len(values) != len(words):
            return None, None
        return math.fsum(values) / len(values), float(values[0])

    def _steps(
        self,
        request: GenerateRequest,
        scripted: Sequence[ScriptedStep],
        words: Sequence[str],
    ) -> tuple[Step, ...]:
        if not scripted:
            scripted = [
                ScriptedStep(token=word, probability=self._first(request, word))
                for word in words
            ]
        steps = []
        for index, step in enumerate(scripted[: request.max_new_tokens]):
            token_id, watched = _token_id(step.token), step.watched
            if index >= len(request.watch):
                watched = None
            elif watched is None:
                watched = step.probability if request.watch[index] == token_id else 0.0
            steps.append(
                Step(
                    token_id=token_id,
                    token=step.token,
                    probability=step.probability,
                    watched=watched,
                )
            )
        return tuple(steps)

    def _first(self, request: GenerateRequest, word: str) -> float:
        given = self._answers.probability(text_of(request), word)
        return float(given[0] if isinstance(given, tuple) else given)

    def _suffer(self, prompt: str) -> None:
        for fault in self._answers.faults(prompt):
            time.sleep(fault.delay)
            if fault.crash is not None:
                _crash(fault.crash)
            if fault.error:
                raise ScriptedError(fault.error)


def load(spec: ScriptedSpec) -> ScriptedModel:
    """Return the model of a script file; raises as :func:`read_script`."""
    script = read_script(spec.path)
    return ScriptedModel(script, spec=spec.text, digest=script.digest)


def _crash(status: int) -> None:
    """End this process at once, as a fault of a driver or the kernel would."""
    if status < 0 and hasattr(signal, "SIGKILL"):
        os.kill(os.getpid(), signal.SIGKILL)
    os._exit(abs(status))


def _token_id(word: str) -> int:
    return int.from_bytes(hashlib.sha256(word.encode()).digest()[:4], "big")


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
