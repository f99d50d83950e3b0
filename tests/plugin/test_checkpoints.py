"""Sessions with Hugging Face checkpoints: downloading, loading, and models that know nothing."""

import re

import pytest

from tests.hub_server import HubServer
from tests.models.tiny_checkpoints import make_checkpoint
from tests.plugin.conftest import MODEL, one_line

ENGINE = "batches of up to [0-9]+ tokens, scored in packed rows, written in a loop of packed rows"


REPO = "somebody/tiny"


def use_hub(monkeypatch, hub, folder):
    for name, value in {
        "HF_ENDPOINT": hub.address,
        "HF_HOME": str(folder / "home"),
        "HF_HUB_CACHE": str(folder / "home" / "hub"),
        "HF_HUB_OFFLINE": "0",
        "HF_HUB_DISABLE_XET": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("HF_TOKEN", raising=False)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "start"),
    [
        ((f"--kb-model={REPO}", "-n2"), REPO),
        ((MODEL, f"--kb-baseline-model={REPO}"), f"--kb-baseline-model: {REPO}"),
    ],
)
def test_a_gated_checkpoint_is_one_error_for_the_whole_session(
    pytester, mini_suite, report, monkeypatch, arguments, start
):
    mini_suite()
    with HubServer(pytester.path, REPO, refusal=(403, "GatedRepo")) as hub:
        use_hub(monkeypatch, hub, pytester.path)
        result = pytester.runpytest_subprocess(*arguments, "suites")
    # A second worker may be about to say the same.
    result.assert_outcomes(failed=1)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    # The first screen names it as the cause, too.
    start = f"{start}: config cannot be loaded: "
    (error,) = [line for line in result.outlines if line.startswith(start)]
    assert "it is gated on the hub" in error
    assert any("log in with" in text for text in report()["problems"])
    verdicts = [case["verdict"] for case in report()["cases"]]
    assert set(verdicts) == {"invalid", "not run"}
    assert verdicts.count("not run") >= 7


@pytest.mark.slow
def test_workers_fetch_each_file_of_a_hub_checkpoint_once(
    pytester, mini_suite, report, monkeypatch
):
    folder = make_checkpoint(pytester.path / "served")
    mini_suite()
    with HubServer(folder, REPO, held="model.safetensors", clients=2) as hub:
        use_hub(monkeypatch, hub, pytester.path)
        result = pytester.runpytest_subprocess(
            f"--kb-model={REPO}",
            "--kb-limit=2",
            "-n2",
            "-k",
            "P36 or places-head",
            "suites",
            "-v",
        )
    # It knows nothing, and says so.
    result.assert_outcomes(failed=2)
    assert report()["model"]["architecture"] == "LlamaForCausalLM"
    environment = report()["environment"]
    # What was asked: MONITOR scores, both write.
    assert re.fullmatch(ENGINE, environment["engine"])
    loaded = (
        f"model loaded in {environment['model_load_seconds']} s by the slowest worker"
    )
    assert f"{loaded}; {environment['engine']}" in one_line(result)
    assert hub.all_there.is_set()
    assert dict(hub.fetched) == {path.name: 1 for path in folder.iterdir()}
