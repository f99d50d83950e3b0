"""Who answers in a process, as far as the settings say, and what it tells of its models."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_kbrel.errors import KbrelError, ModelError
from pytest_kbrel.evaluation import model_pool
from pytest_kbrel.evaluation.model_pool import (
    ModelPool,
    News,
    run_lock,
    spec_notes,
    with_specs,
)
from pytest_kbrel.models import registry
from pytest_kbrel.records import BASELINE, GenerateRequest
from pytest_kbrel.store.run_store import RunStore
from tests.function_model import FunctionModel
from tests.made_cases import made_options

ASK = GenerateRequest(prompt="Where?", max_new_tokens=4)
SERVER = "base_url=http://localhost:9/v1"


@pytest.mark.parametrize(
    ("settings", "kept"),
    [
        ({"model": "openai/m"}, True),
        ({"model": "reference", "baseline_model": f"openai/m,{SERVER}"}, True),
        ({"model": "reference"}, False),
        ({"model": "reference", "judge": "openai/j"}, False),
        ({"model": "openai/m", "from_run": Path("run")}, False),
    ],
)
def test_journals_are_kept_of_runs_that_ask_served_models(
    tmp_path: Path, settings: dict[str, Any], kept: bool
) -> None:
    options = made_options(**({"use_cache": tmp_path, "run": "0123"} | settings))
    assert (run_lock(options) is not None) is kept


@pytest.mark.parametrize(
    ("workers", "threads", "cpus", "result"),
    [
        (None, None, 8, None),
        ("2", None, 8, 4),
        ("2", "4", 8, None),
    ],
)
def test_workers_share_the_cores(
    monkeypatch: pytest.MonkeyPatch,
    workers: str | None,
    threads: str | None,
    cpus: int | None,
    result: int | None,
) -> None:
    for name, value in (
        ("PYTEST_XDIST_WORKER_COUNT", workers),
        ("OMP_NUM_THREADS", threads),
    ):
        monkeypatch.delenv(name, raising=False)
        if value is not None:
            monkeypatch.setenv(name, value)
    monkeypatch.setattr(model_pool.os, "cpu_count", lambda: cpus)
    threads_given: list[int | None] = []

    def open_model(spec: object, *, threads: int | None) -> FunctionModel:
        threads_given.append(threads)
        return FunctionModel()

    monkeypatch.setattr(registry, "open_model", open_model)
    ModelPool(made_options()).model()
    ModelPool(made_options(judge="reference")).helper("reference")
    assert threads_given == [result, result]


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[FunctionModel]:
    """Have each model that is opened be a scripted one that says what it is called."""
    result: list[FunctionModel] = []

    def open_model(spec: Any, **how: object) -> FunctionModel:
        if "none" in spec.text:
            raise ModelError(f"{spec.text}: is not there")
        result.append(FunctionModel(lambda prompt: spec.text, name=spec.text))
        return result[-1]

    monkeypatch.setattr(registry, "open_model", open_model)
    return result


def answer_text(pool: ModelPool, to: str = "") -> Any:
    (response,) = pool.ask([ASK], to)
    return getattr(response, "text", response)


def test_the_model_under_test_and_the_one_it_is_compared_with_are_opened_once_each(
    opened: list[FunctionModel],
) -> None:
    pool = ModelPool(
        made_options(model="hf/a/m", baseline_model="hf/a/b", judge="hf/a/j")
    )
    assert [
        answer_text(pool),
        answer_text(pool, "baseline"),
        answer_text(pool),
        answer_text(pool, "hf/a/j"),
    ] == [*("hf/a/m", "hf/a/b", "hf/a/m", "hf/a/j")]
    assert [model.describe().spec for model in opened] == ["hf/a/m", "hf/a/b", "hf/a/j"]
    base = pool.base()
    assert base is not None
    assert (pool.fingerprint().spec, base.spec, pool.helper("hf/a/j").spec) == (
        "hf/a/m",
        "hf/a/b",
        "hf/a/j",
    )
    assert [one.spec for one in pool.helpers()] == ["hf/a/j"]
    # What the run's own models gave and what helping models gave is threads_given apart.
    told, again = pool.news(), pool.news()
    assert (told.answered, told.helped) == ((3, 0), (1, 0))
    assert (again.answered, again.helped) == ((0, 0), (0, 0))
    pool.close()
    assert all(model.closed for model in opened)


def test_without_a_model_to_compare_with_there_is_none(
    opened: list[FunctionModel],
) -> None:
    pool = ModelPool(made_options(model="hf/a/m"))
    assert (pool.base(), pool.news()) == (None, News())
    assert (pool.missing_responses("x"), opened) == ("", [])


@pytest.mark.parametrize(
    ("to", "first", "second"),
    [
        (
            "",
            "hf/a/none: is not there",
            "the model 'hf/a/none' could not be opened; the first failure says",
        ),
        (
            "hf/j/none",
            "--kb-judge: hf/j/none: is not there",
            "--kb-judge: the model 'hf/j/none' could not be",
        ),
        (
            "hf/w/none",
            "distractors_from: hf/w/none: is not",
            "distractors_from: the model 'hf/w/none' could",
        ),
    ],
)
def test_a_model_that_cannot_be_opened_is_explained_once_and_then_named(
    opened: list[FunctionModel], to: str, first: str, second: str
) -> None:
    pool = ModelPool(
        made_options(model="hf/a/none", baseline_model="hf/b/none", judge="hf/j/none")
    )
    for wanted in (first, second, second):
        with pytest.raises(ModelError, match=f"^{wanted}"):
            answer_text(pool, to)


def test_what_a_reader_should_know_is_told_of_every_model_that_was_opened(
    monkeypatch: pytest.MonkeyPatch, opened: list[FunctionModel]
) -> None:
    pool = ModelPool(
        made_options(model="hf/a/m", baseline_model="hf/a/b", judge="hf/a/j")
    )
    answer_text(pool)
    assert pool.notes() == ()
    monkeypatch.setattr(FunctionModel, "notes", ("one", "two"), raising=False)
    assert pool.notes() == ("one", "two")
    answer_text(pool, "baseline")
    answer_text(pool, "hf/a/j")
    assert pool.notes() == (
        *(
            "one",
            "two",
            "baseline model: one",
            "baseline model: two",
            "hf/a/j: one",
            "hf/a/j: two",
        ),
    )


def test_what_was_typed_without_effect_is_told_before_anything_is_opened() -> None:
    options = made_options(
        model="hf/a/m",
        model_args="batch_size=8,max_batch_size=4",
        baseline_model="hf/a/b,batch_size=2",
        judge="openai/j",
        judge_args="max_length=9",
    )
    assert [note.partition(" is not")[0] for note in spec_notes(options)] == [
        *("model-args: batch_size=8", "model-args: max_batch_size=4"),
        *(
            "baseline model: model-args: batch_size=2",
            "judge: model-args: max_length=9",
        ),
    ]
    assert len(spec_notes(with_specs(replace(options, from_run=Path("run"))))) == 2
    # What is wrong with a model is said where it is opened.
    assert (
        len(spec_notes(with_specs(replace(options, model_args="batch_sizes=8")))) == 2
    )
    assert spec_notes(made_options()) == ()


def test_how_long_a_checkpoint_took_to_load_is_told_of_the_one_under_test(
    monkeypatch: pytest.MonkeyPatch, opened: list[FunctionModel]
) -> None:
    described = FunctionModel.describe
    monkeypatch.setattr(
        FunctionModel, "describe", lambda self: replace(described(self), parameters=7)
    )
    pool = ModelPool(made_options(model="hf/a/m", baseline_model="hf/a/b"))
    answer_text(pool, "baseline")
    assert pool.news().load_seconds == 0.0
    answer_text(pool)
    told = pool.news()
    assert told.load_seconds > 0
    assert told.engine == ""
    monkeypatch.setattr(FunctionModel, "engine", "packed", raising=False)
    assert pool.news().engine == "packed"
    # A worker of xdist tells its last news when its fixtures are gone; a closed checkpoint has no engine.
    pool.close()
    monkeypatch.setattr(FunctionModel, "describe", None)
    assert pool.news().engine == "packed"
    assert pool.news() == News()
    monkeypatch.setattr(FunctionModel, "describe", described)
    pool = ModelPool(made_options(model="hf/a/m"))
    answer_text(pool)
    # A served or a scripted model loads no weights here.
    assert pool.news().load_seconds == 0.0


class Changed:
    """The files of a checkpoint, one of which changed."""

    def check(self) -> None:
        raise ModelError("config.json changed")


@pytest.mark.parametrize(
    ("text", "message", "unusable"),
    [
        ("", "config.json changed", True),
        (BASELINE, "--kb-baseline-model: config.json changed", True),
        ("hf/judge", "--kb-judge: config.json changed", True),
        # Not all cases have their distractors written.
        ("hf/writer", "distractors_from: config.json changed", False),
    ],
)
def test_a_change_of_any_models_files_is_told_with_its_place(
    text: str, message: str, unusable: bool
) -> None:
    made = ModelPool(made_options(judge="hf/judge"))
    made.check_files()
    model: Any = FunctionModel()
    model.check_files = Changed().check
    made._live |= {"": FunctionModel(), text: model}
    with pytest.raises(ModelError) as raised:
        made.check_files()
    assert (str(raised.value), made.unusable) == (message, message if unusable else "")


@pytest.mark.parametrize(
    ("to", "who"),
    [("", "the model"), (BASELINE, "the baseline model"), ("hf/judge", "hf/judge")],
)
def test_a_process_whose_model_is_not_that_of_the_first_has_no_answers_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, to: str, who: str
) -> None:
    names = iter(("one", "other"))
    monkeypatch.setattr(
        registry, "open_model", lambda spec, **how: FunctionModel(name=next(names))
    )
    options = made_options(model="hf/a/m", baseline_model="hf/a/b")
    first, second = (
        ModelPool(options, RunStore(tmp_path / "run.sqlite")) for _ in range(2)
    )
    assert answer_text(first, to) == "unsure"
    says = (
        rf"^{who} is not the same one in all workers: weights \(.* and .*\); its files"
    )
    for _ in range(2):
        with pytest.raises(KbrelError, match=says):
            second.ask([ASK], to)
    assert (second.opened(), second.unusable) == ((), "")
