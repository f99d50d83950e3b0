"""Settings of a recorded run, as a run that decides it again takes them over."""

from __future__ import annotations

from typing import Any

from pytest_kbrel.bounds import FLAG_SEED, TOP_K, limit_value
from pytest_kbrel.evaluation.recorded_run import RecordedRun
from pytest_kbrel.settings import RULES
from pytest_kbrel.words import budget_value


def recorded_values(run: RecordedRun) -> dict[str, Any]:
    """Return the recorded settings by their names in ``Settings``; those that hold of a model's answers.

    Raises ``ValueError`` where one of them is not allowed.
    """
    limit, seed = run.setting("limit"), run.setting("seed")
    return {
        "model": run.setting("model") or run.model.spec,
        "model_args": run.setting("model_args"),
        "device": run.setting("device") or "auto",
        "dtype": run.setting("dtype") or "auto",
        "batch_size": run.setting("batch_size") or "auto",
        "apply_chat_template": run.setting("apply_chat_template") == "true",
        "judge": run.setting("judge") or RULES,
        "judge_args": run.setting("judge_args"),
        "top_k": TOP_K.integer(run.setting("top_k") or "0"),
        "limit": limit_value(limit) if limit else None,
        "seed": FLAG_SEED.integer(seed) if seed else None,
        "until_decided": budget_value(run.setting("until_decided")),
    }
