"""Names of slices: the groups of facts that a probe is measured on, one pytest item each."""

from __future__ import annotations

import re
from typing import Literal

from pytest_kbrel.records import ANSWER_TYPES, ProbeName, record

# What a probe's slices are: the relations of a suite, the popularity buckets of its domains, or seen and
# unseen knowledge in each prompt setting.
Slicing = Literal["relation", "bucket", "knowledge"]
# Slices of one kind have the same metrics.
SliceKind = Literal[ProbeName, "seen", "unseen"]

KINDS: tuple[Literal["seen", "unseen"], ...] = ("seen", "unseen")
PROMPTS = ("zero-shot", "four-shot", "four-shot-2")
SLICE_BY = ("none", "answer_type", "dataset")
_RELIABILITY_SLICE = re.compile(rf"({'|'.join(KINDS)})(?:-(.+?))?-({'|'.join(PROMPTS)})")
# The most popular tenth of a domain's head; the other buckets share out all facts.
TOP10 = "top10"


@record
class ReliabilitySlice:
    """What the name of a reliability slice says; ``group`` is empty where the suite makes no groups."""

    kind: str
    group: str
    prompt: str


def reliability_slice(name: str) -> ReliabilitySlice | None:
    """Take a slice's name apart: seen or unseen, group if any, prompt; ``None`` where it is no such name."""
    match = _RELIABILITY_SLICE.fullmatch(name)
    if match is None:
        return None
    kind, group, prompt = match.groups()
    return ReliabilitySlice(kind=kind, group=group or "", prompt=prompt)


def slice_name(kind: str, group: str, prompt: str) -> str:
    """Return the name of a reliability slice."""
    return "-".join(part for part in (kind, group, prompt) if part)


def reliability_slices(slice_by: str) -> tuple[str, ...]:
    """Return the slices that can be known without the facts: with datasets, those that belong to none."""
    groups: tuple[str, ...] = ANSWER_TYPES if slice_by == "answer_type" else ("",)
    return tuple(slice_name(kind, group, prompt) for prompt in PROMPTS for group in groups for kind in KINDS)
