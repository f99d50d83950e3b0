"""Replies of OpenAI-compatible servers and of batches, read from their JSON, and the tokens they cost."""

from __future__ import annotations

import json
import math
import re
import threading
from typing import Any

from pytest_kbrel.errors import BudgetError, ModelError
from pytest_kbrel.models.chat import ThoughtMarks, marks_of
from pytest_kbrel.models.openai.spec import OpenAISpec
from pytest_kbrel.printing import redacted
from pytest_kbrel.records import Failed, GenerateRequest, record
from pytest_kbrel.serialization import replace_surrogates

# A count of tokens beyond this is none.
_MOST_TOKENS = 10**12

# Log-probabilities may be above 0 by rounding.
_ROUNDING = 1e-3
# vLLM writes this in place of minus infinity and of NaN, neither of which JSON has.
_NO_NUMBER = -9999.0


class Usage:
    """Counter of the tokens of one model in one process, by the ``usage`` of its replies.

    ``read`` are tokens of prompts and ``written`` those of answers; ``unstated`` is the number of replies that
    do not say. Any thread may use it.
    """

    def __init__(self, spec: OpenAISpec) -> None:
        self._spec = spec
        self._lock = threading.Lock()
        self.read = self.written = self.unstated = 0

    def check(self) -> None:
        """Raise :class:`BudgetError` if nothing more may be asked."""
        spec = self._spec
        total = self.read + self.written
        cost = cost_of(self.read, self.written, spec.prices or (0, 0))
        if spec.max_tokens_total is not None and total >= spec.max_tokens_total:
            raise BudgetError(
                f"{spec.text}: the budget of {spec.max_tokens_total:,} tokens (max_tokens_total) is spent "
                f"({total:,})"
            )
        if spec.max_cost is not None and cost >= spec.max_cost:
            raise BudgetError(
                f"{spec.text}: the budget of {spec.max_cost:g} (max_cost) is spent ({cost:,.4f})"
            )

    def add(self, reply: Any) -> None:
        """Count the tokens of a reply.

        Raises :class:`ModelError` for a reply that does not state them, if there is a budget.
        """
        read, written = _tokens_in(reply) if isinstance(reply, dict) else (None, None)
        is_stated = read is not None and written is not None
        if self._spec.has_budget and not is_stated:
            raise ModelError(
                f"{self._spec.text}: the server {self._spec.base_url} states no usage (prompt_tokens and "
                "completion_tokens), so that a budget cannot be kept; allowed: neither max_tokens_total nor "
                "max_cost for this server"
            )
        with self._lock:
            self.read += read or 0
            self.written += written or 0
            self.unstated += not is_stated


def _tokens_in(reply: dict[str, Any]) -> tuple[int | None, int | None]:
    """Return how many tokens were read and written for a reply, ``None`` where it does not say.

    No prompt has 0 tokens.
    """
    # ``meta_info`` is of SGLang's own protocol, and the last form that of llama.cpp.
    stated = reply.get("usage") or reply.get("meta_info")
    names = "prompt_tokens", "completion_tokens"
    if not isinstance(stated, dict):
        stated, names = reply, ("tokens_evaluated", "tokens_predicted")
    read, written = (count_of(stated.get(name)) for name in names)
    if written is None and read is not None:
        # Of embeddings there are no others.
        total = count_of(stated.get("total_tokens"))
        written = None if total is None else max(0, total - read)
    return read or None, written


def cost_of(read: int, written: int, prices: tuple[float, float]) -> float:
    """Return what tokens cost by the prices of a million read and of a million written."""
    return (read * prices[0] + written * prices[1]) / 1e6


def count_of(value: Any) -> int | None:
    """Return a count of tokens in a reply; ``None`` for what is none."""
    return value if type(value) is int and 0 <= value <= _MOST_TOKENS else None


