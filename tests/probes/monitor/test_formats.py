"""Word prediction and fact checking (Table 1, probes 1 and 3)."""

from __future__ import annotations

import dataclasses

import pytest

from pytest_kbrel.judges.replies import read_truth
from pytest_kbrel.metrics import metrics_for
from pytest_kbrel.probes import run_case
from pytest_kbrel.records import Case, MonitorSettings
from tests.metrics import value_of
from tests.probes.conftest import CAPITAL, FRANCE, Oracle, make_case
from tests.probes.monitor.test_monitor import generated

TOLD = dataclasses.replace(
    CAPITAL,
    statements=(
        "The capital of [X] is [Y].",
        "[Y] governs [X].",
        "[X] has its seat in [Y]",
    ),
)
ALL = MonitorSettings(negatives=2, formats="all")


def told_case(settings: MonitorSettings = ALL, relation=TOLD) -> Case:
    return dataclasses.replace(make_case(settings, FRANCE), relations=(relation,))


def answer(prompt: str) -> str:
    """Half of the openings right; true statements half known, false ones 4 of 6 times seen through."""
    return {
        "The capital of France is": "Paris, which lies on the Seine",
        "France has its seat in": "Rome",
        "Statement: The capital of France is Paris. Is the statement true or false?": "True.",
        "Statement: Paris governs France. Is the statement true or false?": "false",
        "Statement: France has its seat in Paris Is the statement true or false?": "I cannot say.",
        "Statement: The capital of France is Rome. Is the statement true or false?": "False",
        "Statement: Rome governs France. Is the statement true or false?": "It is not true.",
        "Statement: France has its seat in Rome Is the statement true or false?": "True",
        "Statement: The capital of France is Oslo. Is the statement true or false?": "It is false.",
        "Statement: Oslo governs France. Is the statement true or false?": "",
        "Statement: France has its seat in Oslo Is the statement true or false?": "FALSE",
    }.get(prompt, "Paris")


@pytest.mark.parametrize("variant", ["definition", "published"])
def test_the_shares_by_hand(variant, columns_of):
    def say(request):
        text = answer(request.prompt)
        if variant == "published" and text.startswith("Paris,"):
            text = "Paris."
        return generated(text, ("P", 0.5, 0.5)) if variant == "published" else text

    oracle = Oracle(say=say)
    settings = dataclasses.replace(ALL, variant=variant)
    table = run_case(told_case(settings), oracle, oracle.keep).table
    columns = columns_of(table)
    # Two of the three statements end with [Y].
    assert columns["format:wp"] == pytest.approx(1 / 2)
    assert columns["format:fc_pos"] == pytest.approx(1 / 3)
    assert columns["format:fc_neg"] == pytest.approx(4 / 6)
    named = {
        metric.name: metric for metric in metrics_for("monitor", "P36", table.columns)
    }
    assert named["accuracy_wp"].columns == ("format:wp", "kept")
    assert value_of(
        named["accuracy_fc_pos"], [[1 / 3, 1], [1, 1], [0, 0]]
    ) == pytest.approx(2 / 3)
    assert named["accuracy_fc_neg"].columns == ("format:fc_neg", "kept")


def test_what_is_asked_and_that_it_is_one_round():
    oracle = Oracle(say=lambda request: answer(request.prompt))
    run_case(told_case(), oracle, oracle.keep)
    roles = [
        exchange.ask.role
        for exchange in oracle.kept
        if exchange.ask.role.startswith(("wp", "fc"))
    ]
    assert sorted(roles) == [
        *("fc_neg1:0", "fc_neg1:1", "fc_neg1:2", "fc_neg2:0", "fc_neg2:1", "fc_neg2:2"),
        *("fc_pos:0", "fc_pos:1", "fc_pos:2", "wp:0", "wp:1"),
    ]
    assert len(oracle.rounds) == 1


@pytest.mark.parametrize(
    ("reply", "verdict"),
    [
        ("True", True),
        (" true.", True),
        ("TRUE!", True),
        ("The statement is true.", True),
        ("True or False? True", True),
        ("True. It would be false to say otherwise.", True),
        ("It is not false.", True),
        ("False", False),
        ("false, since Rome is", False),
        ("The statement is False.", False),
        ("This is not true.", False),
        ("That isn't true.", False),
        ("untrue", False),
        ("", None),
        ("Yes", None),
        ("Paris", None),
        ("true or false", None),
        ("neither true nor false", None),
        ("It may be true and it may be false.", None),
        ("trueness", None),
    ],
)
def test_a_reply_is_read_as_true_false_or_neither(reply, verdict):
    assert read_truth(reply) is verdict
