"""Texts with places to fill in: the question, the examples before it, the options of a multiple choice."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence

from pytest_kbrel.records import ANSWER_CUE, record

QUESTION, OPTIONS, EXAMPLES = "{question}", "{options}", "{examples}"
_PLACE = re.compile(r"\{(question|options)\}")
_BLANK_LINE = "\n\n"

Examples = Sequence[tuple[str, str]]
"""Questions with their answers."""


@record
class Template:
    """A text around a question. ``cue``, unless it is empty, stands behind it on a line of its own.

    ``lead`` is what stands before ``{examples}``, once at the beginning; ``block``, all that stands behind,
    is put around the question of each example too, and ``gap`` parts them. Without ``{examples}`` the whole
    text is the block.
    """

    lead: str
    gap: str
    block: str
    cue: str

    def question(self, question: str, options: str = "") -> str:
        """Return a question with its options, as it is put."""
        values = {"question": question, "options": options}
        # In one go: a question may have braces of its own.
        text = _PLACE.sub(lambda found: values[found[1]], self.block)
        return f"{text}\n{self.cue}" if self.cue else text

    def example(self, question: str, answer: str) -> str:
        """Return an example in the text of a prompt, with what parts it from the next."""
        # Where nothing leads an answer, it would read on from the question.
        parted = "\n" if not self.cue and self.block.endswith(QUESTION) else " "
        return f"{self.question(question)}{parted}{answer}{self.gap}"

    def in_text(self, question: str, examples: Examples = ()) -> str:
        """Return a question with its examples as one text."""
        shown = "".join(self.example(*example) for example in examples)
        return self.lead + shown + self.question(question)

    def in_turns(self, question: str, examples: Examples = ()) -> tuple[tuple[tuple[str, str], ...], str]:
        """Return examples as turns of a conversation and the question; the first of all has the lead."""
        asked = [self.question(one) for one in (*(example[0] for example in examples), question)]
        asked[0] = self.lead + asked[0]
        answers = (answer for _, answer in examples)
        return tuple(zip(asked, answers, strict=False)), asked[-1]


@functools.lru_cache
def template(text: str, cue: str | None = ANSWER_CUE, own_cue: str = ANSWER_CUE) -> Template:
    """Read a text; ``cue`` is ``own_cue`` where it is ``None`` and the text ends in a place to fill in."""
    text = text.strip()
    if cue is None:
        cue = own_cue if text.endswith((QUESTION, OPTIONS)) else ""
    lead, found, behind = text.partition(EXAMPLES)
    if not found:
        return Template(lead="", gap=_BLANK_LINE, block=text, cue=cue)
    block = behind.lstrip()
    return Template(lead=lead, gap=behind.removesuffix(block) or _BLANK_LINE, block=block, cue=cue)
