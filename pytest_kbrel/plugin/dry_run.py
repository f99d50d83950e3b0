"""Sessions that run nothing: the plan of the cases (--kb-plan), or their requests as a batch's input file.

The latter is --kb-export-requests.
"""

from __future__ import annotations

import abc
import dataclasses
import functools
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import groupby
from shlex import quote
from typing import TYPE_CHECKING, Any, TextIO

import pytest

from pytest_kbrel.catalogue.rules import GATE_RULES, compares
from pytest_kbrel.errors import KbrelError
from pytest_kbrel.evaluation.cases import Retrieval
from pytest_kbrel.evaluation.model_pool import ModelPool, spec_notes
from pytest_kbrel.evaluation.stub_run import SAMPLED
from pytest_kbrel.models.answers.spec import (
    AnswersSpec,
    is_request_file,
    request_line,
    to_export,
)
from pytest_kbrel.models.base import CHARACTERS
from pytest_kbrel.outputs import check_free, new_file
from pytest_kbrel.plugin.collection import case_of
from pytest_kbrel.plugin.preflight import check, check_suites
from pytest_kbrel.plugin.settings import read_settings
from pytest_kbrel.plugin.worker import suites_of
from pytest_kbrel.printing import format_table, printable
from pytest_kbrel.records import BASELINE, Case, Suite
from pytest_kbrel.reports.formatting import case_title, count, one_line
from pytest_kbrel.session.plan import (
    DISCORDANT,
    H200_RATE,
    GatePower,
    Plan,
    PlannedModel,
    Range,
    make_plan,
)
from pytest_kbrel.settings import RULES, ParsedSpec, Settings
from pytest_kbrel.store.run_store import RunStore

if TYPE_CHECKING:
    from pytest_kbrel.models.answers.model import AnswersModel


class DryRun(abc.ABC):
    """pytest plugin that does something else with the collected cases than to run them."""

    title: str
    refused = ""

    def __init__(self, config: pytest.Config) -> None:
        """Check the settings; raises ``UsageError`` for those with which nothing can be done."""
        self._config = config
        self._used = False
        self._lines: list[str] = []
        try:
            self._settings = self._prepared(read_settings(config))
            self._baseline = check(config, self._settings)
        except KbrelError as error:
            raise pytest.UsageError(f"{self.refused}{error}") from None
        # xdist is configured later.
        for name, value in (("dist", "no"), ("tx", []), ("numprocesses", None)):
            if hasattr(config.option, name):
                setattr(config.option, name, value)

    @abc.abstractmethod
    def _prepared(self, settings: Settings) -> Settings:
        """Return the settings to use; raises ``KbrelError``."""

    @abc.abstractmethod
    def use(self, cases: list[Case], suites: list[Suite]) -> Iterator[str]:
        """Use the selected cases, at least one, and yield what to print; raises ``KbrelError``."""

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Use the selected cases; pytest itself reports suites that could not be collected."""
        cases = [case for case in map(case_of, session.items) if case is not None]
        if not cases or self._cannot_run(session):
            return
        self._used = True
        nodeids = [item.nodeid for item in session.items]
        try:
            suites = suites_of(self._config, nodeids, self._settings)
            check_suites(self._config, self._settings, self._baseline, suites, nodeids)
            self._lines = list(self.use(cases, suites))
        except KbrelError as error:
            raise pytest.UsageError(str(error)) from None

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        """Run no test of any kind; pytest stops by itself where collection failed."""
        return None if self._cannot_run(session) else True

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Exit as pytest does without tests where other tests were all that it found."""
        if not self._used and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.NO_TESTS_COLLECTED

    def pytest_terminal_summary(
        self, terminalreporter: pytest.TerminalReporter
    ) -> None:
        """Print what was done, and what to do with it."""
        if self._lines:
            terminalreporter.section(f"{self.title}, nothing was run")
        for line in self._lines:
            terminalreporter.write_line(printable(line))

    def _cannot_run(self, session: pytest.Session) -> bool:
        goes_on = self._config.option.continue_on_collection_errors
        return bool(session.testsfailed and not goes_on)


