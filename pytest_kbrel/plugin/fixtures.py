"""Fixtures for suites and for checks written in Python, and what tests attach to their reports."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

from pytest_kbrel.errors import BudgetError, KbrelError
from pytest_kbrel.plugin.options import is_active

if TYPE_CHECKING:
    from pytest_kbrel.baselines import Baseline
    from pytest_kbrel.evaluation.model_under_test import ModelUnderTest
    from pytest_kbrel.plugin.worker import CaseRunner
    from pytest_kbrel.records import Case, CaseResult, Fact, Shard
    from pytest_kbrel.settings import Settings

T = TypeVar("T")
Metric = Callable[["Fact"], float]
results_key = pytest.StashKey["list[CaseResult]"]()
runner_key = pytest.StashKey["CaseRunner"]()
# Of an item that is run to ask cases of its suite ahead, and not to decide its own.
ahead_key = pytest.StashKey[bool]()


@pytest.fixture(scope="session")
def _kb_runner(request: pytest.FixtureRequest) -> Iterator[CaseRunner]:
    if not is_active(request.config):
        pytest.fail(
            "no model: give one with --kb-model=SPEC, KB_MODEL or the ini key kb_model",
            pytrace=False,
        )
    from pytest_kbrel.plugin.settings import read_settings
    from pytest_kbrel.plugin.worker import CaseRunner

    config = request.config
    # A test may request its fixtures only while it runs.
    register_run(config)
    if (recorder := config.pluginmanager.getplugin("kbrel-recorder")) is not None:
        recorder.mark_active()
    runner = CaseRunner(request.session, read_settings(config))
    config.stash[runner_key] = runner
    yield runner
    runner.close()


@pytest.fixture(scope="session")
def kb_model(_kb_runner: CaseRunner) -> ModelUnderTest:
    """The model under test, loaded once for each worker: ``ask(question)``, ``probability(prompt, text)``."""
    _or_fail(_kb_runner.pool.fingerprint)
    return _kb_runner.model


@pytest.fixture(scope="session")
def kb_baseline(_kb_runner: CaseRunner) -> Baseline | None:
    """The blessed run given by --kb-baseline, None without one."""
    return _or_fail(_kb_runner.baseline)


@pytest.fixture(scope="session")
def kb_shard(request: pytest.FixtureRequest) -> Shard:
    """The share of the facts that --kb-shard has this session ask, without it all of them: 1/1."""
    from pytest_kbrel.plugin.settings import read_settings
    from pytest_kbrel.records import Shard

    return read_settings(request.config).shard or Shard(index=1, count=1)


@pytest.fixture
def kb_facts(request: pytest.FixtureRequest) -> Callable[[str], tuple[Fact, ...]]:
    """Read a file of facts (JSON Lines, CSV, Parquet) or questions (CSV), relative to the test's own folder."""

    def read(path: str) -> tuple[Fact, ...]:
        from pytest_kbrel.facts.readers import read_own_facts

        return _or_fail(lambda: read_own_facts(Path(request.path.parent, path)))

    return read


