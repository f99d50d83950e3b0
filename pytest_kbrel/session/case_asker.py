"""Asking the model about a case and deciding it: everything that is the same with pytest and without."""

from __future__ import annotations

import contextlib
import json
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache, cached_property, lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_kbrel.baselines import (
    Baseline,
    read_baseline,
    same_draw,
)
from pytest_kbrel.catalogue.probes import is_scored
from pytest_kbrel.catalogue.rules import family_size
from pytest_kbrel.errors import KbrelError, ModelError
from pytest_kbrel.evaluation.cases import (
    Retrieval,
    baseline_of,
)
from pytest_kbrel.evaluation.model_pool import ModelPool, no_probabilities
from pytest_kbrel.facts.sampling import first_drawn
from pytest_kbrel.records import (
    BASELINE,
    Case,
    CaseResult,
    Exchange,
    Looks,
    Suite,
    Table,
    facts_asked,
)
from pytest_kbrel.serialization import dumps_compact, from_wire
from pytest_kbrel.settings import RULES, Settings
from pytest_kbrel.store.run_store import RunStore

if TYPE_CHECKING:
    from pytest_kbrel.gates import Comparison
    from pytest_kbrel.probes.base import ProbeResult
    from pytest_kbrel.session.units import Unit, UnitResult

NO_TABLE = Table(columns=(), rows=())
# Seconds between two looks at what other processes ask.
_PAUSE = 0.02
# A unit counts as so many facts at least: each one that is claimed is an open file.
_LEAST_FACTS = 64