class Planner(DryRun):
    """pytest plugin that plans the collected cases."""

    title = "plan"

    def _prepared(self, settings: Settings) -> Settings:
        if any(isinstance(spec, AnswersSpec) for spec in settings.own_specs[:1]):
            raise KbrelError(
                f"--kb-plan: nothing is asked of {settings.model}, so there is nothing to plan; allowed: the "
                "model that is to answer, openai/NAME"
            )
        return settings

    def pytest_report_header(self) -> list[str]:
        """Return the model of the plan, and remarks about model arguments without effect."""
        settings = self._settings
        judge = f", judge {settings.judge}" if settings.judge != RULES else ""
        notes = [one_line(note, 500) for note in spec_notes(settings)]
        plan = f"plan for model {settings.model}{judge}; nothing is run"
        return [printable(f"kbrel: {line}") for line in (plan, *notes)]

    def use(self, cases: list[Case], suites: list[Suite]) -> Iterator[str]:
        """Plan the cases."""
        plan = make_plan(
            suites,
            cases,
            self._settings,
            self._baseline,
            estimated=self._config.get_verbosity() <= 0,
        )
        yield from plan_lines(plan)


class Exporter(DryRun):
    """pytest plugin that writes the requests of the collected cases.

    Helper models are asked where answers lead to requests of theirs.
    """

    title = "requests"
    refused = "--kb-export-requests: "

    def _prepared(self, settings: Settings) -> Settings:
        """Return the settings with a model that asks nothing, and with nothing to compare or to bless."""
        assert settings.export_requests is not None
        self._target = target = settings.export_requests
        try:
            check_free(target, force=target.is_file() and is_request_file(target))
        except OSError:
            raise KbrelError(
                f"{target}: found what --kb-export-requests did not write; allowed: a new file"
            ) from None
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

    def pytest_report_header(self) -> str:
        """Return what is written and where."""
        return printable(
            f"kbrel: requests to {self._settings.model} are written to {self._target}; nothing is decided"
        )

    def use(self, cases: list[Case], suites: list[Suite]) -> Iterator[str]:
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
        yield from self._summary(len(names), model)

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


_DETAILS = "add -v for each slice, exact tokens and what each gate can find"


def plan_lines(plan: Plan) -> Iterator[str]:
    """Yield the plan, line by line; a sampled one is on one screen for any number of cases."""
    if plan.sampled:
        probes: dict[str, list[Case]] = {}
        for case in plan.cases:
            probes.setdefault(case.probe, []).append(case)
        groups = [(f"{probe} ({len(of):,})", of) for probe, of in probes.items()]
        yield from _case_table("probe (slices)", groups, plan.models[0])
        exact = all(model.counter.exact for model in plan.models)
        tokens = "" if exact else f"; a token is taken to be {CHARACTERS} characters"
        yield f"estimated from {SAMPLED} facts of each slice{tokens}"
        yield ""
    else:
        for suite, cases in groupby(plan.cases, key=lambda case: case.suite):
            yield suite
            groups = [(case_title(case), [case]) for case in cases]
            yield from _case_table("slice", groups, plan.models[0])
            yield ""
    for model in plan.models:
        yield from _model(model, plan)
    yield ""
    yield from _gates(plan)


def _number(value: float, digits: int = 0) -> str:
    return f"{value:,.{digits}f}"


def _range(values: Range, digits: int = 0) -> str:
    """Return a range in words: "300" or "300 to 6,300"."""
    low, high = _number(min(values), digits), _number(max(values), digits)
    return low if low == high else f"{low} to {high}"


def _seconds(values: Range) -> str:
    """Return a range of seconds in words, in minutes or hours where these are many."""
    if max(values) >= 5400:
        return f"{_range(values / 3600, 1)} hours"
    if max(values) >= 180:
        return f"{_range(values / 60, 1)} minutes"
    return f"{_range(values, 1)} s"


