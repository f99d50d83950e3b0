"""A checkpoint on the hub: fetched once, however many workers need it."""

from __future__ import annotations

import pytest

from tests.hub_server import HubServer
from tests.models.tiny_checkpoints import make_checkpoint

REPO = "somebody/tiny"


@pytest.mark.slow
def test_workers_fetch_each_file_of_a_hub_checkpoint_once(pytester, mini_suite, report, monkeypatch):
    folder = make_checkpoint(pytester.path / "served")
    mini_suite()
    with HubServer(folder, REPO, held="model.safetensors", clients=2) as hub:
        for name, value in {
            "HF_ENDPOINT": hub.address,
            "HF_HOME": str(pytester.path / "home"),
            "HF_HUB_CACHE": str(pytester.path / "home" / "hub"),
            "HF_HUB_OFFLINE": "0",
            "HF_HUB_DISABLE_XET": "1",
            "HF_HUB_DISABLE_TELEMETRY": "1",
        }.items():
            monkeypatch.setenv(name, value)
        result = pytester.runpytest_subprocess(
            f"--kb-model={REPO}", "--kb-limit=2", "-n2", "-k", "P36 or places-head", "suites"
        )
    # It knows nothing, and says so.
    result.assert_outcomes(failed=2)
    assert report()["model"]["architecture"] == "LlamaForCausalLM"
    assert hub.all_there.is_set()
    assert dict(hub.fetched) == {path.name: 1 for path in folder.iterdir()}
