"""What cannot be compared and is known before the first question: refused, with what to type."""

import json
import shutil

import pytest

from tests.plugin.conftest import (
    GATE,
    RELATIVE,
    RENAMED,
    facts_file,
    one_line,
)

BLESS = "--kb-baseline-update=prod"
AGAINST = "--kb-baseline=prod"


@pytest.fixture
def bless(pytester, mini_suite):
    """Bless the suite with the model that knows; ``model`` is what its fingerprint is changed to."""

    def made(*flags, **model):
        mini_suite(RELATIVE)
        assert pytester.runpytest(*GATE, BLESS, *flags).ret == 0
        path = pytester.path / "baselines/prod/baseline.json"
        meta = json.loads(path.read_text("utf-8"))
        meta["model"] |= model
        path.write_text(json.dumps(meta), "utf-8")
        shutil.rmtree(pytester.path / "kbrel-report")

    return made


@pytest.fixture
def refused(pytester):
    """Compare and return what is said of a run that is refused before it asked anything."""

    def said(*flags):
        result = pytester.runpytest(*GATE, AGAINST, *flags)
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        assert not (pytester.path / "kbrel-report/report.json").exists()
        assert "bless it anyway" not in one_line(result)
        return " ".join(result.stderr.str().split())

    return said


@pytest.mark.parametrize("limit", ["3", "0.5"])
def test_a_limited_run_is_blessed_and_compared_at_its_limit_alone(
    pytester, bless, refused, report, limit
):
    bless(f"--kb-limit={limit}")
    assert pytester.runpytest(*GATE, AGAINST, f"--kb-limit={limit}").ret == 0
    assert report()["summary"]["not comparable"] == 0
    shutil.rmtree(pytester.path / "kbrel-report")
    for other in ((), ("--kb-limit=2",)):
        said = refused(*other)
        assert f"blessed with --kb-limit={limit}, found here: " in said
        assert f"; type --kb-limit={limit}, or --kb-baseline= to" in said


def test_a_limited_run_is_compared_with_a_baseline_of_all_facts(pytester, bless):
    bless()
    assert pytester.runpytest(*GATE, AGAINST, "--kb-limit=3").ret == 0


@pytest.mark.parametrize(
    ("blessed", "flags", "typed"),
    [
        (("--kb-seed=7",), (), "type --kb-seed=7,"),
        ((), ("--kb-seed=7",), "type the command without --kb-seed,"),
    ],
)
def test_another_seed_draws_other_questions(bless, refused, blessed, flags, typed):
    bless(*blessed)
    said = refused(*flags)
    assert "differ in the draws (seed, distractors, contexts) on " in said
    assert typed in said


@pytest.mark.parametrize(
    ("model", "words", "typed", "more"),
    [
        (
            {"chat_template": True},
            "chat_template (False and True)",
            "type --kb-apply-chat-template,",
            (),
        ),
        (
            {"scoring_version": 1},
            "scoring_version (",
            "type --kb-model=scripted/knows.jsonl --kb-baseline-update=prod to bless",
            (),
        ),
        pytest.param(
            {"decoding": "temperature 0, seed 4"},
            "decoding ('greedy' and 'temperature 0, seed 4')",
            "type --kb-model-args=seed=4,",
            ("-n2",),
            marks=pytest.mark.slow,
        ),
    ],
)
def test_what_models_must_share_is_named_with_its_flag(
    bless, refused, model, words, typed, more
):
    bless(**model)
    said = refused(*more)
    assert f"candidate and baseline differ in {words}" in said
    assert typed in said


def test_other_facts_and_another_judge_are_refused(bless, refused, mini_suite, judge):
    bless()
    assert "type --kb-judge=rules," in refused(*judge)
    mini_suite(RELATIVE, facts_file(RENAMED))
    said = refused()
    assert "accepted answers on " in said
    assert "type --kb-model=scripted/knows.jsonl --kb-baseline-update=prod to" in said
    mini_suite(RELATIVE, facts_file().replace('"subject": "', '"subject": "New '))
    assert "are not in the baseline" in refused()


def test_a_run_that_blesses_anew_may_differ(pytester, bless, mini_suite):
    bless("--kb-limit=3")
    result = pytester.runpytest(*GATE, AGAINST, BLESS)
    assert "blessed as prod" in one_line(result)


def test_the_prompts_of_a_checkpoint_are_known_without_its_weights(
    pytester, mini_suite
):
    mini_suite(RELATIVE)
    result = pytester.runpytest(
        "suites",
        "--kb-model=reference",
        "--kb-baseline-model=reference,add_bos_token=False",
    )
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    said = " ".join(result.stderr.str().split())
    assert (
        "BOS added on 8 of 8 prompts; type --kb-model-args=add_bos_token=False" in said
    )
