"""Fixtures for suites and for people who write their checks in Python."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import pytest

from pytest_kbrel.errors import KbrelError
from pytest_kbrel.plugin.options import is_active

if TYPE_CHECKING:
    from pytest_kbrel.baselines import Baseline
    from pytest_kbrel.models.base import Model
    from pytest_kbrel.plugin.worker import Bench
    from pytest_kbrel.records import Case, CaseResult, Fact
    from pytest_kbrel.settings import Settings

T = TypeVar("T")
results_key = pytest.StashKey["list[CaseResult]"]()
bench_key = pytest.StashKey["Bench"]()


@pytest.fixture(scope="session")
def _kb_bench(request: pytest.FixtureRequest) -> Iterator[Bench]:
    if not is_active(request.config):
        pytest.fail(
            "no model: give one with --kb-model=SPEC, KB_MODEL or the ini key kb_model", pytrace=False
        )
    from pytest_kbrel.plugin.settings import read_settings
    from pytest_kbrel.plugin.worker import Bench

    # A test may ask for its fixtures only while it runs.
    _announce(request.config)
    if (recorder := request.config.pluginmanager.getplugin("kbrel-recorder")) is not None:
        recorder.note_asking()
    bench = Bench(request.session, read_settings(request.config))
    request.config.stash[bench_key] = bench
    yield bench
    bench.close()


@pytest.fixture(scope="session")
def kb_model(_kb_bench: Bench) -> Model:
    """The checkpoint under test, loaded once for each worker."""
    return _or_fail(_kb_bench.answering.model)


@pytest.fixture(scope="session")
def kb_baseline(_kb_bench: Bench) -> Baseline | None:
    """The blessed run given by --kb-baseline, None without one."""
    return _or_fail(_kb_bench.baseline)


@pytest.fixture
def kb_facts(request: pytest.FixtureRequest) -> Callable[[str], tuple[Fact, ...]]:
    """Read a facts file, relative to the test's own folder."""

    def read(path: str) -> tuple[Fact, ...]:
        from pytest_kbrel.facts.jsonl import read_facts

        return _or_fail(lambda: read_facts(Path(request.path.parent, path)))

    return read


@pytest.fixture
def kb_check(request: pytest.FixtureRequest, _kb_bench: Bench) -> Callable[[Case], CaseResult]:
    """Measure one case and assert all its gates."""

    def check(case: Case) -> CaseResult:
        result = _or_fail(lambda: _kb_bench.decide(case))
        request.node.stash.setdefault(results_key, []).append(result)
        from pytest_kbrel.reports.junit import case_properties

        request.node.user_properties.extend(case_properties(result))
        message = failure_message(_kb_bench.settings, result)
        excuse = excuse_for(request.config, result)
        if message and excuse:
            from pytest_kbrel.plugin.collection import case_of

            # An item is one case. A test that checks several must go on to the next.
            if case_of(request.node) is None:
                return result
            pytest.xfail(excuse)
        if message:
            pytest.fail(message, pytrace=False)
        return result

    return check


def _or_fail(action: Callable[[], T]) -> T:
    try:
        return action()
    except KbrelError as error:
        why = str(error)
    from pytest_kbrel.serialization import whole

    # Out here: raised while the other is handled, pytest would print both.
    pytest.fail(whole(why), pytrace=False)


def attach(report: pytest.TestReport, item: pytest.Item) -> None:
    """Hand an item's decided cases over to its report, as a text: execnet carries no records."""
    from pytest_kbrel.serialization import packed

    bench = item.config.stash[bench_key]
    wire = {
        "results": item.stash[results_key],
        "model": bench.answering.fingerprint(),
        "base": bench.answering.base(),
        "helpers": bench.answering.helpers(),
        "helped": bench.answering.help_news(),
        "answered": bench.answering.answer_news(),
        "not_kept": bench.answering.not_kept(),
        "loading": bench.answering.loading(),
        "notes": bench.answering.notes(),
    }
    # mypy is right that a report has no such attribute: this is how measurements travel on it.
    report.kbrel = packed(wire)  # type: ignore[attr-defined]
    # pytest keeps all items to the end.
    del item.stash[results_key]


def note_unusable(report: pytest.TestReport, item: pytest.Item) -> None:
    """Say on the report of a failed item if all others would fail of the same cause."""
    from pytest_kbrel.serialization import whole

    bench = item.config.stash.get(bench_key, None)
    if bench is not None and bench.answering.unusable:
        report.kbrel_unusable = whole(bench.answering.unusable)  # type: ignore[attr-defined]


def attach_models(report: pytest.TestReport, item: pytest.Item) -> None:
    """Say on the report of an item without a decided case which models its process had opened."""
    from pytest_kbrel.serialization import packed

    bench = item.config.stash.get(bench_key, None)
    if bench is not None and not hasattr(report, "kbrel"):
        report.kbrel_models = packed(bench.answering.opened())  # type: ignore[attr-defined]


def asks(item: pytest.Item) -> bool:
    """Tell whether an item asks a model: it, or a fixture of its, is given one."""
    return "_kb_bench" in getattr(item, "fixturenames", ()) and is_active(item.config)


def announce(session: pytest.Session) -> None:
    """Say that models will be asked, if an item of this process asks one."""
    if any(map(asks, session.items)):
        _announce(session.config)


def _announce(config: pytest.Config) -> None:
    from pytest_kbrel.evaluation.model_pool import underway
    from pytest_kbrel.plugin.settings import read_settings

    journals = underway(read_settings(config))
    if journals is not None:
        journals.prepare()


def failure_message(settings: Settings, result: CaseResult) -> str:
    """Return why a decided case fails its test, ``""`` when it does not."""
    from pytest_kbrel.reports.terminal import failure_text

    if result.verdict not in settings.failing:
        return ""
    return failure_text(result, baseline_name=settings.compared_with)


def excuse_for(config: pytest.Config, result: CaseResult) -> str:
    """Return the waiver that lets a case's failure pass, in words; ``""`` without, and with --runxfail."""
    from pytest_kbrel.printing import printable
    from pytest_kbrel.reports.phrases import excuse

    if result.waiver is None or not result.waived or config.getoption("runxfail", False):
        return ""
    return printable(excuse(result.waiver))
