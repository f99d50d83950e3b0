"""How a fact was asked, as one short text in parts: two outcomes are comparable where it is the same."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import re
from collections.abc import Iterable

from pytest_kbrel.records.suite import Case, Settings
from pytest_kbrel.records.vocabulary import DEFAULT_LANGUAGE, LANGUAGES, base_language, record
from pytest_kbrel.records.wording import WORDING_FIELDS

# How examples are found, and what stands beside a question, is no part of how a fact is asked.
_BESIDE = ("retrieval", "controls")
_NO_RULES = " (no rules)"
_FORM = re.compile(r"([0-9a-f]{8})\.(\d+)/(\d+)\.([0-9a-f]{8})\.([0-9a-f]{8})\.([0-9a-f]{8})")


@record
class Digest:
    """The parts of :attr:`Outcome.prompt_digest`, written ``prompts.BOS/COUNT.settings.accepted.draws``.

    ``prompts`` is a digest of the token ids of all ``count`` prompts, BOS left out; ``bos`` is how many of
    them begin with BOS. ``settings`` is a digest of the probe's settings, ``accepted`` one of the accepted
    answers and their type, ``draws`` one of what else fixes the questions. Digests have 8 hex digits.
    """

    prompts: str
    bos: int
    count: int
    settings: str
    accepted: str
    draws: str

    def __str__(self) -> str:
        return f"{self.prompts}.{self.bos}/{self.count}.{self.settings}.{self.accepted}.{self.draws}"


def read_digest(text: str) -> Digest | None:
    """Return the parts of a digest; ``None`` where the text has another form."""
    found = _FORM.fullmatch(text)
    if found is None:
        return None
    prompts, bos, count, settings, accepted, draws = found.groups()
    return Digest(
        prompts=prompts, bos=int(bos), count=int(count), settings=settings, accepted=accepted, draws=draws
    )


def short_digest(value: object) -> str:
    """Return 8 hex digits of sha256 over something that has a JSON form."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:8]


def settings_of(case: Case) -> tuple[tuple[str, str], ...]:
    """Return the settings under which a case asks and judges, as pairs of name and value.

    These are all of them, but for a wording that is the probe's own.
    """
    default = type(case.settings)()
    found = {
        field.name: _told(getattr(case.settings, field.name))
        for field in _fields(case.settings)
        if field.name not in WORDING_FIELDS
        or getattr(case.settings, field.name) != getattr(default, field.name)
    }
    if case.uninformative:
        found["uninformative"] = f"{len(case.uninformative)} rules ({short_digest(case.uninformative)})"
    # A case has few languages, however many facts.
    languages = {base_language(tag) for tag in {fact.language for fact in case.facts}}
    if languages - {DEFAULT_LANGUAGE}:
        found["language"] = ", ".join(map(_language, sorted(languages)))
    return tuple(sorted(found.items()))


def _told(value: object) -> str:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, tuple) else str(value)


def unsupported_languages(settings: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """Return the languages in the settings of a case for which the judge has no rules."""
    told = dict(settings).get("language", "")
    return tuple(part.removesuffix(_NO_RULES) for part in told.split(", ") if part.endswith(_NO_RULES))


def _language(language: str) -> str:
    return language if language in LANGUAGES else f"{language}{_NO_RULES}"


def changed_digest(case: Case, language: str = "") -> str:
    """Return the short digest of the settings of a case that are not the default ones, and a fact's language.

    A setting that a later version brings then leaves what was asked without it comparable.
    """
    return _changed_digest(case.settings, case.uninformative, base_language(language))


# All facts of a case are asked under the same ones.
@functools.lru_cache
def _changed_digest(settings: Settings, uninformative: tuple[tuple[str, str], ...], language: str) -> str:
    default = type(settings)()
    found = {
        field.name: getattr(settings, field.name)
        for field in _fields(settings)
        if getattr(settings, field.name) != getattr(default, field.name)
    }
    if uninformative:
        found["uninformative"] = uninformative
    if language != DEFAULT_LANGUAGE:
        found["language"] = language
    return short_digest(found)


def _fields(settings: Settings) -> list[dataclasses.Field[object]]:
    return [field for field in dataclasses.fields(settings) if field.name not in _BESIDE]
