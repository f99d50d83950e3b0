"""``--kb-plan`` in real sessions: what it says is what a run then does, and it runs nothing."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path
from typing import Any

import openai  # noqa: F401  (in-process sessions forget new modules, and this one takes a second to load)
import pytest

from pytest_kbrel.models.cache.session import store_rates
from pytest_kbrel.models.registry import BACKENDS, open_model, read_spec
from tests.plugin.conftest import MODEL, facts_file, mini_suite
from tests.plugin.real_models.checkpoints import make_checkpoint
from tests.plugin.real_models.world import write_suite

__all__ = ["mini_suite"]

ROOT = Path(__file__).resolve().parents[2]
QUICK = (MODEL, "suites", "--kb-plan")
PLAN = (*QUICK, "-v")
ROW = re.compile(r"(\S+)\[([^] ]+)[^]]*\] +([\d,]+)  +(\S+)  +(\S+)$")
TWICE = """\
suite: twice
facts: facts.jsonl
head_to_tail:
  prompt: zero-shot
  gates: {accuracy: {min: 0.3}}
"""
OTHERS = (
    "--kb-baseline-model=reference:int4",
    "--kb-judge=openai/judge",
    "--kb-judge-args=base_url=http://localhost:1/v1",
)


def rows_of(result: pytest.RunResult) -> dict[str, tuple[str, str, str]]:
    """Return facts, calls and prompt tokens of each slice, as they are printed."""
    rows = [row for line in result.outlines if (row := ROW.match(line))]
    return {f"{row[1]}[{row[2]}]": row.group(3, 4, 5) for row in rows}


def shown(result: pytest.RunResult) -> list[str]:
    """Return the lines of the plan."""
    lines = result.outlines
    start = next(at for at, line in enumerate(lines) if "plan, nothing was run" in line)
    return [line for line in lines[start + 1 :] if "no tests ran" not in line]


def keep_a_rate(folder: Path) -> None:
    """Keep the rate of a run of the scripted model, as its cache does."""
    model = open_model(read_spec("scripted/knows.jsonl"))
    fingerprint = model.describe()
    model.close()
    for rate in (1.0, 2.0):
        store_rates(folder, fingerprint, {"generate": rate, "score": rate})


@pytest.mark.parametrize(
    "model", ["scripted/knows.jsonl", pytest.param("reference", marks=pytest.mark.slow)]
)
def test_calls_and_tokens_are_those_of_the_run(
    pytester, mini_suite, monkeypatch, model
):
    mini_suite()
    # No rate is kept by a worker, as which these tests may run.
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
    keep_a_rate(pytester.path / ".kbrel-cache")
    flags = (f"--kb-model={model}", "suites", "-k", "monitor or head_to_tail")
    planned = pytester.runpytest(*flags, "--kb-plan", "-v")
    assert planned.ret == pytest.ExitCode.OK
    (read, scored), *_ = re.findall(
        r"([\d,]+) read, ([\d,]+) scored", planned.stdout.str()
    )
    minutes = sum(int(count.replace(",", "")) for count in (read, scored)) / 2 / 60
    timed = f"  time: {minutes:,.1f} minutes at" in planned.stdout.str()
    assert timed == (model != "reference")
    assert not (pytester.path / "kbrel-report").exists()
    pytester.runpytest(*flags)
    responses = pytester.path / "kbrel-report" / "responses.jsonl"
    run: dict[str, list[int]] = {}
    for line in map(json.loads, responses.read_text(encoding="utf-8").splitlines()):
        if "request" in line:
            tokens = run.setdefault(line["case"].partition("::")[2], [])
            tokens.append(line["response"]["prompt_tokens"])
    counted = {case: (f"{len(of):,}", f"{sum(of):,}") for case, of in run.items()}
    assert {case: row[1:] for case, row in rows_of(planned).items()} == counted


def test_nothing_runs_and_no_file_is_touched(pytester, mini_suite):
    suite = mini_suite()
    pytester.makepyfile(
        test_other="def test_other():\n    raise SystemExit('it ran')\n"
    )
    old = pytester.path / "kbrel-report" / "report.json"
    old.parent.mkdir()
    old.write_text("{}")
    before = sorted(suite.parent.iterdir())
    for more in ((), ("-v",)):
        result = pytester.runpytest(MODEL, "--kb-plan", "-n2", *more)
        assert result.ret == pytest.ExitCode.OK
        result.assert_outcomes()
        assert "it ran" not in result.stdout.str()
        assert "collected 7 items" in result.stdout.str()
        assert not re.search(r"created: \d+/\d+ workers", result.stdout.str())
    assert [path.name for path in old.parent.iterdir()] == ["report.json"]
    assert old.read_text() == "{}"
    assert not (pytester.path / ".kbrel-cache").exists()
    assert sorted(suite.parent.iterdir()) == before


@pytest.mark.parametrize(
    ("selection", "facts"),
    [
        (("suites", "-k", "monitor"), {"monitor[P36]": "12"}),
        (("suites", "--kb-limit=3", "-k", "monitor"), {"monitor[P36]": "3"}),
        (("suites/mini.kb.yaml::monitor[P36]",), {"monitor[P36]": "12"}),
        (
            ("suites", "--deselect=suites/mini.kb.yaml::monitor[P36]", "-k", "tail]"),
            {"head_to_tail[places-tail]": "7"},
        ),
    ],
)
def test_what_selects_items_shapes_the_plan(pytester, mini_suite, selection, facts):
    mini_suite()
    result = pytester.runpytest(MODEL, "--kb-plan", "-v", *selection)
    assert {case: row[0] for case, row in rows_of(result).items()} == facts


QUICK_TEXT = """\
probe (slices)    facts  calls  tokens read
head_to_tail (3)     12     12          276
estimated from 4 facts of each slice; a token is taken to be 4 characters

