"""From a question to a request, in the wording of the suite or, without one, that of the paper."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_kbrel.errors import SuiteError
from pytest_kbrel.probes.prompts import BRIEF, CHOICE, CONCISE, QA, lettered
from pytest_kbrel.probes.templates import QUESTION, Examples, Template, template
from pytest_kbrel.records import (
    GenerateRequest,
    HeadToTailSettings,
    MonitorSettings,
    ReliabilitySettings,
    ScoreRequest,
    Settings,
    template_error,
)

_STOP = ("\n",)


def template_of(settings: Settings) -> Template:
    """Return the text around each question of a probe; MONITOR's own has no words but the frame's."""
    if isinstance(settings, MonitorSettings):
        return template(settings.prompt_text or QUESTION, settings.answer_cue, "")
    own = QA
    if isinstance(settings, HeadToTailSettings):
        own = CONCISE if settings.prompt == "concise" else BRIEF
    return template(settings.prompt_text or own, settings.answer_cue)


def stops_of(settings: Settings) -> tuple[str, ...]:
    """Return where an answer ends: at the first line break, unless the suite says otherwise.

    The published variant of MONITOR cuts its answers itself.
    """
    if settings.stop is not None:
        return settings.stop
    return () if isinstance(settings, MonitorSettings) and settings.variant == "published" else _STOP


def question_request(
    settings: HeadToTailSettings | ReliabilitySettings, question: str, examples: Examples = ()
) -> GenerateRequest:
    """Return the request that asks a question behind (question, answer) examples, in text or as turns."""
    found = template_of(settings)
    turns, prompt = (
        found.in_turns(question, examples)
        if settings.example_style == "turns"
        else ((), found.in_text(question, examples))
    )
    return request_of(settings, prompt, turns)


def choice_request(settings: ReliabilitySettings, question: str, options: Sequence[str]) -> GenerateRequest:
    """Return the request that asks a multiple-choice question with lettered options."""
    found = template(settings.choice_prompt or CHOICE, settings.answer_cue)
    return request_of(settings, found.question(question, lettered(options)))


def request_of(settings: Settings, prompt: str, turns: tuple[tuple[str, str], ...] = ()) -> GenerateRequest:
    """Return the request that asks what a prompt says."""
    return GenerateRequest(
        prompt=prompt,
        max_new_tokens=settings.max_new_tokens,
        stop=stops_of(settings),
        system=settings.system,
        turns=turns,
    )


def score_request(settings: Settings, prompt: str, answer: str) -> ScoreRequest:
    """Return the request that asks how probable an answer is behind a prompt."""
    return ScoreRequest(prompt=prompt, continuation=answer, system=settings.system)


def check_wording(settings: Settings) -> None:
    """Raise ``SuiteError`` where a text has not the places that are to be filled in, or a stop is empty."""
    texts = {"prompt_text": settings.prompt_text or QUESTION}
    if isinstance(settings, ReliabilitySettings):
        texts["choice_prompt"] = settings.choice_prompt or CHOICE
    for name, text in texts.items():
        needed = ("question", "options") if name == "choice_prompt" else ("question",)
        shows = name == "prompt_text" and not isinstance(settings, MonitorSettings)
        if wrong := template_error(text, needed, ("examples",) if shows else ()):
            raise SuiteError(f"{name}: {wrong}; found {text!r}")
    if "" in (settings.stop or ()):
        raise SuiteError("stop: found an empty text; allowed: texts that are not empty")
