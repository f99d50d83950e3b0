"""Differences of two models, helper models or runs, field by field; the commit that a blessed run names."""

from __future__ import annotations

import dataclasses
import subprocess
from pathlib import Path
from typing import Any

import pytest

from pytest_kbrel.baselines import (
    Baseline,
    commit_of,
    listed_differences,
    session_baseline,
)
from pytest_kbrel.gates import Comparison
from pytest_kbrel.records import Fingerprint
from tests.baselines.test_baselines import JUDGE, MODEL, sound
from tests.gates.tables import answers, case, decided

# (field, another value, does it forbid a comparison, does it make another judge)
FIELDS = (
    ("spec", "hf/other", None, False),
    ("backend", "vllm", False, True),
    ("backend_version", "9", False, False),
    ("architecture", "mamba", False, True),
    ("parameters", 7, False, False),
    ("weights_digest", "x", False, True),
    ("tokenizer_digest", "x", False, True),
    ("dtype", "bfloat16", False, False),
    ("device", "cuda:1", False, False),
    ("derived", "seed=1", False, True),
    ("chat_template", True, True, True),
    ("adds_bos", True, False, False),
    ("scoring_version", 2, True, True),
    ("quantisation", "int8", False, False),
    ("decoding", "beam 4", True, True),
    ("prompting", '{"system_instruction": "Be brief."}', False, True),
    ("name", "./base + ./lora", None, False),
)


def test_of_every_field_of_a_model_it_is_known_what_it_decides() -> None:
    assert [name for name, *_ in FIELDS] == [
        field.name for field in dataclasses.fields(Fingerprint)
    ]


def blessed(*helpers: Fingerprint, judge: str = "rules", **more: Any) -> Baseline:
    return dataclasses.replace(
        session_baseline(MODEL, [], judge=judge, helpers=helpers), **more
    )


OTHER = dataclasses.replace(
    MODEL, scoring_version=2, tokenizer_digest="x", device="cuda"
)
NO_MODEL = blessed(model=None)


WRITER = dataclasses.replace(JUDGE, spec="openai/writer")
REWRITER = dataclasses.replace(WRITER, architecture="newer")
WROTE = "writer of distractors (openai/writer and openai/writer: architecture ('newer' and 'judge'))"
RULES = "judge (rules and openai/judge)"
SCORING = "scoring_version (2 and 1)"


BY_RULES = blessed(JUDGE, judge="openai/judge")


@pytest.mark.parametrize(
    ("model", "baseline", "judged", "helpers", "result"),
    [
        (MODEL, blessed(), True, (), ()),
        (OTHER, blessed(), False, (), (SCORING,)),
        (dataclasses.replace(MODEL, name="./base + ./lora"), blessed(), False, (), ()),
        # Who judges matters where somebody does.
        (MODEL, BY_RULES, False, (), ()),
        (MODEL, BY_RULES, True, (), (RULES,)),
        (MODEL, BY_RULES, True, (JUDGE,), ()),
        # A helper that did not judge is no judge.
        (MODEL, blessed(WRITER), True, (), ()),
        # Writers are compared under one name.
        (MODEL, blessed(JUDGE, WRITER), False, (REWRITER,), (WROTE,)),
        (MODEL, blessed(JUDGE, WRITER), False, (WRITER,), ()),
    ],
)
def test_what_forbids_a_comparison(
    model: Fingerprint,
    baseline: Baseline,
    judged: bool,
    helpers: tuple[Fingerprint, ...],
    result: tuple[str, ...],
) -> None:
    comparison = Comparison(
        model=model,
        baseline=baseline,
        judge="openai/judge",
        helper={helper.spec: helper for helper in helpers}.get,
    )
    asked = decided(case(), answers("+" if judged else ""))
    wrote = (("distractors_from", "openai/writer"),)
    assert comparison.differing([dataclasses.replace(asked, settings=wrote)]) == result


# What stands in a run's environment and says nothing of its answers.
NO_VERSIONS = (
    *(
        "commit",
        "workers",
        "helpers_asked",
        "helpers_reused",
        "answers_asked",
        "answers_reused",
    ),
    *(
        "answers_store",
        "answers_not_kept",
        "answers_resumed",
        "tokens_spent",
        "model_load_seconds",
        "engine",
    ),
)


def test_only_versions_that_both_know_are_listed() -> None:
    run = sound(
        environment=tuple(
            (name, "1") for name in (*NO_VERSIONS, "zlib", "numpy", "ours", "gpu")
        )
    )
    older = blessed(
        kbrel_version="0.1.0",
        versions=(
            *((name, "2") for name in (*NO_VERSIONS, "zlib", "numpy", "theirs")),
            ("gpu", ""),
        ),
    )
    assert listed_differences(run, older) == ("numpy (1 and 2)", "zlib (1 and 2)")


@pytest.mark.parametrize(
    ("then", "now", "days"),
    [
        ("2026-01-01T00:00:00+00:00", "2026-06-30T23:59:59+00:00", None),
        ("2026-01-01T00:00:00+00:00", "2026-07-01T00:00:00+00:00", 181),
        ("2020-01-01T00:00:00+00:00", "long ago", None),
        # One with a time zone and one without have no difference.
        ("2020-01-01T00:00:00", "2026-07-01T00:00:00+00:00", None),
    ],
)
def test_half_a_year_is_no_age_yet(then: str, now: str, days: int | None) -> None:
    differences = listed_differences(
        sound(created=now), blessed(kbrel_version="0.1.0", created=then)
    )
    age = f"age: the baseline was blessed {days} days before this run; bless again when you can"
    assert differences == (() if days is None else (age,))


Answer = str | Exception


def answer_git(
    monkeypatch: pytest.MonkeyPatch, head: Answer, status: Answer = ""
) -> list[list[str]]:
    """Let git give these answers; return the commands it gets."""
    seen: list[list[str]] = []

    def run(command: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
        assert (options["check"], options["capture_output"], options["text"]) == (
            True,
            True,
            True,
        )
        assert 0 < options["timeout"] <= 60
        seen.append(command)
        answer = head if "rev-parse" in command else status
        if isinstance(answer, Exception):
            raise answer
        return subprocess.CompletedProcess(command, 0, stdout=answer, stderr="warning")

    monkeypatch.setattr(subprocess, "run", run)
    return seen


@pytest.mark.parametrize(
    ("head", "status", "expected"),
    [
        ("abc123\n", "", "abc123"),
        ("abc123\n", "\n", "abc123"),
        ("abc123\n", " M suites/world.kb.yaml\n", "abc123 with changes"),
        ("", " M x\n", ""),
        (FileNotFoundError("git"), "", ""),
        (subprocess.CalledProcessError(128, "git"), " M x\n", ""),
        (subprocess.TimeoutExpired("git", 10), "", ""),
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad"), "", ""),
        ("abc123\n", subprocess.TimeoutExpired("git", 10), "abc123"),
    ],
)
def test_the_commit_is_told_with_whether_tracked_files_were_changed(
    monkeypatch: pytest.MonkeyPatch, head: Answer, status: Answer, expected: str
) -> None:
    answer_git(monkeypatch, head, status)
    assert commit_of(Path("here")) == expected


def test_git_is_asked_about_the_folder_and_tracked_files_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen = answer_git(monkeypatch, "abc123\n")
    commit_of(Path("here"))
    assert seen == [
        ["git", "-C", "here", "rev-parse", "HEAD"],
        ["git", "-C", "here", "status", "--porcelain", "--untracked-files=no"],
    ]
