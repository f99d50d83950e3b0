"""The marks between which a model writes down its thoughts, and what lies between them.

A thought is what a model writes before its answer and shows to nobody. It is recorded, and never judged.
"""

from __future__ import annotations

from collections.abc import Iterable

from pytest_kbrel.records import record


@record
class ThoughtMarks:
    """The texts that open and close a thought; ``opening`` is empty where only the end is known."""

    opening: str
    closing: str

    def opened_by(self, prompt: str) -> bool:
        """Tell whether a prompt ends inside a thought."""
        return bool(self.opening) and prompt.rfind(self.opening) > prompt.rfind(self.closing)

    def begun_by(self, written: str) -> bool:
        """Tell whether what a model wrote begins with a thought."""
        return bool(self.opening) and written.lstrip().startswith(self.opening)

    def split(self, written: str) -> tuple[str, str]:
        """Return the thought in what was written, without its marks, and what stands behind it.

        Without a closing mark all of it is thought where it begins with one, else none.
        """
        thought, closing, answer = written.partition(self.closing)
        if not closing and not self.begun_by(written):
            return "", written
        return thought.strip().removeprefix(self.opening).strip(), answer


# Of models in use, with the marks that their templates or tokenizers declare.
KNOWN = (
    ThoughtMarks(opening="<think>", closing="</think>"),
    ThoughtMarks(opening="<thinking>", closing="</thinking>"),
    ThoughtMarks(opening="<thought>", closing="</thought>"),
    ThoughtMarks(opening="<reasoning>", closing="</reasoning>"),
    ThoughtMarks(opening="[THINK]", closing="[/THINK]"),
    ThoughtMarks(opening="<seed:think>", closing="</seed:think>"),
    ThoughtMarks(opening="<|START_THINKING|>", closing="<|END_THINKING|>"),
    ThoughtMarks(opening="<|begin_of_thought|>", closing="<|end_of_thought|>"),
    ThoughtMarks(opening="◁think▷", closing="◁/think▷"),
    ThoughtMarks(opening="<|channel>thought", closing="<channel|>"),
    ThoughtMarks(opening="<|channel|>analysis<|message|>", closing="<|channel|>final<|message|>"),
)


def marks_in(*declaring: Iterable[str] | str, closing: str = "") -> ThoughtMarks | None:
    """Return the marks that a template's text or a tokenizer's own tokens declare, ``None`` without any.

    What is named first holds: a tokenizer may have the tokens of several, and the template uses one.
    ``closing`` is what the user says that ends a thought: it holds, whatever else is declared.
    """
    if closing:
        known = (marks.opening for marks in KNOWN if marks.closing == closing)
        return ThoughtMarks(opening=next(known, ""), closing=closing)
    return next((marks for texts in declaring for marks in KNOWN if marks.closing in texts), None)


def marks_opened_by(prompt: str) -> ThoughtMarks | None:
    """Return the known marks of the thought that a prompt ends inside of, ``None`` where it ends in none."""
    return next((marks for marks in KNOWN if marks.opened_by(prompt)), None)


def marks_of(written: str) -> ThoughtMarks | None:
    """Return the known marks that a text begins with or that close a thought in it, ``None`` without any."""
    return next((marks for marks in KNOWN if marks.begun_by(written) or marks.closing in written), None)
