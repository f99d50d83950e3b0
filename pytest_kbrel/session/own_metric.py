"""A metric of a test in Python: measured fact by fact, and decided as any case is."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

from pytest_kbrel.baselines import session_baseline
from pytest_kbrel.bounds import FIGURE
from pytest_kbrel.catalogue.metrics import CHANGE_METRICS, Metric
from pytest_kbrel.errors import KbrelError
from pytest_kbrel.evaluation.model_under_test import ModelUnderTest
from pytest_kbrel.gates import Outcomes, decide_case, part_result
from pytest_kbrel.probes.base import digest_of
from pytest_kbrel.records import (
    BASELINE,
    Ask,
    Case,
    CaseResult,
    Exchange,
    Fact,
    Failed,
    Gate,
    Generated,
    HeadToTailSettings,
    Label,
    Outcome,
    Table,
    facts_asked,
)
from pytest_kbrel.session.case_asker import NO_TABLE, CaseAsker
from pytest_kbrel.suites.gates import as_gate

Measure = Callable[[Fact], float]


def own_case(
    nodeid: str,
    metric: Measure,
    facts: Sequence[Fact],
    name: str,
    rules: Mapping[str, float],
) -> Case:
    """Return what a test asks about as a case, of which the settings say nothing.

    ``nodeid`` is that of the test, ``name`` that of the metric, by default the function's own; ``rules`` are
    those of gates, with their bounds. Raises ``KbrelError`` on a wrong one.
    """
    name = name or getattr(metric, "__name__", "")
    if not (name.isascii() and name.isidentifier()) or name in CHANGE_METRICS:
        raise KbrelError(
            f"kb_check: found {name!r} as the name of a metric; allowed: name=..., of ASCII letters, digits "
            f"and _, and not {', '.join(CHANGE_METRICS)}"
        )
    if not facts:
        raise KbrelError(
            "kb_check: found no facts, and zero facts are no measurement; allowed: facts=..."
        )
    if len({fact.id for fact in facts}) < len(facts):
        raise KbrelError("kb_check: found facts with one id; allowed: each fact once")
    # Its values are not known yet: what it has in common with all metrics is that more is better.
    known = Metric(name=name, better="higher", about="", low=-FIGURE, high=FIGURE)
    gates = []
    for key, value in rules.items():
        try:
            rule, bound = as_gate(key, value, known)
        except ValueError as error:
            raise KbrelError(f"kb_check: {error}") from None
        gates.append(Gate(metric=name, rule=rule, bound=float(bound)))
    suite, _, test = nodeid.partition("::")
    # As pytest joins the parameters of a test; what parts a class from it also parts a suite from its cases.
    test = test.replace("::", ".")
    head, tail = (test[:-1], f"-{name}]") if test.endswith("]") else (test, f"[{name}]")
    return Case(
        id=head + tail,
        suite=suite,
        probe="questions",
        slice=name,
        facts=tuple(facts),
        relations=(),
        settings=HeadToTailSettings(),
        gates=tuple(gates),
        own_metric=True,
    )


def decide_own(
    asker: CaseAsker, model: ModelUnderTest, case: Case, metric: Measure
) -> CaseResult:
    """Measure a metric over the facts of a case and judge its gates; the answers it asked for are kept.

    Raises ``KbrelError`` where a value is no finite number, and what ``metric`` raises.
    """
    started, settings, pool = time.perf_counter(), asker.settings, asker.pool
    facts = facts_asked(case, settings.shard)
    pool.check_files()
    with _asking(model, case, ""):
        table, requests = _measured(asker, model, case, facts, metric)
    there = {f"{case.suite}::{case.id}": {fact.id for fact in case.facts}}
    comparison = replace(asker.comparison(case.suite), facts=there)
    base = NO_TABLE
    if settings.baseline_model:
        with _asking(model, case, BASELINE):
            base, _ = _measured(asker, model, case, facts, metric)
        fingerprint = pool.base()
        assert fingerprint is not None
        answered = (case.suite, case.id, base, ())
        baseline = session_baseline(fingerprint, [answered], judge=settings.judge)
        comparison = replace(comparison, baseline=baseline)
    pool.check_files()
    if settings.shard is None:
        result = decide_case(case, Outcomes(table=table), comparison)
    else:
        result = part_result(case, len(facts), ())
    return replace(
        result, requests=requests, duration=time.perf_counter() - started, base=base
    )


@contextmanager
def _asking(model: ModelUnderTest, case: Case, to: str) -> Iterator[None]:
    before = model.to, model.case
    model.to, model.case = to, f"{case.suite}::{case.id}"
    try:
        yield
    finally:
        model.to, model.case = before


def _measured(
    asker: CaseAsker,
    model: ModelUnderTest,
    case: Case,
    facts: Sequence[Fact],
    metric: Measure,
) -> tuple[Table, int]:
    """Return a row for each fact with the metric's value, and how many requests it took."""
    rows, requests = [], 0
    for fact in facts:
        model.asked.clear()
        value = metric(fact)
        asked = tuple(model.asked)
        requests += len(asked)
        keep_asked(asker, model, fact.id)
        if not isinstance(value, (int, float)) or not math.isfinite(value):
            raise KbrelError(
                f"{case.slice}: found {value!r} for fact {fact.id!r}; allowed: a finite number, or True and False"
            )
        responses = [of for _, of in asked if not isinstance(of, Failed)]
        texts = [of for of in responses if isinstance(of, Generated)]
        good: Label = "correct" if fact.accepted else "uninformative"
        rows.append(
            Outcome(
                fact_id=fact.id,
                question=fact.question or fact.subject,
                expected=fact.object or "",
                answer=texts[-1].text if texts else "",
                label=good if value else "wrong",
                values=(float(value),),
                # What is asked next may depend on the answer.
                prompt_digest=digest_of(case, fact, responses[:1]),
                cluster=fact.cluster(case.cluster),
            )
        )
    return Table(columns=(case.slice,), rows=tuple(rows)), requests


def keep_asked(asker: CaseAsker, model: ModelUnderTest, fact_id: str = "") -> None:
    """Keep what was asked since it was last kept, so that the run can be decided again without the model."""
    asker.store.add(
        [
            Exchange(
                case=model.case,
                ask=Ask(fact_id=fact_id, role="ask", request=request, to=model.to),
                response=response,
            )
            for request, response in model.asked
        ],
    )
    model.asked.clear()
