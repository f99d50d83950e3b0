"""The ``record`` decorator, and the literals and constants that records share."""

from __future__ import annotations

import typing
from dataclasses import dataclass
from typing import Literal, TypeVar, dataclass_transform

T = TypeVar("T")

Label = Literal["correct", "wrong", "uninformative"]
Rule = Literal["min", "max", "max_drop", "recovery", "above_control"]
Judgement = Literal["pass", "fail", "inconclusive", "not comparable", "no baseline", "invalid", "not run"]
AnswerType = Literal["number", "person", "time", "location", "other"]
Bucket = Literal["head", "torso", "tail"]
# Cases with these verdicts have no figures.
UNMEASURED: tuple[Judgement, ...] = ("invalid", "not run")
JUDGEMENTS: tuple[Judgement, ...] = typing.get_args(Judgement)
RULES: tuple[Rule, ...] = typing.get_args(Rule)
ANSWER_TYPES: tuple[AnswerType, ...] = typing.get_args(AnswerType)
BUCKETS: tuple[Bucket, ...] = typing.get_args(Bucket)
# The kinds of uninformative answers: Reliable KB, section 3.3. The kind is the rule of the verdict.
UNINFORMATIVE = ("repetition", "none", "unsure")
# The languages that the judge has rules for; facts that state none are in English.
DEFAULT_LANGUAGE = "en"
LANGUAGES = (DEFAULT_LANGUAGE, "ar", "de", "es", "fr", "hi", "it", "ja", "pt", "ru", "zh")
# As in BCP 47: "de", "pt-BR".
LANGUAGE_TAG = r"[a-z]{2,3}(-[A-Za-z0-9]{2,8})*"
# Who is asked where a run compares with a model of its own: see ``Ask.to``.
BASELINE = "baseline"
# Baselines of these names are what a paper prints, not runs.
PUBLISHED = "published/"


def is_published(baseline: str) -> bool:
    """Return True if the name of a baseline stands for a paper's figures."""
    return f"{baseline}/".startswith(PUBLISHED)


def base_language(tag: str) -> str:
    """Return the language of a tag: "pt" for "pt-BR"; English where nothing is stated."""
    return tag.partition("-")[0] or DEFAULT_LANGUAGE


@dataclass_transform(frozen_default=True, kw_only_default=True)
def record(cls: type[T]) -> type[T]:
    """Make a class a frozen, slotted, keyword-only dataclass."""
    return dataclass(frozen=True, slots=True, kw_only=True)(cls)
