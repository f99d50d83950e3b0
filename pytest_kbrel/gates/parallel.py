"""Cross-lingual consistency: what a model knows in one language and in another, over parallel facts.

An answer is compared by the entity that it names in any of the languages, so that "Wien" and "Vienne" agree.
An entity is known by the facts that have it as their object.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import permutations
from typing import NamedTuple

import numpy as np

from pytest_kbrel import stats
from pytest_kbrel.gates.figures import Figure, figures_of
from pytest_kbrel.gates.integrity import is_empty
from pytest_kbrel.gates.measurement import is_withheld
from pytest_kbrel.judges.words import read_words
from pytest_kbrel.metrics.base import MetricFormula, formula, ratio
from pytest_kbrel.records import Fact, LanguagePair, Outcome, Table, base_language

# What is counted of an ordered pair of languages: what "right" and "said" may be more, at worst for a model, of
# empty answers, and the fields of LanguagePair.
_KINDS = ("right?", "said?", "facts", "right", "both", "said", "same")
_FIRST_WORDS = 60


class _Said(NamedTuple):
    """What was said to a fact in one language; ``entity`` are the facts that have it as their object."""

    row: Outcome
    entity: set[str]


def parallel_table(facts: Sequence[Fact], tables: Sequence[Table]) -> Table:
    """Return a table with a row for each of the parallel facts that was answered, by its name in all languages.

    Its columns count what :class:`LanguagePair` says; which answers are the ``same`` is not known where texts are
    withheld. Where several cases ask a fact, the first one counts.
    """
    by_id = {fact.id: fact for fact in facts}
    names: dict[tuple[str, ...], set[str]] = defaultdict(set)
    for fact in facts:
        for name in fact.accepted:
            names[read_words(name, fact.language).words].add(fact.parallel)
    answers: dict[str, dict[str, _Said]] = defaultdict(dict)
    rows = [row for table in tables for row in table.rows]
    for row in rows:
        if of := by_id.get(row.fact_id):
            said = _Said(row, _entity(row, of, names))
            answers[of.parallel].setdefault(base_language(of.language), said)
    languages = sorted({base_language(fact.language) for fact in facts})
    pairs = list(permutations(languages, 2))
    kinds = [*_KINDS[:-1], "unknown"] if any(map(is_withheld, rows)) else _KINDS
    return Table(
        columns=tuple(f"{a} {b} {kind}" for a, b in pairs for kind in kinds),
        rows=tuple(
            replace(
                next(iter(of.values())).row,
                fact_id=name,
                values=tuple(
                    n for a, b in pairs for n in _counts(of.get(a), of.get(b))
                ),
            )
            for name, of in answers.items()
        ),
    )


def _counts(one: _Said | None, other: _Said | None) -> Iterator[float]:
    if one is None or other is None:
        return map(float, "0" * len(_KINDS))
    right, too = (of.row.label == "correct" for of in (one, other))
    said = {one.row.label, other.row.label} != {"uninformative"}
    same = bool(one.entity & other.entity)
    empty = is_empty(one.row)
    more = empty and not (right or too), (empty or is_empty(other.row)) and not said
    return map(float, (*more, True, right, right and too, said, same))


def _entity(
    row: Outcome, fact: Fact, names: Mapping[tuple[str, ...], set[str]]
) -> set[str]:
    right = row.label == "correct"
    text = fact.object if right and fact.object else row.answer
    words = read_words(text, fact.language).words[:_FIRST_WORDS]
    subject = () if right else read_words(fact.subject, fact.language).words
    spans = (
        words[start:end]
        for start in range(len(words))
        for end in range(len(words), start, -1)
    )
    named = (names[of] for of in spans if of in names and of != subject)
    return next(named, set())


def parallel_figures(table: Table, member: int) -> tuple[Figure, ...]:
    """Return consistency and agreement as figures; the table is that of ``member``."""

    def figure(name: str, *kinds: str) -> MetricFormula:
        columns = [
            of for kind in kinds for of in table.columns if of.endswith(f" {kind}")
        ]
        why = "no parallel fact was answered so in two languages"
        return formula(name, tuple(columns), _mean_share, undefined=why)

    consistency = figure("consistency", "right", "both")
    return figures_of([consistency, figure("agreement", "said", "same")], member)


def _mean_share(totals: stats.Array, n: stats.Array) -> stats.Array:
    """Return the mean of the shares that are defined: the second half of the totals by the first."""
    half = totals.shape[-1] // 2
    shares = ratio(totals[..., half:], totals[..., :half])
    there = ~np.isnan(shares)
    return ratio(np.where(there, shares, 0.0).sum(axis=-1), there.sum(axis=-1))


def language_pairs(table: Table) -> Iterator[LanguagePair]:
    """Yield what a parallel table says of each ordered pair of languages."""
    sums = [
        round(sum(of)) for of in zip(*(row.values for row in table.rows), strict=True)
    ]
    for at in range(0, len(sums), len(_KINDS)):
        first, second, _ = table.columns[at].split()
        counts = dict(zip(_KINDS[2:], sums[at + 2 :], strict=False))
        yield LanguagePair(first=first, second=second, **counts)
