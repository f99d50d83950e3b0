"""Arguments of a model (``--kb-model-args``): ``key=value,key=value`` as lm-evaluation-harness has them.

``lm_eval_args.tsv`` has lm-eval's arguments that mean something else here, or nothing.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from pytest_kbrel.bounds import TOKENS, Bounds, shown
from pytest_kbrel.errors import ModelError, nearest
from pytest_kbrel.models.chat import ENABLE, MAX_THINKING_TOKENS, ChatArgs
from pytest_kbrel.records import record
from pytest_kbrel.resources import tsv_rows
from pytest_kbrel.untrusted import parse

_OPENED = re.compile(r"([^,=]*)=\s*(?=[\"'{\[])")
_NEXT = re.compile(r",|\s+(?=\w+=)")


def parse_args(model_args: str, allowed: Sequence[str]) -> dict[str, str]:
    """Read ``key=value,key=value``.

    A value in quotation marks may hold commas, and so may JSON, which one in braces or brackets must be.
    Raises :class:`ModelError` for a key that is not ``allowed``, has no value or is given twice, and for
    quotation marks that are not closed.
    """
    args = {}
    for part in _parts(model_args.strip()):
        if not part:
            continue
        key, equals, value = part.partition("=")
        key, value = key.strip(), value.strip()
        if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
            value = value[1:-1]
        if key not in allowed:
            raise ModelError(
                f"model-args: unknown key {key!r}; allowed: {', '.join(allowed)}{nearest(key, allowed)}"
            )
        if not equals or not value:
            raise ModelError(
                f"model-args: {key} has no value; the form is key=value,key=value"
            )
        if key in args:
            raise ModelError(f"model-args: {key} is given twice")
        args[key] = value
    return args


def join_args(args: Mapping[str, str]) -> str:
    """Return arguments as one text that :func:`parse_args` reads as the same ones."""
    return ",".join(f"{key}={_quoted(value)}" for key, value in args.items())


def require_auto(text: str, why: str, run: Mapping[str, str]) -> None:
    """Raise :class:`ModelError` where ``run`` tells the model ``text`` its device, dtype or batch size."""
    for key, value in run.items():
        if value != "auto":
            raise ModelError(
                f"{text}: {key.replace('_', ' ')} {value!r} {why}; allowed is auto"
            )


def flag(args: Mapping[str, str], key: str) -> bool | None:
    """Return an argument that is True or False, ``None`` without it; else raise :class:`ModelError`."""
    if key not in args:
        return None
    value = args[key].lower()
    if value not in ("true", "false", "1", "0"):
        raise ModelError(f"model-args: {key}={args[key]}; allowed is True or False")
    return value in ("true", "1")


def choice(args: Mapping[str, str], key: str, allowed: Collection[str]) -> str:
    """Return an argument that is one of ``allowed``, empty without it; else raise :class:`ModelError`."""
    value = args.get(key, "")
    if value and value not in allowed:
        raise ModelError(
            f"model-args: {key}={value:.60}; allowed: {', '.join(allowed)}{nearest(value, allowed)}"
        )
    return value


def json_object(args: Mapping[str, str], key: str) -> dict[str, Any]:
    """Return an argument that is a JSON object, empty without it; else raise :class:`ModelError`."""
    try:
        value = parse(args.get(key, "{}"))
    except ValueError as error:
        raise ModelError(
            f"model-args: {public(key, args[key])}: no JSON: {error}; the form is "
            '{"name": value}'
        ) from None
    if not isinstance(value, dict):
        raise ModelError(
            f"model-args: {public(key, args[key])}; allowed is a JSON object"
        )
    return value


def number(args: Mapping[str, str], key: str, bounds: Bounds, unit: str = "") -> Any:
    """Return an argument as a number within ``bounds``, ``None`` without it or for ``auto``.

    Raises :class:`ModelError` for anything else.
    """
    value = args.get(key, "auto")
    try:
        read = bounds.integer if bounds.whole else bounds.number
        return None if value == "auto" else read(value)
    except ValueError:
        raise ModelError(
            f"{key} {shown(value)}; allowed is {bounds}{unit and ', ' + unit}"
        ) from None


def _parts(text: str) -> Iterator[str]:
    """Yield the parts between commas, or blanks before the next key, that are outside of values."""
    start = 0
    while start < len(text):
        opened = _OPENED.match(text, start)
        end = start if opened is None else _end_of_value(text, opened)
        between = _NEXT.search(text, end)
        stop, after = between.span() if between else (len(text), len(text))
        yield text[start:stop].strip()
        start = after


def _end_of_value(text: str, opened: re.Match[str]) -> int:
    """Return the index behind a quoted value or JSON; errors name the key alone, the value may be a secret."""
    key, start = opened[1].strip(), opened.end()
    try:
        if text[start] in "\"'":
            return text.index(text[start], start + 1) + 1
        return json.JSONDecoder().raw_decode(text, start)[1]
    except (ValueError, RecursionError) as error:
        if text[start] == "[":
            # A mark of thoughts, such as [/THINK].
            return start
        why = f"no JSON: {error}"
        if text[start] in "\"'":
            why = f"the quotation mark {text[start]} is not closed"
        raise ModelError(f"model-args: {key}: {why}") from None


def _is_json(value: str) -> bool:
    try:
        return value[0] in "{[" and bool(parse(value))
    except ValueError:
        return False


def _quoted(value: str) -> str:
    if not re.search(r"[,\s\"']", value) or _is_json(value):
        return value
    mark = "'" if '"' in value else '"'
    return f"{mark}{value}{mark}"


@record
class ForeignArgument:
    """Argument of lm-eval without an effect of its own: ``instead`` says what happens, or why it is refused.

    A value that matches ``same`` as a whole (a regular expression, in lower case) asks for what is done
    anyway. One that matches ``refused`` is an error, and any other gets a note.
    """

    same: str
    refused: str
    instead: str


LM_EVAL = defaultdict[str, dict[str, ForeignArgument]](dict)
"""By backend and name: arguments of lm-eval's models that have another counterpart here, or none.
``compile`` is lighteval's."""
for _backend, _key, _same, _refused, _instead in tsv_rows("models/lm_eval_args.tsv"):
    LM_EVAL[_backend][_key] = ForeignArgument(
        same=_same, refused=_refused, instead=_instead
    )

