"""Where one process asks its model: checkpoint, baseline and spool of responses, each made once."""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_kbrel import collect
from pytest_kbrel.errors import KbrelError, ModelError
from pytest_kbrel.helping import RULES, Helping, writer_of
from pytest_kbrel.options import KbOptions
from pytest_kbrel.records import (
    Ask,
    Attribution,
    Case,
    CaseResult,
    Exchange,
    Fingerprint,
    Request,
    Response,
    Suite,
)
from pytest_kbrel.retrieval import Retrieval

if TYPE_CHECKING:
    from pytest_kbrel.baselines import Baseline
    from pytest_kbrel.models.asking import Asker
    from pytest_kbrel.models.base import Model
    from pytest_kbrel.models.opening import AnySpec

PARTS = ".parts"


class Bench:
    """One process's share of a run. Everything heavy is made at first use."""

    def __init__(self, session: pytest.Session, options: KbOptions) -> None:
        self._session = session
        self._options = options
        self._askers: dict[str, Asker] = {}
        self.helping = Helping(options, threads=_threads())
        self._retrieval = Retrieval(session.config.rootpath, options.judge_args)
        self._model: Model | None = None
        self._load_failed = False
        self._baseline: Baseline | None = None
        self._comparisons: int | None = None
        # Before torch loads. Its waiting threads spin by default: with one other busy process on two cores,
        # two spinning threads took 15 to 24 times as long as two sleeping ones.
        os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
        self.spool_path = options.output_path / PARTS / f"{_worker_id(session.config)}.jsonl"

    def model(self) -> Model:
        """Return the model, loaded at the first call. A failed load is explained once, then named."""
        if self._load_failed:
            raise ModelError(
                f"the model {self._options.model!r} could not be loaded; the first failure says why"
            )
        if self._model is None:
            from pytest_kbrel.models.opening import open_model

            try:
                self._model = open_model(model_spec(self._options), threads=_threads())
            except ModelError:
                self._load_failed = True
                raise
        return self._model

    def baseline(self) -> Baseline | None:
        """Return the blessed run to compare with, ``None`` when none was asked for."""
        if self._baseline is None and self._options.baseline:
            self._baseline = read_baseline(self._options, self._session.config)
        return self._baseline

    def decide(self, case: Case) -> CaseResult:
        """Ask a case's questions and decide its gates."""
        from pytest_kbrel.gates import decide_case
        from pytest_kbrel.probes import run_case

        asked = 0

        def keep(exchanges: Sequence[Exchange]) -> None:
            nonlocal asked
            asked += len(exchanges)
            self._spool(exchanges)

        started = time.perf_counter()
        case = self._retrieval.with_examples(case)
        result = run_case(case, self._ask, keep)
        baseline = self.baseline()
        decided = decide_case(
            case,
            result.table,
            result.errors,
            baseline=baseline.case(case) if baseline is not None else None,
            baseline_asked=baseline is not None,
            comparisons=max(self._family(), collect.relative(case.gates)),
            incomparable=self._incomparable(case, baseline),
            paper=baseline.paper if baseline is not None else "",
            duration=time.perf_counter() - started,
            requests=asked,
        )
        if decided.verdict == "invalid":
            return decided
        return dataclasses.replace(decided, attributions=self._explained(result.explain))

    def _explained(self, pairs: Sequence[tuple[Ask, Ask]]) -> tuple[Attribution, ...]:
        from pytest_kbrel.models.attribution import attribute

        asks = [ask for pair in pairs[: self._options.attribute] for ask in pair]
        return tuple(attribute(self.model(), ask) for ask in asks)

    def _ask(self, requests: Sequence[Request], to: str) -> Sequence[Response]:
        from pytest_kbrel.models.asking import Asker

        if to not in self._askers:
            self._askers[to] = Asker(self.model() if not to else self.helping.model(to))
        return self._askers[to].ask(requests)

    def _incomparable(self, case: Case, baseline: Baseline | None) -> tuple[str, ...]:
        from pytest_kbrel.probes.judging import is_judged

        judged = is_judged(case)
        # Also where nobody asked it: whoever blesses this run blesses its judge.
        judge = self.helping.fingerprint(case.judge) if judged and case.judge != RULES else None
        writers = [self.helping.fingerprint(text) for text in filter(None, [writer_of(case)])]
        return incomparable(self.fingerprint(), baseline, judged=judged, judge=judge, writers=writers)

    def fingerprint(self) -> Fingerprint:
        """Say what the loaded model is."""
        return self.model().describe()

    def close(self) -> None:
        """Free the models."""
        if self._model is not None:
            self._model.close()
        self.helping.close()
        self._retrieval.close()

    def _family(self) -> int:
        if self._comparisons is None:
            config, ids = self._session.config, [item.nodeid for item in self._session.items]
            self._comparisons = collect.comparisons(suites_of(config, ids, self._options), ids)
        return self._comparisons

    def _spool(self, exchanges: Sequence[Exchange]) -> None:
        from pytest_kbrel.reports.responses import ResponseSpool

        try:
            self.spool_path.parent.mkdir(parents=True, exist_ok=True)
            ResponseSpool(self.spool_path).append(exchanges)
        except OSError as error:
            raise KbrelError(f"{self.spool_path}: responses cannot be kept: {error}") from None


