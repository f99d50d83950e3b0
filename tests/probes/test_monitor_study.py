"""The full accuracy study, its cost, and the prompt ablation."""

from __future__ import annotations

import dataclasses

import pytest

from pytest_kbrel.metrics import metrics_for
from pytest_kbrel.metrics.monitor import degree
from pytest_kbrel.probes import run_case
from pytest_kbrel.probes.monitor import grid_of
from pytest_kbrel.records import (
    Case,
    Generated,
    GenerateRequest,
    MonitorSettings,
    Scored,
    ScoreRequest,
    Table,
)
from tests.metrics import value_of
from tests.probes.conftest import CAPITAL, FRANCE, NORWAY, Oracle, make_case
from tests.probes.monitor.test_monitor import believe, generated

FULL = MonitorSettings(negatives=2, study="full")
# As many frames as P264 and P276 have in the authors' data.
SIX = dataclasses.replace(
    CAPITAL,
    frames=tuple(
        f"{word} [X]?" for word in ("Whose", "Where", "Which", "What", "Who", "When")
    ),
)


def six_frames(settings: MonitorSettings, **more) -> Case:
    return dataclasses.replace(make_case(settings, FRANCE), relations=(SIX,), **more)


def figures(table: Table) -> dict[str, float]:
    """The metrics of a table."""
    rows = [dict(zip(table.columns, row.values, strict=True)) for row in table.rows]
    return {
        metric.name: value_of(
            metric, [[row[name] for name in metric.columns] for row in rows]
        )
        for metric in metrics_for("monitor", "P36", table.columns)
    }


def say(request: GenerateRequest) -> str:
    """Right but for one frame, and for the base frame after one wrong context."""
    wrong = request.prompt.startswith("Rome. What") or request.prompt.endswith(
        "Where does France have its seat?"
    )
    return "Rome" if wrong else "Paris"


def test_the_accuracies_of_the_full_study_by_hand():
    oracle = Oracle(say=say, believe=lambda request: (0.5,))
    measured = figures(run_case(make_case(FULL, FRANCE), oracle, oracle.keep).table)
    # Of 12 cells, the third frame is wrong in 4 contexts and the base frame in one.
    assert measured["accuracy_avg"] == measured["accuracy"] == pytest.approx(7 / 12)
    assert (measured["accuracy_max"], measured["accuracy_min"]) == (1, 0)
    assert measured["accuracy_std"] == pytest.approx((7 / 12 * 5 / 12) ** 0.5)
    assert measured["accuracy_base"] == 1
    assert measured["accuracy_qa"] == pytest.approx(2 / 3)
    assert measured["accuracy_positive"] == 1
    assert measured["accuracy_negative"] == pytest.approx(1 / 2)
    assert measured["delta_positive"] == 0
    assert measured["delta_negative"] == pytest.approx(-1 / 2)


def test_the_cost_of_monitor_and_of_the_study():
    """7 frames and 5 wrong contexts: 13 calls against 49, as the paper's section 4.3 counts them."""
    seven = dataclasses.replace(SIX, frames=(*SIX.frames, "How [X]?"))
    cities = ("Rome", "Oslo", "Madrid", "Lima", "Quito")
    case = dataclasses.replace(
        make_case(
            MonitorSettings(study="full"), dataclasses.replace(FRANCE, negatives=cities)
        ),
        relations=(seven,),
    )

    class Counting(Oracle):
        def _answer(self, request):
            if isinstance(request, ScoreRequest):
                return Scored(
                    probabilities=(0.5, 0.5),
                    token_ids=(1, 2),
                    prompt_tokens=10,
                    prompt_digest="d",
                )
            return Generated(
                text="Paris",
                token_ids=(1, 2, 3, 4, 5),
                finish="stop",
                prompt_tokens=10,
                prompt_digest="d",
            )

    oracle = Counting()
    measured = figures(run_case(case, oracle, oracle.keep).table)
    assert (measured["calls_monitor"], measured["calls_study"]) == (13, 49)
    assert (measured["tokens_monitor"], measured["tokens_study"]) == (13 * 12, 49 * 15)
    assert measured["saving_calls"] == pytest.approx(49 / 13)
    assert measured["saving_tokens"] == pytest.approx(49 * 15 / (13 * 12))


