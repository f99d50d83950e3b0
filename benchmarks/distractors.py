"""How many distractors are of the kind of the answer: drawn by lot, and drawn like the answer.

    python benchmarks/distractors.py nq-open NQ-open.dev.jsonl
    python benchmarks/distractors.py popqa popqa.json --show 30

The kinds are those of the rules themselves. What they are worth tells ``--show``: for so many questions, by
seed, it prints the answer and three distractors of each draw, to be looked at by a person.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean

from pytest_kbrel.facts.answer_kinds import Kind, kind_of
from pytest_kbrel.facts.distractors import with_alike_negatives, with_negatives
from pytest_kbrel.facts.readers import Relations, format_of, read
from pytest_kbrel.probes.reliability import length_ratio
from pytest_kbrel.records import Fact, ReliabilitySettings

_COUNT, _QUESTIONS, _SHOWN = 20, 20, 3


def main() -> None:
    """Print a line for each draw."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("format")
    parser.add_argument("path", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--show", type=int, default=0, metavar="N")
    given = parser.parse_args()
    relations = Relations()
    rows = read(format_of(given.format), [given.path], relations)
    facts = [
        row.fact for row in rows if row.fact is not None and row.fact.object is not None
    ]
    started = time.perf_counter()
    by_lot = with_negatives(facts, facts, _COUNT, given.seed)
    between = time.perf_counter()
    # With a writer no fact needs any.
    settings = ReliabilitySettings(
        distractors=_COUNT, choices=_QUESTIONS, distractors_from="openai/writer"
    )
    drawn, drawn_alike = with_alike_negatives(
        facts, facts, relations, settings, given.seed
    )
    seconds = (between - started, time.perf_counter() - between)
    kinds: dict[str, set[Kind]] = {}
    for fact in facts:
        kinds.setdefault(str(fact.object).casefold(), set()).add(kind(fact))
    print(
        f"{len(facts)} facts, {len(drawn_alike)} of them in a relation of answers of any kind"
    )
    for name, distracted, took in zip(
        ("by lot", "by kind"), (by_lot, drawn), seconds, strict=True
    ):
        shares = [shares_of(fact, kinds) for fact in distracted if fact.negatives]
        alike, same_noun = (fmean(part) for part in zip(*shares, strict=True))
        ratio = fmean(map(length_ratio, distracted))
        print(
            f"{name}: {alike:.3f} of the same kind, {same_noun:.3f} asked for by the same noun, "
            f"length ratio {ratio:.3f}, {took:.1f} s"
        )
    few = sum(part < 1 for _, part in drawn_alike)
    print(f"facts with too few of their kind: {few}")
    shown = random.Random(given.seed).sample(
        range(len(facts)), min(given.show, len(facts))
    )
    for index in shown:
        print(
            f"\n{facts[index].question} = {facts[index].object} [{kind(facts[index]).sort}]"
        )
        print(f"  by lot:  {first(by_lot[index])}\n  by kind: {first(drawn[index])}")


def kind(fact: Fact) -> Kind:
    """Return the kind of a fact's answer."""
    return kind_of(fact.object, fact.question or "", fact.answer_type)


def shares_of(fact: Fact, kinds: dict[str, set[Kind]]) -> tuple[float, float]:
    """Return which share of a fact's distractors is of its kind, and which is asked for by its noun too."""
    own = kind(fact)
    others = [kinds[wrong.casefold()] for wrong in fact.negatives]
    same_noun = [
        any(own.closest == other.closest for other in others_of_fact)
        for others_of_fact in others
    ]
    same = [
        any(own.sort == other.sort for other in others_of_fact)
        for others_of_fact in others
    ]
    return fmean(
        one or other for one, other in zip(same, same_noun, strict=True)
    ), fmean(same_noun)


def first(fact: Fact) -> str:
    """Return the first distractors in a line."""
    names: Sequence[str] = fact.negatives[:_SHOWN]
    return " | ".join(names)


if __name__ == "__main__":
    main()
