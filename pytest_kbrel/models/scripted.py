r"""Scripted model: answers from a script file, without weights and without torch.

A script is YAML or JSON Lines with rules from prompts to answers:

    rules:
      - contains: capital of France
        text: Paris
        probability: {Paris: 0.9, Rome: 0.05}
      - pattern: 'capital of (\w+)\?$'
        text: 'The city of \1'
      - prompt: Where is Atlantis?
        error: out of memory
    default:
      text: unsure
      probability: 0.01

In a JSON Lines file each line is one rule; the default is a line ``{"default": {...}}``.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import os
import re
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from pytest_kbrel import SCORING_VERSION
from pytest_kbrel.bounds import DELAY, SHARE_OR_NONE, Bounds
from pytest_kbrel.errors import ModelError, SuiteError
from pytest_kbrel.facts.located import Node, json_rows, read_document
from pytest_kbrel.models.arguments import require_auto
from pytest_kbrel.models.base import Backend, Model, Spec, WordCounter
from pytest_kbrel.models.chat import text_of
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

ENDINGS = ".yaml, .yml or .jsonl"
_CONDITIONS = ("prompt", "contains", "pattern")
_EXIT_STATUS = Bounds(0, 255)
_OUTCOMES = ("text", "steps", "probability", "error", "delay", "crash")

Probabilities = float | tuple[float, ...]
"""One probability for all tokens, or one for each."""


class ScriptedError(Exception):
    """Raised for a request without an answer: no rule matches, or a rule scripts an error."""


class ScriptedStep(NamedTuple):
    """Step of a scripted answer: a token's text and probability, and that of the watched token."""

    token: str
    probability: float
    watched: float | None = None


@record
class ScriptRule:
    """Rule of a script: a condition on the prompt, an answer, a fault; any of them may be absent.

    ``prompt`` is the whole prompt, ``contains`` a part of it, ``pattern`` a regular expression that is found
    in it. ``probability`` is that of a scored continuation's tokens: for any continuation, or by
    continuation (without the spaces around it). ``error`` is the text of a failed response, ``delay`` is in
    seconds, ``crash`` the exit status of the process, negative for the number of a signal.
    """

    prompt: str | None = None
    contains: str | None = None
    pattern: re.Pattern[str] | None = None
    text: str | None = None
    steps: tuple[ScriptedStep, ...] = ()
    probability: Probabilities | Mapping[str, Probabilities] | None = None
    error: str = ""
    delay: float = 0.0
    crash: int | None = None

    def match(self, prompt: str) -> Callable[[str], str] | None:
        """Return the function that fills a text's groups (``\\1``) if ``prompt`` matches, else ``None``."""
        if self.prompt not in (None, prompt) or (self.contains or "") not in prompt:
            return None
        if self.pattern is None:
            return str
        match = self.pattern.search(prompt)
        return None if match is None else match.expand


@record
class Script:
    """Script with its ``rules`` in the order of the file, the default last."""

    path: Path
    rules: tuple[ScriptRule, ...]

    @property
    def digest(self) -> str:
        """Return the sha256 (hex) of all answers, without faults."""
        answers = [
            [rule.prompt, rule.contains, rule.pattern and rule.pattern.pattern, *answer]
            for rule in self.rules
            if (answer := (rule.text, rule.steps, rule.probability)) != (None, (), None)
        ]
        return hashlib.sha256(json.dumps(answers, sort_keys=True).encode()).hexdigest()

    def text(self, prompt: str) -> tuple[str, tuple[ScriptedStep, ...]]:
        """Return the text after ``prompt`` with its steps; raise ``ScriptedError`` if no rule has one."""
        for rule in self.rules:
            if (rule.text is not None or rule.steps) and (expand := rule.match(prompt)):
                if rule.text is not None:
                    return expand(rule.text), rule.steps
                return "".join(step.token for step in rule.steps), rule.steps
        raise self._no_rule("text", prompt)

    def probability(self, prompt: str, continuation: str) -> Probabilities:
        """Return the probabilities of a continuation's tokens; raise ``ScriptedError`` if no rule has any."""
        for rule in self.rules:
            probability = rule.probability
            if isinstance(probability, Mapping):
                probability = probability.get(continuation.strip())
            if probability is not None and rule.match(prompt):
                return probability
        raise self._no_rule("probability", prompt)

    def faults(self, prompt: str) -> Iterator[ScriptRule]:
        """Yield the rules for ``prompt`` that have a fault, in order."""
        for rule in self.rules:
            is_fault = rule.error or rule.delay or rule.crash is not None
            if is_fault and rule.match(prompt):
                yield rule

    def _no_rule(self, key: str, prompt: str) -> ScriptedError:
        shown = prompt if len(prompt) <= 200 else "..." + prompt[-197:]
        return ScriptedError(
            f"{self.path}: no rule with `{key}` matches {shown!r}; a `default` would answer all others"
        )


