"""``--kb-plan`` in real sessions: what it says is what a run then does, and it runs nothing."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import openai  # noqa: F401  (in-process sessions forget new modules, and this one takes a second to load)
import pytest

from pytest_kbrel.models.cache.measurements import store_rates
from pytest_kbrel.models.registry import BACKENDS, open_model, read_spec
from tests.plugin.conftest import MODEL, SUITE, facts_file, mini_suite
from tests.plugin.real_models.checkpoints import make_checkpoint
from tests.plugin.real_models.world import write_suite

__all__ = ["mini_suite"]

ROOT = Path(__file__).resolve().parents[2]
QUICK = (MODEL, "suites", "--kb-plan")
PLAN = (*QUICK, "-v")
FIXED = "monitor or head_to_tail"
ROW = re.compile(r"(\S+\[[^]]+\]|all) +([\d,]+)  +(\S.*?)  +(\S.*?)  +(\S.*)$")
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

Rows = dict[str, tuple[str, str, str]]


def numbers(text: str) -> list[int]:
    return [int(actual.replace(",", "")) for actual in re.findall(r"\d[\d,]*", text)]


def rows_of(result: pytest.RunResult) -> Rows:
    """Return calls, different calls and prompt tokens of each slice, as they are printed, by its id."""
    rows, suite = {}, ""
    for line in result.outlines:
        if line.endswith(".kb.yaml"):
            suite = line
        elif (row := ROW.match(line)) and row[1] != "all":
            # A relation stands there with its label.
            case = re.sub(r" [^]]+", "", row[1])
            rows[f"{suite}::{case}"] = (row[3], row[5], row[4])
    return rows


def shown(result: pytest.RunResult) -> list[str]:
    """Return the lines of the plan."""
    lines = result.outlines
    start = next(at for at, line in enumerate(lines) if "plan, nothing was run" in line)
    return [line for line in lines[start + 1 :] if "no tests ran" not in line]


@pytest.fixture
def exchanges(pytester: pytest.Pytester) -> Callable[[], list[dict[str, Any]]]:
    def read() -> list[dict[str, Any]]:
        path = pytester.path / "kbrel-report" / "responses.jsonl"
        lines = map(json.loads, path.read_text(encoding="utf-8").splitlines())
        return [line for line in lines if "request" in line]

    return read


def keep_a_rate(folder: Path) -> None:
    """Keep the rate of a run of the scripted model, as its cache does."""
    model = open_model(read_spec("scripted/knows.jsonl"))
    fingerprint = model.describe()
    model.close()
    for rate in (1.0, 2.0):
        store_rates(folder, fingerprint, {"generate": rate, "score": rate})


def per_case(exchanges: list[dict[str, Any]]) -> Rows:
    """Count a run as the plan does: all exchanges, those that no earlier one equals, their prompt tokens."""
    seen: set[str] = set()
    results: dict[str, list[int]] = {}
    for exchange in exchanges:
        counts = results.setdefault(exchange["case"], [0, 0, 0])
        counts[0] += 1
        asked = json.dumps(exchange["request"], sort_keys=True)
        if asked not in seen:
            seen.add(asked)
            counts[1] += 1
            counts[2] += exchange["response"]["prompt_tokens"]
    return {
        case: tuple(f"{count:,}" for count in counts)
        for case, counts in results.items()
    }  # type: ignore[misc]


@pytest.mark.parametrize(
    "model", ["scripted/knows.jsonl", pytest.param("reference", marks=pytest.mark.slow)]
)
def test_calls_and_tokens_are_those_of_the_run(pytester, mini_suite, exchanges, model):
    mini_suite()
    # The same questions once more.
    mini_suite(TWICE, name="twice")
    flags = (f"--kb-model={model}", "suites", "-k", FIXED)
    planned = pytester.runpytest(*flags, "--kb-plan", "-v")
    assert planned.ret == pytest.ExitCode.OK
    assert not (pytester.path / "kbrel-report").exists()
    pytester.runpytest(*flags)
    assert rows_of(planned) == per_case(exchanges())
    assert any("  132 after deduplication" in line for line in shown(planned))


@pytest.mark.slow
def test_reliability_lies_between_the_least_and_the_most(
    pytester, mini_suite, exchanges
):
    mini_suite()
    blind = rows_of(pytester.runpytest(*PLAN, "-k", "reliability"))
    assert pytester.runpytest(MODEL, "suites").ret == 0
    real = per_case([one for one in exchanges() if "reliability" in one["case"]])
    assert len(real) == 2
    for case, counts in real.items():
        for printed, count in zip(blind[case], map(numbers, counts), strict=True):
            low, high = numbers(printed)
            assert low <= count[0] <= high
            assert low < high


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
    ("selection", "slices", "facts"),
    [
        (("-k", "monitor"), ["monitor[P36]"], 12),
        (("--kb-limit=3", "-k", "monitor"), ["monitor[P36]"], 3),
        (("--deselect=suites/mini.kb.yaml::monitor[P36]", "-k", "head"), None, 2),
        (("suites/mini.kb.yaml::monitor[P36]",), ["monitor[P36]"], 12),
    ],
)
def test_what_selects_items_shapes_the_plan(
    pytester, mini_suite, selection, slices, facts
):
    mini_suite()
    where = () if "::" in selection[0] and len(selection) == 1 else ("suites",)
    result = pytester.runpytest(MODEL, "--kb-plan", "-v", *where, *selection)
    every = [f"head_to_tail[places-{bucket}]" for bucket in ("head", "torso", "tail")]
    found = [case.partition("::")[2] for case in rows_of(result)]
    assert found == (slices or every)
    counts = [int(row[2]) for row in map(ROW.match, result.outlines) if row]
    assert counts[0] == facts


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
slice                       facts  calls  tokens read  different
head_to_tail[places-head]       2      2           46          2
head_to_tail[places-torso]      3      3           69          3
head_to_tail[places-tail]       7      7          162          7
all                            12     12          277         12

--kb-model scripted/knows.jsonl: 12 calls
  tokens: 277 read, at most 384 written
  time: 138.5 s at the rate of its last run, if no answer is cached
--kb-judge openai/judge: 0 to 12 calls
  tokens: 0 to 4,710 read, at most 192 written, 4 characters a token
  thoughts are not counted: at most 2,048 tokens before each answer
  time: unknown, because a server is not timed
  cost: 0.0000 for what is read at least, 0.0509 at most but for thoughts

cases compared with a baseline: 3 of suites/mini.kb.yaml; a drop is significant at p < 0.017
smallest drops found with 80 % power, if 10% of the facts change (rates), or with a correlation of 0.8 (other figures):
gate                                       n       allowed        found from
accuracy in head_to_tail[places-head]      2  max_drop 0.1  needs a baseline
accuracy_f1 in head_to_tail[places-head]   2  max_drop 0.1  needs a baseline
accuracy in head_to_tail[places-torso]     3  max_drop 0.1  needs a baseline
accuracy_f1 in head_to_tail[places-torso]  3  max_drop 0.1  needs a baseline
accuracy in head_to_tail[places-tail]      7  max_drop 0.1  needs a baseline
accuracy_f1 in head_to_tail[places-tail]   7  max_drop 0.1  needs a baseline
"""


