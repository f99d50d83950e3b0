"""Scripted model: answers from a script file, without weights and without torch.

A script is YAML or JSON Lines with rules from prompts to answers:

    rules:
      - contains: capital of France
        text: Paris
        probability: {Paris: 0.9, Rome: 0.05}
      - pattern: 'capital of (\\w+)\\?$'
        text: 'The city of \\1'
      - prompt: Where is Atlantis?
        error: out of memory
    default:
      text: unsure
      probability: 0.01

In a JSON Lines file each line is one rule; the default is a line ``{"default": {...}}``.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from pytest_kbrel import SCORING_VERSION
from pytest_kbrel.bounds import DELAY
from pytest_kbrel.errors import ModelError, SuiteError
from pytest_kbrel.facts.located import Entry, Node, json_rows, read_document
from pytest_kbrel.models.arguments import require_auto
from pytest_kbrel.models.base import Backend
from pytest_kbrel.models.chat import text_of
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
_ENDINGS = ".yaml, .yml or .jsonl"
_CONDITIONS = ("prompt", "contains", "pattern")
_OUTCOMES = ("text", "steps", "probability", "error", "delay", "crash")

Probabilities = float | tuple[float, ...]
"""One probability for all tokens, or one for each."""


class ScriptedError(Exception):
    """Raised for a request without an answer: no rule matches, or a rule scripts an error."""


@record
class ScriptedStep:
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
        if self.prompt is not None and self.prompt != prompt:
            return None
        if self.contains is not None and self.contains not in prompt:
            return None
        if self.pattern is None:
            return str
        match = self.pattern.search(prompt)
        return None if match is None else match.expand

    @property
    def identity(self) -> object:
        """Everything but the faults, as JSON data; ``None`` for a rule without an answer."""
        if self.text is None and not self.steps and self.probability is None:
            return None
        steps = [[step.token, step.probability, step.watched] for step in self.steps]
        pattern = None if self.pattern is None else self.pattern.pattern
        probability = dict(self.probability) if isinstance(self.probability, Mapping) else self.probability
        return [self.prompt, self.contains, pattern, self.text, steps, probability]


@record
class Script:
    """Script with its ``rules`` in the order of the file, the default last."""

    path: Path
    rules: tuple[ScriptRule, ...]

    @property
    def digest(self) -> str:
        """Return the sha256 (hex) of all answers, without faults."""
        answers = [rule.identity for rule in self.rules if rule.identity is not None]
        return hashlib.sha256(json.dumps(answers, sort_keys=True).encode()).hexdigest()

    def text(self, prompt: str) -> tuple[str, tuple[ScriptedStep, ...]]:
        """Return the text after ``prompt`` with its steps; raise ``ScriptedError`` if no rule has one."""
        for rule in self.rules:
            if rule.text is None and not rule.steps:
                continue
            expand = rule.match(prompt)
            if expand is not None:
                text = "".join(step.token for step in rule.steps) if rule.text is None else expand(rule.text)
                return text, rule.steps
        raise ScriptedError(self._no_rule("text", prompt))

    def probability(self, prompt: str, continuation: str) -> Probabilities:
        """Return the probabilities of a continuation's tokens; raise ``ScriptedError`` if no rule has any."""
        for rule in self.rules:
            probability = rule.probability
            if isinstance(probability, Mapping):
                probability = probability.get(continuation.strip())
            if probability is not None and rule.match(prompt) is not None:
                return probability
        raise ScriptedError(self._no_rule("probability", prompt))

    def faults(self, prompt: str) -> tuple[ScriptRule, ...]:
        """Return the rules for ``prompt`` that have a fault, in order."""
        faulty = (rule for rule in self.rules if rule.error or rule.delay or rule.crash is not None)
        return tuple(rule for rule in faulty if rule.match(prompt) is not None)

    def _no_rule(self, key: str, prompt: str) -> str:
        shown = prompt if len(prompt) <= 200 else "..." + prompt[-197:]
        return f"{self.path}: no rule with `{key}` matches {shown!r}; a `default` would answer all others"


class Answers(Protocol):
    """Source of a scripted model's answers; a ``ScriptedError`` becomes a failed response."""

    def text(self, prompt: str) -> tuple[str, tuple[ScriptedStep, ...]]:
        """Return the text after ``prompt``, with its steps if it has any."""
        ...

    def probability(self, prompt: str, continuation: str) -> Probabilities:
        """Return the probabilities (0..1) of the tokens of ``continuation`` after ``prompt``."""
        ...

    def faults(self, prompt: str) -> Sequence[ScriptRule]:
        """Return the faults at ``prompt``, in order."""
        ...


