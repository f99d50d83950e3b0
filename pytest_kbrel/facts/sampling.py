"""Samples of facts by seed, popularity buckets, and the in-domain examples of Head-to-Tail.

Buckets and examples follow Sun et al. 2023 (arXiv 2308.10168), sections 2.1 and 3.5. Draws are by digests, so
they are the same on every machine and in every process.
"""

from __future__ import annotations

import bisect
import hashlib
import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from pytest_kbrel.records import Bucket, Fact, Relation, Shot

# In units of the least float above 0.
_ONE = 1 << 1074


def sample(
    facts: Sequence[Fact], limit: int | float | None, seed: int, cluster: str = "fact"
) -> tuple[Fact, ...]:
    """Return ``limit`` of the facts, drawn by seed and fact id, in the order in which they came.

    Of parallel facts the same ones are drawn in each language.

    They are drawn round robin over the clusters that facts share by ``cluster``, so that as many clusters as
    possible have some. A whole number is a number of facts, a float in (0, 1] a share of them, rounded up;
    ``None`` means all. A draw depends on no fact of another cluster, and a larger limit keeps all that a
    smaller one has.
    """
    if limit is None:
        return tuple(facts)
    if isinstance(limit, float):
        # 0.07 * 100 is 7.000000000000001 in binary and must not become 8.
        limit = max(1, math.ceil(limit * len(facts) - 1e-9))
    if limit >= len(facts):
        return tuple(facts)
    return first_drawn(facts, limit, seed, cluster)


def first_drawn(
    facts: Sequence[Fact], count: int, seed: int, cluster: str
) -> tuple[Fact, ...]:
    """Return the ``count`` facts that :func:`sample` draws first, in the order in which they came."""
    drawn: Counter[str] = Counter()
    order = []
    for digest, position in sorted(
        (rank(f"{seed}\0{fact.parallel or fact.id}"), at)
        for at, fact in enumerate(facts)
    ):
        name = facts[position].cluster(cluster) or facts[position].id
        order.append((drawn[name], digest, position))
        drawn[name] += 1
    chosen = {position for *_, position in sorted(order)[:count]}
    return tuple(fact for position, fact in enumerate(facts) if position in chosen)


def buckets(popularity: Sequence[float]) -> tuple[Bucket, ...]:
    """Return the bucket of each item by the cumulative share of its popularity (section 2.1 of the paper).

    As the authors' five scripts do it: sort ascending and sum up; the first item whose sum reaches 1/3 of the
    total closes the tail, the first that reaches 2/3 closes the torso, and what is more popular is head. So
    an item that crosses a line goes to the lower bucket, and equal values always share one bucket. A top
    item with more than 1/3 of the total leaves the head empty; with more than 2/3 everything is tail.

    The sums are exact, so the answer depends on no order of addition.
    """
    counted = sorted(Counter(popularity).items())
    # Each as a multiple of the least float above 0, for sums that are exact.
    ratios = ((n, *value.as_integer_ratio()) for value, n in counted)
    sums = list(itertools.accumulate(n * up * (_ONE // down) for n, up, down in ratios))
    lines = (bisect.bisect_left(sums, -(-part * sums[-1] // 3)) for part in (1, 2))
    tail, torso = (counted[at][0] for at in lines) if counted else (0.0, 0.0)
    return tuple(
        "tail" if v <= tail else "torso" if v <= torso else "head" for v in popularity
    )


def fact_buckets(
    facts: Sequence[Fact], keys: Sequence[tuple[str, float]]
) -> dict[str, Bucket]:
    """Return the bucket of each fact by its id; ``keys`` are what is bucketed, with its popularity, of each.

    A bucket is the subject's, or the relation's, so that one with several facts counts once. Subjects of one
    name but different popularity are different subjects.
    """
    distinct = list(dict.fromkeys(keys))
    in_order = buckets([popularity for _, popularity in distinct])
    bucket = dict(zip(distinct, in_order, strict=True))
    return {fact.id: bucket[key] for fact, key in zip(facts, keys, strict=True)}


def in_domain_examples(
    facts: Sequence[Fact],
    by_relation: Mapping[str, Sequence[Fact]],
    relations: Mapping[str, Relation],
    seed: int,
) -> tuple[tuple[str, tuple[Shot, ...]], ...]:
    """Return for each fact its id and one answered question of the same template, none where there is none.

    ``by_relation`` are all facts there are, so a sampled run shows what the full one shows. The example is
    drawn by seed and fact ids; it has another subject and no answer in common with the fact, nor does it say
    the fact the other way round (which country borders Spain? France), case apart. A new fact changes few of
    the others' examples.
    A relation's template is its first frame, or what its facts' own questions follow.
    """
    pools = defaultdict(list)
    for name in {fact.relation for fact in facts}:
        for fact in by_relation.get(name, ()):
            if fact.object is not None:
                entry = rank(f"{seed}\0\0{fact.id}"), fact
                pools[(name, fact.question is None)].append(entry)
    for pool in pools.values():
        pool.sort(key=_first)

    def example(fact: Fact) -> tuple[Shot, ...]:
        pool = pools.get((fact.relation, fact.question is None), [])
        own, about = _names(fact)
        # The pool as a ring, from a start of the fact's own on to the first that fits: a draw costs no pass
        # over a large relation, and a new fact in the pool concerns those only whose search ends at it.
        start = bisect.bisect(pool, rank(f"{seed}\0example\0{fact.id}"), key=_first)
        for step in range(len(pool)):
            other = pool[(start + step) % len(pool)][1]
            answers, subject = _names(other)
            if about not in answers | {subject} and own.isdisjoint(answers | {subject}):
                question = other.questions(relations[other.relation])[0]
                return (Shot(question=question, answer=other.object),)
        return ()

    return tuple((fact.id, example(fact)) for fact in facts)


def _names(fact: Fact) -> tuple[set[str], str]:
    return {*map(str.casefold, fact.accepted)}, fact.subject.casefold()


def rank(text: str) -> bytes:
    """Return the digest by which draws are ordered."""
    return hashlib.sha256(text.encode()).digest()


def _first(entry: tuple[bytes, Fact]) -> bytes:
    return entry[0]
