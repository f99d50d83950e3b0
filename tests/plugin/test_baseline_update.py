"""--kb-baseline-update: what is blessed, and what is refused."""

import pytest

from pytest_kbrel.baselines import read_baseline, write_baseline
from tests.baselines.test_baselines import sound
from tests.gates.tables import answers, case, decided
from tests.plugin.conftest import GATE, RELATIVE, one_line

BLESS = (*GATE, "--kb-baseline-update=prod")
ONE = "suites/mini.kb.yaml::reliability[unseen-zero-shot]"
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
def test_no_selected_part_is_blessed(pytester, older, flags):
    assert is_refused(pytester.runpytest(*BLESS, *flags))
    assert older()


def test_no_run_is_blessed_whose_conftest_skips_items(pytester, older):
    pytester.makeconftest(SKIPPING)
    result = pytester.runpytest(*BLESS)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert "no baseline was written: the run is not complete" in one_line(result)
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
