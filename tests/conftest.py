from __future__ import annotations

import contextlib
import gc
import os
import sys
from collections.abc import Iterator

import pytest
from _pytest.pytester import SysModulesSnapshot

from tests.browser import Browser
from tests.openai_server import OpenAIServer

try:
    import hypothesis
    from hypothesis.internal.conjecture import providers
except ImportError:
    # `make demo` installs no packages of the tests.
    hypothesis = None

# Nothing here may reach for a hub, and two test processes must not fight over the cores.
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("OMP_NUM_THREADS", "1")
# The runs of the tests are not to be shown on the page of the CI job that runs the tests.
os.environ.pop("GITHUB_STEP_SUMMARY", None)

if hypothesis:
    # How long an example takes says more about the machine than about the code. The same examples every time make
    # a change the only reason why a test turns red; `make test-random` looks for others.
    hypothesis.settings.register_profile(
        "kbrel", deadline=None, derandomize=True, database=None, max_examples=50
    )
    hypothesis.settings.register_profile(
        "random", deadline=None, derandomize=False, max_examples=300, print_blob=True
    )
    hypothesis.settings.load_profile("kbrel")

    # Hypothesis also draws numbers and texts that the modules of the project contain, as far as they are loaded.
    # The same examples every time must not depend on which tests ran before in the same process.
    with contextlib.suppress(AttributeError):
        _collected = providers._get_local_constants
        providers._get_local_constants = lambda: (
            providers._local_constants
            if hypothesis.settings.default.derandomize
            else _collected()
        )


@pytest.fixture(autouse=True, scope="session")
def _modules_stay() -> Iterator[None]:
    """Let sessions under test in this process keep what they import, but for modules of their folder.

    pytester forgets them all. numpy and torch cannot be loaded twice, and take seconds.
    """

    def snapshot(pytester: pytest.Pytester) -> SysModulesSnapshot:
        folder = f"{pytester.path}{os.sep}"

        def stays(name: str) -> bool:
            return not (getattr(sys.modules[name], "__file__", None) or "").startswith(
                folder
            )

        return SysModulesSnapshot(preserve=stays)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pytest.Pytester, "_Pytester__take_sys_modules_snapshot", snapshot)
        yield


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """Headless Chromium, the same for all tests of a process: for tests with ``needs_browser``."""
    with contextlib.closing(Browser(tmp_path_factory.mktemp("profile"))) as browser:
        yield browser


@pytest.fixture
def openai_server() -> Iterator[OpenAIServer]:
    """A server on loopback that speaks the OpenAI protocol, this test's own."""
    with OpenAIServer() as server:
        yield server


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Iterator[object]:
    """Let the garbage collector look only at what the tests make.

    Some ten thousand tests and the libraries stay to the end. Looking through them time and again took a
    seventh of the time of all tests.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Iterator[pytest.CollectReport]:
    """Skip the modules that need packages of the tests where ``make test`` has not installed them."""
    report = yield
    if hypothesis is None and "No module named" in str(report.longrepr):
        report.outcome = "skipped"
        report.longrepr = (str(collector.path), 1, "make test installs what it needs")
    return report


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Count tests with a real server among the slow ones."""
    for item in items:
        if "openai_server" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.slow)
