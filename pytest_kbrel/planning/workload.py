"""Workload of each model in a dry run: requests and tokens, counted as they go by, so that none is held."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from pytest_kbrel.errors import ModelError
from pytest_kbrel.models.base import Spec
from pytest_kbrel.models.hf.prefix_tree import distinct_in_order
from pytest_kbrel.models.registry import open_counter
from pytest_kbrel.models.token_counting import TokenCounter
from pytest_kbrel.models.tokens import Ids
from pytest_kbrel.planning.cost_model import CostModel
from pytest_kbrel.planning.requests import Call, DryRuns, Kind, Range, Scenario, TempStore
from pytest_kbrel.records import ScoreRequest, record


@record
class Asked:
    """How much one model is asked: requests that come in, those left after deduplication, and tokens.

    ``read`` are the tokens of the prompts, ``scored`` those of continuations whose probability is asked for;
    ``written`` is the most the model may write.
    """

    asked: Range
    new: Range
    read: Range
    scored: Range
    written: Range


@dataclass(slots=True)
class Tally:
    """What :class:`Asked` says, in one scenario; ``kinds`` are those of the new requests."""

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


def tally_of(call: Call, counter: TokenCounter) -> Tally:
    """Count one call."""
    tally = Tally(asked=call.asked, new=len(call.requests), kinds={call.kind} if call.requests else set())
    for request in call.requests:
        tally.read += counter.prompt(request)
        if isinstance(request, ScoreRequest):
            tally.scored += counter.continuation(request)
        else:
            tally.written += request.max_new_tokens
    return tally


class PlannedModel:
    """A model of the run, and what it is asked in each scenario: in all, and by case.

    ``role`` is where the user named it (``text``), ``passes`` how often it is asked everything, ``to`` its
    name in :class:`pytest_kbrel.records.Ask`. Raises :class:`ModelError` where its tokenizer does not load.
    """

    def __init__(self, role: str, text: str, spec: Spec, passes: int, to: str = "") -> None:
        self.role, self.text, self.spec, self.passes, self.to = role, text, spec, passes, to
        self._tallies: dict[tuple[Scenario, str], Tally] = {}
        try:
            self.counter = open_counter(spec)
        except ModelError as error:
            raise ModelError(f"{role}: {error}") from None

    @property
    def unscorable(self) -> str:
        """Why it can score no answer; empty where it can, or nobody knows."""
        accountant = self.counter.accountant
        return "" if accountant is None else accountant.encoder.unscorable

    def add(self, scenario: Scenario, call: Call) -> None:
        """Count a call that is for this model."""
        tally = tally_of(call, self.counter)
        for case in ("", call.case):
            self._tallies.setdefault((scenario, case), Tally()).add(tally)

    def tally(self, scenario: Scenario, case: str = "") -> Tally:
        """Return what it is asked in a scenario, by all cases or by one (node id)."""
        return self._tallies.get((scenario, case), Tally())

    def asked(self, dry_runs: DryRuns, case: str = "") -> Asked:
        """Return what it is asked over all scenarios, by all cases or by one (node id)."""
        return Asked(
            asked=dry_runs.range(lambda of: self.tally(of.scenario, case).asked),
            new=dry_runs.range(lambda of: self.tally(of.scenario, case).new),
            read=dry_runs.range(lambda of: self.tally(of.scenario, case).read),
            scored=dry_runs.range(lambda of: self.tally(of.scenario, case).scored),
            written=dry_runs.range(lambda of: self.tally(of.scenario, case).written),
        )


class PrefixTree:
    """Prefix tree of sequences of token ids, in a temporary file."""

    def __init__(self) -> None:
        self._sequences = TempStore()

    def add(self, sequences: Sequence[Ids]) -> None:
        """Put sequences into the tree."""
        # As bytes they sort as they do as numbers.
        self._sequences.add(struct.pack(f">{len(ids)}I", *ids) for ids in sequences)

    def tokens(self) -> int:
        """Return how many nodes the tree has: the least that can be fed."""
        rows = self._sequences.in_order()
        return distinct_in_order(struct.unpack(f">{len(row) // 4}I", row) for row in rows)


@dataclass(slots=True)
class Workload:
    """What a loaded model has to do: ``seconds``, and tokens that it writes (``wrote``).

    ``cached`` is how many requests have an answer from earlier runs. ``fed`` and ``different`` are the tokens
    that go through it, and how many of these differ, where anybody knows.
    """

    seconds: float = 0.0
    wrote: float = 0.0
    cached: int = 0
    fed: int = 0
    different: int = 0


def workload_of(
    calls: Iterable[Call], costs: CostModel, counter: TokenCounter, *, passes: int, anew: bool
) -> Workload:
    """Return what ``calls`` are for a model that is asked all of them so many times.

    ``anew``: all passes but the first take nothing from the store.
    """
    from pytest_kbrel.models.hf.kv_cache import PrefixCache

    workload = Workload()
    accountant, sharing_modes = counter.accountant, costs.sharing_modes
    # What one call leaves to the next is not fed again.
    prefix = PrefixCache()
    # Of all calls together: what one leaves to the next may be the beginning of what that one asks.
    trees = PrefixTree(), PrefixTree()
    for call in calls:
        uncached = costs.uncached(call.requests)
        workload.cached += len(call.requests) - len(uncached)
        workload.seconds += costs.seconds_for(uncached, counter)
        if passes > 1:
            again = call.requests if anew else uncached
            workload.seconds += (passes - 1) * costs.seconds_for(again, counter)
        workload.wrote += costs.written_for(call)
        if accountant is not None and sharing_modes is not None:
            mode = sharing_modes[call.kind[3] != "score"]
            workload.fed += accountant.count(call.requests, mode, prefix)
            for tree, sequences in zip(trees, accountant.tries(call.requests), strict=True):
                tree.add(sequences)
    workload.different = sum(tree.tokens() for tree in trees)
    return workload
