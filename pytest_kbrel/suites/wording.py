"""Keys of suite files that word a probe's questions: prompt, system message, answer cue, stop strings."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_kbrel.catalogue.probes import Probe
from pytest_kbrel.errors import nearest
from pytest_kbrel.facts.located import Entry, Node
from pytest_kbrel.records import template_error

PROMPT_KEYS = ("setting", "text")
Value = str | int | list[str]


def read_wording(probe: Probe, keys: Mapping[str, Entry]) -> dict[str, Value]:
    """Return the settings that the keys of a probe make; raises ``SuiteError`` with the line of a mistake."""
    settings: dict[str, Value] = {}
    for key in probe.wording:
        if key not in keys:
            continue
        node, what = keys[key].node, f"{key} of {probe.name}"
        if key == "stop":
            settings[key] = _stop(node, what)
        elif key in ("system", "answer_cue"):
            settings[key] = _text(node, what)
        elif key == "prompt" and probe.prompts:
            settings |= _prompt(node, what, probe)
        else:
            settings["prompt_text" if key == "prompt" else key] = _template(node, what, probe, key)
    return _without_own(probe, settings, keys)


def _without_own(probe: Probe, settings: dict[str, Value], keys: Mapping[str, Entry]) -> dict[str, Value]:
    """Leave out a stop and a cue that are the probe's own: whoever writes them down asks nothing else."""
    published = "variant" in keys and keys["variant"].node.value == "published"
    if settings.get("stop") == ["\n"] and not published:
        del settings["stop"]
    texts = [str(settings[name]) for name in ("prompt_text", "choice_prompt") if name in settings]
    if settings.get("answer_cue") == probe.cue and (
        not probe.cue or all(text.endswith("}") for text in texts)
    ):
        del settings["answer_cue"]
    return settings


def _prompt(node: Node, what: str, probe: Probe) -> dict[str, Value]:
    """Read the name of a setting, a text, or both in a mapping."""
    if isinstance(node.value, dict):
        keys = node.keys(what, PROMPT_KEYS)
        settings: dict[str, Value] = {}
        if "setting" in keys:
            settings["prompt"] = keys["setting"].node.choice(f"setting of {what}", probe.prompts)
        if "text" in keys:
            settings["prompt_text"] = _template(keys["text"].node, f"text of {what}", probe, "prompt")
        return settings
    if node.value in probe.prompts:
        return {"prompt": str(node.value)}
    # A single word without a placeholder is a misspelt name rather than a text.
    if (isinstance(node.value, str) and len(node.value.split()) > 1) or "{" in str(node.value):
        return {"prompt_text": _template(node, what, probe, "prompt")}
    hint = nearest(node.value, probe.prompts) if isinstance(node.value, str) else ""
    names = ", ".join(probe.prompts)
    allowed = f"one of {names}, a text with {{question}} or {{setting: {probe.prompts[0]}, text: ...}}"
    raise node.wrong(what, allowed, hint)


def _template(node: Node, what: str, probe: Probe, key: str) -> str:
    text = _text(node, what)
    needed, allowed = probe.places[key]
    if wrong := template_error(text, needed, allowed):
        raise node.error(f"{what}: {wrong}; found {text!r}")
    return text


def _text(node: Node, what: str) -> str:
    """Return a text of any number of lines, without the white space around it; it may be empty."""
    if not isinstance(node.value, str):
        hint = "" if node.value is None else " (put it in quotes if text is meant)"
        raise node.wrong(what, "text", hint)
    return node.value.strip()


def _stop(node: Node, what: str) -> list[str]:
    allowed = "a list of texts, none of them empty"
    nodes = node.value if isinstance(node.value, tuple) else (node,)
    for one in nodes:
        if not isinstance(one.value, str) or not one.value:
            raise one.wrong(what if one is node else f"each of {what}", allowed)
    return [str(one.value) for one in nodes]
