"""The run that is built of a session's results, and the files written of it."""

from __future__ import annotations

import datetime
import json
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_kbrel.models.openai.spec import OpenAISpec
from pytest_kbrel.plugin.settings import invocation_of
from pytest_kbrel.records import (
    AggregateCase,
    Ask,
    Exchange,
    Fact,
    Failed,
    GateResult,
    GenerateRequest,
    MetricValue,
    Outcome,
    Table,
    Unmatched,
    Waiver,
)
from pytest_kbrel.reports.responses import to_line
from pytest_kbrel.reports.spools import append_exchanges
from pytest_kbrel.session import run_builder
from pytest_kbrel.session.run_builder import (
    SessionResults,
    build_run,
    join_responses,
    write_reports,
)
from pytest_kbrel.settings import ParsedSpec
from tests.made_cases import (
    RECORDED_MODEL,
    made_case,
    made_options,
    made_result,
    made_suite,
)
from tests.stub_config import StubConfig

FILE = "mini.kb.yaml"
ONE, TWO = f"{FILE}::head_to_tail[a]", f"{FILE}::monitor[b]"
OPTIONS = made_options(
    **{
        "model": "m",
        "model_args": "dtype=float32",
        "device": "cpu",
        "dtype": "bfloat16",
        "batch_size": "64",
    },
    **{
        "apply_chat_template": True,
        "judge": "openai/j",
        "judge_args": "seed=1",
        "attribute": 2,
    },
)
JUDGE = replace(RECORDED_MODEL, spec="openai/j", backend="openai")
CASES = made_suite(
    *(made_case(name, "max_drop") for name in ("head_to_tail[a]", "monitor[b]"))
)


def session(*expected, **more):
    return SessionResults(expected=dict.fromkeys(expected), **more)


def built(results, *suites, options=OPTIONS, others=None, folder=Path("/work")):
    config = StubConfig(folder, others=others)
    return build_run(invocation_of(config), options, suites, results, JUDGE)


def test_an_expected_item_without_a_result_is_an_invalid_case():
    python = "tests/t.py::monitor[x]"
    results = session(ONE, TWO, python, failures={TWO: "first\nlast"})
    (head, monitor, test) = built(results).cases
    assert (head.nodeid, head.probe, head.slice, head.errors) == (
        ONE,
        "head_to_tail",
        "a",
        ("it never ended",),
    )
    assert (monitor.probe, monitor.slice, monitor.errors) == ("monitor", "b", ("last",))
    # A test in Python may have a probe's name.
    assert (test.id, test.suite, test.probe, test.slice) == (
        "monitor[x]",
        "tests/t.py",
        "test",
        "monitor[x]",
    )
    assert {case.verdict for case in (head, monitor, test)} == {"invalid"}


def test_a_run_counts_the_facts_that_were_compared():
    facts = tuple(
        Fact(id=f"f{at}", subject="s", relation="P1", object="o") for at in range(5)
    )
    cases = [replace(made_case("head_to_tail[a]"), facts=facts[:3])]
    cases += [replace(made_case("monitor[b]"), facts=facts[1:])]
    suite = made_suite(*cases)
    row = Outcome(
        fact_id="",
        question="q",
        expected="o",
        answer="o",
        label="right",
        values=(),
        prompt_digest="",
    )
    rows = tuple(replace(row, fact_id=fact.id) for fact in facts[:3])
    metrics = (MetricValue(name="accuracy", better="higher", value=1.0, paired=2),)
    more = {"table": Table(columns=(), rows=rows), "metrics": metrics}
    done = made_result(unmatched=Unmatched(added=("f0",)), **more)
    results = session(ONE, TWO)
    results.add(ONE, done)
    # f0 has no partner; f1 and f2 are in both cases.
    assert built(results, suite).compared == (2, 5)
    results.add(TWO, replace(done, id="monitor[b]", unmatched=Unmatched()))
    assert built(results, suite).compared == (3, 5)
    results = session(ONE, TWO)
    results.add(ONE, replace(done, metrics=()))
    assert built(results, suite).compared is None


