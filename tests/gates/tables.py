"""Outcome tables and cases for tests of gates, aggregates and baselines."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pytest_kbrel.baselines import Baseline, BaselineCase, case_key
from pytest_kbrel.gates import Comparison, Outcomes, decide_aggregate, decide_case
from pytest_kbrel.gates.figures import figures_of
from pytest_kbrel.gates.measurement import measure_figures, pair
from pytest_kbrel.metrics import MetricFormula
from pytest_kbrel.records import (
    AggregateCase,
    Case,
    CaseKind,
    CaseResult,
    Fingerprint,
    Gate,
    GateResult,
    HeadToTailSettings,
    Label,
    MetricValue,
    Outcome,
    ProbeName,
    Relation,
    Table,
    Waiver,
)

HEAD_TO_TAIL = ("correct", "missing", "f1", "rouge_l")
RELIABILITY = (
    "correct",
    "wrong",
    "uninformative",
    "consistency_correct",
    "consistency_wrong",
)
MONITOR = ("kept", "pfd", "ird", "term", "anchor", "cell:none:0", "cell:positive:0")


def outcome(fact: str, values: Sequence[float], label: Label, **more: Any) -> Outcome:
    """One row; a fact has an expected answer unless ``expected`` says otherwise."""
    given = {
        "question": f"What of {fact}?",
        "expected": f"gold {fact}",
        "answer": f"{label} {fact}",
        "prompt_digest": f"digest of {fact}",
        **more,
    }
    return Outcome(fact_id=fact, values=tuple(map(float, values)), label=label, **given)


def answers(marks: str, prefix: str = "Q", **more: Any) -> Table:
    """A head-to-tail table: + correct, - wrong, ? missing."""
    rows = {
        "+": ((1, 0, 1, 1), "correct"),
        "-": ((0, 0, 0.5, 0.25), "wrong"),
        "?": ((0, 1, 0, 0), "uninformative"),
    }
    return Table(
        columns=HEAD_TO_TAIL,
        rows=tuple(
            outcome(f"{prefix}{i:03}", *rows[m], **more) for i, m in enumerate(marks)
        ),  # type: ignore[arg-type]
    )


def scores(values: Sequence[float], prefix: str = "Q") -> Table:
    """A head-to-tail table of soft scores without missing answers."""
    return Table(
        columns=HEAD_TO_TAIL,
        rows=tuple(
            outcome(f"{prefix}{i:03}", (0, 0, v, v), "wrong")
            for i, v in enumerate(values)
        ),
    )


def consistency(
    rows: Sequence[tuple[str, float]], prefix: str = "Q", expected: bool = True
) -> Table:
    """A reliability table of (mark, consistency score)."""
    made = []
    for i, (mark, score) in enumerate(rows):
        right, wrong = float(mark == "+"), float(mark == "-")
        values = (right, wrong, float(mark == "?"), right * score, wrong * score)
        label: Label = "correct" if right else "wrong" if wrong else "uninformative"
        more = {} if expected else {"expected": ""}
        made.append(outcome(f"{prefix}{i:03}", values, label, **more))
    return Table(columns=RELIABILITY, rows=tuple(made))


def measure(
    table: Table, metrics: Sequence[MetricFormula], before: Table | None = None
) -> tuple[MetricValue, ...]:
    """The metrics of one case's table, against another one paired by fact id."""
    pairings = () if before is None else (pair(table, before),)
    figures = figures_of(metrics)
    return measure_figures(figures, (table,), pairings).values


def only(result: CaseResult) -> GateResult:
    """The result of the one gate of a case."""
    (actual,) = result.gates
    return actual


def value(result: CaseResult, name: str) -> MetricValue:
    """A metric of a case."""
    return next(metric for metric in result.metrics if metric.name == name)


def gate(metric: str, rule: Any, bound: float, **more: float) -> Gate:
    """A gate stated on line 7; ``more`` are ``beyond`` and ``never``."""
    return Gate(metric=metric, rule=rule, bound=bound, line=7, **more)


def case(
    *gates: Gate,
    probe: ProbeName = "head_to_tail",
    slice: str = "world-head",
    **more: Any,
) -> Case:
    """A case of the suite ``suites/world.kb.yaml``; its facts are in the tables alone."""
    given: dict[str, Any] = {
        "id": f"{probe}[{slice}]",
        "suite": "suites/world.kb.yaml",
        "facts": (),
        "relations": (
            Relation(
                id="P36", label="capital", domain="place", frames=("Capital of [X]?",)
            ),
        ),
        "settings": HeadToTailSettings(),
    }
    return Case(probe=probe, slice=slice, gates=gates, **{**given, **more})


def blessed(table: Table) -> BaselineCase:
    """The table as a baseline has it: without questions and expected answers."""
    rows = tuple(
        outcome(row.fact_id, row.values, row.label, answer=row.answer, prompt_digest=row.prompt_digest,
                question="", expected="", top=row.top)
        for row in table.rows
    )  # fmt: skip
    return BaselineCase(table=Table(columns=table.columns, rows=rows))


def decided(
    of: Case, table: Table, before: Table | BaselineCase | None = None, **more: Any
) -> CaseResult:
    """Decide a case against ``before`` (a table, or a case of a baseline), if given."""
    given = {key: more.pop(key) for key in ("errors", "looks") if key in more}
    outcomes = Outcomes(table=table, **given)
    return decide_case(of, outcomes, comparison(of, before, **more))


def comparison(
    of: Case | CaseResult, before: Table | BaselineCase | None, **more: Any
) -> Comparison:
    """What a case is compared with, by a candidate of other weights; ``more`` are other fields."""
    if before is not None:
        known = blessed(before) if isinstance(before, Table) else before
        more["baseline"] = run_of(cases={case_key(of.suite, of.id): known})
    return Comparison(**{"model": model(weights_digest="candidate's"), **more})


def model(**more: str) -> Fingerprint:
    """The model of the baseline; ``more`` are other fields of it."""
    names = "spec backend backend_version architecture weights_digest tokenizer_digest dtype device"
    return Fingerprint(**{**dict.fromkeys(names.split(), "x"), "parameters": 1, **more})  # type: ignore[arg-type]


def run_of(*before: CaseResult, **more: Any) -> Baseline:
    """A blessed run of these cases; ``more`` are other fields of it."""
    cases = {case_key(of.suite, of.id): blessed(of.table) for of in before}
    given: dict[str, Any] = {
        **dict.fromkeys(("kbrel_version", "created", "reason", "commit"), ""),
        **{"path": Path("b"), "versions": (), "model": model(), "settings": ()},
    }
    return Baseline(**{**given, "cases": cases, **more})


def over(
    of: Sequence[CaseResult],
    *gates: Gate,
    named: Sequence[str] | None = None,
    probe: CaseKind | None = None,
    id: str = "overall",
    waivers: Sequence[Waiver] = (),
    **more: Any,
) -> CaseResult:
    """Decide an aggregate over these cases, or over those that are named."""
    aggregate = AggregateCase(
        id=id,
        suite="suites/world.kb.yaml",
        probe=probe or of[0].probe,
        slice="overall",
        members=tuple([one.id for one in of] if named is None else named),
        gates=gates,
        waivers=tuple(waivers),
    )
    return decide_aggregate(aggregate, of, comparison(of[0], None, **more))
