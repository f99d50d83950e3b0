"""Any Hugging Face checkpoint goes the same way as the embedded one."""

from __future__ import annotations

import pytest

from tests.models.tiny_checkpoints import make_checkpoint


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["gpt2", "mamba", "t5"])
def test_a_checkpoint_that_knows_nothing_is_asked_and_invalid(pytester, mini_suite, report, kind):
    make_checkpoint(pytester.path / "checkpoint", kind)
    mini_suite()
    result = pytester.runpytest("--kb-model=./checkpoint", "suites")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    actual = report()
    assert actual["model"]["architecture"]
    cases = {case["id"].split("::")[1]: case for case in actual["cases"]}
    # 400 tokens share the probability.
    assert cases["monitor[P36]"]["verdict"] == "invalid"
    assert any("the right answer gets no probability" in said for said in cases["monitor[P36]"]["errors"])
    # Random weights never end an answer.
    assert cases["reliability[seen-zero-shot]"]["verdict"] == "invalid"
    assert "max_new_tokens" in cases["reliability[seen-zero-shot]"]["errors"][0]
