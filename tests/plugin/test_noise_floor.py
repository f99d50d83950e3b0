from __future__ import annotations

import json

import pytest

from tests.plugin.conftest import GATE, RELATIVE

BLESS = (*GATE, "--kb-baseline-update=prod", "--kb-noise-floor")
# The second time, every question about a country with an "a" and an "n" gets no answer.
UNSTEADY = """\
import dataclasses
import importlib

# Not "from ... import": sessions in one process forget modules, and their packages do not.
registry = importlib.import_module("pytest_kbrel.models.registry")

class Unsteady:
    def __init__(self, model, steady):
        self.model, self.steady = model, steady
    def describe(self):
        return self.model.describe()
    def score(self, requests):
        return self.model.score(requests)
    def generate(self, requests):
        said = self.model.generate(requests)
        return [
            one if self.steady or "China" not in asked.prompt and "Spain" not in asked.prompt
            else dataclasses.replace(one, text="unsure")
            for asked, one in zip(requests, said)
        ]
    def replanned(self):
        return Unsteady(self.model.replanned(), False)
    def close(self):
        self.model.close()

loaded = registry.open_model
registry.open_model = lambda spec, **options: Unsteady(loaded(spec, **options), True)

def pytest_unconfigure():
    registry.open_model = loaded
"""


@pytest.fixture
def meta(pytester):
    def read():
        return json.loads((pytester.path / "baselines" / "prod" / "baseline.json").read_text())

    return read


def noise_of(meta, case):
    return meta["cases"][f"mini.kb.yaml::{case}"]["noise"]


def test_the_reference_says_the_same_in_other_batches(pytester, mini_suite, meta):
    mini_suite(RELATIVE)
    result = pytester.runpytest(*BLESS)
    assert result.ret == 0
    result.stdout.fnmatch_lines(["noise floor: 0 of 52 answers changed when asked again in other batches"])
    noise = noise_of(meta(), "reliability[seen-zero-shot]")
    assert (noise["changed"], noise["of"]) == (0, 12)
    assert set(noise["metrics"].values()) == {0.0}


def test_what_changes_is_kept_and_shields_gates(pytester, mini_suite, meta, report, plugin_args):
    mini_suite(RELATIVE)
    pytester.makeconftest(UNSTEADY)
    result = pytester.runpytest(*BLESS, *plugin_args)
    assert result.ret == 0
    result.stdout.fnmatch_lines(["noise floor: 2 of 52 answers changed when asked again in other batches"])
    actual = meta()
    noise = noise_of(actual, "reliability[seen-zero-shot]")
    assert (noise["changed"], noise["of"]) == (2, 12)
    assert noise["metrics"]["cr"] == pytest.approx(2 / 12)
    assert noise_of(actual, "reliability[unseen-zero-shot]")["changed"] == 0
    overall = actual["aggregates"]["mini.kb.yaml::reliability[overall]"]["noise"]
    assert overall["metrics"]["ur"] == 0.0
    pytester.path.joinpath("conftest.py").unlink()
    assert pytester.runpytest(*GATE, "--kb-baseline=prod").ret == 0
    (case,) = [case for case in report()["cases"] if case["slice"] == "seen-zero-shot"]
    assert case["metrics"]["cr"]["noise"] == pytest.approx(2 / 12)


def test_without_the_flag_nothing_is_asked_twice(pytester, mini_suite, meta):
    mini_suite(RELATIVE)
    pytester.makeconftest(UNSTEADY)
    assert pytester.runpytest(*GATE, "--kb-baseline-update=prod").ret == 0
    assert "noise" not in json.dumps(meta()["cases"])


def test_it_belongs_to_blessing(pytester, mini_suite):
    mini_suite(RELATIVE)
    result = pytester.runpytest(*GATE, "--kb-noise-floor")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--kb-noise-floor: found without --kb-baseline-update; allowed: *"])


def test_blessing_again_without_measuring_says_what_is_dropped(pytester, mini_suite, meta):
    mini_suite(RELATIVE)
    assert pytester.runpytest(*BLESS).ret == 0
    floors = [case["noise"] for case in meta()["cases"].values()]
    said = f"({sum(floor['changed'] for floor in floors)} of {sum(floor['of'] for floor in floors)} answers)"
    again = pytester.runpytest(*BLESS[:-1])
    dropped = (
        f"the noise floor of the old baseline {said} is dropped: add --kb-noise-floor to measure it again"
    )
    assert dropped in again.outlines
    assert not any("noise" in case for case in meta()["cases"].values())
    # There is none left to drop, and where it is measured again none is.
    assert "is dropped" not in pytester.runpytest(*BLESS[:-1]).stdout.str()
    assert "is dropped" not in pytester.runpytest(*BLESS).stdout.str()
