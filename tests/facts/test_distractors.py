from __future__ import annotations

import dataclasses

from pytest_kbrel.facts.distractors import fewest_negatives, with_negatives
from pytest_kbrel.records import Fact, Former


def fact(name: str, obj: str | None, *, subject: str = "", **more: object) -> Fact:
    return Fact(
        id=name,
        relation=str(more.pop("relation", "P36")),
        subject=subject or name,
        object=obj,
        **more,
    )  # type: ignore[arg-type]


POOL = tuple(fact(f"f{n}", f"Object {n % 30}") for n in range(60))


def negatives(facts: tuple[Fact, ...]) -> list[tuple[str, ...]]:
    return [item.negatives for item in facts]


def test_known_draw() -> None:
    # Written down, so that no change of the rule can quietly unpair every baseline.
    assert with_negatives(POOL[:1], POOL, 3, 0)[0].negatives == (
        "Object 15",
        "Object 1",
        "Object 25",
    )


def test_every_right_answer_is_left_out() -> None:
    swiss = fact("de", "German", subject="Switzerland", aliases=("Deutsch",))
    once = Former(object="Romansh", valid_until="0500-01-01")
    swiss = dataclasses.replace(swiss, former=(once,))
    pool = (
        swiss,
        fact("fr", "French", subject="SWITZERLAND"),
        fact("at", "GERMAN", subject="Austria"),
        fact("nl", "Hochdeutsch", subject="Elsewhere", aliases=("deutsch",)),
        fact("it", "Italian"),
        fact("rm", "Romansh"),
        fact("en", "English"),
        fact("es", "ENGLISH"),
        fact("xx", "Other", relation="P50"),
        fact("no", None),
    )
    assert sorted(with_negatives([swiss], pool, 9, 0)[0].negatives) == [
        "ENGLISH",
        "Italian",
    ]
    assert fewest_negatives([swiss], pool) == 2
