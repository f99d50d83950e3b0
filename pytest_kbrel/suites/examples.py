"""The worked examples that few-shot questions choose theirs from."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Sequence

from pytest_kbrel.facts.shots_file import read_shots
from pytest_kbrel.facts.unseen import unseen_examples
from pytest_kbrel.records import Fact, ProbeSettings, Shot
from pytest_kbrel.suites.dataset import World
from pytest_kbrel.suites.parse import WrittenProbe


def example_repository(
    written: WrittenProbe,
    seen: Sequence[Fact],
    asked: Sequence[Fact],
    world: World,
    seed: int,
    settings: Collection[ProbeSettings],
) -> tuple[Shot, ...]:
    """Return the examples for the ``settings`` of a suite's slices; none where all are zero-shot.

    They come from the file the suite names, or are made: of the ``seen`` facts those that are not ``asked``
    first, in an order by seed and fact id, and unanswerable questions of other invented names than the
    suite's own. Raises ``SuiteError`` when there are too few for some setting.
    """
    if not any(sum(setting.shown) for setting in settings):
        return ()
    wanted = written.shots
    if wanted.file is not None:
        shots = read_shots(wanted.file)
    else:
        after = written.unseen.expires.year if written.unseen is not None else None
        avoid = [fact.question for fact in asked if fact.question is not None]
        unseen = unseen_examples(world.facts, count=wanted.unseen, seed=seed, after=after, avoid=avoid)
        shots = (
            *_seen_shots(seen, {fact.id for fact in asked}, world, wanted.seen, seed),
            *(
                Shot(
                    question=fact.question or "",
                    answer=None,
                    subject=fact.subject,
                    valid_until=fact.valid_until,
                )
                for fact in unseen
            ),
        )
    answered = sum(shot.answer is not None for shot in shots)
    for setting in settings:
        prompt = getattr(setting, written.probe.overall_by)
        for need, have, sort in zip(
            setting.shown, (answered, len(shots) - answered), ("with", "without"), strict=True
        ):
            if have < need:
                raise written.entry.error(
                    f"{prompt} needs at least {need} examples {sort} an answer, found {have}; "
                    "allowed: more facts, or more examples under 'shots'"
                )
    return shots


def _seen_shots(
    facts: Iterable[Fact], asked: Collection[str], world: World, count: int, seed: int
) -> tuple[Shot, ...]:
    def rank(fact: Fact) -> tuple[bool, bytes]:
        return fact.id in asked, hashlib.sha256(f"{seed}\0shots\0{fact.id}".encode()).digest()

    shots: dict[str, Shot] = {}
    for fact in sorted(facts, key=rank):
        if len(shots) == count:
            break
        question = question_text(fact, world)
        if fact.object is not None and question and not fact.duplicate_of:
            shots.setdefault(question, Shot(question=question, answer=fact.object, subject=fact.subject))
    return tuple(shots.values())


def question_text(fact: Fact, world: World, subject: str | None = None) -> str:
    """Return the question about a fact, or the same about another ``subject``; empty where there is none."""
    if fact.question is not None:
        if subject is None:
            return fact.question
        return fact.question.replace(fact.subject, subject) if fact.subject in fact.question else ""
    relation = world.relations.get(fact.relation)
    if relation is None or not relation.frames:
        return ""
    return relation.frames[0].replace("[X]", fact.subject if subject is None else subject)
