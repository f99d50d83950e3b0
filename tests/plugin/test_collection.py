from __future__ import annotations

import pytest

from pytest_kbrel import suites
from tests.plugin.conftest import GATE, MODEL

MINI = "suites/mini.kb.yaml"
CASES = [
    f"{MINI}::monitor[P36]",
    f"{MINI}::head_to_tail[places-head]",
    f"{MINI}::head_to_tail[places-torso]",
    f"{MINI}::head_to_tail[places-tail]",
    f"{MINI}::reliability[seen-zero-shot]",
    f"{MINI}::reliability[unseen-zero-shot]",
]


def collected(result: pytest.RunResult) -> list[str]:
    return [line for line in result.outlines if "::" in line]


def test_each_slice_is_an_item(pytester, mini_suite):
    mini_suite()
    assert sorted(collected(pytester.runpytest("--co", "-q", *GATE))) == sorted(CASES)


def test_collecting_only_needs_no_model(pytester, mini_suite):
    mini_suite()
    assert sorted(collected(pytester.runpytest("--co", "-q", "suites"))) == sorted(CASES)


@pytest.mark.parametrize(
    ("selection", "expected"),
    [
        (("-k", "tail and not head_to_tail"), []),
        (("-k", "P36"), CASES[:1]),
        (("-k", "unseen"), CASES[5:]),
        (("-m", "kb(probe='reliability')"), CASES[4:]),
        (("-m", "kb"), CASES),
        (("-m", "not kb"), []),
    ],
)
def test_items_are_selected_by_name_and_mark(pytester, mini_suite, selection, expected):
    mini_suite()
    result = pytester.runpytest("--co", "-q", *GATE, *selection)
    assert sorted(collected(result)) == sorted(expected)


def test_a_node_id_selects_one_item(pytester, mini_suite):
    mini_suite()
    result = pytester.runpytest("--co", "-q", MODEL, CASES[0])
    assert collected(result) == CASES[:1]


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
    result = pytester.runpytest(*GATE, "-rs", "-s", "-k", "P36 or seen-zero")
    # Both reliability slices, and the aggregate over them.
    result.assert_outcomes(passed=3, skipped=1)
    result.stdout.fnmatch_lines(
        ["*MODULE FIXTURE*", "*CASE reliability?seen-zero-shot?*", "SKIPPED*suites/mini.kb.yaml*not today*"]
    )


def test_a_project_with_its_own_function_names_still_collects_suites(pytester, mini_suite):
    mini_suite()
    pytester.makeini("[pytest]\npython_functions = check_*\n")
    assert len(collected(pytester.runpytest("--co", "-q", *GATE))) == len(CASES)


def test_a_wrong_suite_is_an_error_with_file_and_line(pytester, mini_suite, plugin_args):
    mini_suite("suite: mini\nfacts: facts.jsonl\nmonitor:\n  slises: [P36]\n")
    result = pytester.runpytest(*GATE, *plugin_args)
    assert result.ret == (pytest.ExitCode.TESTS_FAILED if plugin_args else pytest.ExitCode.INTERRUPTED)
    result.stdout.fnmatch_lines(["*mini.kb.yaml:4: *slises*did you mean 'slices'*"])
    assert "Traceback" not in result.stdout.str()
    assert "INTERNALERROR" not in result.stdout.str()


def test_a_broken_fact_line_is_an_error_with_file_and_line(pytester, mini_suite):
    mini_suite(facts='{"relation": "P36", "subject": "France", "object": "Paris"}\n{"relation": \n')
    result = pytester.runpytest(*GATE)
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(["*facts.jsonl:2: *"])


def test_an_empty_slice_is_an_error(pytester, mini_suite):
    mini_suite("suite: mini\nfacts: facts.jsonl\nhead_to_tail:\n  slices: [nowhere-tail]\n")
    result = pytester.runpytest(*GATE)
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(["*mini.kb.yaml:4: *nowhere-tail*"])


@pytest.mark.slow
def test_a_run_after_the_suites_expiry_warns(pytester, mini_suite):
    mini_suite(
        "suite: mini\nfacts: facts.jsonl\nreliability:\n  slices: [unseen-zero-shot]\n  choices: 2\n"
        "  unseen: {count: 3, as_of: 2020-01-01, expires: 2021-01-01}\n"
    )
    only = ("-W", "ignore", "-W", "default::pytest_kbrel.plugin.collection.KbrelWarning")
    for workers in ((), ("-n2",)):
        result = pytester.runpytest(*GATE, *only, *workers)
        result.stdout.fnmatch_lines(["*KbrelWarning*mini.kb.yaml*2021-01-01*"])
        # Once, although every worker reads the suite.
        assert result.parseoutcomes()["warnings"] == 1


EXPIRED = (
    "suite: mini\nfacts: facts.jsonl\nreliability:\n  slices: [unseen-zero-shot]\n  choices: 2\n"
    "  unseen:\n    count: 3\n    as_of: 2020-01-01\n    expires: 2021-01-01\n"
)


@pytest.mark.parametrize("filters", ["error", "error::pytest_kbrel.plugin.collection.KbrelWarning"])
def test_an_expired_suite_whose_warning_is_an_error_shows_its_line_and_no_source(
    pytester, mini_suite, filters
):
    mini_suite(EXPIRED)
    result = pytester.runpytest(*GATE, "-W", filters)
    assert result.ret == pytest.ExitCode.INTERRUPTED
    shown = result.stdout.str()
    result.stdout.fnmatch_lines(["*mini.kb.yaml:9: the unseen questions expired on 2021-01-01: *"])
    assert "Traceback" not in shown
    assert "collection.py" not in shown
    assert "KbrelWarning" not in shown


