"""Differences between a run and its baseline: those that must not be, and those that may."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import datetime

from pytest_kbrel.baselines.base import Baseline
from pytest_kbrel.errors import count
from pytest_kbrel.records import (
    OWN_WORDING,
    WORDING_FIELDS,
    Digest,
    Fingerprint,
    Run,
    read_digest,
)

# What two models must share for any case to be comparable; prompts are compared fact by fact.
MUST_BE_EQUAL = ("chat_template", "scoring_version", "decoding")

# What makes two judges one. Where a judge runs, and under which version of its library, does not matter; a
# judge behind a server has no digests and is known by its name, its ``architecture``.
SAME_JUDGE = (
    "backend",
    "architecture",
    "weights_digest",
    "tokenizer_digest",
    "derived",
    "decoding",
    "chat_template",
    "prompting",
    "scoring_version",
)

# What stands in a run's environment and is no version of anything.
KEPT = (
    "answers_asked",
    "answers_reused",
    "answers_store",
    "answers_not_kept",
    "answers_resumed",
    "tokens_spent",
    "model_load_seconds",
    "engine",
    "model_notes",
)

_NO_VERSIONS = ("commit", "workers", "helpers_asked", "helpers_reused", *KEPT)
OLD_DAYS = 180

# A fact's id with the digests of candidate and baseline.
Asked = tuple[str, str, str]
# A setting with what candidate and baseline have of it.
Differing = tuple[str, str, str]
# What a digest covers, in words, with the fields that it has of it.
_PARTS = (
    ("the token ids of the prompts", ("prompts", "count")),
    ("settings", ("settings",)),
    ("accepted answers", ("accepted",)),
    ("the draws (seed, distractors, contexts)", ("draws",)),
)
_LONGEST = 60


def judge_differences(
    ours: Fingerprint | None, theirs: Fingerprint | None
) -> tuple[str, ...]:
    """Return in words why two judges are not the same one, nothing if they are; ``None`` stands for rules."""
    if ours is not None and theirs is not None:
        return helper_differences("judge", ours, theirs)
    names = [judge.spec if judge else "rules" for judge in (ours, theirs)]
    return () if ours is theirs else (f"judge ({names[0]} and {names[1]})",)


def helper_differences(
    role: str, ours: Fingerprint, theirs: Fingerprint
) -> tuple[str, ...]:
    """Return in words why two helping models are not the same one, nothing if they are."""
    differing = ours.differences(theirs)
    words = ", ".join(differing[name] for name in SAME_JUDGE if name in differing)
    return (f"{role} ({ours.spec} and {theirs.spec}: {words})",) if words else ()


def same_draw(baseline: Baseline | None, limit: object, seed: object) -> bool:
    """Return True if a run of this limit and seed (``None``: not given) draws its facts as the baseline did."""
    drawn = {} if baseline is None else dict(baseline.settings)
    given = (("limit", limit), ("seed", seed))
    return all(
        drawn.get(name, "") == ("" if value is None else str(value))
        for name, value in given
    )


def listed_differences(run: Run, baseline: Baseline) -> tuple[str, ...]:
    """Return what differs between a run and a baseline and may, in words: the run's first, then the other's.

    Model, versions, and the baseline's age where it is older than :data:`OLD_DAYS`.
    """
    if baseline.paper:
        return ()
    differences: list[str] = []
    if run.model is not None and baseline.model is not None:
        differences += (
            words
            for name, words in run.model.differences(baseline.model).items()
            if name not in MUST_BE_EQUAL
        )
    ours = {"pytest-kbrel": run.kbrel_version, **dict(run.environment)}
    theirs = {"pytest-kbrel": baseline.kbrel_version, **dict(baseline.versions)}
    differences += [
        f"{name} ({ours[name]} and {theirs[name]})"
        for name in sorted(ours.keys() & theirs.keys())
        if name not in _NO_VERSIONS and theirs[name] and ours[name] != theirs[name]
    ]
    # A time that cannot be read tells no age.
    with suppress(ValueError, TypeError):
        now, then = map(datetime.fromisoformat, (run.created, baseline.created))
        if (days := (now - then).days) > OLD_DAYS:
            differences.append(
                f"age: the baseline was blessed {days} days before this run; bless again when you can"
            )
    return tuple(differences)


def setting_differences(
    ours: Iterable[tuple[str, str]], theirs: Iterable[tuple[str, str]]
) -> tuple[Differing, ...]:
    """Return the settings that both have and that differ: (name, ours, theirs).

    A wording that one of them does not have is the probe's own.
    """
    before, now = dict(theirs), dict(ours)
    differing = []
    for name in dict.fromkeys([*now, *before]):
        other = OWN_WORDING if name in WORDING_FIELDS else None
        mine, given = now.get(name, other), before.get(name, other)
        if mine is not None and given is not None and mine != given:
            differing.append((name, mine, given))
    return tuple(differing)


def prompt_differences(
    asked: Sequence[Asked],
    settings: Sequence[Differing] = (),
    *,
    another_tokenizer: bool = False,
) -> str:
    """Return in words what differs in the way ``asked`` facts were asked, nothing where nothing does.

    ``settings`` are the differing ones of the two cases. ``another_tokenizer``: the two models have not the
    same one, which then is why token ids differ.
    """
    readable = [
        (fact, mine, given)
        for fact, ours, theirs in asked
        if (mine := read_digest(ours)) is not None
        and (given := read_digest(theirs)) is not None
    ]
    differences = _bos(readable)
    for what, parts in _PARTS:
        facts = [
            fact
            for fact, ours, theirs in readable
            if any(getattr(ours, part) != getattr(theirs, part) for part in parts)
        ]
        if not facts:
            continue
        words = f"{what} on {len(facts)} of {count(len(readable), 'fact')} (first: {facts[0]})"
        if parts == ("settings",) and settings:
            listed = (
                f"{name} ({_shown(mine)} and {_shown(given)})"
                for name, mine, given in settings
            )
            words = f"{what} {', '.join(listed)}"
        elif "prompts" in parts and another_tokenizer:
            words += ": another tokenizer"
        differences.append(words)
    readable_facts = {fact for fact, _, _ in readable}
    unknown = [
        fact
        for fact, ours, theirs in asked
        if ours != theirs and fact not in readable_facts
    ]
    if unknown:
        differences.append(
            f"the way {len(unknown)} of {count(len(asked), 'fact')} were asked (prompts, settings, accepted answers "
            f"or draws; first: {unknown[0]})"
        )
    return "; ".join(differences)


def _shown(value: str) -> str:
    return value if len(value) <= _LONGEST else f"{value[: _LONGEST - 3]}..."


def _bos(digests: Sequence[tuple[str, Digest, Digest]]) -> list[str]:
    prompts = sum(ours.count for _, ours, _ in digests)
    same = [(ours, theirs) for _, ours, theirs in digests if ours.count == theirs.count]
    missing = sum(max(0, theirs.bos - ours.bos) for ours, theirs in same)
    added = sum(max(0, ours.bos - theirs.bos) for ours, theirs in same)
    counts = (("missing", missing), ("added", added))
    return [
        f"BOS {word} on {number} of {prompts} prompts"
        for word, number in counts
        if number
    ]
