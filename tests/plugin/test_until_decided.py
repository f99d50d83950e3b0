"""--kb-until-decided: cases asked in looks, which stop where they are decided."""

import dataclasses
import re
from types import SimpleNamespace

import pytest

from pytest_kbrel.facts.sampling import first_drawn, sample
from pytest_kbrel.gates import Comparison, decide_aggregate
from pytest_kbrel.models import registry
from pytest_kbrel.plugin import worker
from pytest_kbrel.plugin.worker import CaseRunner
from pytest_kbrel.records import AggregateCase, Fact, Gate, Integrity, Looks, Relation
from tests.function_model import FunctionModel
from tests.made_cases import made_case, made_options, made_suite
from tests.plugin.conftest import KNOWS, OVERCONFIDENT
from tests.reported import comparable
from tests.stub_config import StubConfig

WIDE = Gate(metric="accuracy", rule="max_drop", bound=0.3, beyond=0.01)
RELATION = Relation(
    id="P36",
    label="capital",
    domain="places",
    frames=("What is the capital of [X]?",) * 2,
)


def land(number):
    others = tuple(f"Town{other}" for other in range(1000, 1006))
    text = f"{number:03}"
    return Fact(
        id=f"Q{text}",
        relation="P36",
        subject=f"Land{text}",
        object=f"Town{text}",
        negatives=others,
    )


FACTS = tuple(map(land, range(200)))


def lands(name="head_to_tail[a]", *gates, count=200, **settings):
    case = made_case(name, **settings)
    return dataclasses.replace(
        case, facts=FACTS[:count], relations=(RELATION,), gates=gates, seed=3
    )


def knows(prompt):
    return f"Town{re.findall('Land([0-9]+)', prompt)[-1]}"


def forgets(prompt):
    return "Rome" if int(knows(prompt)[4:]) % 2 else knows(prompt)


def drifts(prompt):
    return "Rome" if int(knows(prompt)[4:]) % 12 == 0 else knows(prompt)


def believes(prompt, continuation):
    return int(knows(prompt)[4:]) / 500 + (0.5 if knows(prompt) in continuation else 0)


ANSWERS = {
    "hf/a/same": knows,
    "hf/a/bad": forgets,
    "hf/a/drift": drifts,
    "hf/a/mute": lambda prompt: "",
}


@pytest.fixture
def models(monkeypatch):
    opened = {}

    def open_model(spec, **how):
        opened[spec.text] = FunctionModel(
            ANSWERS.get(spec.text, knows), believes, name=spec.text
        )
        return opened[spec.text]

    monkeypatch.setattr(registry, "open_model", open_model)
    return opened


def runner(folder, *cases, maxfail=0, **settings):
    config = StubConfig(folder, others={"maxfail": maxfail})
    config.stash[worker.collection.suites_key] = {"mini.kb.yaml": made_suite(*cases)}
    items = [
        SimpleNamespace(
            nodeid=f"mini.kb.yaml::{case.id}",
            callspec=SimpleNamespace(params={"kb_case": case}),
            get_closest_marker=lambda name: None,
        )
        for case in cases
    ]
    given = {"model": "hf/a/same", "baseline_model": "hf/a/b", "until_decided": "all"}
    options = made_options(**(given | {"output_path": folder / "out"} | settings))
    session = SimpleNamespace(config=config, items=items, testsfailed=0)
    return CaseRunner(session, options)


def test_an_unchanged_model_passes_after_some_of_the_facts(tmp_path, models):
    case = lands("head_to_tail[a]", WIDE)
    result = runner(tmp_path, case).decide(case)
    assert (result.verdict, result.looks.facts) == ("pass", 200)
    assert result.n == result.requests == result.looks.asked < 200
    said = f"; decided after {result.n} of 200 facts, at look "
    assert result.gates[0].reason.count(said) == 1
    # They are those that a limit of as many would have drawn, in the order of the case.
    drawn = [fact.id for fact in sample(case.facts, result.n, case.seed, case.cluster)]
    for table in (result.table, result.base):
        assert [row.fact_id for row in table.rows] == drawn
    for model in ("hf/a/same", "hf/a/b"):
        assert len(models[model].requests) == result.n


def test_what_is_not_decided_is_asked_in_full_as_without_looks(tmp_path, models):
    tight = Gate(metric="accuracy", rule="max_drop", bound=0.09, beyond=0.08)
    case = lands("head_to_tail[a]", tight)
    looked = runner(tmp_path, case, model="hf/a/drift").decide(case)
    at_once = runner(tmp_path / "2", case, model="hf/a/drift", until_decided="").decide(
        case
    )
    assert looked.looks == Looks(taken=10, of=10, asked=200, facts=200)
    assert at_once.looks is None
    assert looked.table == at_once.table
    assert (looked.verdict, looked.lost) == (at_once.verdict, at_once.lost)


