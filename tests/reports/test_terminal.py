from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from pytest_kbrel.printing import cells
from pytest_kbrel.records import CaseResult, MetricValue, Run
from pytest_kbrel.reports.html.page import report_html
from pytest_kbrel.reports.markdown import summary_markdown
from pytest_kbrel.reports.terminal import failure_text, terminal_lines


def texts(run: Run, width: int) -> list[str]:
    return [text for text, _ in terminal_lines(run, width=width, verbosity=1)]


GOLDEN = """\
MONITOR
  slice    n      monitor↓     pfd↓          ird↓  anchor_prob↑     accuracy↑  verdict
  P17    120  0.390      =  0.280 =  0.200      =  0.750 +0.004  0.610      =  pass
  P30    120  0.412 +0.031  0.300 =  0.250 -0.010  0.701 -0.020  0.512 -0.071  fail

Head-to-Tail
  slice        n     accuracy↑  hallucination↓      missing↓  verdict
  open-tail  120  0.210 -0.020    0.500 +0.010  0.290 +0.010  inconclusive

Reliable KB, seen
  slice             n          cr          wr         ncr   c_correct         nccr  verdict
  seen-zero-shot  120  .600 +.010  .300 +.010  .300 +.010  .800 +.010  -.200 +.010  pass

Reliable KB, unseen
  slice               n    ur↑  c_wrong↓   iur↑  verdict
  unseen-zero-shot  120  0.700         –  0.900  pass

Over all slices
  monitor[overall]  measured
    monitor          0.401 [0.321, 0.481] +0.010 [-0.030, +0.050]

Inconclusive
  head_to_tail[open-tail]: accuracy max_drop 0.02: the drop may be 0.06; 400 facts would decide

Lost and gained facts
  lost    On which continent is country 4? Asia; said Asia → Africa; anchor 0.950 → 0.700 (-0.250);
    P30, head
  lost    On which continent is country 6? Asia; said Asia → Africa; anchor 0.950 → 0.600 (-0.350);
    P30, tail
  lost    On which continent is country 3? Asia; said Asia → Africa; anchor 0.950 → 0.750 (-0.200);
    P30, head
  lost    4 more in report.html and report.json
  gained  On which continent is country 99? Asia; said Asia → Africa; anchor 0.950 → 0.450 (-0.500);
    P30, tail

FAILED: 1 failed, 1 inconclusive, 4 passed
model    reference:overconfident (float32, cpu, raw prompts) against baseline reference
changes  7 facts lost, 1 gained; 5 of the 7 are head; worst P30

FAILED        monitor[P30]
    accuracy: significantly worse than reference and by more than the tolerance
    7 facts lost, 1 gained, such as: On which continent is country 4? Asia → Africa
INCONCLUSIVE  head_to_tail[open-tail]
    accuracy: the drop may be 0.06; 400 facts would decide
reports written to kbrel-report"""


def test_the_terminal_shows_tables_and_why_cases_are_inconclusive(
    small_run: Run,
) -> None:
    lines = terminal_lines(small_run, width=120, verbosity=1, written_to="kbrel-report")
    assert "\n".join(text for text, _ in lines) == GOLDEN


def test_the_terminal_names_the_judge_and_a_served_model(small_run: Run) -> None:
    assert small_run.model is not None
    run = replace(
        small_run,
        model=replace(
            small_run.model, spec="openai/x", dtype="", device="http://localhost:1/v1"
        ),
        settings=(("judge", "openai/judge"),),
        environment=(("helpers_asked", "30"), ("helpers_reused", "12")),
    )
    lines = texts(run, 120)
    at = lines.index("FAILED: 1 failed, 1 inconclusive, 4 passed")
    assert [lines[at + 1], lines[at + 3]] == [
        "model    openai/x (http://localhost:1/v1, raw prompts) against baseline reference",
        "judged by openai/judge (12 of 30 replies reused from earlier runs)",
    ]


def test_eighty_columns_keep_every_metric(small_run: Run) -> None:
    assert texts(small_run, 80)[:4] == [
        "MONITOR",
        "  slice    n     monitor     pfd         ird  anchor_prob    accuracy  verdict",
        "  P17    120  .390     =  .280 =  .200     =   .750 +.004  .610     =  pass",
        "  P30    120  .412 +.031  .300 =  .250 -.010   .701 -.020  .512 -.071  fail",
    ]


@pytest.mark.parametrize("width", [40, *range(60, 104, 4)])
def test_the_verdict_is_never_cut(small_run: Run, width: int) -> None:
    lines = texts(small_run, width)
    assert next(line for line in lines if line.startswith("  open-tail")).endswith(
        "  inconclusive"
    )


@pytest.mark.parametrize("width", [20, 40, 60, 80, 100, 200])
@pytest.mark.parametrize(
    "name", ["small_run", "rich_run", "hostile_run", "empty_run", "big_run"]
)
def test_no_line_is_too_wide_or_has_a_control_character(
    name: str, width: int, request: pytest.FixtureRequest
) -> None:
    for text in texts(request.getfixturevalue(name), width):
        assert cells(text) <= min(width, 100)
        assert not re.search(
            "[\x00-\x1f\x7f-\x9f\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]", text
        )


