"""Fixtures for suites and for people who write their checks in Python."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_kbrel.errors import KbrelError
from pytest_kbrel.options import model_spec, read_options

if TYPE_CHECKING:
    from pytest_kbrel.baselines import Baseline
    from pytest_kbrel.bench import Bench
    from pytest_kbrel.models.base import Model
    from pytest_kbrel.records import Case, CaseResult, Fact

results_key = pytest.StashKey["list[CaseResult]"]()
bench_key = pytest.StashKey["Bench"]()


@pytest.fixture(scope="session")
def _kb_bench(request: pytest.FixtureRequest) -> Iterator[Bench]:
    if not model_spec(request.config):
        pytest.fail(
            "no model: give one with --kb-model=SPEC, KB_MODEL or the ini key kb_model", pytrace=False
        )
    from pytest_kbrel.bench import Bench

    bench = Bench(request.session, read_options(request.config))
    request.config.stash[bench_key] = bench
    yield bench
    bench.close()


@pytest.fixture(scope="session")
def kb_model(_kb_bench: Bench) -> Model:
    """The checkpoint under test, loaded once for each worker."""
    try:
        return _kb_bench.model()
    except KbrelError as error:
        pytest.fail(str(error), pytrace=False)


@pytest.fixture(scope="session")
def kb_baseline(_kb_bench: Bench) -> Baseline | None:
    """The blessed run given by --kb-baseline, None without one."""
    try:
        return _kb_bench.baseline()
    except KbrelError as error:
        pytest.fail(str(error), pytrace=False)


@pytest.fixture
def kb_facts(request: pytest.FixtureRequest) -> Callable[[str], tuple[Fact, ...]]:
    """Read a facts file, relative to the test's own folder."""

    def read(path: str) -> tuple[Fact, ...]:
        from pytest_kbrel.facts.jsonl import read_facts

        try:
            return read_facts(Path(request.path.parent, path))
        except KbrelError as error:
            pytest.fail(str(error), pytrace=False)

    return read


@pytest.fixture
def kb_check(request: pytest.FixtureRequest, _kb_bench: Bench) -> Callable[[Case], CaseResult]:
    """Measure one case and assert all its gates."""

    def check(case: Case) -> CaseResult:
        try:
            result = _kb_bench.decide(case)
        except KbrelError as error:
            pytest.fail(str(error), pytrace=False)
        request.node.stash.setdefault(results_key, []).append(result)
        from pytest_kbrel.reports.junit import case_properties

        request.node.user_properties.extend(case_properties(result))
        message = failure_message(request.config, result)
        if message:
            pytest.fail(message, pytrace=False)
        return result

    return check


def attach(report: pytest.TestReport, item: pytest.Item) -> None:
    """Put an item's decided cases on its report, as builtins that execnet carries."""
    from pytest_kbrel.wire import to_wire

    bench = item.config.stash[bench_key]
    # mypy is right that a report has no such attribute: this is how measurements travel on it.
    report.kbrel = {  # type: ignore[attr-defined]
        "results": [to_wire(result) for result in item.stash[results_key]],
        "model": to_wire(bench.fingerprint()),
        "helpers": to_wire(bench.helping.fingerprints()),
        "helped": list(bench.helping.news()),
    }


def failure_message(config: pytest.Config, result: CaseResult) -> str:
    """Return why a decided case fails its test, ``""`` when it does not."""
    from pytest_kbrel.reports.terminal import failure_text

    options = read_options(config)
    if result.verdict not in options.failing:
        return ""
    return failure_text(result, baseline_name=options.baseline)