def model_spec(options: KbOptions) -> AnySpec:
    """Read the model's spec out of the settings; ``ModelError`` when it cannot be a model."""
    from pytest_kbrel.models.opening import read_spec

    return read_spec(
        options.model,
        options.model_args,
        device=options.device,
        dtype=options.dtype,
        batch_size=options.batch_size,
        chat_template=options.apply_chat_template,
    )


def read_baseline(options: KbOptions, config: pytest.Config) -> Baseline:
    """Read the baseline the settings name; ``BaselineError`` when it cannot be read."""
    from pytest_kbrel.baselines import read_baseline as read

    return read(options.baseline, config.rootpath)


def incomparable(
    model: Fingerprint | None,
    baseline: Baseline | None,
    *,
    judged: bool = False,
    judge: Fingerprint | None = None,
    writers: Sequence[Fingerprint] = (),
) -> tuple[str, ...]:
    """Return what candidate and baseline must share and do not, in words.

    ``judged``: somebody decides here whether answers are right; ``judge`` is the model that does, ``None``
    for rules. ``writers`` are the models that wrote distractors here.
    """
    if model is None or baseline is None or baseline.model is None:
        return ()
    from pytest_kbrel.baselines import fingerprint_differences, helper_differences, judge_differences

    found = fingerprint_differences(model, baseline.model)[0]
    if judged:
        found = (*found, *judge_differences(judge, baseline.judge))
    for writer in writers:
        # Under another name the settings differ, which the facts' digests tell.
        theirs = next((helper for helper in baseline.helpers if helper.spec == writer.spec), None)
        if theirs is not None:
            found = (*found, *helper_differences("writer of distractors", writer, theirs))
    return found


def suites_of(config: pytest.Config, nodeids: Sequence[str], options: KbOptions) -> list[Suite]:
    """Read the suites that node ids belong to. Both sides do so: xdist's controller never collects."""
    paths = dict.fromkeys(nodeid.split("::", 1)[0] for nodeid in nodeids)
    return [
        collect.load(config.rootpath / path, path, options) for path in paths if collect.is_suite(Path(path))
    ]


def _worker_id(config: pytest.Config) -> str:
    workerinput = getattr(config, "workerinput", None)
    return str(workerinput["workerid"]) if workerinput is not None else "main"


def _threads() -> int | None:
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    if workers == 1 or "OMP_NUM_THREADS" in os.environ:
        return None
    # Two workers with as many threads each as there are cores take twice the time of sharing the cores.
    return max(1, (os.cpu_count() or 1) // workers)
