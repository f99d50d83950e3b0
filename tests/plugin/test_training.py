"""``KbrelCallback`` in real trainings of a tiny checkpoint."""

from __future__ import annotations

import random
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import transformers
from accelerate import DistributedType

from pytest_kbrel.errors import KbrelError, SuiteError
from pytest_kbrel.training import KbrelCallback
from tests.models.tiny_checkpoints import SENTENCES, make_checkpoint

from .conftest import HEADER, ONE

SUITE = HEADER + "monitor:\n  negatives: 2\n"
LIMIT = {"every": 3, "limit": 4}


class Reporter(transformers.TrainerCallback):
    """What stands before the callback and is told of logs, as TensorBoard is; it draws random numbers too."""

    def __init__(self):
        self.logs, self.modes, self.drawn = {}, [], []

    def on_log(self, args, state, control, logs, **kwargs):
        self.logs.setdefault(state.global_step, {}).update(logs)

    def on_step_begin(self, args, state, control, model, **kwargs):
        self.modes.append([part.training for part in model.modules()])
        self.drawn.append((float(torch.rand(())), random.random(), np.random.rand()))


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    return make_checkpoint(tmp_path_factory.mktemp("llama"))


@pytest.fixture
def train(checkpoint, tmp_path):
    """Train the checkpoint for 8 steps, with dropout; return the Trainer and what was reported."""

    def train(*callbacks, with_tokenizer=True, **arguments):
        transformers.set_seed(1)
        tokenizer = transformers.AutoTokenizer.from_pretrained(checkpoint)
        model = transformers.AutoModelForCausalLM.from_pretrained(
            checkpoint, attention_dropout=0.2
        )
        # Every forward pass draws, those of questions too.
        model.lm_head.register_forward_hook(lambda *_: torch.rand(1) and None)
        ids = [tokenizer(text)["input_ids"] for text in SENTENCES]
        reporter = Reporter()
        trainer = transformers.Trainer(
            model=model,
            args=transformers.TrainingArguments(
                str(tmp_path / "training"),
                max_steps=8,
                per_device_train_batch_size=1,
                logging_steps=3,
                report_to=[],
                save_strategy="no",
                use_cpu=True,
                disable_tqdm=True,
                **arguments,
            ),
            train_dataset=[{"input_ids": of, "labels": of} for of in ids],
            processing_class=tokenizer if with_tokenizer else None,
            callbacks=[reporter, *callbacks],
        )
        if not with_tokenizer:
            trainer.data_collator = transformers.default_data_collator
        trainer.train()
        return trainer, reporter

    return train


def named(logs):
    return {name: of for name, of in logs.items() if name.startswith("kbrel/")}


@pytest.mark.parametrize("arguments", [{}, {"bf16": True}], ids=["plain", "mixed"])
def test_a_training_is_not_disturbed_and_its_logs_have_the_figures(
    arguments, train, mini_suite, pytester, cases
):
    alone, undisturbed = train(**arguments)
    suite = mini_suite(SUITE)
    trainer, reporter = train(KbrelCallback(suite, **LIMIT), **arguments)
    for name, tensor in alone.model.state_dict().items():
        assert torch.equal(tensor, trainer.model.state_dict()[name])
    assert reporter.drawn == undisturbed.drawn
    assert reporter.modes == undisturbed.modes
    asked = {step: of for step, logs in reporter.logs.items() if (of := named(logs))}
    assert [*asked] == [3, 6, 8]
    # What Trainer logs itself at these steps is logged too.
    assert "loss" in reporter.logs[3]
    assert asked[3] != asked[8] == named(trainer.state.log_history[-1])
    # They are the figures of the checkpoint that is saved then.
    trainer.save_model("saved")
    pytester.runpytest("suites", "--kb-model=saved", "--kb-limit=4")
    (case,) = (of for name, of in cases().items() if name == "monitor[P36]")
    figures = {
        f"kbrel/monitor/P36/{name}": of["value"] for name, of in case["metrics"].items()
    }
    assert "kbrel/monitor/P36/monitor" in asked[8]
    for name, value in asked[8].items():
        assert value == pytest.approx(figures[name], abs=1e-4)


def test_what_cannot_be_asked_is_named_and_the_training_goes_on(train, mini_suite):
    # A random model writes without end.
    suite = mini_suite(ONE)
    named = r"mini.kb.yaml at step \d: KbrelError: mini.kb.yaml::head_to_tail\[.*first of 4.*cut short"
    with pytest.warns(RuntimeWarning, match=named):
        trainer, _ = train(KbrelCallback(suite, **LIMIT))
    assert trainer.state.global_step == 8
    callback = KbrelCallback(mini_suite(SUITE, name="only"), every=100)
    with pytest.warns(RuntimeWarning, match=r"only.kb.yaml at step 8: .*no tokenizer"):
        train(callback, with_tokenizer=False)
    with pytest.raises(KbrelError, match=r"head_to_tail\[.*cut short"):
        train(KbrelCallback(suite, **LIMIT, strict=True))


def test_a_callback_may_be_of_several_trainings(train, mini_suite):
    callback = KbrelCallback(mini_suite(SUITE), every=100, limit=4)
    for _ in range(2):
        _, reporter = train(callback)
        assert named(reporter.logs[8])


def test_only_process_zero_asks(mini_suite):
    callback = KbrelCallback(mini_suite(SUITE), every=1)
    state = SimpleNamespace(global_step=1, is_world_process_zero=False)
    # There is no model here that could be asked.
    callback.on_step_end(None, state, None, model=None, processing_class=None)


def test_a_model_that_is_split_over_processes_is_refused(mini_suite):
    callback = KbrelCallback(mini_suite(SUITE), every=1, strict=True)
    kind = DistributedType.FSDP
    args = SimpleNamespace(distributed_state=SimpleNamespace(distributed_type=kind))
    state = SimpleNamespace(global_step=1, is_world_process_zero=True)
    control = SimpleNamespace(should_log=False)
    with pytest.raises(KbrelError, match=r"split over processes \(FSDP\); allowed"):
        callback.on_step_end(args, state, control, model=None, processing_class=None)


def test_wrong_arguments_are_errors_before_the_training(mini_suite):
    suite = mini_suite(SUITE)
    for wrong in ({"every": 0}, {"every": 1, "limit": 0}):
        with pytest.raises(ValueError, match=r"found.*0.*allowed"):
            KbrelCallback(suite, **wrong)
    with pytest.raises(SuiteError, match=r"mini.kb.yaml:3"):
        KbrelCallback(mini_suite(HEADER + "monitr: {}\n"), every=1)
