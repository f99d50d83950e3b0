"""A suite during a training: figures of the model in memory, in the logs of transformers' Trainer."""

from __future__ import annotations

import datetime
import traceback
import warnings
from pathlib import Path
from typing import Any

from transformers import Trainer, TrainerCallback

from pytest_kbrel.bounds import LIMIT, limit_value
from pytest_kbrel.errors import KbrelError
from pytest_kbrel.models.hf.in_memory import model_in_memory, undisturbed
from pytest_kbrel.reports.view import key_figures
from pytest_kbrel.session.case_asker import CaseAsker
from pytest_kbrel.session.merge import decide_suites
from pytest_kbrel.session.run_builder import SessionResults
from pytest_kbrel.settings import Settings
from pytest_kbrel.store.run_store import RunStore
from pytest_kbrel.suites import load_suite


class KbrelCallback(TrainerCallback):  # type: ignore[misc,unused-ignore]
    """Callback that asks a suite every so many steps and at the end, and logs the key figures of its cases.

    They are called ``kbrel/monitor/P36/accuracy``: probe, slice, metric. Cases over several slices are among
    them; gates that compare have nothing to compare with. Only the world's process zero asks: others wait for
    it at the next step, no longer than ``ddp_timeout``. The training goes on as if nothing had been asked.

    ``every`` is in steps. ``limit`` samples the facts of each case, a number or a fraction, by ``seed``; both
    are those of ``--kb-limit`` and ``--kb-seed``. The tokenizer is the Trainer's processing class; with
    ``chat_template`` prompts are put into its chat template. A suite that cannot be asked, or a case that
    is invalid, is a ``RuntimeWarning``, or with ``strict`` a ``KbrelError`` that ends the training.

    Raises ``ValueError`` on a wrong number, and ``SuiteError`` on a wrong suite.
    """

    def __init__(
        self,
        suite: str | Path,
        *,
        every: int,
        limit: int | float | None = None,
        seed: int | None = None,
        chat_template: bool = False,
        strict: bool = False,
    ) -> None:
        self._path, self._every = Path(suite), LIMIT.integer(str(every))
        self._chat_template, self._strict = chat_template, strict
        self._settings = Settings(
            model="the model in training",
            limit=None if limit is None else limit_value(str(limit)),
            seed=seed,
            today=datetime.date.today(),
        )
        self._suite = load_suite(
            self._path,
            nodeid_path=self._path.name,
            limit=self._settings.limit,
            seed=seed,
        )

    def on_train_begin(
        self, args: Any, state: Any, control: Any, **kwargs: Any
    ) -> None:
        """Forget the model and the steps of an earlier training."""
        self._model: Any = None
        self._last = 0

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Ask the suite, if it is time."""
        if state.global_step % self._every == 0:
            self._ask(args, state, control, **kwargs)

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Ask the suite, unless that model was asked at the last step."""
        if self._last != state.global_step or args.load_best_model_at_end:
            self._ask(args, state, control, **kwargs)

    def _ask(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        if not state.is_world_process_zero:
            return
        self._last, should_log = state.global_step, control.should_log
        try:
            results = self._results(args, given["model"], given["processing_class"])
            figures = {
                f"kbrel/{case.probe}/{case.slice}/{of.name}": of.value
                for case in results.cases.values()
                for of in key_figures(case)
                if of.value is not None
            }
            _trainer().log(figures)
            # Behind a log Trainer takes its own figures of this step for logged.
            control.should_log = should_log
            problems = results.failures | {
                case.nodeid: case.errors[0]
                for case in results.cases.values()
                if case.verdict == "invalid"
            }
            for nodeid, why in problems.items():
                raise KbrelError(f"{nodeid}, the first of {len(problems)}: {why}")
        except Exception as error:
            if self._strict:
                raise
            warnings.warn(
                f"{self._path} at step {self._last}: {type(error).__name__}: {error}",
                RuntimeWarning,
                stacklevel=2,
            )

    def _results(self, args: Any, model: Any, tokenizer: Any) -> SessionResults:
        """Return the decided cases of the suite."""
        kind = args.distributed_state.distributed_type.value
        if kind == "FSDP" or any(hasattr(of, "ds_id") for of in model.parameters()):
            raise KbrelError(
                f"found parameters that are split over processes ({kind}); allowed: a model that each process has "
                "whole, or kbrel bisect over saved checkpoints"
            )
        if tokenizer is None:
            raise KbrelError(
                "found no tokenizer; allowed: Trainer(processing_class=...)"
            )
        root, results = self._path.parent, SessionResults(suites=(self._suite,))
        asker = CaseAsker(
            self._settings, root=root, store=RunStore(), suites=lambda: results.suites
        )
        with undisturbed(model, tokenizer):
            self._model = self._model or model_in_memory(
                model, tokenizer, chat_template=self._chat_template
            )
            asker.pool.adopt(self._model)
            try:
                wanted = [f"{of.suite}::{of.id}" for of in self._suite.cases]
                decide_suites(asker, wanted, results, root)
            finally:
                asker.close()
        return results


def _trainer() -> Trainer:
    """Return the Trainer that is calling."""
    # A callback is not told whose it is, and only a Trainer's own log reaches all its reporters.
    for frame, _ in traceback.walk_stack(None):
        if isinstance(caller := frame.f_locals.get("self"), Trainer):
            return caller
    raise KbrelError("it is called by no Trainer; allowed: Trainer(callbacks=[...])")
