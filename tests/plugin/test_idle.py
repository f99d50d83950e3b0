from __future__ import annotations

import subprocess
import sys

OURS = [
    "pytest_kbrel",
    *(f"pytest_kbrel.{name}" for name in ("bounds", "errors", "plugin")),
    *(f"pytest_kbrel.plugin.{name}" for name in ("fixtures", "options")),
]
HEAVY = ("torch", "transformers", "numpy", "scipy", "yaml", "pydantic", "jinja2", "xdist", "openai")


def test_loading_the_plugin_imports_nothing_heavy():
    code = f"import sys, pytest_kbrel.plugin; print([m for m in {HEAVY!r} if m in sys.modules])"
    actual = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert actual.strip() == "[]"


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
    lines = [line for line in result.outlines if "kbrel" in line and not line.startswith("plugins:")]
    assert lines == []
    pytesters_own = ("runpytest-", "stdout", "stderr", "__pycache__")
    after = sorted(path.name for path in pytester.path.iterdir() if not path.name.startswith(pytesters_own))
    assert after == before


def test_it_can_be_blocked_by_its_name(pytester):
    pytester.makepyfile("def test_other(): pass")
    result = pytester.runpytest_subprocess("-p", "no:kbrel")
    result.assert_outcomes(passed=1)


def test_every_flag_has_an_ini_and_an_environment_twin_in_the_help(pytester):
    result = pytester.runpytest_subprocess("--help")
    text = " ".join(result.stdout.str().split())
    for flag in ("model", "model-args", "device", "dtype", "batch-size", "apply-chat-template", "judge"):
        name = flag.replace("-", "_")
        assert f"--kb-{flag}" in text
        assert f"[ini: kb_{name}, env: KB_{name.upper()}]" in text
    for flag in ("baseline", "baseline-update", "inconclusive", "limit", "seed", "output-path"):
        assert f"--kb-{flag}" in text


def test_flags_that_are_typed_without_a_model_are_said_to_have_no_effect(pytester):
    pytester.makepyfile("def test_other(): pass")
    result = pytester.runpytest("--kb-limit=3", "--kb-device=cpu")
    result.stdout.fnmatch_lines(
        ["kbrel: --kb-device, --kb-limit not used: no model is given (--kb-model)", "*1 passed*"]
    )