def _case_table(
    title: str, groups: list[tuple[str, list[Case]]], model: PlannedModel
) -> list[str]:
    if len(groups) > 1:
        groups = [*groups, ("all", [case for _, group in groups for case in group])]
    rows = [(title, "facts", "calls", "tokens read")]
    for name, cases in groups:
        facts, counts = sum(len(case.facts) for case in cases), model.counts(cases)
        cells = _number(facts), _range(counts.calls), _range(counts.read)
        rows.append((one_line(name, 60), *cells))
    return format_table(rows)


def _model(model: PlannedModel, plan: Plan) -> Iterator[str]:
    counts = model.counts(plan.cases)
    times = ", everything twice" if model.passes == 2 else ""
    yield f"{model.role} {one_line(model.text, 60)}: {_range(counts.calls)} calls{times}"
    exact = model.counter.exact or plan.sampled
    how = "" if exact else f", {CHARACTERS} characters a token"
    scored = f", {_range(counts.scored)} scored" if counts.scored.any() else ""
    written = f"at most {_number(max(counts.written))} written"
    yield f"  tokens: {_range(counts.read)} read{scored}, {written}{how}"
    thoughts = model.counter.thoughts
    if thoughts and counts.written.any():
        yield f"  thoughts are not counted: at most {thoughts:,} tokens before each answer"
    seconds, cost = model.seconds(counts), model.cost(counts)
    if model.is_served:
        yield "  time: unknown, because a server is not timed"
    elif seconds is None:
        yield "  time: unknown, because no run of it has stored a rate"
    else:
        yield f"  time: {_seconds(seconds)} at the rate of its last run, if no answer is cached"
    if model.computes_here:
        there = _seconds(model.passes * counts.calls / H200_RATE)
        measured = f"(measured: {H200_RATE} calls/s)"
        yield f"  on one H200: {there} for 8B in bfloat16 {measured}"
    if cost is not None:
        apart = " but for thoughts" if thoughts else ""
        yield f"  cost: {cost[0]:,.4f} for what is read at least, {cost[1]:,.4f} at most{apart}"
    elif model.is_served:
        yield "  cost: unknown without --kb-prices=IN,OUT"


def _gates(plan: Plan) -> Iterator[str]:
    relative = [gate for gate in plan.powers if GATE_RULES[gate.rule].relative]
    compared = sum(compares(gate.rule, gate.metric) for gate in plan.powers)
    if plan.powers:
        yield f"gates: {len(plan.powers):,}; {compared:,} compare with a baseline"
    if compared and not plan.has_baseline:
        yield f"  not judged, because no baseline is given: {compared:,}"
    if plan.sampled:
        yield from ("", _DETAILS)
        return
    for suite, family, level in plan.families:
        if family:
            significance = f"a drop is significant at p < {level:.2g}"
            yield f"cases compared with a baseline: {family} of {suite}; {significance}"
    planned = [gate for gate in relative if gate.is_planned]
    if planned:
        yield f"smallest drops found with 80 % power, if {DISCORDANT:.0%} of the facts change:"
        titles = {f"{case.suite}::{case.id}": case_title(case) for case in plan.cases}
        yield from format_table([_HEADER, *_rows(planned, titles)])
    if others := len(relative) - len(planned):
        yield f"not planned, because what they compare is no rate of facts: {count(others, 'gate')}"


_HEADER = ("gate", "n", "allowed", "found from")


def _rows(
    gates: Sequence[GatePower], titles: dict[str, str]
) -> Iterator[tuple[str, ...]]:
    # Gates that differ in their slice only are one row.
    alike: dict[tuple[str, ...], list[GatePower]] = {}
    for gate in gates:
        drop = "no drop, of so few" if gate.drop is None else f"{gate.drop:.3f}"
        shown = (_number(gate.n), f"{gate.rule} {gate.bound:g}", drop)
        key = gate.case.partition("[")[0], gate.metric, *shown
        alike.setdefault(key, []).append(gate)
    for (_, metric, *cells), group in alike.items():
        more = f" and {len(group) - 1} more" if len(group) > 1 else ""
        case = group[0].case
        title = one_line(titles.get(case, case.partition("::")[2]), 60)
        yield f"{metric} in {title}{more}", *cells