@pytest.mark.parametrize(
    ("verdict", "waived", "failing", "after"),
    [
        ("pass", False, "warn", "invalid"),
        ("inconclusive", False, "fail", "inconclusive"),
        ("fail", True, "warn", "invalid"),
        ("not comparable", False, "warn", "not comparable"),
    ],
)
def test_an_item_that_failed_although_its_gates_did_not_is_invalid(
    verdict, waived, failing, after
):
    waiver = (
        Waiver(owner="o", reason="r", expires="2090-01-01", case="head_to_tail[a]")
        if waived
        else None
    )
    results = session(ONE, failures={ONE: "its worker\ndied"})
    results.add(ONE, made_result(verdict=verdict, waiver=waiver))
    (case,) = built(results, options=replace(OPTIONS, inconclusive=failing)).cases
    assert case.verdict == after
    assert case.errors == (("died",) if after != verdict or waived else case.errors)


OVERALL = AggregateCase(
    id="head_to_tail[overall]",
    suite=FILE,
    probe="head_to_tail",
    slice="overall",
    members=("head_to_tail[a]", "monitor[b]"),
    gates=(),
)


@pytest.mark.parametrize(
    ("stopped", "expected", "reported"),
    [(True, (ONE, TWO), True), (False, (ONE, TWO), False)],
)
def test_where_a_session_stops_its_aggregates_are_not_run(stopped, expected, reported):
    results = session(*expected, stopped=stopped, begun={ONE})
    results.add(ONE, made_result())
    result = {
        case.nodeid: case
        for case in built(results, made_suite(aggregates=(OVERALL,))).cases
    }
    overall = result.get(f"{FILE}::head_to_tail[overall]")
    assert (overall is not None) is reported
    if overall is not None:
        assert overall == replace(
            made_result(overall.nodeid, "not run", n=0),
            slice="overall",
            aggregate=True,
            members=("head_to_tail[a]", "monitor[b]"),
            errors=("the session stopped before this case",),
        )
        assert result[TWO].verdict == "not run"


@pytest.mark.parametrize(
    ("cases", "complete"),
    [
        ({ONE: "pass", TWO: "fail"}, True),
        ({ONE: "inconclusive", TWO: "not comparable"}, True),
        ({ONE: "pass", TWO: "invalid"}, False),
        ({ONE: "pass", TWO: "not run"}, False),
    ],
)
def test_a_run_is_complete_when_every_case_was_decided_on_sound_responses(
    cases, complete
):
    results = session(*cases)
    for nodeid, verdict in cases.items():
        results.add(nodeid, made_result(nodeid, verdict))
    assert built(results, CASES).complete is complete


@pytest.mark.parametrize(
    ("baseline", "baseline_model", "comparisons"), [("", "", 0), ("prod", "", 2)]
)
def test_comparisons_are_counted_where_there_is_something_to_compare_with(
    baseline, baseline_model, comparisons
):
    results = session(ONE)
    results.add(ONE, made_result())
    options = replace(OPTIONS, baseline=baseline, baseline_model=baseline_model)
    run = built(results, CASES, options=options)
    assert (run.comparisons, run.baseline) == (comparisons, baseline or baseline_model)