def test_what_did_not_pass_is_coloured_and_the_rest_is_not(small_run: Run) -> None:
    markup = {
        text.split()[0]: marks
        for text, marks in terminal_lines(small_run, width=100, verbosity=1)
        if text
    }
    assert markup["P17"] == {}
    assert markup["P30"] == {"red": True, "bold": True}
    assert markup["open-tail"] == {"yellow": True}


def test_without_colour_nothing_is_marked(small_run: Run) -> None:
    assert all(
        not marks
        for _, marks in terminal_lines(small_run, width=100, verbosity=1, color=False)
    )


def test_an_empty_run_says_that_nothing_was_decided(empty_run: Run) -> None:
    assert texts(empty_run, 80) == ["INVALID: no case was decided"]


def test_problems_and_incompleteness_are_named(small_run: Run) -> None:
    run = replace(
        small_run, complete=False, problems=("gw1 crashed\nwhile running monitor[P17]",)
    )
    lines = texts(run, 100)
    assert r"problem: gw1 crashed\nwhile running monitor[P17]" in lines
    assert (
        "partial run: not every case of its suites was selected and soundly decided"
        in lines
    )


def test_cases_of_several_suites_are_told_apart(small_run: Run) -> None:
    other = [replace(case, suite="other.kb.yaml") for case in small_run.cases]
    lines = texts(replace(small_run, cases=(*small_run.cases, *other)), 100)
    # One and the same reason of both.
    text = " ".join("\n".join(lines).split())
    assert (
        "other.kb.yaml::head_to_tail[open-tail] and 1 more: accuracy max_drop 0.02: the drop may be"
        in text
    )
    assert "open-tail (world)" in text


def test_reasons_are_short_and_those_of_many_are_counted(small_run: Run) -> None:
    case = next(case for case in small_run.cases if case.verdict == "inconclusive")
    gate = replace(
        case.gates[0],
        reason="accuracy fell by 0.020 [-0.050, 0.010] from 0.230 to 0.210 (paired over 120 facts, p 0.1); "
        "allowed: 0.020; about 363 facts would decide, were the difference the same",
        observed=0.02,
        low=-0.01,
        high=0.05,
    )
    many = tuple(
        replace(
            case,
            id=f"head_to_tail[{n:02}]",
            slice=f"{n:02}",
            gates=(replace(gate, observed=0.02 + n / 1000),),
        )
        for n in range(20)
    )
    lines = texts(replace(small_run, cases=many), 100)
    start = lines.index("Inconclusive")
    shown = lines[start + 1 : lines.index("", start)]
    assert shown[0] == (
        "  head_to_tail[00]: accuracy max_drop 0.02: drop 0.020 [-0.010, 0.050]; about 363 facts would decide"
    )
    assert shown[-1] == "  and 12 more gates; report.html has all reasons"
    assert len(shown) == 9


def test_a_figure_without_a_gate_is_measured_and_counts_as_before(
    small_run: Run,
) -> None:
    aggregate = next(case for case in small_run.cases if case.aggregate)
    assert "  monitor[overall]  measured" in texts(small_run, 100)
    assert "FAILED: 1 failed, 1 inconclusive, 4 passed" in texts(small_run, 100)
    gated = replace(aggregate, gates=(small_run.cases[0].gates[0],))
    cases = tuple(gated if case.aggregate else case for case in small_run.cases)
    assert "  monitor[overall]  pass" in texts(replace(small_run, cases=cases), 100)


def test_gates_without_a_baseline_are_counted_where_none_was_asked_for(
    small_run: Run,
) -> None:
    case = small_run.cases[0]
    gates = tuple(replace(gate, verdict="no baseline") for gate in case.gates)
    cases = (replace(case, verdict="no baseline", gates=gates),)
    line = f"no baseline given (--kb-baseline): {len(gates)} gates not judged"
    assert line in texts(replace(small_run, cases=cases, baseline=""), 100)
    assert line not in texts(replace(small_run, cases=cases), 100)


FAILURE = """\
monitor[P30]: fail, 1 of 2 gates not passed
  accuracy max_drop 0.02: fail
    measured    0.512 [0.432, 0.592] on 120 facts
    allowed     at most 0.02 worse than reference
    baseline    0.583 (reference)
    difference  -0.071 [-0.111, -0.031] over 118 paired facts (p < 0.001)
    stated in   suites/world.kb.yaml:17
  7 facts lost, 1 gained against reference
    1. On which continent is country 4? (P30, head)
       expected    Asia
       old answer  Asia
       new answer  Africa
       anchor      0.950 → 0.700 (-0.250)
    2. On which continent is country 6? (P30, tail)
       expected    Asia
       old answer  Asia
       new answer  Africa
       anchor      0.950 → 0.600 (-0.350)
    3. On which continent is country 3? (P30, head)
       expected    Asia
       old answer  Asia
       new answer  Africa
       anchor      0.950 → 0.750 (-0.200)
    4. On which continent is country 2? (P30, head)
       expected    Asia
       old answer  Asia
       new answer  Africa
       anchor      0.950 → 0.800 (-0.150)
    5. On which continent is country 1? (P30, head)
       expected    Asia
       old answer  Asia
       new answer  Africa
       anchor      0.950 → 0.850 (-0.100)
    and 2 more"""