@pytest.mark.slow
def test_all_workers_refuse_an_expired_suite_alike(pytester, mini_suite):
    mini_suite(EXPIRED)
    result = pytester.runpytest(*GATE, "-W", "error::pytest_kbrel.plugin.collection.KbrelWarning", "-n2")
    assert result.ret != pytest.ExitCode.OK
    result.stdout.fnmatch_lines(["*mini.kb.yaml:9: the unseen questions expired on 2021-01-01: *"])
    assert "Different tests were collected" not in result.stdout.str()


class TestWithoutModel:
    def test_a_plain_run_leaves_suites_alone_and_says_so_once(self, pytester, mini_suite):
        mini_suite()
        pytester.makepyfile("def test_other(): pass")
        result = pytester.runpytest()
        result.assert_outcomes(passed=1)
        said = [line for line in result.outlines if "kbrel" in line and "plugins:" not in line]
        said = [line for line in said if not line.startswith("rootdir")]
        assert len(said) == 1
        assert "suites/mini.kb.yaml" in said[0]
        assert "--kb-model" in said[0]

    def test_naming_a_suite_is_a_usage_error(self, pytester, mini_suite):
        mini_suite()
        for argument in (MINI, CASES[0]):
            result = pytester.runpytest(argument)
            assert result.ret == pytest.ExitCode.USAGE_ERROR
            result.stderr.fnmatch_lines(["ERROR: *mini.kb.yaml*no model is given*--kb-model*"])

    @pytest.mark.parametrize(
        "typed",
        [
            *(
                "--kb-model=",
                "--kb-from-run=",
                "--kb-baseline=prod",
                "--kb-baseline-model=scripted/knows.jsonl",
            ),
            *("--kb-baseline-update=prod", "--kb-baseline-reason=why", "--kb-prices=1,2"),
        ],
    )
    def test_what_is_typed_for_no_model_is_a_usage_error(self, pytester, mini_suite, typed):
        mini_suite()
        pytester.makepyfile("def test_it(): pass")
        result = pytester.runpytest(typed)
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        flag = typed.partition("=")[0]
        result.stderr.fnmatch_lines([f"ERROR: {flag}: found *a model or a record is needed*--kb-model=SPEC*"])
        assert pytester.runpytest(typed, "--co").ret == pytest.ExitCode.OK

    def test_a_baseline_that_ini_or_environment_name_needs_no_model(self, pytester, monkeypatch):
        pytester.makepyfile("def test_it(): pass")
        pytester.makeini("[pytest]\nkb_baseline = prod\naddopts = --kb-baseline=prod\n")
        monkeypatch.setenv("KB_BASELINE_REASON", "why")
        pytester.runpytest().assert_outcomes(passed=1)

    @pytest.mark.parametrize(
        ("typed", "other"), [("--kb-model=", "KB_FROM_RUN"), ("--kb-from-run=", "KB_MODEL")]
    )
    def test_an_empty_one_does_not_give_way_to_the_environment(
        self, pytester, mini_suite, monkeypatch, typed, other
    ):
        mini_suite()
        monkeypatch.setenv(other, "reference")
        result = pytester.runpytest("suites", typed)
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        result.stderr.fnmatch_lines(["ERROR: *"])

    @pytest.mark.parametrize(
        ("typed", "needed"),
        [("--kb-prices=1,2", "--kb-plan"), ("--kb-baseline-reason=why", "--kb-baseline-update")],
    )
    def test_what_is_typed_without_its_flag_is_a_usage_error(self, pytester, mini_suite, typed, needed):
        mini_suite()
        result = pytester.runpytest(MODEL, "suites", typed)
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        flag = typed.partition("=")[0]
        result.stderr.fnmatch_lines([f"ERROR: {flag}: found without {needed}; allowed: with it*"])

    def test_naming_the_folder_is_no_green_run(self, pytester, mini_suite):
        mini_suite()
        result = pytester.runpytest("suites")
        assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED
        result.stdout.fnmatch_lines(["kbrel: no model given*suites/mini.kb.yaml*"])

    def test_a_fixture_without_a_model_fails_and_says_what_to_give(self, pytester):
        pytester.makepyfile("def test_it(kb_model): pass")
        result = pytester.runpytest()
        result.assert_outcomes(errors=1)
        result.stdout.fnmatch_lines(["*--kb-model=SPEC*"])

    def test_environment_and_ini_name_a_model_too(self, pytester, mini_suite, monkeypatch):
        mini_suite()
        pytester.makeini("[pytest]\nkb_model = reference:nonsense\n")
        assert pytester.runpytest("suites").ret == pytest.ExitCode.USAGE_ERROR
        monkeypatch.setenv("KB_MODEL", "reference")
        result = pytester.runpytest("suites", "-k", "seen-zero-shot and not unseen")
        result.assert_outcomes(passed=1)


def test_a_suite_is_read_once_in_a_process(pytester, mini_suite, monkeypatch):
    reads = []
    real = suites.load_suite

    def counted(path, **how):
        reads.append(path.name)
        return real(path, **how)

    monkeypatch.setattr(suites, "load_suite", counted)
    mini_suite()
    pytester.runpytest(MODEL, "--kb-limit=2", "-k", "P36", "suites").assert_outcomes(passed=1)
    assert reads == ["mini.kb.yaml"]