_ENDS = ("stop", "length", "eos", "eos_token", "stop_sequence")
# What stands in a reply where a server has failed, or a model has called a tool.
_IN_PLACE = ("error", "tool_calls", "function_call")
# Under which names servers hand out a thought apart from the answer.
_APART = ("reasoning_content", "reasoning")
# End tokens of models in use, which some servers leave in the text.
_END_TOKEN = re.compile(
    r"</s>|\[eos\]|<(?:\w+:)?eo[admst]>|<end_of_\w+>|<turn\|>|[<\[][|｜](?:[a-z]+_)?"
    r"(?:end|eo[admst]|return|user|observation)(?:[_▁]?\w)*[|｜][>\]]",
    re.I,
)


def failure_of(reply: Any) -> str:
    """Return why a reply holds no answer that has ended, in words; empty where it says nothing of it."""
    choice = _first_choice(reply)
    for part in (reply, choice, _message(choice)):
        for key in _IN_PLACE if isinstance(part, dict) else ():
            if part.get(key):
                return f"the server gave no answer: {key} {excerpt(part[key])}"
    finish = _object(choice).get("finish_reason")
    if finish is None or finish in _ENDS:
        return ""
    return f"the server gave no answer: finish_reason {excerpt(finish)}; allowed: {', '.join(_ENDS)} or null"


@record
class Reply:
    """One choice of a server's reply, cut at no stop string.

    ``apart`` is the thought that the server returns in a field of its own; ``thought_tokens`` is its count of
    it, 0 if it gives none. ``ended`` is True if the text came to its end within the limit of tokens.
    ``tokens`` are the bytes and probabilities of what was written, empty where the server does not say.
    """

    content: str
    apart: str = ""
    thought_tokens: int = 0
    prompt_tokens: int = 0
    ended: bool = True
    tokens: tuple[tuple[bytes, float], ...] = ()

    @property
    def shows_thoughts(self) -> bool:
        """True if this reply shows that the model thinks before it answers."""
        spent = self.thought_tokens > 0 and not self.content and not self.ended
        return bool(self.apart) or spent or marks_of(self.content) is not None

    @property
    def hides_opening(self) -> bool:
        """True if it holds the end of a thought without its beginning, which the template has written."""
        marks = marks_of(self.content)
        return (
            marks is not None
            and marks.closing in self.content
            and not marks.begun_by(self.content)
        )

    def parted(
        self, marks: ThoughtMarks | None, *, unopened: bool = False
    ) -> tuple[str, str, bool]:
        """Return thought, answer, and whether a thought has no end.

        ``marks`` are those the user named, ``None`` for the known ones. ``unopened``: thoughts of this model
        begin without a mark, so that what was cut short without the end of one is a thought.
        """
        marks = marks or marks_of(self.content)
        ends = marks is not None and marks.closing in self.content
        if unopened and not (self.apart or self.ended or ends):
            return self.content.strip(), "", True
        thought, answer = marks.split(self.content) if marks else ("", self.content)
        parts = [part for part in (self.apart.strip(), thought) if part]
        unclosed = bool(parts) and not answer.strip() and not self.ended
        if marks and marks.begun_by(self.content) and not ends:
            unclosed = True
        return "\n".join(parts), answer, unclosed

    def probabilities(self, text: str, thought: str) -> list[float]:
        """Return the probabilities of an answer's tokens; of an empty one those of its end.

        There are none unless the tokens are the answer, or end with it behind the thought.
        """
        values: list[float] = []
        tokens, tail = [*self.tokens], b""
        while tokens and (not tail or tail.strip() != text.encode()):
            piece, value = tokens.pop()
            if tail or not _ends(piece):
                tail, values = piece + tail, [value, *values]
        before = b"".join(piece for piece, _ in tokens)
        is_behind = not before.strip() or (thought and thought.encode() in before)
        if tail.strip() != text.encode() or not is_behind:
            return []
        return values or [value for _, value in self.tokens]