--kb-model scripted/knows.jsonl: 12 calls
  tokens: 276 read, at most 384 written
  time: 138.0 s at the rate of its last run, if no answer is cached
--kb-judge openai/judge: 0 to 12 calls
  tokens: 0 to 4,707 read, at most 192 written
  thoughts are not counted: at most 2,048 tokens before each answer
  time: unknown, because a server is not timed
  cost: 0.0000 for what is read at least, 0.0509 at most but for thoughts

gates: 9; 6 compare with a baseline
  not judged, because no baseline is given: 6

add -v for each slice, exact tokens and what each gate can find
"""
FULL_TEXT = """\
suites/mini.kb.yaml
slice                       facts  calls  tokens read
head_to_tail[places-head]       2      2           46
head_to_tail[places-torso]      3      3           69
head_to_tail[places-tail]       7      7          162
all                            12     12          277

--kb-model scripted/knows.jsonl: 12 calls
  tokens: 277 read, at most 384 written
  time: 138.5 s at the rate of its last run, if no answer is cached
--kb-judge openai/judge: 0 to 12 calls
  tokens: 0 to 4,710 read, at most 192 written, 4 characters a token
  thoughts are not counted: at most 2,048 tokens before each answer
  time: unknown, because a server is not timed
  cost: 0.0000 for what is read at least, 0.0509 at most but for thoughts

gates: 9; 6 compare with a baseline
  not judged, because no baseline is given: 6
