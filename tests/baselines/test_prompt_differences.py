from __future__ import annotations

import dataclasses

from hypothesis import given
from hypothesis import strategies as st

from pytest_kbrel.baselines import prompt_differences, setting_differences
from pytest_kbrel.probes.base import digest_of
from pytest_kbrel.records import (
    Case,
    Digest,
    Fact,
    Generated,
    read_digest,
    settings_of,
)
from tests.gates.tables import case

FACT = Fact(
    id="Q1", relation="P36", subject="France", object="Paris", aliases=("Lutetia",)
)


def said(prompt_digest: str) -> Generated:
    return Generated(
        text="Paris",
        token_ids=(),
        finish="stop",
        prompt_tokens=3,
        prompt_digest=prompt_digest,
    )


def digest(
    of: Case, *prompts: str, fact: Fact = FACT, draws: tuple[str, ...] = ()
) -> str:
    return digest_of(of, fact, [said(prompt) for prompt in prompts], draws)


A, B = "a" * 16, "b" * 16


def words(*pairs: tuple[str, str], **more: object) -> str:
    digests = [(f"Q{number}", *pair) for number, pair in enumerate(pairs)]
    return prompt_differences(digests, **more)  # type: ignore[arg-type]


def test_other_token_ids_and_why() -> None:
    pairs = [
        (digest(case(), A), digest(case(), A)),
        (digest(case(), A), digest(case(), B)),
    ]
    assert words(*pairs) == "the token ids of the prompts on 1 of 2 facts (first: Q1)"
    assert words(*pairs, another_tokenizer=True).endswith(
        "(first: Q1): another tokenizer"
    )


def made(**parts: object) -> str:
    given = {
        "prompts": "a" * 8,
        "bos": 0,
        "count": 2,
        "settings": "b" * 8,
        "accepted": "c" * 8,
    }
    return str(Digest(**{**given, "draws": "d" * 8, **parts}))  # type: ignore[arg-type]


def test_the_language_of_a_fact_is_a_setting() -> None:
    german = dataclasses.replace(FACT, language="de")
    other = case(facts=(german,))
    assert dict(settings_of(other))["language"] == "de"
    assert words((digest(case(), A), digest(other, A, fact=german))).startswith(
        "settings on 1 of 1 fact"
    )
    # What is stated and what is the default are one.
    stated = dataclasses.replace(FACT, language="en")
    assert digest(case(facts=(stated,)), A, fact=stated) == digest(case(), A)
    assert settings_of(case(facts=(stated,))) == settings_of(case())


def test_several_things_at_once_are_all_told() -> None:
    other = dataclasses.replace(FACT, aliases=())
    result = words((digest(case(), A + "b"), digest(case(), B, fact=other)))
    assert [part.split(" on ")[0] for part in result.split("; ")] == [
        "BOS added",
        "the token ids of the prompts",
        "accepted answers",
    ]


def test_digests_of_another_form_differ_as_a_whole() -> None:
    way = "of 2 facts were asked (prompts, settings, accepted answers or draws; first: "
    assert words(("x", "x"), ("old", "older")) == f"the way 1 {way}Q1)"
    assert words(("old", made()), (made(), "old")) == f"the way 2 {way}Q0)"
    both = words((made(), made(draws="f" * 8)), ("old", made()))
    assert (
        both
        == f"the draws (seed, distractors, contexts) on 1 of 1 fact (first: Q0); the way 1 {way}Q1)"
    )


HEX = st.text("0123456789abcdef", min_size=8, max_size=8)


@given(HEX, st.integers(0, 99), st.integers(0, 99), HEX, HEX, HEX)
def test_a_digest_is_read_as_it_was_written(
    prompts: str, bos: int, count: int, settings: str, accepted: str, draws: str
) -> None:
    written = Digest(
        prompts=prompts,
        bos=bos,
        count=count,
        settings=settings,
        accepted=accepted,
        draws=draws,
    )
    assert read_digest(str(written)) == written


def test_a_wording_that_one_of_the_two_does_not_have_is_the_probes_own() -> None:
    own = "the probe's own"
    assert setting_differences([("system", "s")], []) == (("system", "s", own),)
    assert setting_differences([], [("stop", "x")]) == (("stop", own, "x"),)
    assert (
        setting_differences([("seed", "1")], [])
        == setting_differences([], [("seed", "1")])
        == ()
    )


def test_a_long_setting_is_told_in_short() -> None:
    result = prompt_differences(
        [
            (
                "f",
                "00000000.0/1.aaaaaaaa.00000000.00000000",
                "00000000.0/1.bbbbbbbb.00000000.00000000",
            )
        ],
        [("prompt_text", "x" * 61, "y" * 60)],
    )
    assert f"prompt_text ({'x' * 57}... and {'y' * 60})" in result
