"""The cases that need eyes: those of one cause together, a reason and an example each."""

from dataclasses import replace

from pytest_kbrel.records import GateResult, MetricValue, Outcome, Table
from pytest_kbrel.reports.terminal import terminal_lines
from tests.made_cases import told


def body(run, width=80, verbosity=0):
    lines = [text for text, _ in terminal_lines(run, width=width, verbosity=verbosity)]
    return lines[lines.index("") + 1 :]


def answered(*rows):
    return Table(
        columns=(),
        rows=tuple(
            Outcome(
                fact_id=f"f{at}",
                question="Where is Oslo?",
                expected="Norway",
                answer=answer,
                label=label,
                values=(),
                prompt_digest="",
            )
            for at, (answer, label) in enumerate(rows)
        ),
    )


def dropped(make_case, part, value, verdict="fail", **more):
    gate = GateResult(
        metric="accuracy", rule="max_drop", bound=0.05, verdict=verdict,
        reasons=told("x", needed=90), observed=0.9 - value, low=0.1, high=0.2,
    )  # fmt: skip
    figure = MetricValue(
        name="accuracy", better="higher", value=value, baseline=0.9, delta=value - 0.9
    )
    return make_case("monitor", part, verdict, (figure,), gates=(gate,), **more)


def test_invalid_cases_of_one_cause_are_told_once(small_run, make_case):
    slices = [
        make_case(
            "monitor", f"P{at}", "invalid", (), label="country" if at == 1 else "",
            errors=(f"{at + 90} of 120 answers are cut short; allowed: at most 50%: raise it",),
            table=answered(("uh", "wrong")),
        )
        for at in range(1, 10)
    ]  # fmt: skip
    overall = make_case(
        "monitor", "overall", "invalid", (), aggregate=True, members=tuple(case.id for case in slices),
        errors=("monitor[overall] cannot be measured: monitor[P1] is invalid",),
    )  # fmt: skip
    assert body(replace(small_run, cases=(*slices, overall))) == [
        "INVALID  9 cases: monitor[P1 country], monitor[P2], monitor[P3] and 6 more",
        "    91 of 120 answers are cut short (figures of the first)",
        "    such as: Where is Oslo? uh (right: Norway)",
        "INVALID  monitor[overall]",
        "    cases that it is made from were not measured",
    ]


def test_cases_that_were_not_run_are_one_line(small_run, make_case):
    cases = [make_case("monitor", f"P{at}", "not run", ()) for at in range(27)]
    assert body(replace(small_run, cases=tuple(cases))) == [
        "NOT RUN  27 cases not run: the session stopped before them"
    ]


def test_without_a_lost_fact_the_example_is_a_wrong_answer(small_run, make_case):
    case = dropped(
        make_case, "P1", 0.5, table=answered(("Norway", "correct"), ("Peru", "wrong"))
    )
    assert (
        body(replace(small_run, cases=(case,)))[-1]
        == "    such as: Where is Oslo? Peru (right: Norway)"
    )
    right = replace(case, table=answered(("Norway", "correct")))
    assert len(body(replace(small_run, cases=(right,)))) == 2


def test_a_long_list_is_cut_and_counted(small_run, make_case):
    cases = [
        make_case("monitor", f"P{at}", "invalid", (), errors=("x" * (at + 1),))
        for at in range(12)
    ]
    lines = body(replace(small_run, cases=tuple(cases)))
    assert sum(line.startswith("INVALID  ") for line in lines) == 8
    assert lines[-1] == "and 4 more cases that did not pass"