class ScriptedModel:
    """Model with scripted answers; its tokens are words separated by spaces.

    Stop strings and ``max_new_tokens`` cut a scripted text as they cut a real model's. ``spec`` is how the
    user named the model. ``digest`` identifies the answers: models of one digest are one model.
    """

    def __init__(self, answers: Answers, *, spec: str, digest: str) -> None:
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

    def replanned(self) -> ScriptedModel:
        """Return the model itself: it has no batches that could be made otherwise."""
        return self

    def close(self) -> None:
        """Do nothing: a script holds no resources."""

    def _score(self, request: ScoreRequest) -> Scored | Failed:
        tokens = tuple(map(_token_id, request.continuation.split()))
        if not tokens:
            return Failed(error=f"the continuation {request.continuation!r} has no tokens")
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
            probabilities=given if isinstance(given, tuple) else (float(given),) * len(tokens),
            token_ids=tokens,
            prompt_tokens=len(prompt),
            prompt_digest=prompt_digest(prompt),
        )

    def _generate(self, request: GenerateRequest) -> Generated | Failed:
        prompt_text = text_of(request)
        try:
            self._suffer(prompt_text)
            text, scripted = self._answers.text(prompt_text)
            cut = min((text.find(stop) for stop in request.stop if stop in text), default=len(text))
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
        values: Probabilities = tuple(step.probability for step in scripted)
        if not scripted:
            try:
                values = self._answers.probability(prompt, " ".join(words))
            except ScriptedError:
                return None, None
        if not isinstance(values, tuple):
            return float(values), float(values)
        # Of a text that was cut short only the words that are left count.
        values = values[: len(words) or 1]
        return math.fsum(values) / len(values), values[0]

    def _steps(
        self, request: GenerateRequest, scripted: Sequence[ScriptedStep], words: Sequence[str]
    ) -> tuple[Step, ...]:
        if not scripted:
            scripted = [ScriptedStep(token=word, probability=self._first(request, word)) for word in words]
        steps = []
        for index, step in enumerate(scripted[: request.max_new_tokens]):
            token_id, watched = _token_id(step.token), step.watched
            if index >= len(request.watch):
                watched = None
            elif watched is None:
                watched = step.probability if request.watch[index] == token_id else 0.0
            steps.append(
                Step(token_id=token_id, token=step.token, probability=step.probability, watched=watched)
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
class ScriptedSpec:
    """Spec of the scripted model ``scripted/FILE``."""

    text: str
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
        raise ModelError(f"{text}: a script has no chat template; allowed is no --kb-apply-chat-template")
    name = text.removeprefix(_PREFIX) if text.startswith(_PREFIX) else ""
    if not name:
        raise ModelError(f"{text}: no script named; the form is scripted/FILE, a file of {_ENDINGS}")
    if model_args.strip():
        raise ModelError(
            f"{text}: found the arguments {model_args!r}; allowed are none: a script has no options"
        )
    return ScriptedSpec(text=text, path=Path(name).expanduser())


def read_script(path: Path) -> Script:
    """Read a script file.

    Raises :class:`ModelError` with file and line for another file format, an unknown key, a rule without
    answer and fault, a wrong regular expression, or a value of the wrong kind.
    """
    if path.suffix not in (".yaml", ".yml", ".jsonl"):
        raise ModelError(f"{path}: a script is a file of {_ENDINGS}; found {path.suffix or 'no ending'}")
    try:
        rules, default = _json_lines(path) if path.suffix == ".jsonl" else _yaml(path)
        script_rules = [_rule(node, _CONDITIONS) for node in rules]
        script_rules += [_rule(default, ())] if default is not None else []
    except SuiteError as error:
        raise ModelError(str(error)) from None
    if not script_rules:
        raise ModelError(f"{path}: a script needs `rules` or a `default`, and has neither")
    return Script(path=path, rules=tuple(script_rules))


def _yaml(path: Path) -> tuple[tuple[Node, ...], Node | None]:
    entries = read_document(path).keys("a script", ("rules", "default"))
    rules = entries["rules"].node.items("`rules`", "rules") if "rules" in entries else ()
    return rules, entries["default"].node if "default" in entries else None


def _json_lines(path: Path) -> tuple[tuple[Node, ...], Node | None]:
    rules: list[Node] = []
    default = None
    for line, row in json_rows(path, "one rule a line is needed"):
        if isinstance(row, SuiteError):
            raise row
        node = _located(path, line, row)
        if "default" not in row:
            rules.append(node)
        elif default is not None:
            raise node.error("a second default; the first is on line " + str(default.line))
        else:
            default = node.keys("the line of the default", ("default",))["default"].node
    return tuple(rules), default


def _located(path: Path, line: int, value: object) -> Node:
    if isinstance(value, dict):
        entries = {key: Entry(line=line, node=_located(path, line, item)) for key, item in value.items()}
        return Node(path=path, line=line, value=entries)
    if isinstance(value, list):
        return Node(path=path, line=line, value=tuple(_located(path, line, item) for item in value))
    assert value is None or isinstance(value, (str, int, float))
    return Node(path=path, line=line, value=value)


def _rule(node: Node, conditions: tuple[str, ...]) -> ScriptRule:
    what = "a rule" if conditions else "the default"
    entries = {key: entry.node for key, entry in node.keys(what, (*conditions, *_OUTCOMES)).items()}
    if conditions and len(entries.keys() & set(conditions)) != 1:
        raise node.error(
            f"a rule has one of {', '.join(conditions)}; found: {', '.join(entries) or 'nothing'}"
        )
    if not entries.keys() & set(_OUTCOMES):
        raise node.error(f"{what} needs one of {', '.join(_OUTCOMES)}")
    rule = ScriptRule(
        prompt=_text(entries, "prompt"),
        contains=_text(entries, "contains"),
        pattern=_pattern(entries["pattern"]) if "pattern" in entries else None,
        text=_text(entries, "text"),
        steps=tuple(map(_step, entries["steps"].items("`steps`", "steps"))) if "steps" in entries else (),
        probability=_probability(entries["probability"]) if "probability" in entries else None,
        error=entries["error"].text("`error`") if "error" in entries else "",
        delay=float(entries["delay"].number("`delay`", f"{DELAY}, in seconds", DELAY))
        if "delay" in entries
        else 0.0,
        crash=_exit_status(entries["crash"]) if "crash" in entries else None,
    )
    if rule.pattern is not None and rule.text is not None:
        _check_groups(entries["text"], rule.pattern, rule.text)
    return rule


def _text(entries: Mapping[str, Node], key: str) -> str | None:
    if key not in entries:
        return None
    value = entries[key].value
    if not isinstance(value, str) or (key in _CONDITIONS and not value):
        raise entries[key].wrong(f"`{key}`", "text" if key == "text" else "text, not empty")
    return value


def _pattern(node: Node) -> re.Pattern[str]:
    try:
        return re.compile(_text({"pattern": node}, "pattern") or "")
    except (re.error, OverflowError, RecursionError) as error:
        raise node.error(f"not a regular expression: {node.value!r} ({error})") from None


def _check_groups(node: Node, pattern: re.Pattern[str], text: str) -> None:
    try:
        # The template's groups are checked even if nothing matches.
        pattern.sub(text, "")
    except (re.error, IndexError) as error:
        raise node.error(f"`text` is filled from the pattern's groups, as re.sub does: {error}") from None


def _step(node: Node) -> ScriptedStep:
    entries = {
        key: entry.node
        for key, entry in node.keys("a step", ("token", "probability", "watched"), ("token",)).items()
    }
    token = entries["token"].value
    if not isinstance(token, str):
        raise entries["token"].wrong("`token`", "text")
    return ScriptedStep(
        token=token,
        probability=_share(entries["probability"]) if "probability" in entries else 1.0,
        watched=_share(entries["watched"]) if "watched" in entries else None,
    )


def _probability(node: Node) -> Probabilities | Mapping[str, Probabilities]:
    if isinstance(node.value, dict):
        return {name.strip(): _probabilities(entry.node) for name, entry in node.value.items()}
    return _probabilities(node)


def _probabilities(node: Node) -> Probabilities:
    if isinstance(node.value, tuple):
        return tuple(map(_share, node.items("`probability`", "probabilities")))
    return _share(node)


def _share(node: Node) -> float:
    """Return a probability; NaN plays a broken model."""
    value = node.value
    if isinstance(value, float) and math.isnan(value):
        return value
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1:
        raise node.wrong("a probability", "a number from 0 to 1, or .nan")
    return float(value)


def _exit_status(node: Node) -> int:
    """Return an exit status; ``true`` stands for the signal that ends a process at once."""
    if node.value is True:
        return -9
    if isinstance(node.value, bool) or not isinstance(node.value, int) or not 0 <= node.value <= 255:
        raise node.wrong("`crash`", "true, or an exit status from 0 to 255")
    return node.value


SCRIPTED = Backend(
    name="scripted",
    forms=("scripted/FILE",),
    args=(),
    parse=parse_scripted,
    check=lambda spec: read_script(spec.path),
    open=lambda spec, **_: load(spec),
    counter=lambda spec: WordCounter(),
)
