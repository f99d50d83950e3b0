"""--kb-baseline-update: what is blessed, and what is refused."""

import pytest

from pytest_kbrel.baselines import read_baseline, write_baseline
from tests.baselines.test_baselines import sound
from tests.gates.tables import answers, case, decided
from tests.plugin.conftest import GATE, RELATIVE, one_line

BLESS = (*GATE, "--kb-baseline-update=prod")
ONE = "suites/mini.kb.yaml::reliability[unseen-zero-shot]"
DYING = """\
import os
import pytest

@pytest.fixture(autouse=True)
def die(request):
    if "unseen" in request.node.name and os.environ.get("PYTEST_XDIST_WORKER"):
        os._exit(1)
"""
DESELECTING = """\
def pytest_collection_modifyitems(config, items):
    gone = [item for item in items if "unseen" in item.name]
    items[:] = [item for item in items if item not in gone]
    config.hook.pytest_deselected(items=gone)
"""
SKIPPING = """\
import pytest

@pytest.fixture(autouse=True)
def skip(request):
    if "unseen" in request.node.name:
        pytest.skip("not today")
"""


@pytest.fixture
def older(pytester, mini_suite):
    """An older baseline of the same suite, and a way to see that nothing touched it."""
    mini_suite(RELATIVE)
    folder = pytester.path / "baselines" / "prod"
    write_baseline(
        folder,
        sound(
            decided(case(suite="suites/mini.kb.yaml"), answers("+-")), created="older"
        ),
    )
    before = {path.name: path.read_bytes() for path in folder.iterdir()}

    def untouched():
        names = sorted(path.name for path in folder.parent.iterdir())
        return (
            names == ["prod"]
            and {path.name: path.read_bytes() for path in folder.iterdir()} == before
        )

    return untouched


def is_refused(result):
    """Return True if the run was refused before anything was asked."""
    words = (
        "--kb-baseline-update: deselected 1 of 2 cases, and a baseline needs all of them; allowed: the command "
        "without -k, --lf, --deselect and node ids, or a suite file with these cases alone"
    )
    said = " ".join((result.stdout.str() + result.stderr.str()).split())
    return (
        result.ret == pytest.ExitCode.USAGE_ERROR
        and words in said
        and "passed" not in said
    )


@pytest.mark.parametrize(
    "flags", [("-k", "unseen"), ("--deselect", ONE)], ids=["k", "deselect"]
)
def test_no_selected_part_is_blessed(pytester, older, flags, plugin_args):
    assert is_refused(pytester.runpytest(*BLESS, *flags, *plugin_args))
    assert older()


def test_no_run_is_blessed_whose_conftest_leaves_items_out(pytester, older):
    pytester.makeconftest(DESELECTING)
    assert is_refused(pytester.runpytest(*BLESS))
    assert older()


def test_no_run_is_blessed_whose_conftest_skips_items(pytester, older):
    pytester.makeconftest(SKIPPING)
    result = pytester.runpytest(*BLESS)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert "no baseline was written: the run is not complete" in one_line(result)
    assert older()


def test_no_run_of_the_last_failures_is_blessed(pytester, older):
    last = pytester.path / ".pytest_cache" / "v" / "cache" / "lastfailed"
    last.parent.mkdir(parents=True)
    last.write_text(f'{{"{ONE}": true}}')
    assert is_refused(pytester.runpytest(*BLESS, "--lf", "-p", "cacheprovider"))
    assert older()


@pytest.mark.slow
def test_no_run_is_blessed_whose_worker_died(pytester, older):
    pytester.makeconftest(DYING)
    result = pytester.runpytest(*BLESS, "-n2")
    assert result.ret != 0
    assert "no baseline was written: " in one_line(result)
    assert older()


def test_a_complete_run_replaces_the_baseline_and_records_the_reason(pytester, older):
    pytester.run("git", "init", "-q", ".")
    pytester.run(
        "git",
        "-c",
        "user.name=a",
        "-c",
        "user.email=a@b",
        "commit",
        "-q",
        "--allow-empty",
        "-m",
        "x",
    )
    result = pytester.runpytest(
        *BLESS, "--kb-baseline-reason", "second release\nafter the fix"
    )
    assert result.ret == 0
    assert not older()
    actual = read_baseline("prod", pytester.path)
    assert actual.reason == "second release\nafter the fix"
    assert len(actual.commit) == 40
    assert dict(actual.versions)["torch"]
    assert actual.created != "older"


def test_the_report_names_the_age_of_an_old_baseline(pytester, older, report):
    assert pytester.runpytest(*BLESS).ret == 0
    path = pytester.path / "baselines" / "prod" / "baseline.json"
    text = path.read_text()
    created = read_baseline("prod", pytester.path).created
    path.write_text(text.replace(created, "2020-01-02T03:04:05+00:00"))
    assert pytester.runpytest(*GATE, "--kb-baseline=prod").ret == 0
    (age,) = [words for words in report()["differences"] if words.startswith("age: ")]
    assert "the baseline was blessed" in age


@pytest.mark.slow
def test_the_same_run_gives_the_same_bytes(pytester, mini_suite):
    mini_suite(RELATIVE)
    pytester.runpytest(*BLESS)
    blessed = pytester.path / "baselines" / "prod"
    before = {path.name: path.read_bytes() for path in blessed.iterdir()}
    pytester.runpytest(*GATE, "--kb-baseline-update=again", "-n2")
    again = pytester.path / "baselines" / "again"
    (name,) = (name for name in before if name.endswith(".xz"))
    assert (again / name).read_bytes() == before[name]
