"""The quick plan: about the counts of the full one, on one screen, with nothing loaded."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any

import openai  # noqa: F401  (in-process sessions forget new modules, and this one takes a second to load)
import pytest

from pytest_kbrel.models.cache.store import Store
from pytest_kbrel.models.measurements import last_rates, store_rates
from pytest_kbrel.models.registry import BACKENDS, open_model, read_spec
from pytest_kbrel.planning.requests import SAMPLED, DryRun
from pytest_kbrel.probes.prompts import UNSURE
from pytest_kbrel.records import (
    Case,
    Fact,
    Generated,
    HeadToTailSettings,
    MonitorSettings,
    Outcome,
    Shot,
)
from tests.planning.test_requests import FACTS, RELIABILITY, UNSEEN, case
from tests.planning.test_session import ROOT, TWICE, numbers
from tests.plugin.conftest import MODEL, SUITE, mini_suite

__all__ = ["mini_suite"]

OTHERS = (
    "--kb-baseline-model=reference:int4",
    "--kb-judge=openai/judge",
    "--kb-judge-args=base_url=http://localhost:1/v1",
)
QUICK = (MODEL, "suites", "--kb-plan")


def many(*facts: Fact, times: int = 10) -> tuple[Fact, ...]:
    """Return the facts, and others like them about other subjects."""
    return tuple(
        dataclasses.replace(
            fact, id=f"{fact.id}-{time}", subject=f"{fact.subject} {time}"
        )
        for time in range(times)
        for fact in facts
    )


def asked(run: DryRun, to: str = "") -> float:
    return sum(call.stands_for * call.received for call in run.calls() if call.to == to)


def four_shot() -> Case:
    settings = dataclasses.replace(RELIABILITY, prompt="four-shot")
    shots = tuple(
        Shot(
            question=f"What is the capital of Land {n}?",
            answer=f"City {n}",
            subject=f"Land {n}",
        )
        for n in range(40)
    )
    return case(settings, *many(*FACTS), repository=shots)


ALIKE = {
    "monitor": case(MonitorSettings(negatives=2), *many(*FACTS)),
    "few facts": case(MonitorSettings(negatives=2), *FACTS[:3]),
    "poorest": case(
        MonitorSettings(),
        *many(*FACTS),
        dataclasses.replace(
            FACTS[0], id="poor", subject="Poor", negatives=("Rome", "Madrid")
        ),
    ),
    "head to tail": case(HeadToTailSettings(prompt="zero-shot"), *many(*FACTS)),
    "unseen": case(RELIABILITY, *many(*UNSEEN)),
    "four shots": four_shot(),
}


@pytest.mark.parametrize("scenario", ["fewest", "most"])
@pytest.mark.parametrize("name", ALIKE)
def test_where_each_fact_asks_alike_a_few_tell_how_many_all_ask(name, scenario):
    whole, sample = (
        DryRun([ALIKE[name]], scenario),
        DryRun([ALIKE[name]], scenario, sampled=True),
    )
    assert asked(sample) == pytest.approx(asked(whole))
    made = sum(call.received for call in sample.calls())
    assert made * len(ALIKE[name].facts) == pytest.approx(
        asked(whole) * min(SAMPLED, len(ALIKE[name].facts))
    )
    assert sample.columns == whole.columns


def test_examples_that_all_give_the_answer_away_are_not_the_last_ones_tried():
    """Of the first ones none can be shown, which a run does not care about."""
    given_away = tuple(
        Shot(
            question=f"What is the capital of {fact.subject}?",
            answer=f"X {n}",
            subject=fact.subject,
        )
        for n, fact in enumerate(FACTS[:1] * 40)
    )
    one = four_shot()
    one = dataclasses.replace(
        one, facts=FACTS[:1], repository=(*given_away, *one.repository)
    )
    assert asked(DryRun([one], "most", sampled=True)) == asked(DryRun([one], "most"))


def test_a_baseline_whose_facts_differ_is_told_by_more_of_them():
    facts = many(*FACTS)
    rows = [
        Outcome(
            fact_id=fact.id,
            question="",
            expected="",
            # Asked least of every third fact, and most of the others.
            answer=UNSURE if number % 3 == 0 else "Paris",
            label="wrong",
            values=(),
            prompt_digest="",
        )
        for number, fact in enumerate(facts)
    ]
    one = case(RELIABILITY, *facts)
    whole, sample = (
        DryRun([one], "baseline", lambda _: rows, sampled=sampled)
        for sampled in (False, True)
    )
    assert asked(sample) == pytest.approx(asked(whole), rel=0.05)


def shown(result: pytest.RunResult) -> list[str]:
    """Return the lines of the plan."""
    lines = result.outlines
    start = next(
        number for number, line in enumerate(lines) if "plan, nothing was run" in line
    )
    return lines[start:]


def calls_of(result: pytest.RunResult) -> list[int]:
    line = next(line for line in shown(result) if line.startswith("--kb-model "))
    return numbers(line.partition(": ")[2])


def tokens_of(result: pytest.RunResult) -> list[int]:
    line = next(line for line in shown(result) if line.startswith("  tokens"))
    return numbers(re.split(" read,|, and |, at most", line)[0])


def test_the_counts_are_about_those_of_the_full_plan(pytester, mini_suite):
    mini_suite()
    quick, full = (pytester.runpytest(*QUICK, *more) for more in ((), ("-v",)))
    assert quick.ret == full.ret == pytest.ExitCode.OK
    assert calls_of(quick) == calls_of(full) == [150, 204]
    assert tokens_of(quick) == pytest.approx(tokens_of(full), rel=0.1)
    full.stdout.fnmatch_lines(
        ["kbrel: making all requests of 6 slices (42 facts)", "*plan, nothing was run*"]
    )
    assert "making all requests" not in quick.stdout.str()


def test_nothing_is_opened(pytester, mini_suite, monkeypatch):
    mini_suite(TWICE)

    def fail(*_: Any, **__: Any) -> Any:
        raise AssertionError("a model was opened")

    for name in ("scripted", "hf"):
        broken = dataclasses.replace(BACKENDS[name], open=fail)
        if name == "hf":
            broken = dataclasses.replace(broken, counter=fail)
        monkeypatch.setitem(BACKENDS, name, broken)  # type: ignore[arg-type]
    result = pytester.runpytest(*QUICK)
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(
        ["*time: no rate of an earlier run is stored; -v loads it*"]
    )
    result = pytester.runpytest("--kb-model=reference", *QUICK[1:])
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(
        ["--kb-model reference: 12 calls", "  tokens: * read, *"]
    )
    result.stdout.fnmatch_lines(["*; a token is taken to be 4 characters"])
    assert "a model was opened" in str(pytester.runpytest(*QUICK, "-v").outlines)


def test_the_time_is_by_the_rate_of_the_last_run_of_that_name(
    pytester, mini_suite, monkeypatch
):
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
    mini_suite(TWICE)
    folder = pytester.path / ".kbrel-cache"
    spec = read_spec("scripted/knows.jsonl")
    monkeypatch.chdir(pytester.path)
    model = open_model(spec)
    fingerprint = model.describe()
    model.close()
    answer = Generated(
        text="x", token_ids=(), finish="stop", prompt_tokens=1, prompt_digest=""
    )
    store = Store(folder)
    # Another file was there under this name before.
    for number, (digest, rate) in enumerate(
        (("old", 1.0), (fingerprint.weights_digest, 2.0))
    ):
        one = dataclasses.replace(fingerprint, weights_digest=digest)
        store.put([(f"0{number}" * 32, answer)], one)
        store_rates(folder, one, {"generate": rate})
    store.close()
    assert last_rates(folder, spec.text) == {"generate": 2.0}
    assert last_rates(folder, "reference") == {}
    assert last_rates(pytester.path, spec.text) == {}
    tokens = tokens_of(pytester.runpytest(*QUICK, "-v"))[0]
    result = pytester.runpytest(*QUICK)
    (line,) = [line for line in shown(result) if line.startswith("  time: ")]
    assert line.endswith("at the rate of its last run, if no answer is cached")
    assert float(re.findall(r"[\d.]+", line)[0]) == pytest.approx(
        tokens / 2.0, abs=0.51
    )


def test_a_served_model_is_not_asked_and_has_its_cost(
    pytester, mini_suite, openai_server
):
    mini_suite(TWICE)
    flags = (
        "--kb-model=openai/big",
        f"--kb-model-args=base_url={openai_server.base_url}",
        *QUICK[1:],
    )
    result, full = (
        pytester.runpytest(*flags, "--kb-prices=10,20", *more) for more in ((), ("-v",))
    )
    assert openai_server.calls == []
    (cost,) = [line for line in shown(result) if "cost: " in line]
    exact = next(line for line in shown(full) if line.startswith("cost of openai/big"))
    prices, exactly = (
        [float(one) for one in re.findall(r"\d+\.\d+", line)] for line in (cost, exact)
    )
    assert prices == pytest.approx(exactly, rel=0.1)
    result.stdout.fnmatch_lines(
        ["*thoughts are not counted: at most 2,048 *", "  time: unknown, because a s*"]
    )
    assert "  cost: unknown without --kb-prices=IN,OUT" in shown(
        pytester.runpytest(*flags)
    )


def test_a_judge_is_planned_beside_the_model(pytester, mini_suite, openai_server):
    mini_suite(TWICE)
    judge = (
        "--kb-judge=openai/judge",
        f"--kb-judge-args=base_url={openai_server.base_url}",
    )
    result = pytester.runpytest(*QUICK, *judge)
    result.stdout.fnmatch_lines(
        [
            "--kb-model scripted/knows.jsonl: 12 calls",
            "--kb-judge openai/judge: 0 to 12 calls",
        ]
    )


def test_gates_are_summed_up(pytester, mini_suite):
    drop = "{max_drop: {within: 0.1}}"
    gates = (
        f"{{accuracy: {drop}, missing: {{max: 1.0}}, hallucination: {{max_drop: 1.0}}}}"
    )
    mini_suite(TWICE.replace("{accuracy: {min: 0.3}}", gates))
    pytester.runpytest(*QUICK).stdout.fnmatch_lines(
        [
            "gates: 9; 6 compare with a baseline",
            "  not judged, because no baseline is given: 6",
        ]
    )


def test_with_a_baseline_the_calls_are_about_known(pytester, mini_suite):
    mini_suite(SUITE)
    assert pytester.runpytest(MODEL, "suites", "--kb-baseline-update=mine").ret == 0
    quick, full = (
        pytester.runpytest(*QUICK, "--kb-baseline=mine", *more)
        for more in ((), ("-v",))
    )
    assert "--kb-model scripted/knows.jsonl: about 186 calls" in shown(quick)
    assert calls_of(full) == [186, 150, 204]


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
    lines = [
        line
        for line in shown(result)
        if "no tests ran" not in line and "was loaded" not in line
    ]
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80
    assert "False is what was loaded" in result.outlines
