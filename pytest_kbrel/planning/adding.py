"""What the calls of a plan come to for one model, added up as they go by: none of their requests is held."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from pytest_kbrel.models.token_counting import Counter
from pytest_kbrel.planning.aside import Tree
from pytest_kbrel.planning.asking import Call, Kind
from pytest_kbrel.planning.cost_model import CostModel
from pytest_kbrel.records import ScoreRequest


@dataclass(slots=True)
class Tally:
    """Requests that come in (``asked``), those that are put to the model (``new``), and tokens of the latter.

    ``read`` are those of prompts, ``scored`` those whose probability is asked for, ``written`` the most that
    there can be. ``kinds`` are those that anything is new of.
    """

    asked: int = 0
    new: int = 0
    read: int = 0
    scored: int = 0
    written: int = 0
    kinds: set[Kind] = field(default_factory=set)

    def add(self, other: Tally) -> None:
        """Add another one."""
        self.asked += other.asked
        self.new += other.new
        self.read += other.read
        self.scored += other.scored
        self.written += other.written
        self.kinds |= other.kinds


def tally_of(call: Call, counter: Counter) -> Tally:
    """Count one call."""
    found = Tally(asked=call.asked, new=len(call.requests), kinds={call.kind} if call.requests else set())
    for request in call.requests:
        found.read += counter.prompt(request)
        if isinstance(request, ScoreRequest):
            found.scored += counter.continuation(request)
        else:
            found.written += request.max_new_tokens
    return found


@dataclass(slots=True)
class Workload:
    """What a model that was timed has to do: ``seconds``, and tokens that it writes (``wrote``).

    ``kept`` is how many requests have an answer from earlier runs. ``fed`` and ``different`` are the tokens
    that go through it, and how many of these differ, where anybody knows.
    """

    seconds: float = 0.0
    wrote: float = 0.0
    kept: int = 0
    fed: int = 0
    different: int = 0


def workload_of(
    calls: Iterable[Call], costs: CostModel, counter: Counter, *, passes: int, anew: bool
) -> Workload:
    """Return what ``calls`` are for a model that is asked all of them so many times.

    ``anew``: all passes but the first take nothing from the store.
    """
    from pytest_kbrel.models.hf.kv_cache import KeptPrefix

    found = Workload()
    feeder, rungs = counter.feeder, costs.rungs
    # What one call leaves to the next is not fed again.
    kept = KeptPrefix()
    # Of all calls together: what one leaves to the next may be the beginning of what that one asks.
    trees = Tree(), Tree()
    for call in calls:
        left = costs.uncached(call.requests)
        found.kept += len(call.requests) - len(left)
        found.seconds += costs.seconds_for(left, counter)
        if passes > 1:
            again = call.requests if anew else left
            found.seconds += (passes - 1) * costs.seconds_for(again, counter)
        found.wrote += costs.written_for(call)
        if feeder is not None and rungs is not None:
            found.fed += feeder.fed(call.requests, rungs[call.kind[3] != "score"], kept).tokens
            for tree, sequences in zip(trees, feeder.trees(call.requests), strict=True):
                tree.add(sequences)
    found.different = sum(tree.tokens() for tree in trees)
    return found
