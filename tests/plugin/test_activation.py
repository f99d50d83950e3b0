"""Sessions without a model: the plugin loads little, changes nothing, and says what is missing."""

import pytest

from tests.plugin.conftest import GATE, KNOWS, MODEL

OURS = [
    "pytest_kbrel",
    *(f"pytest_kbrel.{name}" for name in ("bounds", "errors", "plugin")),
    *(f"pytest_kbrel.plugin.{name}" for name in ("fixtures", "options")),
    "pytest_kbrel.words",
]
HEAVY = (
    "torch",
    "transformers",
    "numpy",
    "scipy",
    "yaml",
    "pydantic",
    "jinja2",
    "xdist",
    "openai",
)


def test_an_idle_run_imports_nothing_prints_nothing_and_writes_nothing(pytester):
    pytester.makepyfile(
        f"""
        import sys

        def test_other():
            heavy = [name for name in {HEAVY!r} if name in sys.modules and name != "xdist"]
            ours = sorted(name for name in sys.modules if name.startswith("pytest_kbrel"))
            assert heavy == []
            assert ours == {OURS!r}
        """
    )
    before = sorted(path.name for path in pytester.path.iterdir())
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", "-p", "no:xdist")
    result.assert_outcomes(passed=1)
    lines = [
        line
        for line in result.outlines
        if "kbrel" in line and not line.startswith("plugins:")
    ]
    assert lines == []
    pytesters_own = ("runpytest-", "stdout", "stderr", "__pycache__")
    after = sorted(
        path.name
        for path in pytester.path.iterdir()
        if not path.name.startswith(pytesters_own)
    )
    assert after == before


def test_the_first_line_of_a_session_waits_for_no_heavy_import(pytester, mini_suite):
    mini_suite()
    heavy = [name for name in HEAVY if name != "xdist"]
    pytester.makeconftest(
        f"""
        import sys
        import pytest

        @pytest.hookimpl(trylast=True)
        def pytest_report_header():
            return f"imported: {{[name for name in {heavy!r} if name in sys.modules]}}"
        """
    )
    flags = (
        "--kb-model=reference",
        "--kb-baseline=reference",
        "-p",
        "no:xdist",
        "-k",
        "nothing",
    )
    result = pytester.runpytest_subprocess(*flags, "suites")
    assert {"kbrel: model reference, baseline reference", "imported: []"} <= set(
        result.outlines
    )


def test_the_plugin_can_be_blocked_by_its_name(pytester):
    pytester.makepyfile("def test_other(): pass")
    result = pytester.runpytest_subprocess("-p", "no:kbrel")
    result.assert_outcomes(passed=1)


def test_a_plain_run_leaves_suites_alone_and_says_so_once(pytester, mini_suite):
    mini_suite()
    pytester.makepyfile("def test_other(): pass")
    result = pytester.runpytest()
    result.assert_outcomes(passed=1)
    lines = [
        line for line in result.outlines if "kbrel" in line and "plugins:" not in line
    ]
    lines = [line for line in lines if not line.startswith("rootdir")]
    assert len(lines) == 1
    assert "suites/mini.kb.yaml" in lines[0]
    assert "--kb-model" in lines[0]


def test_a_baseline_that_ini_or_environment_name_needs_no_model(pytester, monkeypatch):
    pytester.makepyfile("def test_it(): pass")
    pytester.makeini("[pytest]\nkb_baseline = prod\naddopts = --kb-baseline=prod\n")
    monkeypatch.setenv("KB_BASELINE_REASON", "why")
    pytester.runpytest().assert_outcomes(passed=1)


def test_a_fixture_without_a_model_fails_and_says_what_to_give(pytester):
    pytester.makepyfile("def test_it(kb_model): pass")
    result = pytester.runpytest()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*--kb-model=SPEC*"])


@pytest.mark.parametrize(
    ("variable", "ini", "message"),
    [
        ("KB_BASELNE", "", "KB_BASELNE: found in the environment, *'KB_BASELINE'?"),
        ("KB_Baseline", "", "KB_Baseline: *'KB_BASELINE'?"),
        ("", "kb_baselne = x", "kb_baselne: found in the ini file *'kb_baseline'?"),
        # A project's own.
        ("KB_MODEL_DIR", "", ""),
        ("KB_" + "X" * 300, "", ""),
    ],
)
def test_a_mistyped_name_is_a_usage_error(
    pytester, mini_suite, monkeypatch, variable, ini, message
):
    mini_suite()
    monkeypatch.setenv(variable or "KB_URL", "prod")
    pytester.makeini(f"[pytest]\n{ini}\n")
    result = pytester.runpytest(*GATE, "-k", "P36")
    assert result.ret == (pytest.ExitCode.USAGE_ERROR if message else 0)
    if message:
        result.stderr.fnmatch_lines([f"ERROR: {message}"])


def test_a_mistyped_model_is_no_reason_to_leave_suites_out(
    pytester, mini_suite, monkeypatch
):
    pytester.makepyfile("def test_other(): pass")
    monkeypatch.setenv("KB_MODLE", "reference")
    # What has no suite has nothing to do with it.
    pytester.runpytest().assert_outcomes(passed=1)
    mini_suite()
    result = pytester.runpytest()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: KB_MODLE: *; did you mean 'KB_MODEL'?"])


@pytest.mark.parametrize("more", [(), ("-n2",), ("--kb-plan",)])
def test_a_model_that_nothing_asks_is_no_green_run(pytester, mini_suite, more):
    mini_suite()
    pytester.makepyfile(test_other="def test_other(): pass")
    result = pytester.runpytest(MODEL, "test_other.py", *more)
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    if "--kb-plan" not in more:
        result.assert_outcomes(passed=1)
        result.stdout.fnmatch_lines(["kbrel: nothing was measured: found no suite*"])
    # A project may name its model for all of its tests.
    pytester.makeini(f"[pytest]\nkb_model = {KNOWS}")
    if "--kb-plan" not in more:
        assert pytester.runpytest("test_other.py", *more).ret == 0


def test_a_run_that_could_have_asked_has_pytests_own_exit_code(pytester, mini_suite):
    mini_suite()
    pytester.makepyfile(
        **{
            "below/test_other": "def test_other(): pass",
            "below/test_asks": "def test_asks(kb_model): assert kb_model.ask('Who?')",
        }
    )
    for of in (
        ("below", "-n2"),
        ("below", "suites", "-k", "other"),
        ("below/test_other.py", "--co"),
    ):
        result = pytester.runpytest(MODEL, *of)
        assert result.ret == 0
        assert "nothing was measured" not in result.stdout.str()