def test_what_a_run_says_of_its_cases_is_in_their_order_and_of_them_all():
    results = session()
    for number in (2, 1, 3):
        nodeid = f"{FILE}::head_to_tail[{number}]"
        gate = GateResult(
            metric="accuracy",
            rule="max_drop",
            bound=0.1,
            verdict="pass",
            reason="",
            p=0.01 * number,
        )
        metrics = tuple(
            MetricValue(name=name, better="higher", value=value)
            for name, value in (
                ("accuracy_rules", 0.1 * number),
                ("accuracy", 0.2 * number),
            )
        )
        results.add(
            nodeid,
            made_result(nodeid, slice=str(number), gates=(gate,), metrics=metrics),
        )
    run = built(results)
    assert [case.slice for case in run.cases] == ["1", "2", "3"]
    assert [case.gates[0].p_holm for case in run.cases] == pytest.approx(
        [0.03, 0.04, 0.04]
    )
    pearson, _ = run.correlations
    assert (pearson.x, pearson.y, pearson.n, pearson.r) == (
        "accuracy_rules",
        "accuracy",
        3,
        pytest.approx(1),
    )
    assert (run.model, run.kbrel_version, run.created[-6:]) == (
        JUDGE,
        run_builder.__version__,
        "+00:00",
    )
    assert datetime.datetime.fromisoformat(run.created).microsecond == 0


def test_the_settings_a_run_keeps():
    settings = {
        **{
            "model": "m",
            "model_args": "dtype=float32",
            "device": "cpu",
            "dtype": "bfloat16",
        },
        **{
            "batch_size": "64",
            "apply_chat_template": "true",
            "judge": "openai/j",
            "judge_args": "seed=1",
        },
        **{
            "baseline": "",
            "baseline_model": "",
            "inconclusive": "warn",
            "limit": "",
            "seed": "",
        },
    }
    assert built(session()).settings == tuple(sorted(settings.items()))
    some = replace(
        OPTIONS,
        **{
            "limit": 0.5,
            "seed": 0,
            "apply_chat_template": False,
            "inconclusive": "fail",
        },
        **{"baseline": "prod", "baseline_model": "other"},
    )
    changed = {
        "limit": "0.5",
        "seed": "0",
        "apply_chat_template": "false",
        "inconclusive": "fail",
    }
    changed |= {"baseline": "prod", "baseline_model": "other"}
    assert built(session(), options=some).settings == tuple(
        sorted((settings | changed).items())
    )


def environment(results, **more):
    result = dict(built(results, **more).environment)
    own = {
        "python",
        "platform",
        "pytest",
        "pytest-xdist",
        "torch",
        "transformers",
        "openai",
        "numpy",
        "scipy",
    }
    assert {"python", "platform", "pytest", "numpy", "scipy"} <= result.keys()
    return {name: text for name, text in result.items() if name not in own}


def test_the_environment_of_a_run_counts_its_helpers_and_cached_responses(tmp_path):
    assert environment(session()) == {"workers": "0"}
    assert environment(session(), others={"numprocesses": 2}) == {"workers": "2"}
    helped = SessionResults()
    helped.add_help([JUDGE], 0, 0)
    assert environment(helped) == {
        "workers": "0",
        "helpers_asked": "0",
        "helpers_reused": "0",
    }
    loaded = SessionResults()
    loaded.add_loading(0.126, "b, a")
    assert environment(loaded) == {
        "workers": "0",
        "model_load_seconds": "0.13",
        "engine": "a, b",
    }
    loaded = SessionResults()
    loaded.add_loading(1.0, "")
    assert environment(loaded) == {"workers": "0", "model_load_seconds": "1.00"}
    spent = SessionResults()
    spent.add_spent([("openai/m", 1_000_000, 2_000), ("openai/j (--kb-judge)", 5, 0)])
    own = ParsedSpec(spec=OpenAISpec(text="openai/m", name="m"))
    with_prices = replace(OPTIONS, prices=(0.5, 10.0), model_spec=own)
    assert environment(spent, options=with_prices)["tokens_spent"].splitlines() == [
        "openai/m: 1,000,000 tokens read and 2,000 written, 0.5200 by the prices given",
        "openai/j (--kb-judge): 5 tokens read and 0 written",
    ]
    resumed = SessionResults(resumed="went on")
    resumed.add_answers("no room", 7, 3)
    assert environment(resumed) == {
        **{
            "workers": "0",
            "answers_asked": "7",
            "answers_reused": "3",
            "answers_store": "off",
        },
        **{"answers_not_kept": "no room", "answers_resumed": "went on"},
    }
    # A run that asked nothing may have something to say of what stays for the next one.
    with_cache = replace(OPTIONS, use_cache=tmp_path / "kept")
    assert environment(
        SessionResults(resumed="stays"), options=with_cache, folder=tmp_path
    ) == {
        **{"workers": "0", "answers_asked": "0", "answers_reused": "0"},
        **{"answers_store": "kept", "answers_resumed": "stays"},
    }