def test_what_a_plan_says(pytester, mini_suite, monkeypatch):
    gates = (
        "{accuracy: {max_drop: 0.1}, missing: {max: 1.0}, accuracy_f1: {max_drop: 0.1}}"
    )
    shared = dict.fromkeys(("Poland", "Portugal", "Norway"), "Paris")
    mini_suite(TWICE.replace("{accuracy: {min: 0.3}}", gates), facts_file(shared))
    # No rate is kept by a worker, as which these tests may run.
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
    keep_a_rate(pytester.path / ".kbrel-cache")
    others = (*OTHERS[1:], "--kb-prices=10,20")
    for flags, text in (((*QUICK, *others), QUICK_TEXT), ((*PLAN, *others), FULL_TEXT)):
        result = pytester.runpytest(*flags)
        assert "\n".join([*shown(result), ""]) == text


def test_a_few_facts_of_each_slice_tell_about_the_counts(pytester, mini_suite):
    mini_suite()
    quick, full = (pytester.runpytest(*flags) for flags in (QUICK, PLAN))
    calls = "--kb-model scripted/knows.jsonl: {} calls"
    assert calls.format("150 to 204") in shown(quick)
    assert calls.format("150 to 204") in shown(full)
    tokens = [
        numbers(line)[0]
        for one in (quick, full)
        for line in shown(one)
        if "  tokens: " in line
    ]
    assert tokens[0] == pytest.approx(tokens[-1], rel=0.1)


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
        ]
    )


