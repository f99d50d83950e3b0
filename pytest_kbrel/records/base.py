"""What all records share: how they are declared, and the words they use."""

from __future__ import annotations

import typing
from dataclasses import dataclass
from typing import Literal, TypeVar, dataclass_transform

T = TypeVar("T")

ProbeName = Literal["monitor", "head_to_tail", "reliability"]
Label = Literal["correct", "wrong", "uninformative"]
Rule = Literal["min", "max", "max_drop", "recovery", "above_control"]
Judgement = Literal["pass", "fail", "inconclusive", "not comparable", "no baseline", "invalid"]
AnswerType = Literal["number", "person", "time", "location", "other"]
Bucket = Literal["head", "torso", "tail"]
PROBES: tuple[ProbeName, ...] = typing.get_args(ProbeName)
RULES: tuple[Rule, ...] = typing.get_args(Rule)
ANSWER_TYPES: tuple[AnswerType, ...] = typing.get_args(AnswerType)
BUCKETS: tuple[Bucket, ...] = typing.get_args(Bucket)


@dataclass_transform(frozen_default=True, kw_only_default=True)
def record(cls: type[T]) -> type[T]:
    """Make a class a frozen, slotted, keyword-only dataclass."""
    return dataclass(frozen=True, slots=True, kw_only=True)(cls)
