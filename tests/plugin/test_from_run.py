"""--kb-from-run: a recorded run is decided again, without a model."""

import shutil
import subprocess
import sys

import openai  # noqa: F401  (in-process sessions forget new modules, and this one takes a second to load)
import pytest

from pytest_kbrel.reports import sha256_of
from tests.plugin.conftest import INT4, ONE, RENAMED, facts_file
from tests.reported import comparable

ALL = """\
suite: mini
facts: facts.jsonl
monitor:
  negatives: 2
  gates: {accuracy_base: {min: 0.3, max_drop: 0.1}}
head_to_tail:
  prompt: zero-shot
  gates: {accuracy: {min: 0.3}}
reliability:
  slices: [known-zero-shot, known-four-shot-2, unseen-zero-shot]
  controls: asked
  choices: 3
  distractors: 6
  unseen: {count: 6, as_of: 2026-11-01, expires: 2090-01-01}
  gates: {cr: {min: 0.3, max_drop: 0.1}}
"""
SUITE = ONE + "  gates: {accuracy: {min: 0.0, max_drop: 0.9}}\n"


@pytest.fixture
def judge(openai_server, judge):
    """Return the flags of a judge that finds one answer incorrect."""
    openai_server.say = lambda text: "incorrect" if "Lutetia" in text else "correct"
    return judge


@pytest.fixture
def gate(pytester):
    """Record a run in ``run``, and clear away what is kept from run to run."""

    def gate(*flags, model="scripted/knows.jsonl", output="run"):
        result = pytester.runpytest(
            f"--kb-model={model}", "suites", f"--kb-output-path={output}", *flags
        )
        shutil.rmtree(pytester.path / ".kbrel-cache", ignore_errors=True)
        return result

    return gate


@pytest.fixture
def again(pytester):
    """Decide the run in ``run`` again."""
    return lambda *flags: pytester.runpytest("--kb-from-run=run", "suites", *flags)


def verdicts(report):
    return {case["id"].partition("::")[2]: case["verdict"] for case in report["cases"]}


def test_a_recorded_run_decided_again_is_the_same(
    pytester, mini_suite, report, gate, again, openai_server, judge
):
    mini_suite(ALL, facts_file(RENAMED))
    gate("--kb-baseline-update=old", *judge)
    gate("--kb-baseline=old", *judge)
    before, calls = report("run"), len(openai_server.calls)
    assert before["helpers"]
    assert calls
    openai_server.say = lambda text: "incorrect"
    result = again("--kb-baseline=old")
    result.stdout.fnmatch_lines(
        [
            "kbrel: deciding again over run (model scripted/knows.jsonl, judge openai/judge, baseline old); "
            "no model is loaded, reports go to kbrel-report"
        ]
    )
    after = report()
    assert comparable(after) == comparable(before)
    assert (after["recorded"], before["recorded"]) == ("run", None)
    for name in ("responses.jsonl", "outcomes.jsonl.xz"):
        assert (pytester.path / "kbrel-report" / name).read_bytes() == (
            pytester.path / "run" / name
        ).read_bytes()
    assert len(openai_server.calls) == calls
    environment = after["environment"]
    assert environment["helpers_reused"] == environment["helpers_asked"] != "0"
    assert not (pytester.path / ".kbrel-cache").exists()


def test_other_gates_other_verdicts(pytester, mini_suite, report, gate, again):
    mini_suite(ALL)
    assert gate().ret == 0
    mini_suite(ALL.replace("{accuracy: {min: 0.3}}", "{accuracy: {max: 0.5}}"))
    assert again().ret == pytest.ExitCode.TESTS_FAILED
    before, after = verdicts(report("run")), verdicts(report())
    changed = {name for name in before if before[name] != after[name]}
    assert changed == {
        f"head_to_tail[places-{bucket}]" for bucket in ("head", "torso", "tail")
    }
    assert {after[name] for name in changed} == {"fail"}


