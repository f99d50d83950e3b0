"""A run of full size, to see how large its baseline is: ``python -m benchmarks.baseline_size``."""

from __future__ import annotations

import random
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from pytest_kbrel.baselines import write_baseline
from pytest_kbrel.probes.head_to_tail import COLUMNS as HEAD_TO_TAIL
from pytest_kbrel.probes.reliability import COLUMNS as RELIABILITY
from pytest_kbrel.records import (
    CaseResult,
    Fingerprint,
    MetricValue,
    Outcome,
    ProbeName,
    Run,
    Table,
    short_digest,
)

FACTS = 18_000
RELATIONS = 20
FRAMES, CONTEXTS = 7, 5
MONITOR = (
    *(
        "kept",
        "pfd",
        "ird",
        "term",
        "anchor",
        "ablated:0+1+2+3",
        "calls:monitor",
        "tokens:monitor",
    ),
    *("cell:positive:0", *(f"cell:none:{frame}" for frame in range(FRAMES))),
    *(f"cell:negative:{context}" for context in range(CONTEXTS)),
)
_SYLLABLES = (
    "an",
    "ber",
    "cor",
    "dan",
    "el",
    "fer",
    "gri",
    "hol",
    "is",
    "jo",
    "kar",
    "lim",
    "mon",
    "nor",
)


def full_run(facts: int = FACTS) -> Run:
    """Return a run in which every one of ``facts`` facts has an outcome of each of the three probes.

    MONITOR has R = 7 frames and M = 5 contexts. Nine answers in ten are one of 3,000 objects, the others are
    phrases that no other fact has.
    """
    rng = random.Random(4)
    objects = [_name(rng) for _ in range(3_000)]
    ids = [
        f"P{17 + at % RELATIONS}-Q{rng.randrange(10**3, 10**8)}" for at in range(facts)
    ]
    accepted = {fact: short_digest(fact) for fact in ids}
    return Run(
        kbrel_version="0.1.0",
        created="2026-01-02T03:04:05+00:00",
        model=_MODEL,
        environment=(("commit", "a" * 40), ("torch", "2.9.0")),
        settings=(("model", "reference"),),
        cases=tuple(
            _case(
                probe,
                columns,
                f"{probe[0]}{number}",
                ids[number::RELATIONS],
                accepted,
                objects,
                rng,
            )
            for probe, columns in _PROBES
            for number in range(RELATIONS)
        ),
    )


_PROBES: tuple[tuple[ProbeName, tuple[str, ...]], ...] = (
    ("monitor", MONITOR),
    ("head_to_tail", HEAD_TO_TAIL),
    ("reliability", RELIABILITY),
)
_MODEL = Fingerprint(
    spec="org/model",
    backend="hf",
    backend_version="transformers 5.0, torch 2.9",
    architecture="LlamaForCausalLM",
    parameters=8_000_000_000,
    weights_digest="w" * 64,
    tokenizer_digest="t" * 64,
    dtype="bfloat16",
    device="cuda:0",
)


def _case(
    probe: ProbeName,
    columns: tuple[str, ...],
    name: str,
    ids: list[str],
    accepted: dict[str, str],
    objects: list[str],
    rng: random.Random,
) -> CaseResult:
    rows = tuple(
        _outcome(probe, columns, fact, accepted[fact], objects, rng)
        for fact in sorted(ids)
    )
    metrics = tuple(
        MetricValue(name=f"metric_{k}", better="higher", value=rng.random())
        for k in range(12)
    )
    return CaseResult(
        id=f"{probe}[{name}]",
        suite="suites/world.kb.yaml",
        probe=probe,
        slice=name,
        verdict="pass",
        n=len(rows),
        duration=0.0,
        metrics=metrics,
        gates=(),
        table=Table(columns=columns, rows=rows),
        settings=(("max_new_tokens", "32"), ("prompt", "few-shot")),
    )


def _outcome(
    probe: ProbeName,
    columns: tuple[str, ...],
    fact: str,
    accepted: str,
    objects: list[str],
    rng: random.Random,
) -> Outcome:
    right = rng.random() < 0.6
    answer = (
        rng.choice(objects)
        if rng.random() < 0.9
        else " ".join(_name(rng) for _ in range(4))
    )
    count = {"monitor": 13, "head_to_tail": 1, "reliability": 1}[probe]
    return Outcome(
        fact_id=fact,
        question="",
        expected="",
        answer=answer,
        label="correct" if right else "wrong",
        values=tuple(map(float, _values(probe, right, rng, len(columns)))),
        prompt_digest=f"{rng.getrandbits(32):08x}.{count}/{count}.{'5' * 8}.{accepted}."
        + (f"{rng.getrandbits(32):08x}" if probe == "reliability" else "d" * 8),
    )


def _values(
    probe: ProbeName, right: bool, rng: random.Random, width: int
) -> Iterator[float]:
    if probe == "monitor":
        yield 1.0
        yield from (rng.random() for _ in range(5))
        yield 13.0
        yield float(rng.randrange(150, 400))
        yield from (
            float(rng.random() < (0.9 if right else 0.1)) for _ in range(width - 8)
        )
    elif probe == "head_to_tail":
        f1 = 1.0 if right else rng.choice((0.0, 0.0, 1 / 2, 2 / 3, 2 / 7))
        yield from (float(right), 0.0, f1, f1, float(right), float(right), 0.0)
        yield from _probabilities(right, rng)
    else:
        again = rng.randrange(21) / 20
        yield from (right, not right, 0.0, right * again, (not right) * again)
        yield from (0.0, 0.0, 0.0, 0.0, 20.0, float(rng.randrange(3)))
        yield from _probabilities(right, rng)


def _probabilities(right: bool, rng: random.Random) -> Iterator[float]:
    mean, first = round(rng.random(), 6), round(rng.random(), 6)
    yield from (1.0, mean, first, (mean - right) ** 2)


def _name(rng: random.Random) -> str:
    words = (
        "".join(rng.choice(_SYLLABLES) for _ in range(rng.choice((2, 2, 3)))).title()
        for _ in range(2)
    )
    return " ".join(list(words)[: rng.choice((1, 1, 2))])


def main() -> int:
    """Write the baselines of two runs into a scratch folder and print their sizes."""
    for facts in (5_157, FACTS):
        with tempfile.TemporaryDirectory() as folder:
            target = Path(folder, "full")
            run = full_run(facts)
            write_baseline(target, run)
            rows = sum(case.n for case in run.cases)
            sizes = {
                path.name: path.stat().st_size for path in sorted(target.iterdir())
            }
            print(f"{facts} facts, {rows} outcomes, {len(run.cases)} cases: {sizes}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