@pytest.fixture
def kb_check(
    request: pytest.FixtureRequest, _kb_runner: CaseRunner
) -> Callable[..., CaseResult]:
    """Measure one case, or a metric of your own over facts, and assert all its gates.

    ``kb_check(metric, facts, min=0.8, max_drop=0.05)``: ``metric(fact)`` returns a number of which more is
    better, or whether all is well; the rules are those of gates. ``name`` is what reports call the metric,
    by default as the function. A baseline knows it by that name and the test's.
    """

    def check(
        case: Case | Metric,
        facts: Sequence[Fact] = (),
        *,
        name: str = "",
        **rules: float,
    ) -> CaseResult:
        from pytest_kbrel.records import Case

        if request.node.stash.get(ahead_key, False):
            assert isinstance(case, Case)
            suite = case.suite
            _or_fail(lambda: _kb_runner.ask_units(suite))
            pytest.skip("nothing is decided ahead")

        def decide() -> CaseResult:
            if isinstance(case, Case):
                return _kb_runner.decide(case)
            from pytest_kbrel.session.own_metric import decide_own, own_case

            own = own_case(request.node.nodeid, case, facts, name, rules)
            return decide_own(_kb_runner, _kb_runner.model, own, case)

        try:
            result = _or_fail(decide)
        except BudgetError as error:
            recorder = request.config.pluginmanager.getplugin("kbrel-recorder")
            # It is there, since with workers a budget is refused.
            news = _kb_runner.pool.news()
            recorder.end_at_budget(request.node.nodeid, str(error), news)
        results = request.node.stash.setdefault(results_key, [])
        if any(other.nodeid == result.nodeid for other in results):
            twice = f"{result.id} stands twice in this test; allowed: another name"
            raise _unmeasured(twice)
        results.append(result)
        from pytest_kbrel.plugin.collection import case_of
        from pytest_kbrel.reports.junit import case_properties

        request.node.user_properties.extend(case_properties(result))
        message = failure_message(_kb_runner.settings, result)
        waiver_reason = waiver_text(_kb_runner.settings, result)
        # The item of a suite is one case; a Python test may check several and must go on to the next.
        is_item_of_suite = case_of(request.node) is not None
        if message and waiver_reason:
            if not is_item_of_suite:
                return result
            pytest.xfail(waiver_reason)
        if message:
            pytest.fail(message, pytrace=False)
        if (shard := _kb_runner.settings.shard) is not None and is_item_of_suite:
            pytest.skip(
                f"shard {shard} asks and stores; kbrel merge or --kb-from-run decides"
            )
        return result

    return check


def _or_fail(action: Callable[[], T]) -> T:
    try:
        return action()
    except BudgetError:
        raise
    except KbrelError as error:
        why = str(error)
    from pytest_kbrel.serialization import replace_surrogates

    # Outside the handler: inside it pytest would print both errors.
    raise _unmeasured(replace_surrogates(why))


def _unmeasured(why: str) -> BaseException:
    """Return the failure of a test in which nothing could be measured, though no assertion of its own failed."""
    failure = pytest.fail.Exception(why, pytrace=False)
    failure.is_unmeasured = True  # type: ignore[attr-defined]
    return failure


def attach(
    report: pytest.TestReport, item: pytest.Item, call: pytest.CallInfo[None]
) -> None:
    """Attach to an item's report, as JSON, its results and the models of its process.

    To that of a failed item also, why all others would fail too, and what its own assertion says.
    """
    from pytest_kbrel.evaluation.model_pool import News
    from pytest_kbrel.serialization import dumps_compact, replace_surrogates

    runner = item.config.stash.get(runner_key, None)
    if runner is not None and runner.model.asked:
        from pytest_kbrel.session.own_metric import keep_asked

        runner.model.case = item.nodeid
        keep_asked(runner, runner.model)
    results = item.stash.get(results_key, []) if report.when == "call" else []
    if not results and not report.failed:
        return
    news = News()
    if runner is not None:
        # What an item without results was asked is told with the next one's.
        news = runner.pool.news() if results else News()
        if report.failed and runner.pool.unusable:
            report.kbrel_unusable = replace_surrogates(runner.pool.unusable)  # type: ignore[attr-defined]
    if report.when == "call":
        _explain_test(report, call)
    # xdist transports unknown attributes of a report, and execnet no records.
    report.kbrel = dumps_compact({"results": results, "news": news})  # type: ignore[attr-defined]
    if results:
        # pytest keeps all items until the session ends.
        del item.stash[results_key]


def _explain_test(report: pytest.TestReport, call: pytest.CallInfo[None]) -> None:
    """Say in the report of a test why it failed, without the traceback, and whether by an assertion."""
    error = None if call.excinfo is None else call.excinfo.value
    if not report.failed or error is None or hasattr(error, "is_unmeasured"):
        return
    is_assertion = isinstance(error, (AssertionError, pytest.fail.Exception))
    said = str(error) if is_assertion else f"{type(error).__name__}: {error}"
    why = said.partition("\n")[0] or "an assertion failed and did not say why"
    from pytest_kbrel.serialization import replace_surrogates

    report.kbrel_why = replace_surrogates(why)  # type: ignore[attr-defined]
    report.kbrel_asserted = is_assertion  # type: ignore[attr-defined]


