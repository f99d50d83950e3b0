"""Cross-lingual consistency: what a model knows in one language and in another, over parallel facts.

An answer is compared by the entity that it names in any of the languages, so that "Wien" and "Vienne" agree.
An entity is known by the facts that have it as their object.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, permutations
from typing import NamedTuple

import numpy as np

from pytest_kbrel import stats
from pytest_kbrel.gates.figures import Figure, figures_of
from pytest_kbrel.gates.measurement import Pairing
from pytest_kbrel.judges.words import read_words
from pytest_kbrel.metrics.base import formula, ratio
from pytest_kbrel.records import Fact, LanguagePair, Outcome, Table, base_language

# What is counted of a pair of languages, in order or in any: columns begin with these.
ASKED, RIGHT, BOTH, SAID, SAME = "asked", "right", "both", "said", "same"
_FIRST_WORDS = 60
_Names = Mapping[tuple[str, ...], set[str]]


class _Said(NamedTuple):
    """What was said to a fact in one language; ``entity`` are the facts that have it as their object."""

    right: bool
    informative: bool
    entity: set[str]


def parallel_table(facts: Sequence[Fact], tables: Sequence[Table]) -> Table:
    """Return a table with a row for each of the parallel facts that was answered, by its name in all languages.

    Its columns count what :class:`LanguagePair` says. Where several cases ask a fact, the first one counts.
    """
    by_id, names = {fact.id: fact for fact in facts}, _names(facts)
    answers: dict[str, dict[str, _Said]] = defaultdict(dict)
    for row in (row for table in tables for row in table.rows):
        if fact := by_id.get(row.fact_id):
            said = answers[fact.parallel]
            said.setdefault(base_language(fact.language), _said(row, fact, names))
    columns = _columns(facts)
    return Table(
        columns=tuple(map(" ".join, columns)),
        rows=tuple(
            Outcome(
                fact_id=name,
                question="",
                expected="",
                answer=name,
                label="correct",
                values=tuple(float(_counts(said, *column)) for column in columns),
                prompt_digest="",
            )
            for name, said in sorted(answers.items())
        ),
    )


def _columns(facts: Sequence[Fact]) -> list[tuple[str, str, str]]:
    languages = dict.fromkeys(base_language(fact.language) for fact in facts)
    return [
        (what, first, second)
        for kinds, pairs in (
            ((ASKED, RIGHT, BOTH), permutations(languages, 2)),
            ((SAID, SAME), combinations(languages, 2)),
        )
        for first, second in pairs
        for what in kinds
    ]


def _counts(said: Mapping[str, _Said], what: str, first: str, second: str) -> bool:
    if first not in said or second not in said:
        return False
    one, other = said[first], said[second]
    if what in (SAID, SAME):
        same = bool(one.entity & other.entity)
        return one.informative or other.informative if what == SAID else same
    return what == ASKED or (one.right and (what == RIGHT or other.right))


def _names(facts: Sequence[Fact]) -> _Names:
    """Return the facts that have an object of this name, by its words, in any language."""
    names: dict[tuple[str, ...], set[str]] = defaultdict(set)
    for fact in facts:
        for name in fact.accepted:
            names[read_words(name, fact.language).words].add(fact.parallel)
    return names


def _said(row: Outcome, fact: Fact, names: _Names) -> _Said:
    right, informative = row.label == "correct", row.label != "uninformative"
    named = fact.object if right and fact.object else row.answer
    words = read_words(named, fact.language).words[:_FIRST_WORDS]
    subject = read_words(fact.subject, fact.language).words
    spans = (
        words[start:end]
        for start in range(len(words))
        for end in range(len(words), start, -1)
    )
    known = (names[of] for of in spans if of in names and (right or of != subject))
    return _Said(right, informative, next(known, set()) if informative else set())


def parallel_figures(table: Table, member: int) -> tuple[Figure, ...]:
    """Return consistency and agreement as figures; the table is that of ``member``."""
    made = []
    for name, kinds in (("consistency", (RIGHT, BOTH)), ("agreement", (SAID, SAME))):
        columns = [
            of for kind in kinds for of in table.columns if of.startswith(f"{kind} ")
        ]
        undefined = "no parallel fact was answered so in two languages"
        made.append(formula(name, tuple(columns), _mean_share, undefined=undefined))
    return figures_of(made, member)


def _mean_share(totals: stats.Array, n: stats.Array) -> stats.Array:
    """Return the mean of the shares that are defined: the second half of the totals by the first."""
    half = totals.shape[-1] // 2
    shares = ratio(totals[..., half:], totals[..., :half])
    there = ~np.isnan(shares)
    return ratio(np.where(there, shares, 0.0).sum(axis=-1), there.sum(axis=-1))


def parallel_pairing(
    facts: Sequence[Fact], pairings: Sequence[Pairing | None]
) -> Pairing | None:
    """Return the parallel tables of paired cases as a pair, ``None`` where a case has no baseline."""
    there = [of for of in pairings if of]
    if len(there) < len(pairings):
        return None
    candidate, baseline = (
        parallel_table(facts, tables)
        for tables in ([of.candidate for of in there], [of.baseline for of in there])
    )
    return Pairing(
        candidate=candidate, baseline=baseline, differing=(), added=(), unasked=()
    )


def language_pairs(table: Table) -> Iterator[LanguagePair]:
    """Yield what a parallel table says of each ordered pair of languages that some fact was asked in."""
    sums = [
        sum(values) for values in zip(*(row.values for row in table.rows), strict=True)
    ]
    counts = {
        tuple(name.split()): round(total)
        for name, total in zip(table.columns, sums, strict=False)
    }
    for (what, first, second), asked in counts.items():
        if what == ASKED and asked:
            either = (
                (first, second) if (SAID, first, second) in counts else (second, first)
            )
            yield LanguagePair(
                first=first,
                second=second,
                facts=asked,
                right=counts[RIGHT, first, second],
                both=counts[BOTH, first, second],
                said=counts[SAID, *either],
                same=counts[SAME, *either],
            )
