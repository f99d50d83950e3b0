"""Script files: rules from prompts to answers, for the scripted model.

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
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from pytest_kbrel.bounds import DELAY, SHARE_OR_NONE, Bounds
from pytest_kbrel.errors import ModelError, SuiteError
from pytest_kbrel.facts.located import Node, json_rows, read_document
from pytest_kbrel.records import record

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
        rules, default = _json_lines(path) if path.suffix == ".jsonl" else _yaml(path)
        script_rules = [_rule(node, _CONDITIONS) for node in rules]
        script_rules += [_rule(default, ())] if default is not None else []
    except SuiteError as error:
        raise ModelError(str(error)) from None
    if not script_rules:
        raise ModelError(
            f"{path}: a script needs `rules` or a `default`, and has neither"
        )
    return Script(path=path, rules=tuple(script_rules))


def _yaml(path: Path) -> tuple[tuple[Node, ...], Node | None]:
    entries = read_document(path).keys("a script", ("rules", "default"))
    rules = entries["rules"].items("`rules`", "rules") if "rules" in entries else ()
    return rules, entries.get("default")


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
    return _compiled(node, node.value) if key == "pattern" else node.value


def _compiled(node: Node, text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        raise node.error(f"not a regular expression: {text!r} ({error})") from None


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
