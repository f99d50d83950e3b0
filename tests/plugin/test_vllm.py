"""Sessions with a vllm/ spec, over a stub of the package."""

import sys
from pathlib import Path

import pytest

from pytest_kbrel.plugin.activation import DEVICES
from tests.plugin.conftest import ONE

MODEL = "--kb-model=reference"
SMALL = ONE + "monitor:\n  negatives: 1\n"
STAND_IN = Path(__file__).parent.parent / "models"
GATE = (
    "--kb-model=vllm/reference",
    "--kb-model-args=dtype=float32,max_model_len=256",
    "suites",
)


@pytest.fixture
def stand_in(pytester, monkeypatch):
    """Let this process and those it starts find the stand-in under the package's name."""
    (pytester.path / "packages").mkdir()
    (pytester.path / "packages" / "vllm.py").write_text(
        f"import sys; sys.path.append({str(STAND_IN)!r})\n"
        "from fake_vllm import LLM, SamplingParams, __version__\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(pytester.path / "packages"))
    monkeypatch.syspath_prepend(pytester.path / "packages")
    monkeypatch.setenv(DEVICES, "0,1")
    yield
    sys.modules.pop("vllm", None)


def labels(actual):
    return {case["id"]: (case["verdict"], case["n"]) for case in actual["cases"]}


@pytest.mark.slow
def test_a_run_measures_what_the_transformers_backend_measures(
    pytester, mini_suite, report, stand_in
):
    mini_suite(SMALL)
    assert pytester.runpytest(MODEL, "suites").ret == 0
    expected = report()
    assert pytester.runpytest(*GATE).ret == 0
    actual = report()
    assert actual["model"]["backend"] == "vllm"
    assert actual["model"]["spec"] == "vllm/reference"
    assert actual["model"]["weights_digest"] == expected["model"]["weights_digest"]
    assert labels(actual) == labels(expected)
    for one, other in zip(actual["cases"], expected["cases"], strict=True):
        for name, metric in one["metrics"].items():
            assert metric["value"] == pytest.approx(
                other["metrics"][name]["value"], abs=1e-4
            ), name
    # Both backends' answers are kept, each under its own key.
    assert int(actual["environment"]["answers_reused"]) == 0
    assert pytester.runpytest(*GATE).ret == 0
    again = report()["environment"]
    assert (
        again["answers_reused"]
        == again["answers_asked"]
        == actual["environment"]["answers_asked"]
    )


@pytest.mark.slow
def test_a_worker_is_dealt_as_many_gpus_as_its_engine_takes(
    pytester, stand_in, monkeypatch
):
    monkeypatch.setenv(DEVICES, "4,5,6,7")
    pytester.makepyfile(
        """
        import os, pytest, time

        @pytest.mark.parametrize("n", range(6))
        def test_seen(n, worker_id):
            time.sleep(0.1)
            open(f"seen-{worker_id}", "w").write(os.environ["CUDA_VISIBLE_DEVICES"])
        """
    )
    args = (
        "-n2",
        "--kb-model=vllm/reference",
        "--kb-model-args=tensor_parallel_size=2",
    )
    # Nothing asked the model.
    assert pytester.runpytest_subprocess(*args).ret == 5
    seen = {path.name: path.read_text() for path in pytester.path.glob("seen-*")}
    assert seen == {"seen-gw0": "4,5", "seen-gw1": "6,7"}


def test_without_the_package_the_extra_is_named(pytester, mini_suite):
    mini_suite()
    if "vllm" in sys.modules:
        pytest.skip("vLLM is loaded")
    result = pytester.runpytest(*GATE)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ['*loading vllm/reference needs vllm: pip install "pytest-kbrel?vllm?"*']
    )
