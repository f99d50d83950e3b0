"""What an OpenAI-compatible server replied: the answer in it, and the thought before it."""

from __future__ import annotations

import json
from typing import Any

from pytest_kbrel.models.chat.thoughts import ThoughtMarks, marks_of
from pytest_kbrel.printing import redacted
from pytest_kbrel.records import Failed, GenerateRequest, record
from pytest_kbrel.serialization import whole

# Under which names servers hand out a thought apart from the answer.
_APART = ("reasoning_content", "reasoning")
_NO_ANSWER = ("content_filter", "tool_calls", "function_call")
# A count of tokens beyond this is none.
_MOST_TOKENS = 10**12


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


def read_json(content: bytes) -> Any | Failed:
    """Return a reply's JSON as builtins, of equal keys the last; what is none is a :class:`Failed`.

    NaN and infinity are let through, since some servers send them where nothing depends on them.
    """
    try:
        return json.loads(content)
    except RecursionError:
        return Failed(error="the server's reply is no JSON that can be read: it is nested too deeply")
    except UnicodeDecodeError as error:
        return Failed(error=f"the server's reply is no UTF-8: byte {error.start} of {len(content)}")
    except json.JSONDecodeError as error:
        return Failed(error=f"the server's reply is no JSON ({error.msg}): {_shown(content)}")
    except ValueError:
        # Python reads no integers of more than some thousand digits.
        return Failed(error=f"the server's reply holds a number that is too long: {_shown(content)}")


def read_reply(reply: Any) -> Reply | Failed:
    """Return the first choice of a reply's JSON; a reply without one is a :class:`Failed`."""
    choices = reply.get("choices") if isinstance(reply, dict) else None
    choice = choices[0] if isinstance(choices, list) and choices else None
    # Over the endpoint ``completions`` the text stands in the choice itself.
    message = choice.get("message", choice) if isinstance(choice, dict) else None
    if not (isinstance(choice, dict) and isinstance(message, dict)):
        return Failed(error=f"the server's reply holds no answer: {_shown(reply)}")
    finish = choice.get("finish_reason")
    if finish is not None and not isinstance(finish, str):
        return Failed(error=f"the server's finish_reason is no text: {_shown(finish)}")
    if finish in _NO_ANSWER:
        return Failed(error=f"the server gave no answer: {finish}")
    # A refusal, and a model that spent all its tokens on thinking, leave nothing: an empty answer.
    content = message.get("text" if message is choice else "content")
    if content is not None and not isinstance(content, str):
        return Failed(error=f"the server's reply holds no text: {_shown(content)}")
    apart = next((said for name in _APART if isinstance(said := message.get(name), str)), "")
    usage = _object(reply.get("usage"))
    return Reply(
        content=whole(content or ""),
        apart=whole(apart),
        thought_tokens=_count(_object(usage.get("completion_tokens_details")).get("reasoning_tokens")),
        prompt_tokens=_count(usage.get("prompt_tokens")),
        ended=finish != "length",
    )


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _count(value: Any) -> int:
    """Return a count of tokens, 0 where it is none: not every server counts, and no answer depends on it."""
    return value if type(value) is int and 0 <= value <= _MOST_TOKENS else 0


def _shown(value: Any) -> str:
    """Return the beginning of a part of a reply."""
    try:
        text = value.decode(errors="replace") if isinstance(value, bytes) else json.dumps(value)
    except RecursionError:
        return "something that is nested too deeply"
    # Before it is cut: half a key is one too.
    return repr(whole(redacted(text))[:100])


def cut_at_stop(text: str, request: GenerateRequest) -> tuple[str, bool]:
    """Return a text up to the first stop string, and whether there was one; leading blanks end nothing."""
    text = text.lstrip()
    cut = min((text.find(stop) for stop in request.stop if stop in text), default=len(text))
    return text[:cut].strip(), cut < len(text)
