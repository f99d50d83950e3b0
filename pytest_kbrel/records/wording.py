"""How a probe words its questions, where a suite does not leave that to the paper's own wording."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from typing import Literal

from pytest_kbrel.records.vocabulary import record

# What leads an answer, unless a suite says otherwise.
ANSWER_CUE = "Answer:"
# A name in braces; other braces stand for themselves.
_PLACEHOLDER = re.compile(r"\{(\w+)\}")


@record
class Wording:
    """What stands around a question. ``None`` stands for the probe's own wording.

    ``prompt_text`` has ``{question}`` where the question goes and may have ``{examples}`` where the examples
    do; ``answer_cue`` is the line behind it. ``system`` is the system message, and an answer ends at one of
    the ``stop`` strings.
    """

    prompt_text: str | None = None
    system: str = ""
    answer_cue: str | None = None
    stop: tuple[str, ...] | None = None

    @property
    def own_stop(self) -> tuple[str, ...]:
        """Where an answer ends unless the suite says otherwise: at the first line break."""
        return ("\n",)

    @property
    def shown(self) -> tuple[int, int]:
        """How many examples with and without an answer are chosen by likeness to stand before a question."""
        return (0, 0)

    @property
    def encoder(self) -> str:
        """The spec of the encoder that finds what is most alike; empty where no model does."""
        return ""

    @property
    def writer(self) -> str:
        """The spec of the model that writes distractors; empty where no model does."""
        return ""

    @property
    def follows_answers(self) -> bool:
        """Whether what is asked depends on earlier answers of the model under test."""
        return False


@record
class ExampleWording(Wording):
    """The wording of a probe that shows examples: in the prompt's ``text``, or as earlier ``turns``."""

    example_style: Literal["text", "turns"] = "text"


# By these names settings say how a case was worded; what is the probe's own is not said.
WORDING_FIELDS = (*(field.name for field in dataclasses.fields(ExampleWording)), "choice_prompt")
OWN_WORDING = "the probe's own"


def template_error(text: str, needed: Sequence[str], allowed: Sequence[str] = ()) -> str:
    """Return what is wrong with a text that has places to fill in; empty where it is right.

    Each of the ``needed`` names stands in it once, in braces; each of the ``allowed`` at most once, and in
    front of these.
    """
    names = _PLACEHOLDER.findall(text)
    known = ", ".join(f"{{{name}}}" for name in (*needed, *allowed))
    for name in names:
        if name not in (*needed, *allowed):
            return f"unknown placeholder {{{name}}}; allowed: {known}"
    for name in needed:
        if names.count(name) != 1:
            found = f"{names.count(name)} times" if name in names else "nowhere"
            return f"{{{name}}} must stand in it once, found {found}"
    for name in allowed:
        if names.count(name) > 1:
            return f"{{{name}}} may stand in it once, found {names.count(name)} times"
        if name in names and names.index(name) > min(map(names.index, needed)):
            return f"{{{name}}} must stand before {{{needed[0]}}}"
    return ""
