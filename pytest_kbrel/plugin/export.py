"""Requests of a run written to the input file of a batch, with --kb-export-requests; nothing is decided."""

from __future__ import annotations

import dataclasses
import functools
import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from shlex import quote
from typing import TYPE_CHECKING, Any, TextIO

import pytest

from pytest_kbrel.errors import KbrelError, ModelError
from pytest_kbrel.evaluation.cases import Retrieval
from pytest_kbrel.evaluation.model_pool import ModelPool
from pytest_kbrel.models.answers.files import is_request_file, request_line
from pytest_kbrel.models.answers.spec import to_export
from pytest_kbrel.outputs import check_free, new_file
from pytest_kbrel.plugin.activation import DryPlugin, stay_in_one_process
from pytest_kbrel.plugin.preflight import check
from pytest_kbrel.plugin.settings import read_settings
from pytest_kbrel.printing import printable
from pytest_kbrel.records import BASELINE, Case, Suite
from pytest_kbrel.settings import ParsedSpec, Settings
from pytest_kbrel.store.run_store import RunStore

if TYPE_CHECKING:
    from pytest_kbrel.models.answers.model import AnswersModel


def start_export(config: pytest.Config) -> None:
    """Register the exporter; raises ``UsageError`` for settings with which nothing can be written."""
    settings = read_settings(config)
    try:
        settings = _of_requests(settings)
        check(config, settings)
        _check_target(settings)
    except KbrelError as error:
        raise pytest.UsageError(f"--kb-export-requests: {error}") from None
    stay_in_one_process(config)
    config.pluginmanager.register(Exporter(config, settings), "kbrel-exporter")


def _of_requests(settings: Settings) -> Settings:
    """Return the settings with a model that asks nothing, and with nothing to compare or to bless."""
    specs = {to: of for to, of in settings.specs.items() if to != BASELINE}
    # A recorded run has no model, and is refused.
    if "" in specs:
        specs[""] = ParsedSpec(spec=to_export(specs[""].get()))
    return dataclasses.replace(
        settings,
        specs=specs,
        baseline="",
        baseline_model="",
        baseline_update=None,
        baseline_reason="",
    )


def _check_target(settings: Settings) -> None:
    target = settings.export_requests
    assert target is not None
    try:
        check_free(target, force=target.is_file() and is_request_file(target))
    except OSError:
        raise ModelError(
            f"{target}: found what --kb-export-requests did not write; allowed: a new file"
        ) from None


class Exporter(DryPlugin):
    """pytest plugin that writes the requests of the collected cases.

    Helper models are asked where answers lead to requests of theirs.
    """

    def __init__(self, config: pytest.Config, settings: Settings) -> None:
        super().__init__(config, settings, None)
        assert settings.export_requests is not None
        self._target = settings.export_requests
        self._lines: list[str] = []

    def pytest_report_header(self) -> str:
        """Return what is written and where."""
        return printable(
            f"kbrel: requests to {self._settings.model} are written to {self._target}; nothing is decided"
        )

    def pytest_terminal_summary(
        self, terminalreporter: pytest.TerminalReporter
    ) -> None:
        """Print what was written and what to do with it."""
        if self._lines:
            terminalreporter.section("requests, nothing was run")
        for line in self._lines:
            terminalreporter.write_line(printable(line))

    def use(self, cases: list[Case], suites: list[Suite]) -> None:
        """Write each request of the cases that has no answer once; without one no file is made."""
        from pytest_kbrel.probes import run_case

        store = RunStore()
        pool = ModelPool(self._settings, store)
        retrieval = Retrieval(self._config.rootpath, self._settings.judge_args)
        names: set[str] = set()
        stream: TextIO

        def write(name: str, path: str, body: Mapping[str, Any]) -> None:
            nonlocal stream
            if not names:
                stream = opened.enter_context(new_file(self._target, force=True))
            if name not in names:
                names.add(name)
                stream.write(request_line(name, path, body))

        try:
            model: AnswersModel = pool.model()  # type: ignore[assignment]
            model.listen(write)
            with ExitStack() as opened:
                for case in cases:
                    case = dataclasses.replace(
                        case, chat=model.describe().chat_template
                    )
                    run_case(
                        retrieval.with_examples(retrieval.with_distractors(case)),
                        functools.partial(pool.ask, case=f"{case.suite}::{case.id}"),
                        store.add,
                    )
        except OSError as error:
            raise KbrelError(f"requests cannot be written: {error}") from None
        finally:
            pool.close()
            retrieval.close()
        self._lines = list(self._summary(len(names), model))

    def _summary(self, written: int, model: AnswersModel) -> Iterator[str]:
        answers, given = model.answers, self._settings.model.strip()
        if answers:
            yield f"{len(answers)} answers of {answers.name or 'a model without a name'} in {given}"
            if others := answers.others(model.used):
                yield (
                    f"{len(others)} of them answer no request of these cases (first: {others[0]}): other "
                    "suites, facts or arguments were asked then"
                )
        if not written:
            yield f"every request has an answer, and nothing was written; to decide: --kb-model={given}"
            return
        shown = os.path.relpath(self._target, self._settings.here)
        requests = f"{written} requests to {model.name} in {shown}"
        if model.endpoint == "chat":
            yield f"{requests}, to be answered by a batch, for instance with"
            yield f"    vllm run-batch --model {quote(model.name)} -i {quote(shown)} -o ANSWERS.jsonl"
        else:
            # The program above refuses them.
            yield f"{requests}, to be answered by a batch service that takes /v1/{model.endpoint}"
        if not answers:
            yield "then type this command without --kb-export-requests and with"
            yield "--kb-model=answers/ANSWERS.jsonl"
        else:
            yield "then put these answers into one folder with those before, and type this command without"
            yield "--kb-export-requests and with --kb-model=answers/FOLDER"
