"""Answers in eleven languages, written by hand, with what each of them is: a file a language in ``phrases/``.

In each file the ``first`` half was written before the rules of its language and the ``second`` after them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from pytest_kbrel.judges.rules import judge

FOLDER = Path(__file__).parent / "phrases"
LANGUAGES = tuple(sorted(path.stem for path in FOLDER.glob("*.yaml")))
HALVES = ("first", "second")
# What the answers of a group must be judged.
EXPECTED = {
    "abstains": "uninformative",
    "denies": "uninformative",
    "invents": "wrong",
    "right": "correct",
    "wrong": "wrong",
}
# Groups whose question has no answer.
UNSEEN = ("denies", "invents")
DECLINING = ("abstains", "denies")
OTHERS = ("invents", "right", "wrong")


@dataclass(frozen=True)
class Phrase:
    language: str
    half: str
    group: str
    question: str
    accepted: tuple[str, ...]
    answer: str

    @property
    def judged(self) -> str:
        return judge(
            self.answer, self.accepted, self.question, language=self.language
        ).label

    @property
    def recognised(self) -> bool:
        return self.judged == EXPECTED[self.group]


@lru_cache
def _file(language: str) -> Any:
    return yaml.safe_load((FOLDER / f"{language}.yaml").read_text(encoding="utf-8"))


def phrases(language: str, half: str) -> Iterator[Phrase]:
    data = _file(language)
    for group, entries in data[half].items():
        for entry in entries:
            question, accepted, answer = data["question"], data["answers"], entry
            if group in UNSEEN:
                question, accepted = data["unseen"], []
            if isinstance(entry, list):
                question, accepted, answer = entry
            accepted = tuple(str(gold) for gold in accepted)
            yield Phrase(language, half, group, question, accepted, str(answer))


def counted(language: str, half: str, groups: Sequence[str]) -> tuple[int, int]:
    """Return how many answers of some groups are judged as they should be, and how many there are."""
    result = [
        phrase.recognised
        for phrase in phrases(language, half)
        if phrase.group in groups
    ]
    return sum(result), len(result)
