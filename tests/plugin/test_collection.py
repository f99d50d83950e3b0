"""Suites as pytest items: names, marks, errors, and what is counted of the selected cases."""

import pytest

from pytest_kbrel import suites
from tests.plugin.conftest import GATE, MODEL

MINI = "suites/mini.kb.yaml"
CASES = [
    f"{MINI}::monitor[P36]",
    f"{MINI}::head_to_tail[places-head]",
    f"{MINI}::head_to_tail[places-torso]",
    f"{MINI}::head_to_tail[places-tail]",
    f"{MINI}::reliability[known-zero-shot]",
    f"{MINI}::reliability[unseen-zero-shot]",
]


def collected(result):
    return [line for line in result.outlines if "::" in line]


def test_collecting_only_needs_no_model(pytester, mini_suite):
    mini_suite()
    assert sorted(collected(pytester.runpytest("--co", "-q", "suites"))) == sorted(
        CASES
    )


@pytest.mark.parametrize(
    ("selection", "expected"),
    [
        (("-k", "P36"), CASES[:1]),
        (("-k", "unseen"), CASES[5:]),
        (("-m", "kb(probe='reliability')"), CASES[4:]),
        (("-m", "not kb"), []),
    ],
)
def test_items_are_selected_by_name_and_mark(pytester, mini_suite, selection, expected):
    mini_suite()
    result = pytester.runpytest("--co", "-q", *GATE, *selection)
    assert sorted(collected(result)) == sorted(expected)


def test_conftest_fixtures_and_marks_apply(pytester, mini_suite):
    mini_suite()
    pytester.makeconftest(
        """
        import pytest

        @pytest.fixture(autouse=True, scope="module")
        def around_the_module():
            print("MODULE FIXTURE")
            yield

        @pytest.fixture(autouse=True)
        def around_each(kb_case):
            print("CASE", kb_case.id)

        def pytest_collection_modifyitems(items):
            for item in items:
                if "monitor" in item.name:
                    item.add_marker(pytest.mark.skip(reason="not today"))
        """
    )
    result = pytester.runpytest(*GATE, "-rs", "-s", "-k", "P36 or zero-shot")
    # Both reliability slices, and the aggregate over them.
    result.assert_outcomes(passed=3, skipped=1)
    result.stdout.fnmatch_lines(
        [
            "*MODULE FIXTURE*",
            "*CASE reliability?known-zero-shot?*",
            "SKIPPED*suites/mini.kb.yaml*not today*",
        ]
    )


def test_a_project_with_its_own_function_names_still_collects_suites(
    pytester, mini_suite
):
    mini_suite()
    pytester.makeini("[pytest]\npython_functions = check_*\n")
    assert len(collected(pytester.runpytest("--co", "-q", *GATE))) == len(CASES)


def test_a_wrong_suite_is_an_error_with_file_and_line(pytester, mini_suite):
    mini_suite("suite: mini\nfacts: facts.jsonl\nmonitor:\n  slises: [P36]\n")
    result = pytester.runpytest(*GATE)
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(["*mini.kb.yaml:4: *slises*did you mean 'slices'*"])
    assert "Traceback" not in result.stdout.str()
    assert "INTERNALERROR" not in result.stdout.str()


def test_a_run_after_the_suites_expiry_warns(pytester, mini_suite):
    mini_suite(
        "suite: mini\nfacts: facts.jsonl\nreliability:\n  slices: [unseen-zero-shot]\n  choices: 2\n"
        "  unseen: {count: 3, as_of: 2020-01-01, expires: 2021-01-01}\n"
    )
    only = (
        "-W",
        "ignore",
        "-W",
        "default::pytest_kbrel.plugin.collection.KbrelWarning",
    )
    result = pytester.runpytest(*GATE, *only)
    result.stdout.fnmatch_lines(["*KbrelWarning*mini.kb.yaml*2021-01-01*"])
    assert result.parseoutcomes()["warnings"] == 1


def test_an_expired_suite_whose_warning_is_an_error_shows_its_line_and_no_source(
    pytester, mini_suite
):
    filters = "error::pytest_kbrel.plugin.collection.KbrelWarning"
    mini_suite(
        "suite: mini\nfacts: facts.jsonl\nreliability:\n  slices: [unseen-zero-shot]\n"
        "  choices: 2\n  unseen:\n    count: 3\n    as_of: 2020-01-01\n    expires: 2021-01-01\n"
    )
    result = pytester.runpytest(*GATE, "-W", filters)
    assert result.ret == pytest.ExitCode.INTERRUPTED
    shown = result.stdout.str()
    result.stdout.fnmatch_lines(
        ["*mini.kb.yaml:9: the unseen questions expired on 2021-01-01: *"]
    )
    assert "Traceback" not in shown
    assert "collection.py" not in shown
    # The commands for what to do next repeat the flags.
    assert "KbrelWarning" not in "\n".join(
        line for line in shown.splitlines() if " pytest " not in line
    )


def test_a_suite_is_read_once_in_a_process(pytester, mini_suite, monkeypatch):
    reads = []
    real = suites.load_suite

    def counted(path, **how):
        reads.append(path.name)
        return real(path, **how)

    monkeypatch.setattr(suites, "load_suite", counted)
    mini_suite()
    pytester.runpytest(MODEL, "--kb-limit=2", "-k", "P36", "suites").assert_outcomes(
        passed=1
    )
    assert reads == ["mini.kb.yaml"]
