from __future__ import annotations

import dataclasses

from hypothesis import given
from hypothesis import strategies as st

from pytest_kbrel.baselines import prompt_differences
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


def test_bos_is_told_from_other_prompts_and_counted_by_prompt() -> None:
    with_bos, without = digest(case(), A + "b", B + "b"), digest(case(), A, B)
    same = (with_bos, with_bos)
    assert (
        words((without, with_bos), (without, with_bos))
        == "BOS missing on 4 of 4 prompts"
    )
    assert words((with_bos, without), same) == "BOS added on 2 of 4 prompts"
    assert (
        words((digest(case(), A + "b", B), with_bos)) == "BOS missing on 1 of 2 prompts"
    )


def test_rules_of_ones_own_are_settings() -> None:
    own = case(uninformative=(("unsure", "no idea"),))
    pair = (digest(case(), A), digest(own, A))
    assert words(pair).startswith("settings on 1 of 1 fact")
    ((name, value),) = set(settings_of(own)) - set(settings_of(case()))
    assert (name, value.split()[0]) == ("uninformative", "1")


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
