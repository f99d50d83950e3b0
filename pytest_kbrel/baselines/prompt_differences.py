"""What differs between two ways of asking the same facts, in words: out of their digests."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from pytest_kbrel.records import OWN_WORDING, WORDING_FIELDS, Digest, read_digest

# A fact's id with the digests of candidate and baseline.
Asked = tuple[str, str, str]
_SETTINGS = "settings"
_LONGEST = 60


def setting_differences(
    ours: Iterable[tuple[str, str]], theirs: Iterable[tuple[str, str]]
) -> tuple[tuple[str, str, str], ...]:
    """Return the settings that both have and that differ: (name, ours, theirs).

    A wording that one of them does not have is the probe's own.
    """
    before, now = dict(theirs), dict(ours)
    found = []
    for name in (*now, *(name for name in before if name not in now)):
        other = OWN_WORDING if name in WORDING_FIELDS else None
        mine, given = now.get(name, other), before.get(name, other)
        if mine is not None and given is not None and mine != given:
            found.append((name, mine, given))
    return tuple(found)


def asked_differently(
    asked: Sequence[Asked],
    settings: Sequence[tuple[str, str, str]] = (),
    *,
    another_tokenizer: bool = False,
) -> str:
    """Return in words what differs in the way ``asked`` facts were asked, nothing where nothing does.

    ``settings`` are the differing ones of the two cases. ``another_tokenizer``: the two models have not the
    same one, which then is why token ids differ.
    """
    parts = [(fact, read_digest(ours), read_digest(theirs)) for fact, ours, theirs in asked]
    known = [(fact, ours, theirs) for fact, ours, theirs in parts if ours is not None and theirs is not None]
    found = [
        *_bos(known),
        *_words(known, "the token ids of the prompts", lambda of: (of.prompts, of.count)),
        *_words(known, _SETTINGS, lambda of: of.settings),
        *_words(known, "accepted answers", lambda of: of.accepted),
        *_words(known, "the draws (seed, distractors, contexts)", lambda of: of.draws),
    ]
    if another_tokenizer:
        found = [f"{words}: another tokenizer" if "token ids" in words else words for words in found]
    if settings:
        listed = ", ".join(f"{name} ({_shown(mine)} and {_shown(given)})" for name, mine, given in settings)
        found = [f"{_SETTINGS} {listed}" if words.startswith(_SETTINGS) else words for words in found]
    told = {fact for fact, _, _ in known}
    unknown = [fact for fact, ours, theirs in asked if ours != theirs and fact not in told]
    if unknown:
        found.append(
            f"the way {len(unknown)} of {_facts(len(asked))} were asked (prompts, settings, accepted answers "
            f"or draws; first: {unknown[0]})"
        )
    return "; ".join(found)


def _shown(value: str) -> str:
    return value if len(value) <= _LONGEST else f"{value[: _LONGEST - 3]}..."


def _bos(known: Sequence[tuple[str, Digest, Digest]]) -> list[str]:
    prompts = sum(ours.count for _, ours, _ in known)
    same = [(ours, theirs) for _, ours, theirs in known if ours.count == theirs.count]
    missing = sum(max(0, theirs.bos - ours.bos) for ours, theirs in same)
    added = sum(max(0, ours.bos - theirs.bos) for ours, theirs in same)
    found = (("missing", missing), ("added", added))
    return [f"BOS {word} on {number} of {prompts} prompts" for word, number in found if number]


def _words(
    known: Sequence[tuple[str, Digest, Digest]], what: str, part: Callable[[Digest], object]
) -> list[str]:
    facts = [fact for fact, ours, theirs in known if part(ours) != part(theirs)]
    if not facts:
        return []
    return [f"{what} on {len(facts)} of {_facts(len(known))} (first: {facts[0]})"]


def _facts(n: int) -> str:
    return f"{n} fact{'' if n == 1 else 's'}"
