"""MONITOR's further formats and study, in sessions with the embedded model."""

import pytest

from tests.plugin.conftest import RELATIONS

MODEL = "--kb-model=reference"

FEW = """\
suite: mini
facts: facts.jsonl
monitor:
  variant: {variant}
  negatives: 2
  limit: {limit}
  formats: all
  study: full
  ablation: 1
  gates: {{accuracy_wp: {{min: 0}}, saving_calls: {{min: 1.2}}, delta_negative: {{min: -1}}}}
"""
TOLD = (
    RELATIONS
    + '  statements: ["The capital of [X] is [Y].", "[Y] is the capital of [X]."]\n'
)


@pytest.fixture
def few(mini_suite):
    """Write the suite with statements; a relation has 2 frames here, so that the study has 8 cells."""

    def write(variant="definition", limit=4):
        path = mini_suite(FEW.format(variant=variant, limit=limit))
        (path.parent / "relations.yaml").write_text(TOLD, "utf-8")

    return write


def metrics(report):
    (case,) = report()["cases"]
    return {name: actual["value"] for name, actual in case["metrics"].items()}


@pytest.mark.slow
@pytest.mark.parametrize("variant", ["definition", "published"])
def test_all_formats_and_the_full_study_of_a_real_model(pytester, few, report, variant):
    few(variant, limit=6)
    result = pytester.runpytest(MODEL, "suites")
    result.assert_outcomes(passed=1)
    actual = metrics(report)
    # R x (2 + M) cells against R + 1 + M.
    assert (actual["calls_monitor"], actual["calls_study"]) == (5, 8)
    assert actual["saving_calls"] == pytest.approx(8 / 5)
    assert actual["tokens_study"] > actual["calls_study"] * 5
    assert 0 < actual["monitor_ablated"] < 2
    assert actual["accuracy_min"] <= actual["accuracy_avg"] <= actual["accuracy_max"]
    assert actual["accuracy_base"] > 0.5
    for name in ("accuracy_wp", "accuracy_fc_pos", "accuracy_fc_neg"):
        assert 0 <= actual[name] <= 1
    # The checkpoint was trained on statements as well.
    assert actual["accuracy_wp"] > 0
