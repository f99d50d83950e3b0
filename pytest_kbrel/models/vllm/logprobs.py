"""Scores pairs with an engine: in the way that makes it compute fewer tokens.

vLLM tells the probabilities of a given text in two ways. *Whole*: a prompt's own log-probabilities. It then
computes the whole prompt, and a softmax at each place, for it reads nothing from its prefix cache.
*Stepwise*: one question a place, which names the tokens that are to be scored there. It takes whole blocks of
what other questions began with from the cache. Long shared beginnings make the second cheaper, short prompts
the first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from pytest_kbrel.models.tokens import Ids, Pair, common_prefix
from pytest_kbrel.models.vllm.engine import MOST_NAMED, Engine, Question, Reply, probability
from pytest_kbrel.records import Failed

Probabilities = tuple[float, ...]


def is_cheaper_stepwise(pairs: Sequence[Pair], block: int) -> bool:
    """Tell whether asking step by step makes the engine compute fewer tokens; ``block`` is its cache's.

    Where both are alike it is: a step needs a softmax at one place, a whole prompt at each.
    """
    whole = sum(len(pair.context) + len(pair.targets) for pair in pairs)
    return computed_tokens(steps_of(pairs), block) <= whole


def computed_tokens(prompts: Iterable[Ids], block: int) -> int:
    """Return how many tokens of these prompts are computed behind a prefix cache of whole blocks.

    A prompt's last token always is. A ``block`` of 0 stands for no cache.
    """
    computed, before = 0, Ids()
    # In this order nobody shares more with a prompt than the one before it.
    for ids in sorted(prompts):
        known = min(common_prefix(before, ids), len(ids) - 1) // block * block if block else 0
        computed += len(ids) - known
        before = ids
    return computed


def steps_of(pairs: Sequence[Pair]) -> Mapping[Ids, Ids]:
    """Return what to ask step by step: token ids, and the different tokens that are scored behind them."""
    steps: dict[Ids, dict[int, None]] = {}
    for pair in pairs:
        for place, token in enumerate(pair.targets):
            steps.setdefault((*pair.context, *pair.targets[:place]), {})[token] = None
    return {ids: tuple(named) for ids, named in steps.items()}


def score_pairs(engine: Engine, pairs: Sequence[Pair]) -> Iterator[list[tuple[int, Probabilities | Failed]]]:
    """Yield each pair's number and answer, some at a time; what fails is a :class:`Failed`.

    No pair may be longer than ``engine.max_length``.
    """
    stepwise = is_cheaper_stepwise(pairs, engine.block)
    # Neighbours share most, and what is asked together finds it in the cache.
    order = sorted(range(len(pairs)), key=lambda n: (pairs[n].context, pairs[n].targets))
    for start in range(0, len(order), engine.at_once):
        numbers = order[start : start + engine.at_once]
        # The engine writes a token behind each prompt, for which a whole one of full length has no room.
        whole = [] if stepwise else [n for n in numbers if _length(pairs[n]) < engine.max_length]
        steps = sorted(set(numbers) - set(whole))
        yield [
            *zip(whole, _whole(engine, [pairs[n] for n in whole]), strict=True),
            *zip(steps, _stepwise(engine, [pairs[n] for n in steps]), strict=True),
        ]


def _whole(engine: Engine, pairs: Sequence[Pair]) -> list[Probabilities | Failed]:
    questions = [Question(ids=(*pair.context, *pair.targets), of_prompt=True) for pair in pairs]
    answers: list[Probabilities | Failed] = []
    for pair, reply in zip(pairs, engine.ask(questions), strict=True):
        if isinstance(reply, Failed):
            answers.append(reply)
            continue
        places = reply.prompt[len(pair.context) :]
        try:
            answers.append(
                tuple(probability(found, token) for found, token in zip(places, pair.targets, strict=True))
            )
        except ValueError as error:
            answers.append(Failed(error=str(error)))
    return answers


def _stepwise(engine: Engine, pairs: Sequence[Pair]) -> list[Probabilities | Failed]:
    questions = [
        Question(ids=ids, named=named[start : start + MOST_NAMED])
        for ids, named in steps_of(pairs).items()
        for start in range(0, len(named), MOST_NAMED)
    ]
    replies: dict[tuple[Ids, int], Reply | Failed] = {
        (question.ids, token): reply
        for question, reply in zip(questions, engine.ask(questions), strict=True)
        for token in question.named
    }
    return [_along(pair, replies) for pair in pairs]


def _along(pair: Pair, replies: Mapping[tuple[Ids, int], Reply | Failed]) -> Probabilities | Failed:
    """Return the probabilities of a pair's targets, each from the reply to its own step."""
    values: list[float] = []
    for place, token in enumerate(pair.targets):
        reply = replies[(*pair.context, *pair.targets[:place]), token]
        if isinstance(reply, Failed):
            return reply
        try:
            values.append(probability(reply.steps[0], token))
        except ValueError as error:
            return Failed(error=str(error))
    return tuple(values)


def _length(pair: Pair) -> int:
    return len(pair.context) + len(pair.targets)