_SECRET = ("auth_token", "headers")


def public(key: str, value: str) -> str:
    """Return an argument as a message may show it: without its value where that may be a secret."""
    return f"{key}=…" if key in _SECRET or "@" in value else f"{key}={value:.60}"


def parse_backend_args(
    model_args: str,
    own: Sequence[str],
    backend: str,
    aliases: Mapping[str, str] = MappingProxyType({}),
) -> tuple[dict[str, str], list[str]]:
    """Return the arguments with the keys ``own``, and a note on each of lm-eval's that has no effect.

    A string that was written for lm-eval works unchanged, ``None`` being the default; ``aliases`` are lm-eval's
    words for some keys. Raises :class:`ModelError` as :func:`parse_args`, for two words for one thing, and for
    an argument that would change the figures.
    """
    foreign = LM_EVAL[backend]
    effective = {}
    notes = []
    parsed = parse_args(model_args, (*own, *foreign))
    given = {key: value for key, value in parsed.items() if value.lower() != "none"}
    for alias, key in aliases.items():
        if {alias, key} <= given.keys():
            raise ModelError(
                f"model-args: {alias} and {key} are one thing; give one of them"
            )
    for key, value in given.items():
        if key not in foreign:
            effective[aliases.get(key, key)] = value
            continue
        rule, low = foreign[key], value.lower()
        if re.fullmatch(rule.same, low):
            continue
        argument = public(key, value)
        if rule.refused and re.fullmatch(rule.refused, low):
            raise ModelError(f"model-args: {argument} is refused: {rule.instead}")
        notes.append(f"model-args: {argument} is not used: {rule.instead}")
    return effective, notes


CHAT_ARGS = (
    "system_instruction",
    "enable_thinking",
    "chat_template_args",
    "think_end_token",
    "max_thinking_tokens",
)
"""The keys of ``--kb-model-args`` that say how prompts become messages; the first four are lm-eval's."""


# What a template is filled in with by us, or by transformers, and is no variable of it.
_OURS = {
    *("add_generation_prompt", "chat_template", "continue_final_message"),
    *("conversation", "messages", "tokenize"),
}


def parse_chat_args(args: Mapping[str, str]) -> ChatArgs:
    """Read the keys of :data:`CHAT_ARGS`; others are left alone.

    Raises :class:`ModelError` for template arguments that are no JSON object, for two values of
    ``enable_thinking``, and for a text that is blank.
    """
    variables = json_object(args, "chat_template_args")
    if ours := ", ".join(sorted(_OURS & variables.keys())):
        raise ModelError(
            f"model-args: chat_template_args: {ours} is no variable of a chat template"
        )
    thinking = flag(args, ENABLE)
    inside = variables.pop(ENABLE, None)
    if inside is not None and not isinstance(inside, bool):
        raise ModelError(
            f"model-args: chat_template_args: {ENABLE} is {inside!r}; allowed is true or false"
        )
    if None not in (thinking, inside) and thinking != inside:
        raise ModelError(
            f"model-args: {ENABLE}={thinking}, and chat_template_args says {inside}; give one of them"
        )
    for key in ("system_instruction", "think_end_token"):
        if key in args and not args[key].strip():
            raise ModelError(
                f"model-args: {key} is blank; allowed is a text, or no {key}"
            )
    return ChatArgs(
        system_instruction=args.get("system_instruction", ""),
        enable_thinking=inside if thinking is None else thinking,
        template_args=json.dumps(variables, sort_keys=True) if variables else "",
        think_end_token=args.get("think_end_token", ""),
        max_thinking_tokens=number(
            args,
            "max_thinking_tokens",
            TOKENS,
            "of tokens; enable_thinking=False asks for answers without a thought",
        )
        or MAX_THINKING_TOKENS,
    )
