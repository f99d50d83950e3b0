"""One case asked and decided without a session."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from pytest_kbrel.errors import KbrelError, ModelError
from pytest_kbrel.models import registry
from pytest_kbrel.plugin import worker as module
from pytest_kbrel.plugin.worker import CaseRunner
from pytest_kbrel.records import Fact, Gate, Relation, Table
from tests.function_model import FunctionModel
from tests.made_cases import made_case, made_options, made_suite
from tests.reported import read_responses
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
    assert result.errors == ()
    assert result.duration > 0
    runner.store.dump(tmp_path / "responses.jsonl", [])
    written = list(read_responses(tmp_path / "responses.jsonl"))
    assert [(one.case, one.ask.fact_id, one.ask.to) for one in written] == [
        ("mini.kb.yaml::head_to_tail[a]", land, "") for land in CITIES
    ]
    runner.close()
    assert models["hf/a/m"].closed


def test_responses_that_cannot_be_kept_end_the_case(tmp_path, models):
    (tmp_path / "out").touch()
    with pytest.raises(KbrelError, match=r"responses cannot be kept: "):
        made(tmp_path, CASE).decide(CASE)


def test_the_baseline_model_gets_the_same_requests_and_its_responses_are_marked(
    tmp_path, models
):
    case = replace(CASE, gates=(Gate(metric="accuracy", rule="max_drop", bound=0.0),))
    runner = made(tmp_path, case, baseline_model="hf/a/b")
    result = runner.decide(case)
    # Those of the other model are none of this case's own.
    assert result.requests == 4
    assert [row.label for row in result.base.rows] == [
        "correct",
        "wrong",
        "correct",
        "correct",
    ]
    assert [change.fact_id for change in result.gained] == ["Peru"]
    runner.store.dump(tmp_path / "responses.jsonl", [])
    written = list(read_responses(tmp_path / "responses.jsonl"))
    assert [one.ask.to for one in written] == [""] * 4 + ["baseline"] * 4
    assert models["hf/a/m"].requests == models["hf/a/b"].requests


def test_a_model_that_says_nothing_is_no_ground_for_a_comparison(tmp_path, models):
    with pytest.raises(
        ModelError,
        match=r"^head_to_tail\[a\]: nothing can be compared with --kb-baseline-model: ",
    ):
        made(tmp_path, CASE, baseline_model="hf/a/mute").decide(CASE)
