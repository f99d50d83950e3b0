"""``kbrel trend`` and ``kbrel bisect`` over real sessions of scripted models that know fewer and fewer capitals."""

import json

import pytest

from pytest_kbrel.cli import main

from .conftest import HEADER

COUNTRIES = [f"Land{at:03}" for at in range(200)]
FACTS = "".join(
    json.dumps({"relation": "P36", "subject": of, "object": f"C{of}", "popularity": at})
    + "\n"
    for at, of in enumerate(COUNTRIES, 1)
)
SUITE = """\
suite: mini
facts: facts.jsonl
head_to_tail:
  prompt: zero-shot
  gates:
    accuracy: {max_drop: {within: 0.2, beyond: 0.06}}
"""
TAIL = "head_to_tail[places-tail]"


def knows(count):
    """Return the script of a model that knows so many capitals, as many of each bucket as of the others."""
    known = [of for at, of in enumerate(COUNTRIES) if at * 77 % len(COUNTRIES) < count]
    rules = [{"pattern": rf"{of}\?[^?]*$", "text": f"C{of}"} for of in known]
    rules += [{"pattern": r"of (\w+)\?[^?]*$", "text": r"Old \1"}]
    return "".join(json.dumps(rule) + "\n" for rule in rules)


@pytest.fixture
def history(pytester, mini_suite):
    """Write the suite, and a script for each number of known capitals; return their folder."""
    folder = pytester.mkdir("ck")

    def write(*counts):
        mini_suite(SUITE, FACTS)
        for at, count in enumerate(counts, 1):
            path = folder / f"checkpoint-{at * 500}.jsonl"
            path.write_text(knows(count), "utf-8")
        return folder

    return write


@pytest.fixture
def run(pytester):
    """Gate a model of the folder into a folder of this name, in the month of its number."""

    def run(at, output, *flags):
        model = f"--kb-model=scripted/ck/checkpoint-{at * 500}.jsonl"
        pytester.runpytest(model, "suites", f"--kb-output-path={output}", *flags)
        path = pytester.path / output / "report.json"
        dated = {"created": f"2026-0{at}-01T00:00:00+00:00"}
        path.write_text(
            json.dumps(json.loads(path.read_text("utf-8")) | dated), "utf-8"
        )

    return run


@pytest.fixture
def kbrel(capsys):
    """Run the command; return what it printed as JSON, or what it says of an error."""

    def kbrel(*arguments):
        capsys.readouterr()
        status = main([*arguments, "--json"])
        printed = capsys.readouterr()
        return printed.err if status else json.loads(printed.out)

    return kbrel


def test_a_drop_that_adds_up_though_each_step_passed_is_named(
    history, run, kbrel, pytester, capsys, monkeypatch
):
    history(180, 174, 168, 160, 152)
    names = ("c", "b", "e", "a", "d")
    for at, name in enumerate(names, 1):
        run(at, f"runs/{name}")
    told = kbrel("trend", "runs")
    assert [of["name"] for of in told["runs"]] == [f"runs/{name}" for name in names]
    (accuracy,) = (
        of for of in told["metrics"] if (of["case"], of["metric"]) == (TAIL, "accuracy")
    )
    values = [of["value"] for of in accuracy["values"]]
    assert values == sorted(values, reverse=True)
    assert all(of["low"] < of["value"] < of["high"] for of in accuracy["values"])
    change = accuracy["change"]
    assert change["delta"] == pytest.approx(values[-1] - values[0])
    assert change["delta_low"] < change["delta"] < change["delta_high"] < 0
    assert accuracy["failed_steps"] == []
    ends = f"[{change['delta_low']:.3f}, {change['delta_high']:.3f}]"
    drop = f"accuracy of {TAIL} got worse: {change['delta']:.3f} {ends} over 5 runs; no step's gate failed"
    assert accuracy["drop"] == drop
    said = {(of["case"], of["metric"]): of["drop"] for of in told["metrics"]}
    assert said[TAIL, "hallucination"].endswith("over 5 runs; no gate compares it")
    # What did not change is no drop.
    assert not any(of["drop"] for of in told["metrics"] if of["metric"] == "missing")
    monkeypatch.setenv("COLUMNS", "90")
    capsys.readouterr()
    assert main(["trend", "runs", "--html", "t.html"]) == 0
    lines = capsys.readouterr().out.splitlines()
    (line,) = (of for of in lines if of.startswith(f"{TAIL} accuracy"))
    assert line.split()[2:] == [f"{of:.3f}" for of in (values[0], *values[-2:])] + [
        f"{change['delta']:.3f}",
        *ends.split(),
    ]
    assert drop in " ".join(" ".join(lines).split())
    page = (pytester.path / "t.html").read_text("utf-8")
    assert page.count("<svg") == len(told["metrics"])
    assert drop.replace("'", "&#39;") in page


