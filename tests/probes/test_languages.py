"""Instructions and examples in the language of the fact."""

from __future__ import annotations

import pytest

from pytest_kbrel.judges.rules import judge
from pytest_kbrel.probes import prompts
from pytest_kbrel.probes.base import choice_request, question_request
from pytest_kbrel.records import (
    DEFAULT_LANGUAGE,
    LANGUAGES,
    HeadToTailSettings,
    ReliabilitySettings,
)
from pytest_kbrel.resources import read_yaml

OTHERS = [of for of in LANGUAGES if of != DEFAULT_LANGUAGE]
OWN = (prompts.BRIEF, prompts.CONCISE, prompts.QA, prompts.CHOICE, "Answer:", "unsure")


@pytest.mark.parametrize("language", OTHERS)
def test_nothing_of_a_prompt_is_in_english(language: str) -> None:
    sentences = read_yaml("probes/languages.yaml")[language]["sentences"]
    for sentence in sentences:
        assert any(sentence in text for text in OWN)
    examples, _ = prompts.shots_in_language(language)
    for settings in (HeadToTailSettings, ReliabilitySettings):
        for prompt in ("few-shot", "zero-shot", "chat"):
            made = settings(prompt=prompt, instructions=language)
            asked = question_request(made, "?", examples)
            assert not any(one in f"{asked.system}{asked.prompt}" for one in sentences)
    made = ReliabilitySettings(instructions=language)
    chosen = choice_request(made, "?", ["Lima", "Quito"])
    assert not any(one in chosen.prompt for one in sentences)


@pytest.mark.parametrize("language", OTHERS)
def test_the_word_for_unsure_is_none_for_an_answer(language: str) -> None:
    word = prompts.translated(prompts.UNSURE, language)
    assert judge(word, ["Lima"], language=language).rule == "unsure"
