"""The run that is built of a session's results, and the files written of it."""

from dataclasses import replace

import pytest

from pytest_kbrel.records import (
    AggregateCase,
    Fact,
    MetricValue,
    Outcome,
    Table,
    Unmatched,
)
from pytest_kbrel.session.run_builder import (
    SessionResults,
    build_run,
    dump_responses,
)
from pytest_kbrel.session.suite_changes import suite_digest
from pytest_kbrel.store.run_store import RunStore
from tests.made_cases import (
    RECORDED_MODEL,
    made_case,
    made_options,
    made_result,
    made_suite,
)

FILE = "mini.kb.yaml"
ONE, TWO = f"{FILE}::head_to_tail[a]", f"{FILE}::monitor[b]"
OPTIONS = made_options(
    **{
        "model": "m",
        "model_args": "dtype=float32",
        "device": "cpu",
        "dtype": "bfloat16",
        "batch_size": "64",
    },
    **{
        "apply_chat_template": True,
        "judge": "openai/j",
        "judge_args": "seed=1",
    },
)
JUDGE = replace(RECORDED_MODEL, spec="openai/j", backend="openai")


def session(*expected, **more):
    return SessionResults(expected=dict.fromkeys(expected), **more)


def built(results, *suites):
    results.suites = suites
    return build_run(OPTIONS, results)


def test_a_run_counts_the_facts_that_were_compared():
    facts = tuple(
        Fact(id=f"f{at}", subject="s", relation="P1", object="o") for at in range(5)
    )
    suite = made_suite(
        replace(made_case("head_to_tail[a]"), facts=facts[:3]),
        replace(made_case("monitor[b]"), facts=facts[1:]),
    )
    rows = tuple(
        Outcome(
            fact_id=fact.id,
            **dict.fromkeys(("question", "expected", "answer", "prompt_digest"), ""),
            label="correct",
            values=(),
        )
        for fact in facts[:3]
    )
    metrics = (MetricValue(name="accuracy", better="higher", value=1.0, paired=2),)
    done = made_result(table=Table(columns=(), rows=rows), metrics=metrics)
    results = session(ONE, TWO)
    results.add(ONE, replace(done, unmatched=Unmatched(added=("f0",))))
    # f0 has no partner; f1 and f2 are in both cases.
    assert built(results, suite).compared == (2, 5)
    results.add(TWO, replace(done, id="monitor[b]"))
    assert built(results, suite).compared == (3, 5)


OVERALL = AggregateCase(
    id="head_to_tail[overall]",
    suite=FILE,
    probe="head_to_tail",
    slice="overall",
    members=("head_to_tail[a]", "monitor[b]"),
    gates=(),
)


@pytest.mark.parametrize(
    ("stopped", "expected", "reported"),
    [(True, (ONE, TWO), True), (False, (ONE, TWO), False)],
)
def test_where_a_session_stops_its_aggregates_are_not_run(stopped, expected, reported):
    results = session(*expected, stopped=stopped, begun={ONE})
    results.add(ONE, made_result())
    result = {
        case.nodeid: case
        for case in built(results, made_suite(aggregates=(OVERALL,))).cases
    }
    overall = result.get(f"{FILE}::head_to_tail[overall]")
    assert (overall is not None) is reported
    if overall is not None:
        assert overall == replace(
            made_result(overall.nodeid, "not run", n=0),
            slice="overall",
            aggregate=True,
            members=("head_to_tail[a]", "monitor[b]"),
            errors=("the session stopped before this case",),
        )
        assert result[TWO].verdict == "not run"


def test_a_suite_has_one_digest_wherever_its_values_come_from():
    # The judge may be the default, or typed: another object of the same text.
    judges = ("rules", "".join(["ru", "les"]))
    digests = {
        suite_digest(made_suite(replace(made_case(), judge=judge))) for judge in judges
    }
    assert len(digests) == 1
    assert suite_digest(made_suite(replace(made_case(), judge="other"))) not in digests


def test_responses_that_are_not_recorded_are_named(tmp_path):
    result = made_result()
    lacking = replace(result, requests=3)
    says = f"{result.nodeid}: only 0 of its 3 responses are recorded"
    assert [*dump_responses([lacking], RunStore(), tmp_path)] == [says]
    assert not [*dump_responses([result], RunStore(), tmp_path)]
