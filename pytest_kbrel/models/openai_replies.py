"""What an OpenAI-compatible server replied: the answer in it, and the thought before it."""

from __future__ import annotations

from typing import Any

from pytest_kbrel.models.thoughts import ThoughtMarks, marks_of
from pytest_kbrel.records import Failed, GenerateRequest, record
from pytest_kbrel.wire import whole

# Under which names servers hand out a thought apart from the answer.
_APART = ("reasoning_content", "reasoning")
_NO_ANSWER = ("content_filter", "tool_calls", "function_call")


@record
class Reply:
    """One choice of a server: what it wrote, cut at no stop string.

    ``apart`` is the thought that the server hands out by itself; ``thought_tokens`` is what it counts of it,
    0 where it does not say. ``ended`` tells whether the text came to its end within the limit of tokens.
    """

    content: str
    apart: str = ""
    thought_tokens: int = 0
    prompt_tokens: int = 0
    ended: bool = True

    @property
    def shows_thoughts(self) -> bool:
        """Whether the model thinks before it answers, as far as this reply tells."""
        spent = self.thought_tokens > 0 and not self.content and not self.ended
        return bool(self.apart) or spent or marks_of(self.content) is not None

    @property
    def hides_opening(self) -> bool:
        """Whether it holds the end of a thought without its beginning, which the template has written."""
        found = marks_of(self.content)
        return found is not None and found.closing in self.content and not found.begun_by(self.content)

    def parted(self, marks: ThoughtMarks | None, *, unopened: bool = False) -> tuple[str, str, bool]:
        """Return thought, answer, and whether a thought was left without an end.

        ``marks`` are those the user named, ``None`` for those that are known. ``unopened``: thoughts of this
        model begin without a mark, so that what was cut short without the end of one is a thought.
        """
        found = marks or marks_of(self.content)
        ends = found is not None and found.closing in self.content
        if unopened and not (self.apart or self.ended or ends):
            return self.content.strip(), "", True
        thought, answer = found.split(self.content) if found else ("", self.content)
        parts = [part for part in (self.apart.strip(), thought) if part]
        unclosed = bool(parts) and not answer.strip() and not self.ended
        if found and found.begun_by(self.content) and found.closing not in self.content:
            unclosed = True
        return "\n".join(parts), answer, unclosed


def read_reply(reply: Any) -> Reply | Failed:
    """Return the first choice of what the client received; a reply without one is a :class:`Failed`."""
    choices = getattr(reply, "choices", None)
    if not choices:
        return Failed(error=f"the server's reply holds no answer: {str(reply)[:100]!r}")
    choice = choices[0]
    finish = getattr(choice, "finish_reason", None)
    if finish in _NO_ANSWER:
        return Failed(error=f"the server gave no answer: {finish}")
    message = getattr(choice, "message", choice)
    # A refusal, and a model that spent all its tokens on thinking, leave nothing: an empty answer.
    content = getattr(message, "text" if message is choice else "content", None) or ""
    if not isinstance(content, str):
        return Failed(error=f"the server's reply holds no text: {str(content)[:100]!r}")
    apart = next((said for name in _APART if isinstance(said := getattr(message, name, None), str)), "")
    usage = getattr(reply, "usage", None)
    details = getattr(usage, "completion_tokens_details", None)
    return Reply(
        content=whole(content),
        apart=whole(apart),
        thought_tokens=getattr(details, "reasoning_tokens", None) or 0,
        prompt_tokens=getattr(usage, "prompt_tokens", None) or 0,
        ended=finish != "length",
    )


def cut_at_stop(text: str, request: GenerateRequest) -> tuple[str, bool]:
    """Return a text up to the first stop string, and whether there was one; leading blanks end nothing."""
    text = text.lstrip()
    cut = min((text.find(stop) for stop in request.stop if stop in text), default=len(text))
    return text[:cut].strip(), cut < len(text)
