"""The results of a session, collected report by report."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_kbrel.session.run_builder import SessionResults
from tests.made_cases import RECORDED_MODEL, made_report, made_result

FILE = "mini.kb.yaml"
ONE, TWO = f"{FILE}::head_to_tail[a]", f"{FILE}::monitor[b]"
JUDGE = replace(RECORDED_MODEL, spec="openai/j", backend="openai")


def session(*expected, **more):
    return SessionResults(expected=dict.fromkeys(expected), **more)


@pytest.mark.parametrize(
    ("came", "outcome"),
    [
        ([made_report()], "passed"),
        ([made_report(when="setup")], None),
        ([made_report(when="setup", outcome="failed")], "failed"),
        ([made_report(), made_report(when="teardown", outcome="failed")], "failed"),
        ([made_report(wasxfail="why")], "xfail"),
        ([made_report(outcome="failed", when="???")], "failed"),
    ],
)
def test_the_outcome_of_an_item_is_that_of_its_call_or_of_what_failed(came, outcome):
    results = SessionResults()
    for one in came:
        results.note(one)
    assert results.outcomes.get(ONE) == outcome


@pytest.mark.parametrize(
    ("one", "cases_of", "expected"),
    [
        (made_report(outcome="failed", kbrel_uses_model=True), {}, True),
        (made_report(outcome="failed", kbrel_uses_model=True), {ONE: ["x"]}, False),
        (made_report(outcome="failed"), {}, False),
    ],
)
def test_a_test_in_python_is_expected_once_it_fails_and_asks(one, cases_of, expected):
    results = SessionResults(cases_of=cases_of)
    results.note(one)
    assert (ONE in results.expected) is expected


def test_what_workers_report_adds_up():
    results = SessionResults()
    other = replace(JUDGE, spec="openai/w")
    results.add_help([JUDGE], 5, 2)
    results.add_help([other, JUDGE], 1, 1)
    results.add_help([], 0, 0)
    assert (list(results.helpers), results.helper_counts) == (
        ["openai/j", "openai/w"],
        [6, 3],
    )
    results.add_answers("", 4, 1)
    results.add_answers("a full disk", 2, 2)
    results.add_answers("another", 0, 0)
    assert (results.answer_counts, results.cache_problem) == ([6, 3], "a full disk")
    results.add_loading(0.5, "packed, writing")
    results.add_loading(2.0, "")
    results.add_loading(1.0, "packed, plain")
    assert (results.load_seconds, list(results.engines)) == (
        2.0,
        ["packed", "writing", "plain"],
    )


@pytest.mark.parametrize(
    ("crashed", "cases_of", "expected", "actual"),
    [
        ("tests/t.py::a", {"tests/t.py::b": ["x"]}, [], True),
        ("tests/t.py::a", {}, ["tests/t.py::b"], True),
        ("tests/t.py::a", {"tests/u.py::b": ["x"]}, ["tests/v.py::c"], False),
    ],
)
def test_where_a_worker_died_a_result_is_expected_if_neighbours_ask(
    crashed, cases_of, expected, actual
):
    results = session(*expected, cases_of=cases_of)
    results.note(made_report(crashed, outcome="failed", when="???"))
    results.expect_crashed()
    assert (crashed in results.expected) is actual


@pytest.mark.parametrize(
    ("outcome", "result", "error"),
    [
        (
            None,
            False,
            "no report arrived for this item: it was expected and never ended",
        ),
        (
            "passed",
            False,
            "this item ended without a measurement: nothing it says can be a pass",
        ),
        ("skipped", False, None),
        ("passed", True, None),
    ],
)
def test_an_expected_item_must_end_and_measure(outcome, result, error):
    results = session(ONE, outcomes={} if outcome is None else {ONE: outcome})
    if result:
        results.add(ONE, made_result())
    assert list(results.unaccounted()) == ([] if error is None else [(ONE, error)])


@pytest.mark.parametrize(
    ("expected", "outcomes", "decided_ids", "took_part", "measured"),
    [
        ([ONE], {}, [ONE], False, True),
        ([ONE, TWO], {}, [ONE], True, False),
        ([ONE, TWO], {TWO: "skipped"}, [ONE], False, True),
        ([ONE, TWO], {TWO: "failed"}, [ONE], True, False),
    ],
)
def test_an_aggregate_needs_all_its_members_and_a_run_all_it_expected(
    expected, outcomes, decided_ids, took_part, measured
):
    results = session(*expected, outcomes=outcomes)
    for nodeid in decided_ids:
        results.add(nodeid, made_result(nodeid))
    assert results.took_part([ONE, TWO]) is took_part
    assert results.all_measured() is measured


@pytest.mark.parametrize(
    ("verdicts", "failing", "unanswered", "actual"),
    [
        (["fail"], True, 0, True),
        (["invalid"], True, 3, False),
        (["invalid", "fail"], True, 3, True),
        (["fail"], False, 0, False),
    ],
)
def test_an_item_failed_by_what_was_measured(verdicts, failing, unanswered, actual):
    results = session(ONE, failures={ONE: "why"} if failing else {})
    for number, verdict in enumerate(verdicts):
        results.add(ONE, made_result(f"{FILE}::head_to_tail[{number}]", verdict))
    assert results.failed_measured(unanswered) is actual
