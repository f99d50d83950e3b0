"""KL divergence and top-1 agreement of two models, by the most probable tokens at the positions of answers.

Of each position some tokens are known, the most probable ones; all others are one token here, the rest. Two
distributions so made coarser are no farther apart than the whole ones (Kullback and Leibler 1951, theorem
4.1), so what is returned is a lower bound.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from pytest_kbrel.records import TopTokens, record

# Log-probabilities have three digits: what they leave for the rest is not known more exactly.
_RESOLUTION = 5e-4
# No token of an answer is impossible: servers state -9999 and the like for the logarithm of such a one.
_LEAST = 1e-300


@record
class Agreement:
    """Comparison of two answers: ``agreed`` of the ``positions`` with the same first token, mean ``kl``."""

    positions: int
    agreed: int
    kl: float


def agreement(
    before: Sequence[TopTokens], after: Sequence[TopTokens]
) -> Agreement | None:
    """Compare two answers to one prompt position by position; ``None`` where one has no top tokens.

    Behind the first position where other tokens were written, the distributions follow different texts and
    are not compared. ``kl`` is the mean of :func:`kl_bound` over the positions.
    """
    divergences, agreed = [], 0
    for old, new in zip(before, after, strict=False):
        if not old or not new:
            break
        divergences.append(kl_bound(old, new))
        if old[0][0] != new[0][0]:
            break
        agreed += 1
    if not divergences:
        return None
    mean = math.fsum(divergences) / len(divergences)
    return Agreement(positions=len(divergences), agreed=agreed, kl=mean)


def kl_bound(before: TopTokens, after: TopTokens) -> float:
    """Return a lower bound of KL(before || after) of one position, in nats; 0 where the two are equal.

    The tokens of ``before`` that ``after`` has not are taken together: there each of them is at most as
    probable as the least probable token of ``after``, and all of them as what its tokens leave.
    """
    old, old_rest = _distribution(before)
    new, new_rest = _distribution(after)
    shared = old.keys() & new.keys()
    kl = math.fsum(
        old[token] * math.log(old[token] / new[token]) for token in sorted(shared)
    )
    missing = math.fsum(old[token] for token in sorted(old.keys() - shared))
    others = new_rest + math.fsum(new[token] for token in sorted(new.keys() - shared))
    if missing:
        most = min((len(old) - len(shared)) * min(new.values()), new_rest)
        # Without that limit the bound is lowest where both parts grow or shrink alike.
        theirs = min(others * missing / (missing + old_rest), most)
        kl += missing * math.log(missing / theirs)
        others -= theirs
    return max(kl + old_rest * math.log(old_rest / others), 0.0)


def _distribution(tokens: TopTokens) -> tuple[dict[int, float], float]:
    """Return the probabilities of the tokens and of the rest, which is never nothing; all add up to 1."""
    known = {token: max(math.exp(nats), _LEAST) for token, nats in tokens}
    total = math.fsum(known.values())
    rest = max(1 - total, _RESOLUTION)
    return {token: value / (total + rest) for token, value in known.items()}, rest / (
        total + rest
    )