def read_reply(reply: Any) -> Reply | Failed:
    """Return the first choice of a reply's JSON; a reply without an answer is a :class:`Failed`."""
    if why := failure_of(reply):
        return Failed(error=why)
    choice = _first_choice(reply)
    message = _message(choice)
    if not isinstance(message, dict):
        return Failed(error=f"the server's reply holds no answer: {excerpt(reply)}")
    # A refusal, and a model that spent all its tokens on thinking, leave nothing: an empty answer.
    content = message.get("text" if message is choice else "content")
    if content is not None and not isinstance(content, str):
        return Failed(error=f"the server's reply holds no text: {excerpt(content)}")
    apart = next(
        (text for name in _APART if isinstance(text := message.get(name), str)), ""
    )
    usage = _object(reply.get("usage"))
    try:
        tokens = _tokens(_object(choice.get("logprobs")))
    except (AttributeError, LookupError, TypeError, ValueError):
        tokens = ()
    return Reply(
        content=replace_surrogates(content or ""),
        apart=replace_surrogates(apart),
        # Not every server counts tokens, and no answer depends on it.
        thought_tokens=count_of(
            _object(usage.get("completion_tokens_details")).get("reasoning_tokens")
        )
        or 0,
        prompt_tokens=count_of(usage.get("prompt_tokens")) or 0,
        ended=choice.get("finish_reason") != "length",
        tokens=tokens,
    )


def served_by(reply: dict[str, Any]) -> set[str]:
    """Return the model's name in a reply with its system fingerprint; nothing where it has neither."""
    names = (reply.get("model"), reply.get("system_fingerprint"))
    both = " ".join(name for name in names if isinstance(name, str))
    return {replace_surrogates(both)} - {""}


def cut_at_stop(text: str, request: GenerateRequest) -> tuple[str, bool]:
    """Return a text up to the first stop string or end token, and whether there was one.

    Leading blanks end nothing.
    """
    text = text.lstrip()
    cuts = [text.find(stop) for stop in request.stop if stop in text]
    cuts += [end.start() for end in _END_TOKEN.finditer(text)]
    cut = min(cuts, default=len(text))
    return text[:cut].strip(), cut < len(text)


def excerpt(value: Any) -> str:
    """Return the beginning of a part of a reply, for messages."""
    try:
        text = value if isinstance(value, str) else json.dumps(value)
    except RecursionError:
        return "something that is nested too deeply"
    # Before it is cut: half a key is one too.
    return repr(replace_surrogates(redacted(text))[:100])


def _first_choice(reply: Any) -> Any:
    choices = _object(reply).get("choices")
    return choices[0] if isinstance(choices, list) and choices else None


def _message(choice: Any) -> Any:
    # Over the endpoint ``completions`` the text stands in the choice itself.
    return _object(choice).get("message", choice)


def _tokens(logprobs: dict[str, Any]) -> tuple[tuple[bytes, float], ...]:
    """Return the tokens of a choice; what is no list of tokens raises an error of Python's own."""
    if (entries := logprobs.get("content")) is None:
        # The endpoint ``completions`` has two lists.
        pairs = zip(logprobs["tokens"], logprobs["token_logprobs"], strict=True)
        entries = [{"token": token, "logprob": value} for token, value in pairs]
    return tuple(
        (
            # A character may have several tokens, which only its bytes tell.
            bytes([*(entry.get("bytes") or entry["token"].encode())]),
            min(1.0, round(math.exp(log_probability(entry["logprob"])), 6)),
        )
        for entry in entries
    )


def _ends(piece: bytes) -> bool:
    text = piece.decode(errors="replace").strip()
    return not text or _END_TOKEN.fullmatch(text) is not None


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def log_probability(value: Any) -> float:
    """Return a log-probability (nats) in a reply; raises ``ValueError`` for what is none."""
    if value is None:
        raise ValueError(
            "no log-probability of a token that was sent: a prefix cache may have left it out"
        )
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or not -math.inf < value <= _ROUNDING
    ):
        raise ValueError(f"not a log-probability: {str(value)[:40]}")
    if value == _NO_NUMBER:
        raise ValueError(
            f"not a log-probability: {value} stands for minus infinity or NaN"
        )
    return float(value)
