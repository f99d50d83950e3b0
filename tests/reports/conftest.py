"""Runs made by hand: a small one that reads like a real one, and one whose every string is hostile."""

from dataclasses import replace

import pytest

from pytest_kbrel.records import (
    CaseResult,
    Change,
    Fingerprint,
    GateResult,
    MetricValue,
    MovedCell,
    MovedFact,
    Outcome,
    Run,
    Share,
    Table,
    Unmatched,
    Waiver,
)
from tests.made_cases import told

SUITE = "suites/world.kb.yaml"
HOSTILE = (
    "<script>alert(1)</script>",
    "]]>",
    "\x1b[31mred\x1b[0m",
    "nul\x00bell\x07",
    "a | b || c",
    "`code` ```fence``` *bold* _it_ [x](http://evil.example) ![i](//evil.example)",
    "\u202eright-to-left\u202c \u200f \u2066x\u2069",
    "line\nbreak\r\n# heading\n- item\u2028sep",
    "\"><img src=x onerror='alert(2)'>",
    "\ud800 lone surrogate",
    "\x9b31m C1 \x85",
    "word " * 2000,
    "",
)


def fingerprint(spec="reference:overconfident"):
    return Fingerprint(
        spec=spec,
        backend="hf",
        backend_version="transformers 4.57.0",
        architecture="LlamaForCausalLM",
        parameters=1_234_567,
        weights_digest="ab" * 32,
        tokenizer_digest="cd" * 32,
        dtype="float32",
        device="cpu",
        scoring_version=1,
    )


def metric(name, value, delta=None, **more):
    lower = {"monitor", "pfd", "ird", "hallucination", "missing", "wr", "c_wrong"}
    fields = {
        "name": name,
        "better": "lower" if name in lower else "higher",
        "value": value,
        "n": 120,
    }
    if value is not None:
        fields |= {"low": value - 0.08, "high": value + 0.08}
    if value is not None and delta is not None:
        fields |= {
            "baseline": value - delta,
            "delta": delta,
            "delta_low": delta - 0.04,
            "delta_high": delta + 0.04,
            "p": 0.0004 if abs(delta) > 0.04 else 0.4,
            "mde": 0.05,
            "paired": 118,
        }
    return MetricValue(**(fields | more))


def change(at):
    return Change(
        fact_id=f"P30:{at}",
        question=f"On which continent is country {at}?",
        expected="Asia",
        old_answer="Asia",
        new_answer="Africa",
        relation="P30",
        bucket="head" if at < 5 else "tail",
        old_probability=0.95,
        new_probability=0.9 - 0.05 * (at % 10),
    )


def case(probe, part, verdict, metrics, **more):
    fields = {
        "id": f"{probe}[{part}]",
        "suite": SUITE,
        "probe": probe,
        "slice": part,
        "verdict": verdict,
        "n": 120,
        "duration": 1.25,
        "metrics": metrics,
        "gates": (),
    }
    return CaseResult(**(fields | more))


def gate(reason="", **more):
    """A gate on accuracy that failed."""
    given = {"metric": "accuracy", "rule": "max_drop", "bound": 0.02, "verdict": "fail"}
    return GateResult(**given | {"reasons": told(reason) if reason else ()} | more)


def moved_fact(**more):
    """The fact that moved MONITOR most: after a wrong context the model says something else."""
    given = {
        "metric": "monitor",
        "fact_id": "P30:1",
        "prompt": "Peru. On which continent is country 1?",
        "place": MovedCell(cell="negative2:0", answer=" Africa", probability=0.031),
        "expected": "Asia",
        "column": "ird",
    }
    return MovedFact(**given | {"now": 0.633, "before": 0.012, "anchor": 0.982} | more)


def monitored_case(part, verdict, figures, **more):
    """A slice of MONITOR with key metrics: (value, difference) each."""
    names = ("monitor", "pfd", "ird", "anchor_prob", "accuracy", "accuracy_max")
    values = (metric(name, *pair) for name, pair in zip(names, figures, strict=False))
    return case("monitor", part, verdict, tuple(values), **more)