cases compared with a baseline: 3 of suites/mini.kb.yaml; a drop is significant at p < 0.017
smallest drops found with 80 % power, if 10% of the facts change:
gate                                    n       allowed          found from
accuracy in head_to_tail[places-head]   2  max_drop 0.1  no drop, of so few
accuracy in head_to_tail[places-torso]  3  max_drop 0.1  no drop, of so few
accuracy in head_to_tail[places-tail]   7  max_drop 0.1  no drop, of so few
not planned, because what they compare is no rate of facts: 3 gates
"""


def test_what_a_plan_says(pytester, mini_suite, monkeypatch, openai_server):
    gates = (
        "{accuracy: {max_drop: 0.1}, missing: {max: 1.0}, accuracy_f1: {max_drop: 0.1}}"
    )
    shared = dict.fromkeys(("Poland", "Portugal", "Norway"), "Paris")
    mini_suite(TWICE.replace("{accuracy: {min: 0.3}}", gates), facts_file(shared))
    # No rate is kept by a worker, as which these tests may run.
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
    keep_a_rate(pytester.path / ".kbrel-cache")
    args = f"--kb-judge-args=base_url={openai_server.base_url}"
    others = ("--kb-judge=openai/judge", args, "--kb-prices=10,20")
    for flags, text in (((*QUICK, *others), QUICK_TEXT), ((*PLAN, *others), FULL_TEXT)):
        result = pytester.runpytest(*flags)
        assert "\n".join([*shown(result), ""]) == text
    assert openai_server.calls == []


def test_no_model_is_opened_and_a_quick_plan_opens_no_tokenizer(
    pytester, mini_suite, monkeypatch
):
    mini_suite(TWICE)

    def fail(*_: Any, **__: Any) -> Any:
        raise AssertionError("something was opened")

    for name in ("scripted", "hf"):
        broken = dataclasses.replace(BACKENDS[name], open=fail)
        monkeypatch.setitem(BACKENDS, name, broken)  # type: ignore[arg-type]
    for flags in (QUICK, PLAN):
        assert pytester.runpytest(*flags).ret == pytest.ExitCode.OK
    broken = dataclasses.replace(BACKENDS["hf"], counter=fail)
    monkeypatch.setitem(BACKENDS, "hf", broken)  # type: ignore[arg-type]
    result = pytester.runpytest("--kb-model=reference", *QUICK[1:])
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(
        [
            "*; a token is taken to be 4 characters",
            "--kb-model reference: 12 calls",
            "  time: unknown, because no run of it has stored a rate",
            f"  on one H200: {12 / 396:.1f} s for 8B in bfloat16 (measured: 396 calls/s)",
        ]
    )


def test_a_model_to_compare_with_is_planned_too(pytester, mini_suite):
    mini_suite(TWICE.replace("{min: 0.3}", "{max_drop: 0.1}"))
    result = pytester.runpytest(*PLAN, *OTHERS)
    result.stdout.fnmatch_lines(
        [
            "--kb-model scripted/knows.jsonl: 12 calls",
            "--kb-baseline-model reference:int4: 12 calls",
            "--kb-judge openai/judge: 0 to 12 calls, everything twice",
            "gates: 3; 3 compare with a baseline",
            "cases compared with a baseline: *",
        ]
    )


@pytest.mark.slow
def test_the_plan_of_the_shipped_suites_is_one_screen(pytester):
    Path("conftest.py").write_text(
        "import sys\n\ndef pytest_unconfigure():\n    print('torch' in sys.modules, 'is what was loaded')\n"
    )
    flags = ("--kb-model=reference", "--kb-plan", "-p", "conftest", *OTHERS)
    result = pytester.runpytest_subprocess(ROOT / "suites", *flags)
    assert result.ret == 0
    lines = [line for line in shown(result) if "was loaded" not in line]
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80
    assert "False is what was loaded" in result.outlines


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("suites", "--kb-plan"), "--kb-plan: found no model*--kb-model=SPEC*"),
        ((*PLAN, "--kb-prices=cheap"), "--kb-prices: found 'cheap'*"),
        (
            ("--kb-model=openai/big", "--kb-model-args=base_url={}", *QUICK[1:]),
            "*MONITOR needs token probabilities*",
        ),
    ],
)
def test_wrong_settings_are_usage_errors(
    pytester, mini_suite, openai_server, flags, message
):
    mini_suite()
    result = pytester.runpytest(
        *(flag.replace("{}", openai_server.base_url) for flag in flags)
    )
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: {message}"])


def test_a_checkpoint_that_thinks_is_refused_for_monitor_as_in_a_run(pytester):
    make_checkpoint(pytester.path / "model", "thinker", "deepseek-r1")
    write_suite(pytester.path / "suites")
    flags = ("--kb-model=model", "--kb-apply-chat-template", "--kb-plan", "-v")
    limit = "--kb-model-args=max_thinking_tokens=64"
    result = pytester.runpytest(*flags, "suites", limit, "-k", "world-head")
    assert (
        "  thoughts are not counted: at most 64 tokens before each answer"
        in result.outlines
    )
    result = pytester.runpytest(*flags, "suites")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        "*MONITOR cannot be run: the model thinks*allowed: -k 'not monitor'*"
    )


def test_a_plan_without_suites_says_nothing(pytester: pytest.Pytester):
    pytester.makepyfile("def test_one():\n    pass\n")
    (pytester.path / "knows.jsonl").write_text('{"default": {"text": "unsure"}}')
    result = pytester.runpytest(MODEL, "--kb-plan")
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    result.assert_outcomes()
    assert "plan, nothing was run" not in result.stdout.str()
