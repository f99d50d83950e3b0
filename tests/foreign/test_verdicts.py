"""Runs of other tools through ``kbrel compare``: what is paired, judged and refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pytest_kbrel.foreign.scored import higher_is_better
from tests.foreign.conftest import Compare, results, samples, write

ROWS = 200
DROP = "--max-drop=0.05"


def plain(name: str, lost: int = 0, **more: Any) -> str:
    """Write rows of which four fifths are right, but for the first ones, which are lost."""
    scores = (int(lost <= at < ROWS * 4 // 5) for at in range(ROWS))
    rows = ({"id": at, "score": of, **more} for at, of in enumerate(scores))
    return write(f"{name}.jsonl", rows)


@pytest.mark.parametrize(
    ("lost", "flags", "verdict", "code"),
    [
        (1, (DROP,), "pass", 0),
        (40, (DROP,), "fail", 1),
        (8, (DROP,), "inconclusive", 0),
        (8, (DROP, "--inconclusive=fail"), "inconclusive", 1),
        (40, ("--recovery=0.95",), "fail", 1),
        (40, ("--recovery=within:.5,beyond:.8",), "pass", 0),
    ],
)
def test_rows_are_paired_by_id_and_judged_as_the_gates_of_suites_are(
    lost: int, flags: tuple[str, ...], verdict: str, code: int, compare: Compare
) -> None:
    done = compare(plain("a"), plain("b", lost), *flags)
    (case,), (paired,) = done.cases.values(), done.document["paired"]
    assert (done.code, case["verdict"], paired["fails"]) == (code, verdict, bool(code))
    figure = case["figures"]["score"]
    assert (figure["baseline"], figure["delta"]) == pytest.approx((0.8, -lost / ROWS))
    assert len(case["lost"]) == lost


def test_all_cases_of_all_candidates_are_one_family(compare: Compare) -> None:
    a, b, c = plain("a"), plain("b", 20), plain("c", 20)
    one, two = (
        compare(*runs, DROP).document["paired"][0]["cases"][0]["gates"][0]["p_sidak"]
        for runs in ((a, b), (a, b, c))
    )
    assert two == pytest.approx(1 - (1 - one) ** 2)


def test_what_a_row_says_of_answers_is_shown(compare: Compare) -> None:
    about = {"question": "Who?", "answer": "Havana"}
    a = plain("a", question="Who?", answer="unsure", expected="")
    done = compare(a, plain("b", 40, **about, expected=""), DROP)
    assert "Who? unsure → Havana (no answer exists)" in done.out
    assert done.cases["all"]["lost"][0]["expected"] == ""
    done = compare(plain("a"), plain("b", 40, **about, expected="Li"), DROP)
    assert "Who? 1 → Havana (right: Li)" in done.out
    # It is lost and gained by its score, whatever the other run says of it.
    assert "0 lost, 40 gained" in compare("b.jsonl", "a.jsonl", DROP).out


def test_tasks_filters_groups_and_metrics_of_lm_eval(compare: Compare) -> None:
    for folder, score in (("a/m", 1.0), ("b/m", 0.0)):
        for task in ("arc", "gsm8k", f"only-{folder[0]}"):
            samples(folder, [score] * 20, task=task, filter="strict")
    results("b/m", model_name="w4a16")
    done = compare("a", "b", DROP)
    assert "w4a16" in done.document["models"][1]["about"]
    assert done.gates == {
        "arc exact_match,strict": "fail",
        "gsm8k exact_match,strict": "fail",
        "only-a exact_match,strict": "not run",
        "only-b exact_match,strict": "no baseline",
    }
    done = compare("a", "b", DROP, "--group-by=doc.subject", "--metric=exact_match")
    assert [*done.cases][:2] == ["arc[a]", "arc[b]"]
    assert "found no score named acc" in compare("a", "b", DROP, "--metric=acc").err
    a = samples("one", [1.0] * 50, prompt_hash="p")
    done = compare(a, samples("other", [1.0] * 50, prompt_hash="another"), DROP)
    assert done.gates == {"t exact_match": "not comparable"}
    assert "50 were asked otherwise, of 50 rows of exact_match" in done.out
    # A row that stands twice was asked in both ways.
    twice = (
        [{"id": at // 2, "acc": 1, "prompt_hash": at % 2 * n} for at in range(80)]
        for n in (1, 2)
    )
    runs = [write(f"{at}.jsonl", rows) for at, rows in enumerate(twice)]
    assert compare(*runs, DROP).gates == {"all acc": "not comparable"}


def test_two_runs_in_one_folder_are_not_taken_for_one(compare: Compare) -> None:
    later = "2026-11-02T10-00-00.1"
    samples("a", [1.0] * 50)
    samples("a", [1.0] * 50, date=later)
    error = compare("a", "a", DROP).err
    assert "found two runs of t" in error
    assert "results_DATE.json" in error
    assert compare(results("a", date=later), results("a"), DROP).code == 0
    samples("runs/base", [1.0])
    samples("runs/w4a16", [1.0], task="u")
    error = compare("runs", "a", DROP).err
    assert "found several runs: runs/base, runs/w4a16; allowed" in error


def test_a_perplexity_is_compared_by_the_logarithms_that_its_rows_have(
    compare: Compare,
) -> None:
    # So lm_eval 0.4.13 writes it: less is better, and the rows have logarithms of likelihoods.
    for folder, likelihood in (("a", -4.0), ("b", -6.0)):
        samples(folder, [likelihood] * 40, metric="perplexity")
        samples(folder, [4.0] * 40, task="own", metric="perplexity")
        directions = {task: {"perplexity": False} for task in ("t", "own")}
        results(folder, higher_is_better=directions)
    done = compare("a", "b", "--recovery=0.9")
    assert done.gates == {"t log_perplexity": "fail", "own perplexity": "pass"}
    assert done.cases["t"]["figures"]["log_perplexity"]["delta"] == 2


def test_a_gate_on_a_metric_that_one_run_lacks_fails_and_no_other(
    compare: Compare,
) -> None:
    both = write("both.jsonl", ({"id": at, "acc": 1, "f1": 0.5} for at in range(40)))
    acc = write("acc.jsonl", ({"id": at, "acc": 1} for at in range(40)))
    for metric in ("f1", "acc"):
        Path(f"{metric}.yaml").write_text(f"all: {{{metric}: {{min: 0.4}}}}")
    for a, b, flag, gates in (
        (both, acc, "--gates=f1.yaml", {"all f1": "not run"}),
        (acc, both, "--gates=f1.yaml", {"all f1": "no baseline"}),
        (both, acc, "--gates=acc.yaml", {"all acc": "pass"}),
        (both, acc, DROP, {"all acc": "pass", "all f1": "not run"}),
    ):
        done = compare(a, b, flag)
        assert (done.gates, done.code) == (gates, int("all f1" in gates))
    assert "1 case not run: " in done.out
    assert done.out.count("acc.jsonl has no f1 in all") > 2
    assert "session" not in done.out


@pytest.mark.parametrize(
    ("names", "higher"),
    [
        ("exact_match rougeL pass@1 bertscore_f1 mc2,none", True),
        ("wer word_perplexity hallucinationRate bits_per_byte toxicity_score", False),
        ("depth hallucination_free brier_skill_score error_detection", None),
    ],
)
def test_a_name_tells_which_way_is_better_or_does_not(
    names: str, higher: bool | None
) -> None:
    assert {higher_is_better(name) for name in names.split()} == {higher}


def test_which_way_an_unknown_metric_is_better_is_not_guessed(compare: Compare) -> None:
    for folder, score in (("a", 0.4), ("b", 0.7), ("c", 0.4), ("d", 0.7)):
        samples(folder, [score] * 40, metric="wer" if folder in "cd" else "depth")
    done = compare("a", "b", DROP)
    assert done.gates == {"t depth": "inconclusive"}
    said = "depth: taken to be better the higher it is; allowed: --lower-is-better dep"
    assert said in done.out
    assert "were less of it better: depth rose by 0.300" in done.out
    assert compare("b", "a", DROP).gates == {"t depth": "fail"}
    assert compare("a", "a", DROP).gates == {"t depth": "pass"}
    done = compare("a", "b", DROP, "--lower-is-better=depth")
    assert done.gates == {"t depth": "fail"}
    assert compare("c", "d", DROP).gates == {"t wer": "fail"}
    assert "taken to be" not in done.out
    # What one run's results file says is enough; what two say otherwise is not.
    results("a", higher_is_better={"t": {"depth": True}})
    assert compare("a", "b", DROP).gates == {"t depth": "pass"}
    results("b", higher_is_better={"t": {"depth": False}})
    assert compare("a", "b", DROP).gates == {"t depth": "inconclusive"}


def test_shares_are_not_compared_with_percent(compare: Compare) -> None:
    files = [
        write(
            f"{scale}.jsonl",
            (
                {"id": at, "acc": scale * (at % 3 != 0), "loss": scale * 0.7}
                for at in range(40)
            ),
        )
        for scale in (1, 100)
    ]
    for runs in (files, files[::-1]):
        assert compare(*runs, DROP).gates == {"all acc": "not comparable"}
    done = compare(*files[::-1], "--max-drop=0.1", "--metric=loss")
    # A loss has no scale.
    assert done.gates == {"all loss": "pass"}


def test_a_file_of_gates_names_cases_and_metrics(compare: Compare) -> None:
    made = Path(__file__).with_name("made") / "lm_eval"
    for name, lost in (("a", 0), ("b", 40)):
        rows = (
            {"task": task, "id": at, "acc": int(at >= of), "f1": 0.5}
            for task, of in (("arc", 0), ("gsm8k", lost))
            for at in range(ROWS)
        )
        write(f"{name}.jsonl", rows)
    file = Path("gates.yaml")

    def judged(*runs: object) -> dict[str, str]:
        return {
            f"{name} {gate['metric']} {gate['rule']} {gate['bound']:g}": gate["verdict"]
            for name, case in compare(*runs, "--gates=gates.yaml").cases.items()
            for gate in case["gates"]
        }

    file.write_text(
        "all: {acc: {recovery_threshold: 0.95, min: 0.5}}\n"
        "gsm8k: {acc: {recovery: 0.7}, f1: {max_drop: 0.1}}"
    )
    assert judged("a.jsonl", "b.jsonl") == {
        "arc acc recovery 0.95": "pass",
        "arc acc min 0.5": "pass",
        "gsm8k acc recovery 0.7": "pass",
        "gsm8k acc min 0.5": "pass",
        "gsm8k f1 max_drop 0.1": "pass",
    }
    # A name means the metric after each filter, and the longer one comes before it.
    file.write_text(
        'made_sums: {exact_match: {max_drop: 0.4}, "exact_match,strict-match": {max_drop: 0.6}}'
    )
    assert [*judged(made / "a", made / "b")] == [
        "made_sums exact_match,strict-match max_drop 0.6",
        "made_sums exact_match,flexible-extract max_drop 0.4",
    ]


@pytest.mark.parametrize(
    ("gates", "says"),
    [
        ("al: {score: 0.9}", "gates.yaml:1: unknown case 'al' in the runs; allowed"),
        ("all:\n  acc: 0.9", "gates.yaml:2: unknown metric 'acc' in case all; allowed"),
        ("all: {score: {recovery: 95}}", "must be above 0 and at most 1, found 95"),
        ("all: {}", "gates.yaml:1: the case all has no gate"),
        ("[all]", "a file of gates must be a mapping, found a list"),
    ],
)
def test_a_file_that_makes_no_sense_is_refused_with_its_line(
    gates: str, says: str, compare: Compare
) -> None:
    Path("gates.yaml").write_text(gates)
    done = compare(plain("a"), plain("b"), "--gates=gates.yaml")
    assert (done.code, done.out) == (2, "")
    assert says in done.err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (
            "a a",
            "--exit-code: no gate can be judged; allowed: --max-drop NUMBER, --rec",
        ),
        ("a --max-drop=1", "found 1 run to compare, a.jsonl"),
        ("a a --max-drop=much", "--max-drop: found 'much'"),
        ("a a --max-drop=within:.1,beyond:.2", "allowed: beyond allows less than"),
        ("a published/monitor/vicuna-7b --max-drop=1", "of another tool beside publ"),
        ("a a --max-drop=1 --cluster=pag", "--cluster pag: the row has no such value"),
        ("a folder --max-drop=1", "found no run in it; allowed: lm_eval's samples_*"),
        ("a packed.eval --max-drop=1", "of another tool beside packed.eval"),
        ("a nowhere --max-drop=1", "beside nowhere, which is no file here"),
        ("published/monitor --max-drop=1", "--max-drop is for runs of other tools"),
    ],
)
def test_what_cannot_be_compared_is_said_with_what_is_allowed(
    arguments: str, says: str, compare: Compare
) -> None:
    Path("folder").mkdir()
    Path("packed.eval").write_bytes(b"\x1f\x8b")
    a = plain("a")
    done = compare(*(a if word == "a" else word for word in arguments.split()))
    assert (done.code, says in done.err) == (2, True), done.err