def step_by_step(request: GenerateRequest) -> Generated:
    """The scripted answer with a probability for its one step."""
    text = say(request)
    probability = {"Paris. What": 0.9, "Which city": 0.5, "Oslo. What ": 0.3}.get(
        request.prompt[:11], 0.7
    )
    watched = probability if text == "Paris" else 0.1
    return (
        generated(text, (text, probability, watched))
        if request.steps
        else generated(text)
    )


def test_a_dropped_fact_is_not_studied_and_costs_are_those_of_kept_facts():
    def only_france(request):
        return (
            generated("Bergen") if "Norway" in request.prompt else step_by_step(request)
        )

    oracle = Oracle(say=only_france)
    settings = dataclasses.replace(FULL, variant="published")
    table = run_case(make_case(settings, FRANCE, NORWAY), oracle, oracle.keep).table
    assert [row.values[0] for row in table.rows] == [1, 0]
    assert sum("Norway" in request.prompt for request in oracle.rounds[1]) == 1
    assert figures(table)["calls_study"] == 12


@pytest.mark.parametrize("variant", ["definition", "published"])
def test_six_frames_make_means_over_six(variant, columns_of):
    """The authors' script would divide by 7."""
    probabilities = dict(zip(SIX.frames, (0.8, 0.7, 0.6, 0.5, 0.4, 0.3), strict=True))

    def probability(prompt: str) -> float:
        if ". " in prompt:
            return 0.9 if prompt.startswith("Paris") else 0.5
        return probabilities[prompt.replace("France", "[X]")]

    def answer(request):
        return generated(
            "Paris", ("Paris", probability(request.prompt), probability(request.prompt))
        )

    oracle = Oracle(say=answer, believe=lambda request: (probability(request.prompt),))
    columns = columns_of(
        run_case(
            six_frames(MonitorSettings(negatives=2, variant=variant)),
            oracle,
            oracle.keep,
        ).table
    )
    assert columns["pfd"] == pytest.approx((0.1 + 0.2 + 0.3 + 0.4 + 0.5 + 0.6) / 6)
    assert columns["ird"] == pytest.approx(0.4)
    assert sum(name.startswith("cell:none:") for name in columns) == 6


def test_the_ablated_score_by_hand_and_without_further_calls():
    """Two of three frames: the base frame and one drawn by the seed."""
    settings = MonitorSettings(negatives=2, ablation=2)
    oracle = Oracle(say=say, believe=believe)
    case = make_case(settings, FRANCE)
    table = run_case(case, oracle, oracle.keep).table
    plain = Oracle(say=say, believe=believe)
    run_case(make_case(MonitorSettings(negatives=2), FRANCE), plain, plain.keep)
    assert oracle.rounds == plain.rounds
    # From the anchor (0.9, 0.8): the frames differ by 0.1, 0.3 and 0.3, the wrong contexts by 0.4 and 0.1.
    assert grid_of(case).ablated in (("none:0", "none:1"), ("none:0", "none:2"))
    assert figures(table)["monitor_ablated"] == pytest.approx(
        degree((0.1 + 0.3) / 2, 0.25) / 0.85
    )
    assert figures(table)["monitor"] == pytest.approx(
        degree((0.1 + 0.3 + 0.3) / 3, 0.25) / 0.85
    )


def test_what_is_asked_by_default_keeps_its_digest_and_more_makes_another():
    def digest(**settings):
        oracle = Oracle(say=say, believe=believe)
        case = make_case(MonitorSettings(negatives=2, **settings), FRANCE)
        return run_case(case, oracle, oracle.keep).table.rows[0].prompt_digest

    assert digest() == digest(ablation=4)
    assert len({digest(), digest(study="full"), digest(ablation=2)}) == 3
