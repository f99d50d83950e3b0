"""KL divergence and top-1 agreement of two models' most probable tokens."""

from __future__ import annotations

import math

import numpy as np
import pytest

from pytest_kbrel.gates.changes import Agreement, agreement, kl_bound
from pytest_kbrel.records import TopTokens

A, B, C, D = range(4)


def tokens(**probabilities: float) -> TopTokens:
    ids = {"a": A, "b": B, "c": C, "d": D}
    return tuple((ids[name], math.log(value)) for name, value in probabilities.items())


def test_equal_distributions_do_not_diverge() -> None:
    for one in (tokens(a=0.5, b=0.3, c=0.1), tokens(a=1.0), tokens(a=0.6, b=0.4001)):
        assert kl_bound(one, one) == 0.0


def test_shared_tokens_and_the_rest_by_hand() -> None:
    # .5 ln(.5/.4) + .3 ln(.3/.4) + .2 ln(.2/.2)
    assert kl_bound(tokens(a=0.5, b=0.3), tokens(a=0.4, b=0.4)) == pytest.approx(
        0.02526715, abs=1e-8
    )


def test_a_token_that_the_candidate_lacks_is_at_most_its_least_probable_one() -> None:
    # A and C are shared; B has 0.2 at most, the least of the candidate; the rest is 1 - .4 - .2 - .2.
    # .5 ln(.5/.4) + .1 ln(.1/.2) + .3 ln(.3/.2) + .1 ln(.1/.2)
    before, after = tokens(a=0.5, b=0.3, c=0.1), tokens(a=0.4, c=0.2, d=0.2)
    assert kl_bound(before, after) == pytest.approx(0.0945817, abs=1e-6)


def test_it_never_exceeds_the_divergence_of_the_whole_distributions() -> None:
    draws = np.random.default_rng(1)
    for _ in range(300):
        p, q = draws.dirichlet([0.3] * 12, size=2)
        top = [
            tuple(
                (int(token), math.log(of[token])) for token in np.argsort(-of)[:count]
            )
            for of, count in ((p, draws.integers(1, 6)), (q, draws.integers(1, 6)))
        ]
        known = [sum(math.exp(nats) for _, nats in of) for of in top]
        if max(known) < 1 - 5e-4:
            assert 0 <= kl_bound(*top) <= float((p * np.log(p / q)).sum()) + 1e-9


@pytest.mark.parametrize("least", [-745.0, -9999.0, -math.inf])
def test_a_token_that_is_as_good_as_impossible_has_a_finite_divergence(
    least: float,
) -> None:
    # Servers write -9999 for it.
    likely, unlikely = ((A, -0.1), (B, -3.0)), ((A, -0.1), (B, least))
    assert 30 < kl_bound(likely, unlikely) < 40
    assert 0 < kl_bound(unlikely, likely) < 0.1
    assert kl_bound(unlikely, unlikely) == 0
    assert kl_bound(((B, least),), ((A, -0.1),)) == 0
    assert 600 < kl_bound(((A, -0.1),), ((B, least),)) < 700


def test_positions_count_up_to_the_first_other_token() -> None:
    same, other = tokens(a=0.5, b=0.3), tokens(b=0.5, a=0.3)
    far = 0.5 * math.log(0.5 / 0.3) + 0.3 * math.log(0.3 / 0.5)
    assert agreement([same, same, same], [same, other, other]) == Agreement(
        positions=2, agreed=1, kl=pytest.approx(far / 2)
    )
    assert agreement([same, same], [same]) == Agreement(positions=1, agreed=1, kl=0.0)


def test_an_answer_without_top_tokens_is_not_compared() -> None:
    assert agreement([], [tokens(a=0.5)]) is None
    assert agreement([()], [tokens(a=0.5)]) is None