class CaseAsker:
    """Asks the cases of one process of ``workers``. Everything heavy is made at first use."""

    workers = 1

    def __init__(
        self,
        settings: Settings,
        *,
        root: Path,
        store: RunStore,
        suites: Callable[[], Sequence[Suite]],
    ) -> None:
        """``root`` is the folder of the node ids; ``suites`` returns all suites of the session."""
        self.settings = settings
        self.store = store
        self.pool = ModelPool(settings, store)
        self._root = root
        self._retrieval = Retrieval(root, settings.judge_args)
        self._baseline: Baseline | None = None
        self._suites = cache(suites)
        # Why nothing could be asked ahead, for the first case that is asked then.
        self._untold: KbrelError | None = None
        # Of a case that is asked in parts, the next one comes; those that are asked together are decided then.
        self._prepared = lru_cache(16)(self._prepare)
        self._has_asked = False
        self.comparison = cache(self._comparison)

    def baseline(self) -> Baseline | None:
        """Return the baseline, ``None`` without --kb-baseline."""
        if self._baseline is None and self.settings.baseline:
            self._baseline = read_baseline(self.settings.baseline, self._root)
        return self._baseline

    def ask_case(self, case: Case) -> CaseResult:
        """Return the result of a case, asked look by look until it is decided.

        Raises ``KbrelError`` where no answers can be had.
        """
        started = time.perf_counter()
        if (error := self._untold) is not None:
            self._untold = None
            raise error
        self._check_scorable(case)
        prepared = self._prepared(case)
        decide = self._decided if self.settings.shard is None else self._share
        began = time.perf_counter()
        parts = self._results_of_units(case)
        # Cases that are asked together have a share of the time each.
        started += time.perf_counter() - began
        spent = sum(part.seconds for part in parts)
        result = decide(prepared, parts)
        return replace(
            result,
            requests=sum(part.requests for part in parts),
            prompt=next(filter(None, (part.prompt for part in parts)), ""),
            duration=spent + time.perf_counter() - started,
        )

    def _share(self, case: Case, parts: list[UnitResult]) -> CaseResult:
        """Return the result of this session's share of a case; what is asked for it is added to ``parts``."""
        from pytest_kbrel.gates import part_result
        from pytest_kbrel.probes import part_of

        # What the whole case is asked with, such as examples, is settled; a judge answers for it by name.
        self._open_helpers(case)
        self.pool.base()
        part = part_of(case, facts_asked(case, self.settings.shard))
        if part.facts and not parts:
            parts += self._asked([part])
        bases = [part.base for part in parts if part.base is not None]
        asked = [*(part.own for part in parts), *bases]
        errors = tuple(error for of in asked for error in of.errors)
        return part_result(case, len(part.facts), errors)

    def _decided(self, case: Case, parts: list[UnitResult]) -> CaseResult:
        """Return the decided case; what is asked for it is added to ``parts``, unless all was."""
        from pytest_kbrel.gates import (
            Outcomes,
            all_decided,
            decide_case,
            with_moved_facts,
        )
        from pytest_kbrel.probes import part_of, whole_result
        from pytest_kbrel.probes.monitor import prompt_in

        facts = {fact.id: fact for fact in case.facts}

        def prompt_of(fact_id: str, cell: str) -> str:
            return prompt_in(case, facts[fact_id], cell)

        is_asked, looks, before = bool(parts), self.looks(case), set[str]()
        for look in looks:
            asked = case
            if look and look.asked < len(case.facts):
                drawn = first_drawn(case.facts, look.asked, case.seed, case.cluster)
                asked = replace(case, facts=drawn)
            if not is_asked:
                new = [fact for fact in asked.facts if fact.id not in before]
                parts += self._asked([part_of(case, new)])
                before |= {fact.id for fact in new}
            order = asked.facts if look else ()
            result = whole_result([part.own for part in parts], order)
            comparison, base = self.comparison(case.suite), NO_TABLE
            if bases := [part.base for part in parts if part.base is not None]:
                answers = whole_result(bases, order)
                base = answers.table
                try:
                    baseline = baseline_of(asked, answers, self.pool)
                    comparison = replace(comparison, baseline=baseline)
                except ModelError:
                    if look is looks[-1]:
                        raise
                    continue
            self._open_helpers(case)
            outcomes = Outcomes(table=result.table, errors=result.errors, looks=look)
            decided = decide_case(asked, outcomes, comparison)
            if all_decided(decided.gates) or look is looks[-1]:
                break
        missing = self.pool.missing_responses(decided.nodeid)
        return replace(
            with_moved_facts(
                decided,
                result.moved,
                comparison.case(decided),
                prompt_of,
            ),
            base=base,
            errors=(*decided.errors, *filter(None, [missing])),
        )

    def _asked(
        self, parts: Sequence[Case], units: Sequence[Unit] = ()
    ) -> list[UnitResult]:
        """Ask the facts of parts of cases in the same calls, and store the exchanges round by round.

        The parts are these ``units``, if any. Raises ``KbrelError`` where no answers can be had.
        """
        from pytest_kbrel.probes import run_parts
        from pytest_kbrel.session.units import UnitResult, unit_place

        started, self._has_asked = time.perf_counter(), True
        prompts, counts = dict[int, str](), Counter[int]()

        def keep(
            at: int,
            of: Sequence[int],
            exchanges: Sequence[Exchange],
            of_base: bool = False,
        ) -> None:
            places = [unit_place(units[n], of_base, at) if units else "" for n in of]
            self.store.add(exchanges, places)
            for number, one in zip(() if of_base else of, exchanges, strict=False):
                counts[number] += 1
                if number not in prompts:
                    asked = one.ask.request, one.case, one.ask.fact_id
                    prompts[number] = self.pool.rendered(*asked)

        owns = run_parts(parts, self.pool.ask, keep)
        bases: Sequence[ProbeResult | None] = [None] * len(parts)
        if self.settings.baseline_model:
            keep_base = partial(keep, of_base=True)
            bases = run_parts(parts, self.pool.ask, keep_base, BASELINE)
        seconds = (time.perf_counter() - started) / max(counts.total(), 1)
        return [
            UnitResult(
                own=own,
                base=base,
                prompt=prompts.get(part, ""),
                requests=counts[part],
                seconds=seconds * counts[part],
            )
            for part, (own, base) in enumerate(zip(owns, bases, strict=True))
        ]

    @cached_property
    def units(self) -> Mapping[str, Sequence[Unit]]:
        """The units of the cases that are asked in units, by node id."""
        return {}

    def ask_units(self, suite: str) -> None:
        """Claim and ask units of a suite's cases until none is free.

        What stands in the way of one is not said here: the case itself says it.
        """
        for case in self._in_units():
            try:
                if case.suite == suite:
                    self._claim(case)
            except KbrelError as error:
                if self.pool.unusable:
                    self._untold = error
                    return

    def _in_units(self) -> list[Case]:
        """Return the cases that are asked in units, in their order."""
        cases = {
            f"{of.path}::{case.id}": case for of in self._suites() for case in of.cases
        }
        return [cases[name] for name in self.units]

    def _claim(self, case: Case) -> None:
        """Ask those of a case's units that no process has asked or is asking, and where it pays others with them.

        Raises ``KbrelError`` where no answers can be had.
        """
        from pytest_kbrel.probes import chunk_size

        cases, room = [case], 0
        # No model is opened for units that others hold.
        is_opened = self._has_asked or self.workers == 1
        if is_opened and self.pool.model().pools_cases:
            room = chunk_size(case) // self.workers
        # The first result is not waited for longer than its own case takes.
        if room and self._has_asked:
            kind = case.suite, case.probe
            cases += [of for of in self._in_units() if (of.suite, of.probe) == kind]
        try:
            while self._ask_units(cases, room):
                pass
        except Exception:
            if len(cases) == 1:
                raise
            # Perhaps of a case that was asked with this one; it says that itself.
            while self._ask_units([case], room):
                pass

    def _ask_units(self, cases: Sequence[Case], room: int) -> bool:
        """Ask a free unit of the first case in the same calls as others of up to ``room`` facts in all.

        Return False where none of it is free.
        """
        from pytest_kbrel.probes import part_of
        from pytest_kbrel.session.units import Unit, claim

        parts, claimed = list[Case](), list[tuple[str, Unit]]()
        with contextlib.ExitStack() as held:
            for of in cases:
                nodeid = f"{of.suite}::{of.id}"
                for unit in self.units[nodeid]:
                    if claimed and unit.size > room:
                        break
                    if not held.enter_context(claim(self.store, nodeid, unit)):
                        continue
                    self._check_scorable(of)
                    facts = facts_asked(of, self.settings.shard)
                    facts = facts[unit.first : unit.first + unit.size]
                    parts.append(part_of(self._prepared(of), facts))
                    claimed.append((nodeid, unit))
                    room -= max(unit.size, _LEAST_FACTS)
                if not claimed:
                    return False
            results = self._asked(parts, [unit for _, unit in claimed])
            for (nodeid, unit), result in zip(claimed, results, strict=True):
                self.store.finish(nodeid, unit.first, dumps_compact(result))
        return True

    def _results_of_units(self, case: Case) -> list[UnitResult]:
        """Return the results of a case that processes share, none for another case.

        Units that nobody has asked are asked, and those that others ask are waited for.
        """
        from pytest_kbrel.session.units import UnitResult

        nodeid = f"{case.suite}::{case.id}"
        units = self.units.get(nodeid)
        if not units:
            return []
        self._claim(case)
        while len(self.store.asked_units(nodeid)) < len(units):
            time.sleep(_PAUSE)
            self._claim(case)
        return [
            from_wire(UnitResult, json.loads(text))
            for text in self.store.results(nodeid)
        ]

    def _check_scorable(self, case: Case) -> None:
        if is_scored(case) and (why := self.pool.unscorable()):
            # The model reasons first, so its answers have no probabilities.
            raise no_probabilities(case.probe, why)

    def _prepare(self, case: Case) -> Case:
        """Return a case with the distractors and the examples that it is asked with."""
        prepared = replace(
            case,
            top_k=self.settings.top_k,
            chat=self.pool.fingerprint().chat_template,
        )
        prepared = self._retrieval.with_distractors(prepared)
        return self.pool.with_examples(prepared) or self._retrieval.with_examples(
            prepared
        )

    def _comparison(self, suite: str) -> Comparison:
        """Return what the cases of a suite are compared with; a test in Python has no suite."""
        from pytest_kbrel.gates import Comparison

        settings, baseline = self.settings, self.baseline()
        facts = {
            # What may have an answer by now is not asked.
            f"{suite}::{case.id}": {*case.expired, *(fact.id for fact in case.facts)}
            for of in self._suites()
            for case in of.cases
            if of.path == suite and same_draw(baseline, settings.limit, settings.seed)
        }
        return Comparison(
            baseline=baseline,
            comparisons=self.family(suite),
            model=self.pool.fingerprint(),
            judge=settings.judge,
            helper=lambda name: {of.spec: of for of in self.pool.helpers()}.get(name),
            facts=facts,
        )

    def _open_helpers(self, case: Case) -> None:
        """Open the models that judge or write for a case, which a baseline names though they answered nothing."""
        from pytest_kbrel.probes.base import is_judged

        if is_judged(case) and case.judge != RULES:
            self.pool.helper(case.judge)
        if case.settings.writer:
            self.pool.helper(case.settings.writer)

    def close(self) -> None:
        """Free the models."""
        self.pool.close()
        self._retrieval.close()

    def family(self, suite: str) -> int:
        """Return m of a suite; of a test in Python, which has none, that of all suites of the session."""
        families = {of.path: family_size(of) for of in self._suites()}
        return max(families.get(suite, sum(families.values())), 1)

    def looks(self, case: Case) -> tuple[Looks | None, ...]:
        """Return the looks at a case, ``None`` alone where it is asked at once; a replay has those recorded.

        A budget is shared out beforehand, to all cases of the suites by their facts.
        """
        from pytest_kbrel.gates import planned_looks

        if not self.settings.until_decided:
            return (None,)
        facts = len(case.facts)
        if self.settings.budget is not None:
            total = sum(len(of.facts) for suite in self._suites() for of in suite.cases)
            facts = min(
                facts, max(facts * self.settings.budget // max(total, facts), 1)
            )
        looks = planned_looks(case, facts)
        return looks[
            : self.pool.recorded_looks(f"{case.suite}::{case.id}") or len(looks)
        ]
