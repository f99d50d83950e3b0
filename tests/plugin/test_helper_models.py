"""Settings of judges and of models that write distractors, and their errors."""

import openai  # noqa: F401  (in-process sessions forget new modules, and this one takes a second to load)
import pytest

from tests.plugin.conftest import MODEL, ONE

WRITTEN = """\
suite: mini
facts: facts.jsonl
reliability:
  slices: [known-zero-shot]
  choices: 2
  distractors: 6
  distractors_from: {}
"""
NOWHERE = "base_url=http://localhost:9/v1"


def gate(pytester, *flags):
    return pytester.runpytest(MODEL, "suites", *flags)


@pytest.mark.parametrize(
    ("suite", "flags", "named", "status"),
    [
        (
            ONE,
            ("--kb-judge=openai/x", "-k", "head]"),
            "--kb-judge: openai/x",
            pytest.ExitCode.USAGE_ERROR,
        ),
        # Cases of other suites may not need it.
        (
            WRITTEN.format("openai/x"),
            (),
            "distractors_from: openai/x",
            pytest.ExitCode.TESTS_FAILED,
        ),
    ],
)
def test_an_error_names_an_unreachable_server_and_its_setting_once(
    pytester, mini_suite, suite, flags, named, status
):
    mini_suite(suite)
    # Otherwise every answer equals what is expected, and no judge is asked.
    facts = pytester.path / "suites" / "facts.jsonl"
    facts.write_text(facts.read_text().replace('"object": "', '"object": "Old '))
    result = gate(pytester, *flags, f"--kb-judge-args={NOWHERE},max_retries=0")
    assert result.ret == status
    failures = [line for line in result.outlines if line.startswith(named)]
    assert failures == [
        f"{named}: the server http://localhost:9/v1 cannot be reached: {why(failures)}"
    ]
    assert "During handling" not in result.stdout.str()


def why(lines):
    return lines[0].rpartition("cannot be reached: ")[2]


def test_an_option_in_the_ini_file_may_be_for_other_suites(pytester, mini_suite):
    mini_suite(ONE)
    pytester.makeini(f"[pytest]\nkb_judge_args = {NOWHERE}\n")
    assert gate(pytester).ret == 0


def test_options_go_to_the_models_of_their_kind(
    pytester, mini_suite, report, openai_server
):
    mini_suite(WRITTEN.format("reference"))
    openai_server.say = lambda text: "correct"
    args = f"--kb-judge-args=base_url={openai_server.base_url},dtype=bfloat16"
    assert gate(pytester, "--kb-judge=openai/judge", args).ret == 0
    helpers = {helper["spec"]: helper for helper in report()["helpers"]}
    assert helpers["reference"]["dtype"] == "bfloat16"
    assert helpers["openai/judge"]["device"] == openai_server.base_url