def exchange(case, fact, to=""):
    request = GenerateRequest(prompt=fact, max_new_tokens=4)
    ask = Ask(fact_id=fact, role="answer", request=request, to=to)
    return Exchange(case=case, ask=ask, response=Failed(error="x"))


def test_responses_are_joined_in_the_order_of_the_cases_and_missing_ones_are_reported(
    tmp_path,
):
    parts, out = tmp_path / "parts", tmp_path / "deep" / "out"
    append_exchanges(parts / "gw0.jsonl", [exchange(TWO, "1"), exchange(TWO, "2")])
    append_exchanges(parts / "gw1.jsonl", [exchange(ONE, "3")])
    (parts / "gw2.jsonl").write_bytes(to_line(exchange(ONE, "4"))[:-1])
    (parts / "note.txt").write_text("not a part")
    run = replace(
        built(session()),
        cases=(made_result(ONE, requests=2), made_result(TWO, requests=2)),
    )
    assert list(join_responses(run, parts, out)) == [
        "the last response of gw2 is torn and left out",
        f"{ONE}: only 1 of its 2 responses are recorded",
    ]
    lines = [
        json.loads(line) for line in (out / "responses.jsonl").read_text().splitlines()
    ]
    assert [(line["case"], line["fact"]) for line in lines] == [
        (ONE, "3"),
        (TWO, "1"),
        (TWO, "2"),
    ]
    # A case that ran again has more.
    fewer = replace(
        run, cases=(made_result(ONE, requests=1), made_result(TWO, requests=1))
    )
    assert list(join_responses(fewer, parts, out)) == [
        "the last response of gw2 is torn and left out"
    ]


def test_all_reports_are_written_and_their_parts_are_known_by_their_sum(tmp_path):
    row = Outcome(
        fact_id="f",
        question="q",
        expected="e",
        answer="a",
        label="correct",
        values=(1.0,),
        prompt_digest="d",
    )
    table = Table(columns=("correct",), rows=(row,))
    case = made_result(table=table, n=1)
    overall = made_result(
        f"{FILE}::head_to_tail[overall]", aggregate=True, table=table, n=1
    )
    run = replace(built(session()), cases=(case, overall))
    assert [name for name, _ in write_reports(run, tmp_path).files] == [
        "outcomes.jsonl.xz"
    ]
    (tmp_path / "responses.jsonl").write_text("")
    written = write_reports(run, tmp_path)
    assert [name for name, _ in written.files] == [
        "responses.jsonl",
        "outcomes.jsonl.xz",
    ]
    assert {path.name for path in tmp_path.iterdir()} == {
        *(
            "report.json",
            "report.html",
            "summary.md",
            "responses.jsonl",
            "outcomes.jsonl.xz",
        )
    }
    from pytest_kbrel.baselines.format import load_tables, read_compressed

    tables = load_tables(read_compressed(tmp_path / "outcomes.jsonl.xz", 1000))
    assert tables == {ONE: table}


def test_a_suite_has_one_digest_wherever_its_values_come_from():
    # The judge may be the default, or typed: another object of the same text.
    judges = ("rules", "".join(["ru", "les"]))
    digests = {
        run_builder.suite_digest(made_suite(replace(made_case(), judge=judge)))
        for judge in judges
    }
    assert len(digests) == 1
    assert (
        run_builder.suite_digest(made_suite(replace(made_case(), judge="other")))
        not in digests
    )