def uses_model(item: pytest.Item) -> bool:
    """Return True if an item, or a fixture of it, uses a model."""
    return "_kb_runner" in getattr(item, "fixturenames", ()) and is_active(item.config)


def register_run(config: pytest.Config) -> None:
    """Register the run in the cache, if it has one."""
    from pytest_kbrel.evaluation.model_pool import run_lock
    from pytest_kbrel.plugin.settings import read_settings

    if (lock := run_lock(read_settings(config))) is not None:
        lock.prepare()


def failure_message(settings: Settings, result: CaseResult) -> str:
    """Return why a decided case fails its test, ``""`` when it does not.

    Of its first line pytest's short summary has room for a few words, behind the node id.
    """
    from pytest_kbrel.printing import printable
    from pytest_kbrel.reports.reasons import case_reason
    from pytest_kbrel.reports.terminal import failure_text

    if result.verdict not in settings.failing:
        return ""
    text = failure_text(result, baseline_name=settings.compared_with)
    return f"{printable(case_reason(result))}\n{text}"


def waiver_text(settings: Settings, result: CaseResult) -> str:
    """Return the waiver of a failed case in words; ``""`` without one and with --runxfail."""
    from pytest_kbrel.printing import printable
    from pytest_kbrel.reports.phrases import waiver_reason

    if result.waiver is None or not result.waived or settings.without_waivers:
        return ""
    return printable(waiver_reason(result.waiver))


def emit_reports(
    session: pytest.Session,
    nodeid: str,
    failure: str,
    *,
    properties: Sequence[tuple[str, str]] = (),
    line: int = 0,
    is_new: bool = False,
    waived: str = "",
) -> None:
    """Pass the reports of a case to pytest's hooks, so that pytest counts and prints it.

    ``failure`` is why the case failed, ``""`` if it passed. With ``waived``, the reason of a waiver, pytest
    shows an expected failure. ``is_new`` is True for a case that was not collected, so that pytest's progress
    ends at 100 %.
    """
    from pytest_kbrel.printing import printable

    path, _, name = nodeid.partition("::")
    location = (path, max(line - 1, 0), name)
    session.testscollected += is_new
    hook = session.config.hook
    hook.pytest_runtest_logstart(nodeid=nodeid, location=location)
    for when in ("setup", "call", "teardown"):
        failed = bool(failure) and when == "call"
        excused = failed and bool(waived)
        report = pytest.TestReport(
            nodeid=nodeid,
            location=location,
            keywords={},
            outcome="skipped" if excused else "failed" if failed else "passed",
            longrepr=printable(failure) if failed else None,
            when=when,
            user_properties=properties,
        )
        if excused:
            # pytest and its plugins recognise an expected failure by this, as after pytest.xfail.
            report.wasxfail = waived
        hook.pytest_runtest_logreport(report=report)
    hook.pytest_runtest_logfinish(nodeid=nodeid, location=location)


def drop_prefix(report: pytest.TestReport, call: pytest.CallInfo[None]) -> None:
    """Make the message of a failed case its own text, without ``Failed:``, as that of an aggregate."""
    error = call.excinfo.value if call.excinfo is not None else None
    if report.failed and isinstance(error, pytest.fail.Exception) and not error.pytrace:
        report.longrepr = str(error)


def make_printable(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Make failure, traceback, captured output and properties of a report printable.

    Failures quote models, and tracebacks may contain keys.
    """
    for name in ("longrepr", "sections", "user_properties"):
        if hasattr(report, name):
            setattr(report, name, _shown(getattr(report, name)))


def _shown(value: Any) -> Any:
    from pytest_kbrel.printing import printable

    if isinstance(value, str):
        return printable(value)
    if isinstance(value, (list, tuple)):
        return type(value)(map(_shown, value))
    if hasattr(value, "toterminal"):
        for name, part in vars(value).items():
            setattr(value, name, _shown(part))
    return value