def small():
    reason = "significantly worse than reference and by more than the tolerance"
    drop = gate(reason, line=17)
    limit = {"metric": "monitor", "rule": "max", "bound": 0.6, "verdict": "pass"}
    passed = gate("0.412 is within 0.6", line=16, **limit)
    worse = ((0.412, 0.031), (0.3, 0.0), (0.25, -0.0101), (0.701, -0.02))
    same = ((0.39, 0.0), (0.28, 0.0), (0.2, 0.0), (0.75, 0.004), (0.61, 0.0))
    answers = (("accuracy", 0.21, -0.02), ("hallucination", 0.5, 0.01))
    seen = {"cr": 0.6, "wr": 0.3, "ncr": 0.3, "c_correct": 0.8, "nccr": -0.2}
    unsure = replace(
        drop,
        verdict="inconclusive",
        reasons=told("the drop may be 0.06; 400 facts would decide"),
    )
    cases = (
        monitored_case(
            "P30",
            "fail",
            (*worse, (0.512, -0.071), (0.6, -0.01)),
            gates=(passed, drop),
            lost=tuple(change(at) for at in range(7)),
            gained=(change(99),),
        ),
        monitored_case("P17", "pass", same, gates=(passed,)),
        case(
            "head_to_tail",
            "open-tail",
            "inconclusive",
            (*(metric(*of) for of in answers), metric("missing", 0.29, 0.01)),
            gates=(unsure,),
        ),
        case(
            "reliability",
            "known-zero-shot",
            "pass",
            tuple(metric(name, value, 0.01) for name, value in seen.items()),
        ),
        case(
            "reliability",
            "unseen-zero-shot",
            "pass",
            (
                metric("ur", 0.7),
                metric("c_wrong", None, note="no wrong answer"),
                metric("iur", 0.9),
            ),
        ),
        overall("monitor", metric("monitor", 0.401, 0.01), n=2),
    )
    return Run(
        kbrel_version="0.1.0",
        created="2026-01-02T03:04:05+00:00",
        model=fingerprint(),
        environment=(("python", "3.11.9"), ("workers", "0")),
        settings=(("seed", "0"), ("limit", "")),
        cases=cases,
        baseline="reference",
        exit_status=1,
    )


def overall(probe, *values, **more):
    """A passed figure over all slices of a probe."""
    return case(probe, "overall", "pass", values, aggregate=True, **more)


def rich():
    """The small run with all that a comparison may leave to say."""
    run = small()
    failed, passed, unsure, *rest = run.cases
    drop = replace(
        failed.gates[1],
        observed=0.071,
        low=0.031,
        high=0.111,
        p=0.0004,
        p_sidak=0.012,
        p_holm=0.009,
        p_bh=0.002,
    )
    within = gate(
        "anchor_prob recovered 0.993 of the baseline",
        metric="anchor_prob",
        rule="recovery",
        bound=0.98,
        verdict="pass",
        observed=0.993,
        low=0.981,
        high=1.004,
        p=0.2,
        p_sidak=0.9,
    )
    failed = replace(
        failed,
        gates=(failed.gates[0], drop, within),
        settings=(("negatives", "5"), ("variant", "definition")),
        unmatched=Unmatched(added=("P30:7",), waived=("P30:8", "P30:9")),
        waiver=Waiver(
            owner="Ann",
            reason="known since the merge",
            expires="2026-03-01",
            case="monitor[P30]",
        ),
    )
    passed = replace(
        passed,
        lost=(
            replace(change(3), old_probability=None, new_probability=None),
            replace(change(11), relation="P17"),
        ),
        waiver=Waiver(
            owner="Bob",
            reason="was lost once",
            expires="2026-12-31",
            case="monitor[P17]",
        ),
        unmatched=Unmatched(unasked=("P17:1",)),
    )
    unsure = replace(
        unsure,
        integrity=(
            Share(name="answered", value=118, total=120, limit=0.5),
            Share(name="truncated", value=40, total=120, limit=0.5),
            Share(name="empty", value=2, total=120, limit=0.5),
        ),
    )
    pooled = overall("pooled", metric("accuracy", 0.43, -0.01), n=700)
    return replace(
        run,
        cases=(failed, passed, unsure, *rest, pooled),
        base=fingerprint("reference"),
        differences=(
            "dtype (float32 and bfloat16)",
            "backend version (4.57.0 and 4.56.1)",
        ),
        recorded="runs/nightly",
    )


def outcomes(columns, rows, label="correct"):
    """A table of outcomes: the values of each fact, the first one the model's answer."""
    columns = tuple(columns.split())
    made = [
        Outcome(
            fact_id=f"P30:{at}",
            question=f"Q{at} <b>",
            expected="Asia",
            answer="a",
            label=label,
            values=values,
            prompt_digest="d",
        )
        for at, values in enumerate(rows)
    ]
    return Table(columns=columns, rows=tuple(made))


