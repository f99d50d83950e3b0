"""Settings of --kb-from-run: which are the recorded ones, and which are refused."""

from dataclasses import replace

import pytest

from pytest_kbrel.evaluation.model_pool import with_specs
from pytest_kbrel.evaluation.recorded_run import RecordedRun
from pytest_kbrel.plugin.settings import as_recorded
from tests.made_cases import RECORDED_MODEL, made_options
from tests.stub_config import StubConfig

RECORDED = {
    **{
        "model": "m",
        "model_args": "max_length=8",
        "device": "cuda",
        "dtype": "bfloat16",
        "batch_size": "64",
    },
    **{
        "apply_chat_template": "true",
        "judge": "openai/j",
        "judge_args": "seed=1",
        "limit": "3",
        "seed": "0",
    },
    "top_k": "5",
}
TYPED = [
    "model",
    "model_args",
    "device",
    "dtype",
    "batch_size",
    "apply_chat_template",
    "top_k",
    "plan",
]


@pytest.fixture
def again(tmp_path, monkeypatch):
    """Return a function that resolves settings over a record with other ones; ``typed`` are on the line."""

    def resolve(recorded=None, *, base=None, typed=None, **settings):
        run = RecordedRun(
            folder=tmp_path / "run",
            kbrel_version="",
            settings=tuple((RECORDED if recorded is None else recorded).items()),
            model=RECORDED_MODEL,
            helpers=(),
            base=base,
            cases=frozenset(),
        )
        monkeypatch.setattr(
            "pytest_kbrel.plugin.settings.read_runs", lambda folder: run
        )
        options = made_options(from_run=tmp_path / "run", output_path=tmp_path / "out")
        config = StubConfig(tmp_path, **(typed or {}))
        return with_specs(
            as_recorded(config, replace(options, **{**(typed or {}), **settings}))
        )

    return resolve


@pytest.mark.parametrize("name", TYPED)
def test_what_needs_a_model_is_refused_where_it_is_typed(again, name):
    flag = "--kb-" + name.replace("_", "-")
    with pytest.raises(
        pytest.UsageError,
        match=f"^{flag}: found with kb_from_run, and a recorded run asks no model; ",
    ):
        again(typed={name: "1"})


@pytest.mark.parametrize(
    ("typed", "settings", "judge", "args"),
    [
        ({}, {}, "openai/j", "seed=1"),
        ({"judge": "openai/k"}, {}, "openai/k", "seed=1"),
        ({"judge": "openai/k"}, {"judge_args": "seed=9"}, "openai/k", "seed=9"),
        ({"judge_args": "seed=2"}, {}, "openai/j", "seed=2"),
    ],
)
def test_a_judge_that_is_typed_takes_the_place_of_the_recorded_one(
    again, typed, settings, judge, args
):
    result = again(typed=typed, **settings)
    assert (result.judge, result.judge_args) == (judge, args)


@pytest.mark.parametrize("recorded", [{"limit": "0"}])
def test_recorded_settings_that_cannot_be_are_named(again, recorded):
    with pytest.raises(
        pytest.UsageError, match=r"^--kb-from-run: .*run: the recorded settings: "
    ):
        again(recorded)


def test_reports_never_take_the_place_of_the_record(again, tmp_path):
    run, inner = tmp_path / "run", tmp_path / "run" / "deep"
    for output, folder in [
        (tmp_path / "out", tmp_path / "out"),
        (tmp_path / "run", run / "decided"),
        # Nor does the folder that the record lies in become one of reports by itself.
        (tmp_path, run / "decided"),
        (inner, inner),
        (tmp_path / "running", tmp_path / "running"),
    ]:
        assert again(output_path=output).output_path == folder
    for output in (tmp_path / "out", inner, tmp_path):
        assert (
            again(typed={"output_path": "x"}, output_path=output).output_path == output
        )
    for output in (run, run / ".." / "run"):
        with pytest.raises(
            pytest.UsageError,
            match=r"would replace the recorded run .* go to .*run/decided$",
        ):
            again(typed={"output_path": "x"}, output_path=output)
