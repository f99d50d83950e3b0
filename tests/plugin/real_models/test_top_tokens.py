"""--kb-top-k with real checkpoints: blessed, compared, and decided again."""

import json

import pytest

from tests.plugin.real_models.checkpoints import make_checkpoint
from tests.plugin.real_models.world import write_suite

pytestmark = pytest.mark.slow

TOP = "--kb-top-k=5"
GATES = "    kl: {max: 0.5}\n    top1_agreement: {min: 0.2}\n"


@pytest.fixture
def gate(pytester):
    """Return a function that runs the suite with some flags, and returns exit code and report."""
    for name, seed in (("base", 0), ("other", 1)):
        make_checkpoint(pytester.path / name, "base", "raw", seed=seed)
    suite = write_suite(pytester.path / "suites")
    suite.write_text(suite.read_text(encoding="utf-8") + GATES, "utf-8")

    def run(*flags):
        result = pytester.runpytest("suites", *flags)
        report = pytester.path / "kbrel-report" / "report.json"
        return int(result.ret), json.loads(report.read_text("utf-8"))

    return run


def divergences(report):
    return [
        case["churn"]["divergence"] for case in report["cases"] if not case["aggregate"]
    ]


def test_they_are_blessed_compared_and_decided_again(gate, pytester):
    code, report = gate("--kb-model=./base", TOP, "--kb-baseline-update=prod")
    assert (code, report["settings"]["top_k"]) == (0, "5")
    code, same = gate("--kb-model=./base", TOP, "--kb-baseline=prod")
    assert code == 0
    assert {(of["kl"], of["top1_agreement"]) for of in divergences(same)} == {
        (0.0, 1.0)
    }
    code, moved = gate("--kb-model=./other", TOP, "--kb-baseline=prod")
    assert code == 0
    assert all(0 < of["kl"] < 0.5 for of in divergences(moved))
    assert "KL 0." in moved["summary"]["headline"]
    code, _ = gate(
        "--kb-from-run=kbrel-report", "--kb-baseline=prod", "--kb-output-path=again"
    )
    again = json.loads((pytester.path / "again" / "report.json").read_text("utf-8"))
    assert code == 0
    assert divergences(again) == divergences(moved)
    # Answers of the cache that have none are no answers to who asks for them.
    code, without = gate("--kb-model=./other", "--kb-baseline=prod")
    assert code == 1
    assert "top_k" not in without["settings"]
    assert '"divergence"' not in json.dumps(without)
    verdicts = {
        gate["verdict"]
        for case in without["cases"]
        for gate in case["gates"]
        if gate["metric"] == "kl"
    }
    assert verdicts == {"not comparable"}
    code, compared = gate("--kb-model=./other", "--kb-baseline-model=./base", TOP)
    assert code == 0
    assert divergences(compared) == divergences(moved)
