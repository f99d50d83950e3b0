"""One case asked and decided without a session."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from pytest_kbrel.errors import KbrelError, ModelError
from pytest_kbrel.models import registry
from pytest_kbrel.plugin import worker as module
from pytest_kbrel.plugin.worker import CaseRunner
from pytest_kbrel.records import Fact, Gate, Relation
from tests.function_model import FunctionModel
from tests.made_cases import made_case, made_options, made_suite
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


CASE = with_facts("head_to_tail[a]", Gate(metric="accuracy", rule="min", bound=0.5))


def test_responses_that_cannot_be_kept_end_the_case(tmp_path, models):
    (tmp_path / "out").touch()
    with pytest.raises(KbrelError, match=r"responses cannot be kept: "):
        made(tmp_path, CASE).decide(CASE)


def test_a_model_that_says_nothing_is_no_ground_for_a_comparison(tmp_path, models):
    with pytest.raises(
        ModelError,
        match=r"^head_to_tail\[a\]: nothing can be compared with --kb-baseline-model: ",
    ):
        made(tmp_path, CASE, baseline_model="hf/a/mute").decide(CASE)