@pytest.mark.slow
def test_no_torch_and_no_model(pytester, mini_suite, gate):
    """In a process of its own, where a model that were opened would fail."""
    mini_suite(ALL)
    gate("--kb-baseline-update=old")
    (pytester.path / "conftest.py").write_text(
        "import sys\n"
        "class NoModels:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.split('.')[0] in ('torch', 'transformers', 'openai', 'safetensors', 'tokenizers'):\n"
        "            raise RuntimeError('imported ' + name)\n"
        "sys.meta_path.insert(0, NoModels())\n",
        encoding="utf-8",
    )
    command = [
        sys.executable,
        "-m",
        "pytest",
        "suites",
        "--kb-from-run=run",
        "--kb-baseline=old",
        "-q",
    ]
    done = subprocess.run(
        [*command, "-p", "no:cacheprovider"],
        cwd=pytester.path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "imported" not in done.stdout + done.stderr
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_model_in_the_environment_gives_way_and_a_typed_one_wins(
    pytester, mini_suite, report, gate, monkeypatch
):
    mini_suite(SUITE)
    gate("--kb-limit=3", "--kb-seed=5")
    monkeypatch.setenv("KB_MODEL", "nowhere/nothing")
    monkeypatch.setenv("KB_LIMIT", "1")
    monkeypatch.setenv("KB_FROM_RUN", "run")
    assert pytester.runpytest("suites").ret == 0
    actual = report()
    assert comparable(actual) == comparable(report("run"))
    assert (actual["settings"]["model"], actual["settings"]["limit"]) == (
        "scripted/knows.jsonl",
        "3",
    )
    assert actual["settings"]["seed"] == "5"
    result = pytester.runpytest("suites", INT4)
    result.stdout.fnmatch_lines(["kbrel: model scripted/int4.jsonl"])


def test_a_smaller_sample_of_what_was_recorded(
    pytester, mini_suite, slices, gate, again
):
    mini_suite(SUITE)
    gate()
    assert again("--kb-limit=2").ret == 0
    assert {case["n"] for case in slices()} == {2}


def broken(run, change):
    path = run / "responses.jsonl"
    path.write_bytes(change(path.read_bytes()))


SPOILT = {
    "run: has no report.json; allowed: the folder of a finished run": shutil.rmtree,
    "run: has no report.json": lambda run: (run / "report.json").unlink(),
    "responses.jsonl: cannot be read: No such file": lambda run: (
        run / "responses.jsonl"
    ).unlink(),
    "responses.jsonl: is not the file that *report.json was written with": lambda run: (
        broken(run, lambda data: data[:-9])
    ),
    "report.json: names no digest of responses.jsonl": lambda run: (
        run / "report.json"
    ).write_text(
        (run / "report.json").read_text(encoding="utf-8").replace('"files"', '"were"'),
        "utf-8",
    ),
    "report.json: is not JSON": lambda run: (run / "report.json").write_text(
        "{", "utf-8"
    ),
    "report.json: no one model answered in this run": lambda run: (
        run / "report.json"
    ).write_text(
        (run / "report.json")
        .read_text(encoding="utf-8")
        .replace('"model": {', '"model": null, "was": {', 1),
        "utf-8",
    ),
}


def test_a_folder_that_is_no_finished_run_is_a_usage_error(
    pytester, mini_suite, gate, again
):
    mini_suite(SUITE)
    gate("-k", "tail]", output="whole")
    for message, spoil in SPOILT.items():
        shutil.rmtree(pytester.path / "run", ignore_errors=True)
        shutil.copytree(pytester.path / "whole", pytester.path / "run")
        spoil(pytester.path / "run")
        result = again()
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        result.stderr.fnmatch_lines([f"ERROR: --kb-from-run: *{message}*"])
    # A run that is named by its report is not replaced either.
    flags = ("--kb-from-run=whole/report.json", "--kb-output-path=whole")
    result = pytester.runpytest("suites", *flags)
    result.stderr.fnmatch_lines(["*would replace the recorded run*"])


def test_a_line_that_is_broken_is_named_once_and_nothing_passes(
    pytester, mini_suite, report, gate, again
):
    mini_suite(SUITE)
    gate()
    responses = pytester.path / "run" / "responses.jsonl"
    written = sha256_of(responses)
    first, second, rest = responses.read_bytes().split(b"\n", 2)
    broken_line = second.replace(b'"case"', b'"cas"')
    responses.write_bytes(b"\n".join((first, broken_line, rest)))
    # As if the run had written it so.
    path = pytester.path / "run" / "report.json"
    path.write_text(path.read_text().replace(written, sha256_of(responses)))
    assert again().ret == pytest.ExitCode.TESTS_FAILED
    errors = [error for case in report()["cases"] for error in case["errors"]]
    assert sum("responses.jsonl:2:" in error for error in errors) == 1
    assert {case["verdict"] for case in report()["cases"]} == {"invalid"}


def test_an_error_names_a_suite_that_asks_something_else_once(
    pytester, mini_suite, report, gate, again
):
    mini_suite(SUITE)
    gate("-k", "tail]")
    mini_suite(SUITE.replace("zero-shot", "few-shot"))
    assert again("-k", "tail] or head]").ret == pytest.ExitCode.TESTS_FAILED
    cases = {case["id"].partition("::")[2]: case for case in report()["cases"]}
    tail, head = (
        cases[f"head_to_tail[places-{bucket}]"] for bucket in ("tail", "head")
    )
    assert (tail["verdict"], head["verdict"]) == ("invalid", "invalid")
    assert (
        sum(
            "are not among the responses recorded in" in error
            for error in tail["errors"]
        )
        == 1
    )
    assert "the suite asks something else now than the run did" in tail["errors"][-1]
    assert tail["errors"][-1].startswith("all requests of this case")
    assert "the recorded run did not ask this case" in head["errors"][-1]


def test_a_new_judge_is_asked_and_a_recorded_one_only_what_is_new(
    pytester, mini_suite, report, gate, again, openai_server, judge
):
    mini_suite(SUITE, facts_file(RENAMED))
    gate()
    assert again(*judge).ret == 0
    assert len(openai_server.calls) == len(RENAMED)
    assert report()["settings"]["judge"] == "openai/judge"
    assert [helper["spec"] for helper in report()["helpers"]] == ["openai/judge"]
    # What it said is recorded with the run that was decided; of another answer list it knows one fact less.
    shutil.rmtree(pytester.path / ".kbrel-cache")
    mini_suite(SUITE, facts_file({**RENAMED, "Portugal": "Porto"}))
    result = pytester.runpytest(
        "--kb-from-run=kbrel-report", "suites", "--kb-output-path=third"
    )
    assert result.ret == 0
    assert len(openai_server.calls) == len(RENAMED) + 1
    assert report("third")["settings"]["judge_args"] == judge[1].partition("=")[2]
