"""From a question to a request, in the wording of the suite or, without one, that of the paper."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_kbrel.catalogue.probes import probe_of_settings
from pytest_kbrel.errors import SuiteError
from pytest_kbrel.probes.prompts import CHOICE, OWN_TEXTS, QA, lettered
from pytest_kbrel.probes.templates import Examples, Template, template
from pytest_kbrel.records import (
    ExampleWording,
    GenerateRequest,
    ProbeSettings,
    ReliabilitySettings,
    ScoreRequest,
    template_error,
)


def template_of(settings: ProbeSettings) -> Template:
    """Return the text around each question of a probe: the suite's, or the probe's own."""
    probe = probe_of_settings(settings)
    own = OWN_TEXTS.get((probe.name, getattr(settings, "prompt", ""))) or OWN_TEXTS.get((probe.name, ""), QA)
    return template(settings.prompt_text or own, settings.answer_cue, probe.cue)


def question_request(settings: ProbeSettings, question: str, examples: Examples = ()) -> GenerateRequest:
    """Return the request that asks a question behind (question, answer) examples, in text or as turns."""
    found = template_of(settings)
    turns, prompt = (
        found.in_turns(question, examples)
        if isinstance(settings, ExampleWording) and settings.example_style == "turns"
        else ((), found.in_text(question, examples))
    )
    return request_of(settings, prompt, turns)


def choice_request(settings: ReliabilitySettings, question: str, options: Sequence[str]) -> GenerateRequest:
    """Return the request that asks a multiple-choice question with lettered options."""
    found = template(settings.choice_prompt or CHOICE, settings.answer_cue)
    return request_of(settings, found.question(question, lettered(options)))


def request_of(
    settings: ProbeSettings, prompt: str, turns: tuple[tuple[str, str], ...] = ()
) -> GenerateRequest:
    """Return the request that asks what a prompt says."""
    return GenerateRequest(
        prompt=prompt,
        max_new_tokens=settings.max_new_tokens,
        stop=settings.own_stop if settings.stop is None else settings.stop,
        system=settings.system,
        turns=turns,
    )


def score_request(settings: ProbeSettings, prompt: str, answer: str) -> ScoreRequest:
    """Return the request that asks how probable an answer is behind a prompt."""
    return ScoreRequest(prompt=prompt, continuation=answer, system=settings.system)


def check_wording(settings: ProbeSettings) -> None:
    """Raise ``SuiteError`` where a text has not the places that are to be filled in, or a stop is empty."""
    for key, (needed, allowed) in probe_of_settings(settings).places.items():
        name = "prompt_text" if key == "prompt" else key
        text = getattr(settings, name)
        if text and (wrong := template_error(text, needed, allowed)):
            raise SuiteError(f"{name}: {wrong}; found {text!r}")
    if "" in (settings.stop or ()):
        raise SuiteError("stop: found an empty text; allowed: texts that are not empty")