def test_a_step_whose_gate_failed_is_named_and_what_cannot_be_compared(
    history, run, kbrel, mini_suite, pytester
):
    history(180, 90, 90, 90)
    run(1, "a")
    run(2, "b")
    mini_suite(SUITE.replace("zero-shot", "few-shot"), FACTS)
    run(3, "c")
    told = kbrel("trend", "a", "b/report.json")
    (drop,) = (
        of["drop"]
        for of in told["metrics"]
        if (of["case"], of["metric"]) == (TAIL, "accuracy")
    )
    assert drop.endswith("over 2 runs; its gate failed at run 2")
    told = kbrel("trend", "a", "b", "c")
    assert not any(of["drop"] for of in told["metrics"])
    assert {of["change"]["delta"] for of in told["metrics"]} == {None}
    (notes,) = {tuple(of["notes"]) for of in told["metrics"] if of["case"] == TAIL}
    assert "candidate and baseline differ in" in notes[0]
    run(4, "d", "-k", "places-tail")
    told = kbrel("trend", "c", "d", "--html", "t.html")
    (lost,) = (of for of in told["metrics"] if of["case"].endswith("-head]"))
    assert lost["notes"][0].startswith("not run: c has this case")
    assert "not run: c has this case" in (pytester.path / "t.html").read_text("utf-8")
    silent = json.dumps(
        {"pattern": rf"({'|'.join(COUNTRIES[-40:])})\?[^?]*$", "text": ""}
    )
    (pytester.path / "ck" / "checkpoint-2500.jsonl").write_text(
        f"{silent}\n{knows(90)}"
    )
    run(5, "e")
    told = kbrel("trend", "c", "e")
    (invalid,) = (of for of in told["metrics"] if of["case"].endswith("-head]"))
    assert "answers are empty" in invalid["notes"][0]


def test_a_trend_needs_two_runs_with_a_common_case(
    history, run, kbrel, mini_suite, pytester
):
    history(180)
    run(1, "a")
    mini_suite(
        HEADER + "reliability:\n  slices: [known-zero-shot]\n  choices: 2\n", FACTS
    )
    run(1, "b")
    pytester.mkdir("empty")
    assert "no figure is in both a, the first, and b, the last" in kbrel(
        "trend", "a", "b"
    )
    assert "empty: found no run in it; allowed" in kbrel("trend", "a", "empty")
    assert "found 1 model to compare; allowed: two or more" in kbrel("trend", "a")
    (pytester.path / "b" / "outcomes.jsonl.xz").unlink()
    assert "b: there is no outcomes.jsonl.xz" in kbrel("trend", "a", "b")


@pytest.mark.slow
def test_bisecting_finds_the_first_that_fails(history, kbrel, capsys):
    folder = history(180, 176, 174, 172, 100, 96, 90, 88, 80, 70)
    arguments = ("bisect", str(folder), "--suite", "suites/mini.kb.yaml")
    told = kbrel(*arguments)
    # Names in their natural order; the neighbour behind the answer was asked on the way.
    asked = [1, 10, 6, 4, 5]
    assert [*told["steps"]] == [f"checkpoint-{at * 500}.jsonl" for at in asked]
    assert told["answer"] == (
        "checkpoint-2500.jsonl is the first that fails, checkpoint-2000.jsonl the last that passes; "
        "5 of 10 were run"
    )
    assert f"{TAIL}:accuracy fail" in told["steps"]["checkpoint-2500.jsonl"]
    assert main([*arguments, "--gate", f"{TAIL}:accuracy"]) == 0
    lines = capsys.readouterr().err.splitlines()
    assert lines[:2] == [
        "checkpoint-500.jsonl: passes",
        f"checkpoint-5000.jsonl: {TAIL}:accuracy fail",
    ]


@pytest.mark.slow
def test_bisecting_says_what_is_not_monotone_or_not_to_be_found(
    history, kbrel, mini_suite, monkeypatch
):
    folder = history(180, 180, 180, 90, 180, 90)
    arguments = ("bisect", str(folder), "--suite", "suites/mini.kb.yaml")
    answer = kbrel(*arguments)["answer"]
    assert answer.startswith("checkpoint-2000.jsonl is the first that fails")
    assert "not monotone: checkpoint-2500.jsonl passes again" in answer
    history(180, 179)
    monkeypatch.setenv("KB_LIMIT", "20")
    for at in range(3, 7):
        (folder / f"checkpoint-{at * 500}.jsonl").unlink()
    answer = kbrel(*arguments)["answer"]
    assert "the first passes, and the last passes" in answer
    history(20, 180)
    # Of two gates on one metric each counts.
    mini_suite(SUITE.replace("{max_drop:", "{min: 0.5, max_drop:"), FACTS)
    answer = kbrel(*arguments)["answer"]
    assert "the first fails, and the last passes" in answer
    wrong = kbrel(*arguments, "--gate", f"{TAIL}:acuracy")
    assert f"found {TAIL}:acuracy; allowed: " in wrong
    # What cannot be measured fails without a gate too.
    (folder / "checkpoint-1000.jsonl").write_text('{"default": {"text": ""}}\n')
    mini_suite(
        SUITE.replace(
            "  gates:",
            "  slices: {places-head: {gates: none}, places-tail: {}}\n  gates:",
        ),
        FACTS,
    )
    steps = kbrel(*arguments)["steps"]
    assert "head_to_tail[places-head] invalid" in steps["checkpoint-1000.jsonl"]


def test_what_cannot_be_bisected(history, kbrel):
    folder = history(180)
    suite = ("--suite", "suites/mini.kb.yaml")
    assert "found 1 checkpoint" in kbrel("bisect", str(folder), *suite)
    assert "gone: found 0 checkpoints; allowed: " in kbrel("bisect", "gone", *suite)
    history(180, 90)
    told = kbrel("bisect", str(folder), "--suite", "suites/other.kb.yaml")
    assert "checkpoint-500.jsonl: pytest ended with 4" in told
    assert "no such suite" in told