def test_a_monitor_case_asks_of_its_first_facts_what_it_asks_of_all(tmp_path, models):
    # One fact of the last look has fewer negatives: all are asked with as many.
    gate = Gate(metric="accuracy_base", rule="max_drop", bound=0.5)
    case = lands("monitor[P36]", gate, count=60, negatives=6)
    early = set(first_drawn(case.facts, 50, case.seed, case.cluster))
    poor = next(fact for fact in case.facts if fact not in early)
    facts = (
        dataclasses.replace(f, negatives=f.negatives[:4]) if f is poor else f
        for f in case.facts
    )
    limits = Integrity(unmoved=1)
    case = dataclasses.replace(case, facts=tuple(facts), integrity=limits)
    runner(tmp_path, case).decide(case)
    parts = {repr(request) for request in models["hf/a/same"].requests}
    runner(tmp_path / "2", case, until_decided="").decide(case)
    assert len(parts) < len(models["hf/a/same"].requests)
    assert parts <= {repr(request) for request in models["hf/a/same"].requests}


def test_over_cases_that_stopped_early_nothing_is_compared(tmp_path, models):
    cases = (
        lands("head_to_tail[a-head]", WIDE),
        lands("head_to_tail[a-tail]", WIDE, count=60),
    )
    of = runner(tmp_path, *cases)
    results = [of.decide(case) for case in cases]
    gates = (WIDE, Gate(metric="accuracy", rule="min", bound=0.5))
    overall = AggregateCase(
        id="head_to_tail[overall]", suite="mini.kb.yaml", probe="head_to_tail", slice="overall",
        members=tuple(case.id for case in cases), gates=gates,
    )  # fmt: skip
    from pytest_kbrel.session.run_builder import SessionResults, baseline_of_session

    session = SessionResults(fingerprints=dict(of.pool.opened()))
    for result in results:
        session.add(result.nodeid, result)
    baseline = baseline_of_session(session, "rules")
    comparison = Comparison(baseline=baseline, comparisons=3)
    decided = decide_aggregate(overall, results, comparison)
    assert [gate.verdict for gate in decided.gates] == ["inconclusive", "pass"]
    assert "cases stopped early (head_to_tail[a-head] after " in decided.gates[0].reason
    whole = [dataclasses.replace(result, looks=None) for result in results]
    assert decide_aggregate(overall, whole, comparison).verdict == "pass"


SUITE = """\
suite: mini
facts: facts.jsonl
reliability:
  choices: 3
  distractors: 6
  unseen: {count: 100, as_of: 2026-11-01, expires: 2090-01-01}
  gates: {ur: {max_drop: 0.3}}
"""


@pytest.mark.slow
def test_a_session_stops_its_cases_says_so_and_is_decided_again_from_its_record(
    pytester, mini_suite, report, slices
):
    mini_suite(SUITE)
    pytester.runpytest(f"--kb-model={KNOWS}", "suites", "--kb-baseline-update=prod")
    flags = ("suites", "--kb-baseline=prod")
    result = pytester.runpytest(OVERCONFIDENT, *flags, "--kb-until-decided", "-v")
    assert result.ret == 1
    cases = {case["slice"]: case for case in slices()}
    unseen = cases["unseen"]
    assert unseen["verdict"] == "fail"
    assert unseen["looks"]["facts"] == 100
    assert unseen["n"] == unseen["looks"]["asked"] < 100
    # One case of the slices has no gate against the baseline, and is asked at once.
    assert cases["known"]["looks"]["of"] == 1
    result.stdout.fnmatch_lines(
        [f"asked until decided: {12 + unseen['n']} of 112 facts"]
    )
    assert report()["settings"]["until_decided"] == "all"
    again = pytester.runpytest(
        "--kb-from-run=kbrel-report", *flags, "--kb-output-path=again"
    )
    assert again.ret == 1
    assert slices("again")[0]["looks"] == slices()[0]["looks"]
    assert comparable(report("again")) == comparable(report())
    record, replay = (
        pytester.path / folder / "responses.jsonl"
        for folder in ("kbrel-report", "again")
    )
    assert record.read_bytes() == replay.read_bytes()


def test_a_budget_on_the_command_line_bounds_the_facts_asked(
    pytester, mini_suite, slices
):
    mini_suite(SUITE)
    flags = (f"--kb-model={KNOWS}", f"--kb-baseline-model={KNOWS}")
    pytester.runpytest(*flags, "--kb-until-decided=40", "suites")
    assert sum(case["n"] for case in slices()) <= 40
    refused = pytester.runpytest(*flags, "--kb-until-decided", "suites")
    assert refused.ret == pytest.ExitCode.USAGE_ERROR
    refused.stderr.fnmatch_lines(["*--kb-until-decided: found 'suites'; allowed: *"])
    off = pytester.runpytest(*flags, "--kb-until-decided=off", "suites")
    assert off.ret == 0
    assert all(case["looks"] is None for case in slices())