def test_a_served_model_is_not_asked_and_its_cost_is_told(
    pytester, mini_suite, openai_server
):
    mini_suite(TWICE)
    flags = (
        "--kb-model=openai/big",
        f"--kb-model-args=base_url={openai_server.base_url}",
        "suites",
        "--kb-plan",
    )
    for more in ((), ("-v",)):
        lines = shown(pytester.runpytest(*flags, "--kb-prices=10,20", *more))
        read, written = numbers(
            next(line for line in lines if line.startswith("  tokens: "))
        )[:2]
        cost = next(line for line in lines if line.startswith("  cost: "))
        least, most = (float(number) for number in re.findall(r"\d+\.\d+", cost))
        assert least == pytest.approx(read * 10 / 1e6, abs=1e-4)
        assert most == pytest.approx((read * 10 + written * 20) / 1e6, abs=1e-4)
    assert "  cost: unknown without --kb-prices=IN,OUT" in shown(
        pytester.runpytest(*flags)
    )
    assert openai_server.calls == []


def test_a_model_to_compare_with_is_planned_too(pytester, mini_suite):
    mini_suite(TWICE.replace("{min: 0.3}", "{max_drop: 0.1}"))
    result = pytester.runpytest(*PLAN, *OTHERS)
    result.stdout.fnmatch_lines(
        [
            "--kb-model scripted/knows.jsonl: 12 calls",
            "--kb-baseline-model reference:int4: 12 calls",
            "--kb-judge openai/judge: 0 to 12 calls, everything twice",
            "accuracy in * the other model is asked in this run",
        ]
    )


@pytest.mark.slow
def test_the_shipped_baseline_tells_what_the_shipped_gates_could_find(pytester):
    suites, baseline = (str(ROOT / name) for name in ("suites", "baselines/reference"))
    chosen = ["-k", "reliability", "--kb-limit=3", "--kb-use-cache=off"]
    flags = ("--kb-model=reference", "--kb-plan", "-v", f"--kb-baseline={baseline}")
    result = pytester.runpytest(suites, *flags, *chosen)
    # Over several slices, of which each figure needs but some.
    result.stdout.fnmatch_lines(
        [
            "smallest drops found *",
            "ur in reliability?unseen? * no drop is found among so few facts",
            "iur in reliability?overall? *",
        ]
    )
    assert result.ret == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    "more", [("--kb-baseline={}/baselines/reference",), (), OTHERS]
)
def test_the_plan_of_the_shipped_suites_is_one_screen(pytester, more):
    suites, *more = (one.format(ROOT) for one in ("{}/suites", *more))
    Path("conftest.py").write_text(
        "import sys\n\ndef pytest_unconfigure():\n    print('torch' in sys.modules, 'is what was loaded')\n"
    )
    flags = ("--kb-model=reference", "--kb-plan", "-p", "conftest", *more)
    result = pytester.runpytest_subprocess(suites, *flags)
    assert result.ret == 0
    lines = [line for line in shown(result) if "was loaded" not in line]
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80
    assert "False is what was loaded" in result.outlines


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("suites", "--kb-plan"), "--kb-plan: found no model*--kb-model=SPEC*"),
        (("suites", "--kb-plan", "--kb-from-run=old"), "*--kb-from-run*"),
        ((*PLAN, "--kb-prices=cheap"), "--kb-prices: found 'cheap'*"),
        ((*PLAN, "--kb-baseline=nowhere"), "*no baseline is called 'nowhere'*"),
        (("--kb-model=./nowhere", "suites", "--kb-plan"), "*no such folder*"),
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


def test_a_wrong_suite_is_a_collection_error(pytester, mini_suite):
    mini_suite(SUITE.replace("negatives: 2", "negative: 2"))
    result = pytester.runpytest(*PLAN)
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(["*negative*", "*1 error*"])
    assert "plan, nothing was run" not in result.stdout.str()


def test_a_plan_without_suites_says_nothing(pytester: pytest.Pytester):
    pytester.makepyfile("def test_one():\n    pass\n")
    (pytester.path / "knows.jsonl").write_text('{"default": {"text": "unsure"}}')
    result = pytester.runpytest(MODEL, "--kb-plan")
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    result.assert_outcomes()
    assert "plan, nothing was run" not in result.stdout.str()