def monitored(shift=0.0):
    """Ten facts with anchors from 0.05 to 0.95, and one that was left out."""
    rows = [(1.0, at / 10 + 0.05 + shift) for at in range(10)]
    return outcomes("kept anchor", [*rows, (0.0, 0.99)])


def with_facts(run):
    """The run with outcomes of a MONITOR case and of a Head-to-Tail case."""
    first, second, third, *rest = run.cases
    sure, right = (0.95, 0.95, 0.95, 0.95, 0.15, 0.15), (1.0, 1.0, 1.0, 0.0, 0.0, 0.0)
    rows = [(right[at], 1.0, sure[at]) for at in range(6)]
    answered = outcomes("correct answered answer_prob", [*rows, (0.0, 0.0, 0.5)])
    first, third = replace(first, table=monitored()), replace(third, table=answered)
    return replace(run, cases=(first, second, third, *rest))


def hostile():
    def say(at):
        return HOSTILE[at % len(HOSTILE)]

    keys = ("question", "expected", "old_answer", "new_answer", "relation")
    changes = tuple(
        replace(
            change(at),
            **{key: say(at + of) for of, key in enumerate(keys)},
            fact_id=f"f{at}",
            bucket=say(at + 5),
            old_probability=None,
        )
        for at in range(60)
    )
    cases = []
    words = ["fail", "invalid", "not-comparable", "no-baseline", "inconclusive", "pass"]
    verdicts = [word.replace("-", " ") for word in words]
    for at, text in enumerate(HOSTILE):
        probe = ("monitor", "head_to_tail", "reliability")[at % 3]
        odd = {"rule": "recovery", "verdict": "not comparable", "line": 3}
        odd_gate = gate(say(at + 4), metric=text, **odd)
        cases.append(
            case(
                probe,
                text,
                verdicts[at % len(verdicts)],
                (metric("accuracy", None, note=say(at + 5)), metric(text or "ur", 0.5)),
                suite=text[:200] or SUITE,
                gates=(odd_gate, replace(odd_gate, metric="accuracy")),
                lost=changes,
                gained=changes[:3],
                errors=HOSTILE,
                notes=HOSTILE,
                settings=((text, say(at + 6)),),
                integrity=(Share(name=text, value=3, total=4, limit=0.5, broken=True),),
                unmatched=Unmatched(added=HOSTILE, unasked=(text,), waived=HOSTILE * 3),
                waiver=Waiver(
                    owner=text, reason=say(at + 7), expires=say(at + 8), case=text
                ),
            )
        )
    over_all = overall("reliability", metric("nccr", None, note=HOSTILE[0]))
    cases.append(replace(over_all, verdict="no baseline"))
    return Run(
        kbrel_version="0.1.0",
        created="2026-01-02T03:04:05+00:00",
        model=fingerprint(HOSTILE[0] + HOSTILE[2] + HOSTILE[8]),
        environment=((HOSTILE[0], HOSTILE[1]),),
        settings=((HOSTILE[4], HOSTILE[6]),),
        cases=tuple(cases),
        baseline=HOSTILE[8],
        complete=False,
        problems=HOSTILE,
        exit_status=1,
        base=fingerprint(HOSTILE[1]),
        differences=HOSTILE,
        recorded=HOSTILE[2],
    )


@pytest.fixture
def rich_run():
    return rich()


@pytest.fixture
def small_run():
    return small()


@pytest.fixture
def hostile_run():
    return hostile()


@pytest.fixture
def empty_run():
    return replace(small(), cases=(), model=None, baseline="")


@pytest.fixture
def big_run():
    """A hundred failing cases with sixty lost facts each."""
    return many(100)


def many(count):
    """So many failing cases with sixty lost facts each, and all else there may be to say of them."""
    run = rich()
    worst = run.cases[0]
    assert worst.gates
    cases = tuple(
        replace(
            worst,
            id=f"monitor[P{at}]",
            slice=f"P{at}",
            lost=tuple(replace(change(i), relation=f"P{at}") for i in range(60)),
            integrity=run.cases[2].integrity,
        )
        for at in range(count)
    )
    return replace(run, cases=cases)


@pytest.fixture
def make_case():
    return case