def test_a_failure_says_what_was_measured_allowed_and_lost(small_run: Run) -> None:
    assert failure_text(small_run.cases[0], baseline_name="reference") == FAILURE


def test_a_figure_over_some_of_the_facts_says_how_many_there_are(
    small_run: Run,
) -> None:
    case = replace(small_run.cases[0], n=200)
    text = failure_text(case, baseline_name="reference")
    assert "measured    0.512 [0.432, 0.592] on 120 of 200 facts\n" in text


def test_a_failure_of_an_absolute_bound_needs_no_baseline(small_run: Run) -> None:
    case = small_run.cases[0]
    gate = replace(case.gates[0], verdict="fail", bound=0.4, reason="")
    bare = replace(
        case.metrics[0],
        baseline=None,
        delta=None,
        delta_low=None,
        delta_high=None,
        p=None,
    )
    text = failure_text(
        replace(case, gates=(gate,), metrics=(bare,), lost=(), gained=()),
        baseline_name="",
    )
    assert text == (
        "monitor[P30]: fail, 1 of 1 gate not passed\n"
        "  monitor max 0.4: fail\n"
        "    measured    0.412 [0.332, 0.492] on 120 facts\n"
        "    allowed     at most 0.4\n"
        "    stated in   suites/world.kb.yaml:16"
    )


def test_an_undefined_metric_says_why(small_run: Run) -> None:
    case = small_run.cases[4]
    gate = replace(small_run.cases[0].gates[0], metric="c_wrong", verdict="invalid")
    text = failure_text(replace(case, gates=(gate,)), baseline_name="prod")
    assert "    measured    nothing: no wrong answer" in text


def test_a_case_without_answers_tells_its_errors(
    small_run: Run, make_case: Callable[..., CaseResult]
) -> None:
    case = make_case(
        "monitor", "P1", "invalid", (), errors=tuple(f"e{at}" for at in range(8))
    )
    text = failure_text(case, baseline_name="")
    assert text.splitlines() == [
        "monitor[P1]: invalid", *(f"  error: e{at}" for at in range(5)), "  and 3 more errors",
    ]  # fmt: skip


def test_a_question_without_an_answer_is_told_in_words(small_run: Run) -> None:
    case = small_run.cases[0]
    unseen = replace(case.lost[0], expected="", old_answer="unsure", new_answer="")
    text = failure_text(replace(case, lost=(unseen,)), baseline_name="reference")
    assert (
        "expected    (no answer exists)\n       old answer  unsure\n       new answer  (nothing)"
        in text
    )


def test_hostile_text_in_a_failure_is_harmless(hostile_run: Run) -> None:
    for case in hostile_run.cases:
        text = failure_text(case, baseline_name=hostile_run.baseline)
        assert not re.search(
            "[\x00-\x09\x0b-\x1f\x7f-\x9f\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]",
            text,
        )
        assert len(text) < 20_000


def control(name: str, value: float | None) -> MetricValue:
    return MetricValue(name=name, better="higher", value=value, n=12)


def with_controls(run: Run) -> Run:
    more = (
        control("cr_control_majority", 0.083),
        control("c_correct_control_random", 0.2),
        control("c_correct_control_shuffled", 0.146),
        control("nccr_control_random", None),
    )
    return replace(
        run,
        cases=tuple(
            replace(case, metrics=(*case.metrics, *more))
            if case.slice == "seen-zero-shot"
            else case
            for case in run.cases
        ),
    )


def test_the_terminal_has_them_below_the_table(small_run: Run) -> None:
    lines = [
        text
        for text, _ in terminal_lines(with_controls(small_run), width=100, verbosity=1)
    ]
    at = next(
        number for number, line in enumerate(lines) if line.startswith("  controls of")
    )
    assert (
        lines[at]
        == "  controls of seen-zero-shot: cr 0.083 majority; c_correct 0.200 random, 0.146 shuffled"
    )
    assert lines[at - 1].startswith("  seen-zero-shot")
    assert sum("controls of" in line for line in lines) == 1


def test_a_narrow_terminal_wraps_them(small_run: Run) -> None:
    lines = [
        text
        for text, _ in terminal_lines(with_controls(small_run), width=40, verbosity=1)
    ]
    assert all(len(line) <= 40 for line in lines)
    assert "0.146" in " ".join(lines)


def test_the_summary_has_them_beside_each_metric(small_run: Run) -> None:
    text = summary_markdown(with_controls(small_run))
    assert "(controls: random 0.200, shuffled 0.146)" in text
    assert "controls" not in summary_markdown(small_run)


def test_the_page_has_them_among_all_figures(small_run: Run) -> None:
    page = report_html(with_controls(small_run))
    assert "c_correct_control_shuffled" in page
