"""One case asked and decided without a session."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from pytest_kbrel.errors import KbrelError, ModelError
from pytest_kbrel.models import attribution, registry
from pytest_kbrel.plugin import worker as module
from pytest_kbrel.plugin.worker import CaseRunner
from pytest_kbrel.records import AggregateCase, Attribution, Fact, Gate, Relation, Table
from pytest_kbrel.reports.responses import read_responses
from pytest_kbrel.session.run_builder import (
    SessionResults,
    baseline_of_session,
    decide_aggregates,
)
from tests.function_model import FunctionModel
from tests.made_cases import made_case, made_options, made_result, made_suite
from tests.stub_config import StubConfig

CITIES = {"France": "Paris", "Peru": "Lima", "Norway": "Oslo", "Japan": "Tokyo"}


def with_facts(name, *gates, **settings):
    """Return a case about four capitals."""
    relation = Relation(
        id="P36",
        label="capital",
        domain="places",
        frames=("What is the capital of [X]?",) * 2,
    )
    facts = tuple(
        Fact(
            id=land,
            relation="P36",
            subject=land,
            object=city,
            negatives=tuple(
                other for other in (*CITIES.values(), "Rome", "Bern") if other != city
            ),
        )
        for land, city in CITIES.items()
    )
    return replace(
        made_case(name, **settings), facts=facts, relations=(relation,), gates=gates
    )


def knows(prompt):
    question = prompt.rpartition("Question: ")[2]
    return next((city for land, city in CITIES.items() if land in question), "unsure")


def errs(prompt):
    return "Rome" if "Peru" in prompt.rpartition("Question: ")[2] else knows(prompt)


@pytest.fixture
def models(monkeypatch):
    """Open scripted models by their specs: ``hf/a/m`` and others know the capitals, ``hf/a/b`` errs once."""
    actual = {}

    def open_model(spec, **how):
        answers = {"hf/a/b": errs, "hf/a/mute": lambda prompt: ""}.get(spec.text, knows)
        actual[spec.text] = FunctionModel(
            answers, lambda prompt, continuation: 0.5, name=spec.text
        )
        return actual[spec.text]

    monkeypatch.setattr(registry, "open_model", open_model)
    return actual


def made(folder, *cases, worker=None, **settings):
    """Return a bench of a session that selected these cases of one suite."""
    config = StubConfig(folder, worker=worker)
    suite = made_suite(*cases)
    config.stash[module.collection.suites_key] = {"mini.kb.yaml": suite}
    items = [SimpleNamespace(nodeid=f"mini.kb.yaml::{case.id}") for case in cases]
    session = SimpleNamespace(config=config, items=items)
    return CaseRunner(
        session,
        made_options(**({"model": "hf/a/m", "output_path": folder / "out"} | settings)),
    )


def accuracy(result):
    return next(value.value for value in result.metrics if value.name == "accuracy")


CASE = with_facts("head_to_tail[a]", Gate(metric="accuracy", rule="min", bound=0.5))


def test_a_case_is_asked_written_down_and_decided(tmp_path, models):
    runner = made(tmp_path, CASE)
    result = runner.decide(CASE)
    assert (result.verdict, accuracy(result), result.requests, result.n) == (
        "pass",
        1.0,
        4,
        4,
    )
    assert result.base == Table(columns=(), rows=())
    assert result.attributions == result.errors == ()
    assert result.duration > 0
    written = list(read_responses(tmp_path / "out" / ".parts" / "0123" / "main.jsonl"))
    assert [(one.case, one.ask.fact_id, one.ask.to) for one in written] == [
        ("mini.kb.yaml::head_to_tail[a]", land, "") for land in CITIES
    ]
    runner.close()
    assert models["hf/a/m"].closed


def test_responses_that_cannot_be_kept_end_the_case(tmp_path, models):
    (tmp_path / "out").touch()
    with pytest.raises(KbrelError, match=r"main\.jsonl: responses cannot be kept: "):
        made(tmp_path, CASE).decide(CASE)


def test_the_baseline_model_gets_the_same_requests_and_its_responses_are_marked(
    tmp_path, models
):
    case = replace(CASE, gates=(Gate(metric="accuracy", rule="max_drop", bound=0.0),))
    result = made(tmp_path, case, baseline_model="hf/a/b").decide(case)
    # Those of the other model are none of this case's own.
    assert result.requests == 4
    assert [row.label for row in result.base.rows] == [
        "correct",
        "wrong",
        "correct",
        "correct",
    ]
    assert [change.fact_id for change in result.gained] == ["Peru"]
    written = list(read_responses(tmp_path / "out" / ".parts" / "0123" / "main.jsonl"))
    assert [one.ask.to for one in written] == [""] * 4 + ["baseline"] * 4
    assert models["hf/a/m"].requests == models["hf/a/b"].requests


def test_a_model_that_says_nothing_is_no_ground_for_a_comparison(tmp_path, models):
    with pytest.raises(
        ModelError,
        match=r"^head_to_tail\[a\]: nothing can be compared with --kb-baseline-model: ",
    ):
        made(tmp_path, CASE, baseline_model="hf/a/mute").decide(CASE)


@pytest.mark.parametrize("count", [0, 3])
def test_the_worst_facts_are_explained_two_ways_each(
    tmp_path, models, monkeypatch, count
):
    def attribute(model, ask):
        return Attribution(
            **{
                "fact_id": ask.fact_id,
                "role": ask.role,
                "prompt": "",
                "target": "",
                "tokens": (),
            },
            **{"scores": (), "log_probability": 0.0, "error": 0.0},
        )

    monkeypatch.setattr(attribution, "attribute", attribute)
    case = with_facts("monitor[a]", negatives=2)
    actual = made(tmp_path, case, attribute=count).decide(case).attributions
    assert len({one.fact_id for one in actual}) == count
    assert [one.role for one in actual] == ["negative1:0", "none:0"] * count


@pytest.mark.parametrize(("others", "count"), [((), 1), (("max_drop",) * 3, 2)])
def test_a_case_is_corrected_for_the_comparing_cases_of_its_suite(
    tmp_path, models, monkeypatch, others, count
):
    calls = []
    monkeypatch.setattr(
        "pytest_kbrel.gates.decide_case",
        lambda *given, **how: calls.append(how) or made_result(),
    )
    gates = (
        Gate(metric="accuracy", rule="max_drop", bound=0.1),
        Gate(metric="f1", rule="recovery", bound=0.1),
    )
    case = with_facts("head_to_tail[a]", *gates)
    made(
        tmp_path, case, *([made_case("head_to_tail[b]", *others)] if others else [])
    ).decide(case)
    # A test in Python may check a case that no item of a suite is.
    made(tmp_path).decide(case)
    assert [how["comparisons"] for how in calls] == [count, 1]
    assert {how["baseline_asked"] for how in calls} == {False}


@pytest.mark.parametrize(
    ("case", "helpers"),
    [
        (replace(CASE, judge="hf/a/j"), ["hf/a/j"]),
        (replace(with_facts("monitor[a]", negatives=2), judge="hf/a/j"), []),
        (
            replace(
                with_facts("reliability[seen]", choices=1, distractors_from="hf/a/w"),
                judge="hf/a/j",
            ),
            ["hf/a/j", "hf/a/w"],
        ),
    ],
)
def test_helpers_of_a_case_are_listed_even_without_a_request(
    tmp_path, models, case, helpers
):
    runner = made(tmp_path, case, judge=case.judge)
    runner.decide(case)
    assert [one.spec for one in runner.pool.helpers()] == helpers


def test_suites_are_those_collected_here_or_read(tmp_path, monkeypatch):
    config = StubConfig(tmp_path)
    collected = made_suite()
    config.stash[module.collection.suites_key] = {"a.kb.yaml": collected}
    read = []

    def load(path, nodeid, options):
        read.append((path, nodeid))
        return replace(collected, path=nodeid)

    monkeypatch.setattr(module.collection, "load", load)
    nodeids = ["a.kb.yaml::x", "deep/b.kb.yaml::y", "a.kb.yaml::z", "test_own.py::t"]
    actual = module.suites_of(config, nodeids, made_options())
    assert [suite.path for suite in actual] == ["mini.kb.yaml", "deep/b.kb.yaml"]
    assert read == [(tmp_path / "deep" / "b.kb.yaml", "deep/b.kb.yaml")]


OVERALL = AggregateCase(
    id="head_to_tail[overall]",
    suite="mini.kb.yaml",
    probe="head_to_tail",
    slice="overall",
    members=("head_to_tail[a]", "head_to_tail[b]"),
    gates=(Gate(metric="gap", rule="max_drop", bound=0.1),),
)


@pytest.mark.parametrize(
    ("aggregate", "judged"),
    [
        (OVERALL, True),
        (replace(OVERALL, members=("monitor[a]", "head_to_tail[b]")), True),
        (replace(OVERALL, members=("monitor[a]", "monitor[b]")), False),
    ],
)
def test_an_aggregate_is_decided_over_its_members_that_took_part(
    monkeypatch, aggregate, judged
):
    calls = []
    monkeypatch.setattr(
        "pytest_kbrel.gates.decide_aggregate",
        lambda *given, **how: (
            calls.append((given, how))
            or made_result("mini.kb.yaml::head_to_tail[overall]")
        ),
    )
    monkeypatch.setattr(
        "pytest_kbrel.session.run_builder.incomparable", lambda *given, **how: how
    )
    suite = made_suite(
        *(made_case(name, "max_drop") for name in aggregate.members),
        aggregates=(aggregate,),
    )
    ids = [f"mini.kb.yaml::{name}" for name in aggregate.members]
    results = SessionResults(expected=dict.fromkeys(ids[:1]))
    more = {"model": None, "baseline": None, "judge": "openai/j"}

    def decide():
        return list(decide_aggregates([suite], results, **more))

    assert decide() == []
    results.expected[ids[1]] = None
    results.add(ids[0], made_result(ids[0]))
    assert [actual.id for _, actual in decide()] == ["head_to_tail[overall]"]
    ((_, results), how) = calls[0]
    # One that failed before it could measure is no result, and the aggregate is told without it.
    assert [result.nodeid for result in results] == ids[:1]
    assert how["comparisons"] == 3
    assert how["incomparable"] == {"judged": judged, "judge": None, "writers": []}


def test_what_the_other_model_of_a_session_answered_is_a_baseline(models):
    base = FunctionModel(name="base").describe()
    results = SessionResults()
    rows = Table(columns=("correct",), rows=(SimpleNamespace(fact_id="f"),))
    results.add("x", made_result("mini.kb.yaml::head_to_tail[a]", base=rows))
    results.add("y", made_result("mini.kb.yaml::head_to_tail[b]"))
    actual = baseline_of_session(base, results, "openai/j")
    assert actual.model == base
    assert actual.case("mini.kb.yaml::head_to_tail[a]") is not None
    assert actual.case("mini.kb.yaml::head_to_tail[b]") is None