def read_script(path: Path) -> Script:
    """Read a script file.

    Raises :class:`ModelError` with file and line for another file format, an unknown key, a rule without
    answer and fault, a wrong regular expression, or a value of the wrong kind.
    """
    if path.suffix not in (".yaml", ".yml", ".jsonl"):
        raise ModelError(
            f"{path}: a script is a file of {ENDINGS}; found {path.suffix or 'no ending'}"
        )
    try:
        if path.suffix == ".jsonl":
            rules, default = _json_lines(path)
        else:
            keys = read_document(path).keys("a script", ("rules", "default"))
            rules = keys["rules"].items("`rules`", "rules") if "rules" in keys else ()
            default = keys.get("default")
        script_rules = [_rule(node, _CONDITIONS) for node in rules]
        script_rules += [_rule(default, ())] if default is not None else []
    except SuiteError as error:
        raise ModelError(str(error)) from None
    if not script_rules:
        raise ModelError(
            f"{path}: a script needs `rules` or a `default`, and has neither"
        )
    return Script(path=path, rules=tuple(script_rules))


def _json_lines(path: Path) -> tuple[tuple[Node, ...], Node | None]:
    rules = []
    default = None
    for line, row in json_rows(path, "one rule a line is needed"):
        if isinstance(row, SuiteError):
            raise row
        node = _located(path, line, row)
        if "default" not in row:
            rules.append(node)
        elif default is not None:
            raise node.error(
                "a second default; the first is on line " + str(default.line)
            )
        else:
            default = node.keys("the line of the default", ("default",))["default"]
    return tuple(rules), default


def _located(path: Path, line: int, value: Any) -> Node:
    if isinstance(value, dict):
        value = {key: _located(path, line, item) for key, item in value.items()}
    elif isinstance(value, list):
        value = tuple(_located(path, line, item) for item in value)
    return Node(path=path, line=line, value=value)


def _rule(node: Node, conditions: tuple[str, ...]) -> ScriptRule:
    what = "a rule" if conditions else "the default"
    entries = node.keys(what, (*conditions, *_OUTCOMES))
    if conditions and len(entries.keys() & set(conditions)) != 1:
        raise node.error(
            f"a rule has one of {', '.join(conditions)}; found: {', '.join(entries) or 'nothing'}"
        )
    if not entries.keys() & set(_OUTCOMES):
        raise node.error(f"{what} needs one of {', '.join(_OUTCOMES)}")
    rule = ScriptRule(**{key: _value(key, node) for key, node in entries.items()})
    if rule.pattern is not None and rule.text is not None:
        try:
            # The template's groups are checked even if nothing matches.
            rule.pattern.sub(rule.text, "")
        except (re.error, IndexError) as error:
            raise entries["text"].error(
                f"`text` is filled from the pattern's groups, as re.sub does: {error}"
            ) from None
    return rule


def _value(key: str, node: Node) -> Any:
    """Return the value of a rule's key."""
    match key:
        case "steps":
            return tuple(map(_step, node.items("`steps`", "steps")))
        case "probability" if isinstance(node.value, dict):
            named = node.value.items()
            return {name.strip(): _probabilities(entry) for name, entry in named}
        case "probability":
            return _probabilities(node)
        case "error":
            return node.text("`error`")
        case "delay":
            return float(node.number("`delay`", f"{DELAY}, in seconds", DELAY))
        case "crash":
            # The signal that ends a process at once.
            if node.value is True:
                return -9
            allowed = "true, or an exit status from 0 to 255"
            return int(node.number("`crash`", allowed, _EXIT_STATUS))
    if not isinstance(node.value, str) or (key != "text" and not node.value):
        raise node.wrong(f"`{key}`", "text" if key == "text" else "text, not empty")
    try:
        return re.compile(node.value) if key == "pattern" else node.value
    except (re.error, OverflowError, RecursionError) as error:
        fault = f"not a regular expression: {node.value!r} ({error})"
        raise node.error(fault) from None


def _step(node: Node) -> ScriptedStep:
    entries = node.keys("a step", ScriptedStep._fields, ("token",))
    token = entries.pop("token")
    if not isinstance(token.value, str):
        raise token.wrong("`token`", "text")
    shares = {"probability": 1.0} | {key: _share(of) for key, of in entries.items()}
    return ScriptedStep(token.value, **shares)


def _probabilities(node: Node) -> Probabilities:
    if isinstance(node.value, tuple):
        return tuple(map(_share, node.items("`probability`", "probabilities")))
    return _share(node)


def _share(node: Node) -> float:
    """Return a probability; NaN plays a broken model."""
    if isinstance(node.value, float) and math.isnan(node.value):
        return node.value
    allowed = "a number from 0 to 1, or .nan"
    return float(node.number("a probability", allowed, SHARE_OR_NONE))


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
                if (status := fault.crash) is not None:
                    # At once, as a fault of a driver or the kernel would end a process.
                    if status < 0 and hasattr(signal, "SIGKILL"):
                        os.kill(os.getpid(), signal.SIGKILL)
                    os._exit(abs(status))
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
