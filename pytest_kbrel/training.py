"""A suite during a training: figures of the model in memory, in the logs of transformers' Trainer."""

from __future__ import annotations

import datetime
import math
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

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

# Parameters that no process has whole.
_SPLIT = ("FSDP", "MEGATRON_LM", "TP")


class KbrelCallback(TrainerCallback):  # type: ignore[misc,unused-ignore]
    """Callback that asks a suite every so many steps and at the end, and logs the key figures of its cases.

    They are called ``kbrel/monitor/P36/accuracy``: probe, slice, metric. Cases over several slices are among
    them; gates that compare have nothing to compare with. Only the world's process zero asks: others wait for
    it at the next step, no longer than ``ddp_timeout``. The training goes on as if nothing had been asked.

    ``every`` is in steps. ``limit`` samples the facts of each case, a number or a fraction, by ``seed``; both
    are those of ``--kb-limit`` and ``--kb-seed``. ``tokenizer`` is by default the Trainer's processing class;
    with ``chat_template`` prompts are put into its chat template. ``errors``: a suite that cannot be asked, or
    a case that is invalid, is a ``RuntimeWarning`` (``"warn"``), or ends the training (``"raise"``).

    Raises ``KbrelError`` on a wrong argument or suite.
    """

    def __init__(
        self,
        suite: str | Path,
        *,
        every: int,
        limit: int | float | None = None,
        seed: int | None = None,
        tokenizer: Any = None,
        chat_template: bool = False,
        errors: Literal["warn", "raise"] = "warn",
    ) -> None:
        if every not in LIMIT or errors not in ("warn", "raise"):
            raise KbrelError(
                f"KbrelCallback: found every={every!r}, errors={errors!r}; allowed: every {LIMIT}, errors "
                "'warn' or 'raise'"
            )
        try:
            limit = None if limit is None else limit_value(str(limit))
        except ValueError as error:
            raise KbrelError(f"KbrelCallback: limit: {error}") from None
        self._path, self._every, self._errors = Path(suite), every, errors
        self._tokenizer, self._chat_template = tokenizer, chat_template
        self._settings = Settings(
            model="the model in training",
            limit=limit,
            seed=seed,
            today=datetime.date.today(),
        )
        self._suite = load_suite(
            self._path,
            nodeid_path=self._path.name,
            limit=limit,
            seed=seed,
            today=self._settings.today,
        )
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
        self._model = None

    def _ask(
        self,
        args: Any,
        state: Any,
        control: Any,
        *,
        model: Any,
        processing_class: Any,
        **_: Any,
    ) -> None:
        if not state.is_world_process_zero:
            return
        self._last = state.global_step
        try:
            results = self._results(args, model, self._tokenizer or processing_class)
            should_log = control.should_log
            _trainer().log(dict(_figures(results)))
            # Behind a log Trainer takes its own figures of this step for logged.
            control.should_log = should_log
            if problems := [*_problems(results)]:
                more = f" (and {len(problems) - 1} more)" if problems[1:] else ""
                raise KbrelError(problems[0] + more)
        except Exception as error:
            if self._errors == "raise":
                raise
            kind = "" if isinstance(error, KbrelError) else f"{type(error).__name__}: "
            warnings.warn(
                f"KbrelCallback: {self._path} at step {self._last}: {kind}{error}",
                RuntimeWarning,
                stacklevel=2,
            )

    def _results(self, args: Any, model: Any, tokenizer: Any) -> SessionResults:
        """Return the decided cases of the suite."""
        kind = str(args.distributed_state.distributed_type).rpartition(".")[2]
        split = any(hasattr(of, "ds_id") for of in model.parameters())
        if kind in _SPLIT or split:
            raise KbrelError(
                f"the parameters are split over processes ({kind}), and one cannot ask alone; allowed: a model that "
                "each process has whole, or kbrel bisect and pytest on the saved checkpoints"
            )
        if tokenizer is None:
            raise KbrelError(
                "the Trainer has no tokenizer; allowed: Trainer(processing_class=...) or "
                "KbrelCallback(tokenizer=...)"
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


def _figures(results: SessionResults) -> Iterator[tuple[str, float]]:
    for case in results.cases.values():
        for of in key_figures(case):
            if of.value is not None and math.isfinite(of.value):
                yield f"kbrel/{case.probe}/{case.slice}/{of.name}", of.value


def _problems(results: SessionResults) -> Iterator[str]:
    for nodeid, why in results.failures.items():
        yield f"{nodeid}: {why}"
    for case in results.cases.values():
        if case.verdict == "invalid":
            yield f"{case.nodeid}: {case.errors[0]}"


def _trainer() -> Trainer:
    """Return the Trainer that is calling."""
    # A callback is not told whose it is, and only a Trainer's own log reaches all its reporters.
    frame = sys._getframe()
    while frame.f_back is not None:
        frame = frame.f_back
        if isinstance(caller := frame.f_locals.get("self"), Trainer):
            return caller
    raise KbrelError("it is called by no Trainer; allowed: Trainer(callbacks=[...])")
