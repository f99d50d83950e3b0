"""SmolLM2 with its matrices rounded, gated against itself: fine in eight bits, red in four."""

from __future__ import annotations

from tests.real import making


def test_eight_bits_pass(compared, made):
    session = compared(f"--kb-model={made(making.rounded, 8)}")
    assert session.code == 0
    assert session.verdicts["head_to_tail[geography-head]"] == "pass"


def test_four_bits_without_groups_fail(compared, made):
    session = compared(f"--kb-model={made(making.rounded, 4)}")
    assert session.code == 1
    assert "accuracy" in session.failed("head_to_tail[geography-head]")
    assert "accuracy" in session.failed("head_to_tail[society-torso]")
